// Short runs of the campaigns; the long ones are run by hand.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { verifies } from '../verifies.js';

const LIMIT_MS = 40_000;

/** Runs a campaign and expects that it finds nothing; returns its summary. */
async function clean(campaign: string, args: readonly string[]): Promise<Record<string, unknown>> {
  const program = fileURLToPath(new URL(campaign, import.meta.url));
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: LIMIT_MS,
  });
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    said += piece;
  });
  const [code, signal] = await once(child, 'close');
  const last = said.trim().split('\n').at(-1) ?? '';
  expect({ code, signal }, said).toEqual({ code: 0, signal: null });
  const summary = JSON.parse(last) as Record<string, unknown>;
  expect(summary.violations).toEqual([]);
  return summary;
}

verifies(
  'store.processes',
  'three processes of which 12 are killed, the owner among them, finish every turn with every effect once',
  async () => {
    const { kills, turns, effects } = await clean('processes.mjs', ['--kills', '12', '--mode', 'plain', '--seed', '7']);
    expect(kills).toBeGreaterThanOrEqual(12);
    expect(turns).toBeGreaterThan(12);
    expect(effects).toBeGreaterThan(12);
  },
  LIMIT_MS + 5000,
);

verifies(
  'store.processes',
  'ten processes that start the same key on a fresh store run it once',
  async () => {
    expect(await clean('same-key.mjs', ['--rounds', '3'])).toMatchObject({ rounds: 3, processes: 10, effects: 3 });
  },
  LIMIT_MS + 5000,
);

verifies(
  'authority.verbs',
  'every verb, used in a hostile clone, executes nothing, sends no secret and changes no file of the operator',
  async () => {
    const { clones, commands } = await clean('clones.mjs', ['--clones', '1', '--seed', '11']);
    expect(clones).toBe(1);
    expect(commands).toBeGreaterThan(15);
  },
  LIMIT_MS + 5000,
);
