/**
 * Descriptors that this process was started with (`77<file`, the lock file of flock) and that a program which it starts would
 * inherit. Node marks only its own as close-on-exec, and bubblewrap passes the others on, so a sandboxed command could read
 * what they lead to. In place of each the program gets /dev/null.
 */
import type { StdioOptions } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';

type Stdio = Exclude<StdioOptions, string>;

const O_CLOEXEC = 0o2000000;

/** Starts a program with these descriptors and no others. */
export function withoutInheritedDescriptors<T>(stdio: Stdio, start: (stdio: Stdio) => T): T {
  const inherited = inheritedDescriptors().filter((descriptor) => descriptor >= stdio.length);
  // guard: inherited-descriptors-closed
  if (inherited.length === 0) return start(stdio);
  const nothing = openSync('/dev/null', 'r');
  try {
    const all: Stdio = [...stdio];
    for (let descriptor = stdio.length; descriptor <= Math.max(...inherited); descriptor++) all.push('ignore');
    for (const descriptor of inherited) all[descriptor] = nothing;
    return start(all);
  } finally {
    closeSync(nothing);
  }
}

/** The open descriptors that a new program would inherit; none where the system does not tell. */
function inheritedDescriptors(): readonly number[] {
  let open: readonly string[];
  try {
    open = readdirSync('/proc/self/fdinfo');
  } catch {
    return [];
  }
  return open.filter(isInherited).map(Number);
}

function isInherited(descriptor: string): boolean {
  try {
    const flags = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'latin1'))?.[1] ?? '0';
    return (Number.parseInt(flags, 8) & O_CLOEXEC) === 0;
  } catch {
    // It was closed meanwhile: the descriptor of the directory itself.
    return false;
  }
}
