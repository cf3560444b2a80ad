/** A sandboxed command that runs until a test ends it, for tests of files that appear while a command runs. */
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { toolbox } from '../../src/adapters/toolbox/index.js';
import { use } from './toolbox-fixture.mjs';

/** A running command. */
interface ExposedCommand {
  /** Ends the command and returns its output. */
  finish(): Promise<{ readonly [name: string]: unknown }>;
}

/** Starts a command, waits until it has run `first`, and keeps it running until `finish`, when it runs `last`. */
export async function exposedCommand(
  tools: ReturnType<typeof toolbox>,
  root: string,
  { first = ':', last = ':' }: { readonly first?: string; readonly last?: string } = {},
): Promise<ExposedCommand> {
  mkdirSync(join(root, 'pace'), { recursive: true });
  const command = `${first}; echo > pace/begun; until test -e pace/go; do sleep 0.02; done; ${last}`;
  const output = use(tools.run_command, { command });
  output.catch(() => undefined);
  while (!existsSync(join(root, 'pace/begun'))) await Promise.race([setTimeout(10), output]);
  return {
    finish: async () => {
      writeFileSync(join(root, 'pace/go'), '');
      return output.finally(() => rmSync(join(root, 'pace'), { recursive: true }));
    },
  };
}

/** Creates a temporary directory and returns its real path. */
export function freshRoot(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), 'rondo-exposed-')));
}

/** Returns device and inode of a directory in the format of announcements. */
export function inodeAt(path: string): string {
  const { dev, ino } = statSync(path, { bigint: true });
  return `${dev}:${ino}`;
}
