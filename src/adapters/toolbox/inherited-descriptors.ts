/**
 * Keeps inherited file descriptors from child processes. This process may have been started with open descriptors
 * (`77<file`, the lock file of flock). Node marks only its own descriptors as close-on-exec, and bubblewrap passes the
 * others on, so a sandboxed command could read these files. The child process gets /dev/null in place of each.
 */
import type { StdioOptions } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';

type Stdio = Exclude<StdioOptions, string>;

const O_CLOEXEC = 0o2000000;

/** Calls `start` with a `stdio` that also replaces every inherited descriptor by /dev/null. */
export function withoutInheritedDescriptors<T>(stdio: Stdio, start: (stdio: Stdio) => T): T {
  const inherited = inheritedDescriptors().filter((descriptor) => descriptor >= stdio.length);
  // guard: inherited-descriptors-closed
  if (inherited.length === 0) return start(stdio);
  const devNull = openSync('/dev/null', 'r');
  try {
    const allStdio: Stdio = [...stdio];
    for (let descriptor = stdio.length; descriptor <= Math.max(...inherited); descriptor++) allStdio.push('ignore');
    for (const descriptor of inherited) allStdio[descriptor] = devNull;
    return start(allStdio);
  } finally {
    closeSync(devNull);
  }
}

/** Returns the open descriptors that a child process would inherit; none if the system does not provide /proc. */
function inheritedDescriptors(): readonly number[] {
  let descriptors: readonly string[];
  try {
    descriptors = readdirSync('/proc/self/fdinfo');
  } catch {
    return [];
  }
  return descriptors.filter(isInherited).map(Number);
}

function isInherited(descriptor: string): boolean {
  try {
    const flags = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'latin1'))?.[1] ?? '0';
    return (Number.parseInt(flags, 8) & O_CLOEXEC) === 0;
  } catch {
    // The descriptor has been closed since: it is the one that listed the directory.
    return false;
  }
}
