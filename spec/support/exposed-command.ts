/** A sandboxed command that runs until it is let go, for tests of what appears meanwhile. */
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { toolbox } from '../../src/adapters/toolbox/index.js';
import { use } from './toolbox-fixture.mjs';

export interface ExposedCommand {
  /** Lets the command go on; what it answered. */
  finish(): Promise<{ readonly [name: string]: unknown }>;
}

/** Runs `first` in the sandbox, waits until that is done, and keeps the command until `finish`, when it runs `last`. */
export async function exposedCommand(
  tools: ReturnType<typeof toolbox>,
  root: string,
  { first = ':', last = ':' }: { readonly first?: string; readonly last?: string } = {},
): Promise<ExposedCommand> {
  mkdirSync(join(root, 'pace'), { recursive: true });
  const command = `${first}; echo > pace/begun; until test -e pace/go; do sleep 0.02; done; ${last}`;
  const running = use(tools.run_command, { command });
  running.catch(() => undefined);
  while (!existsSync(join(root, 'pace/begun'))) await Promise.race([setTimeout(10), running]);
  return {
    finish: async () => {
      writeFileSync(join(root, 'pace/go'), '');
      return running.finally(() => rmSync(join(root, 'pace'), { recursive: true }));
    },
  };
}

/** A directory of its own, by its real path. */
export function freshRoot(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), 'rondo-exposed-')));
}

/** Device and inode of a directory, as they are announced. */
export function inodeAt(path: string): string {
  const { dev, ino } = statSync(path, { bigint: true });
  return `${dev}:${ino}`;
}
