// Short runs of the campaigns. Long runs are started by hand.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { verifies } from '../verifies.js';

const TIMEOUT_MS = 40_000;

/** Runs a campaign, expects no violations, and returns its summary. */
async function runWithoutViolations(campaign: string, args: readonly string[]): Promise<Record<string, unknown>> {
  const program = fileURLToPath(new URL(campaign, import.meta.url));
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: TIMEOUT_MS,
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk;
  });
  const [code, signal] = await once(child, 'close');
  const last = output.trim().split('\n').at(-1) ?? '';
  expect({ code, signal }, output).toEqual({ code: 0, signal: null });
  const summary = JSON.parse(last) as Record<string, unknown>;
  expect(summary.violations).toEqual([]);
  return summary;
}

verifies(
  'store.processes',
  'three processes finish every turn with every effect once while 12 processes, the owner among them, are killed',
  async () => {
    const { kills, turns, effects } = await runWithoutViolations('processes.mjs', [
      '--kills',
      '12',
      '--mode',
      'plain',
      '--seed',
      '7',
    ]);
    expect(kills).toBeGreaterThanOrEqual(12);
    expect(turns).toBeGreaterThan(12);
    expect(effects).toBeGreaterThan(12);
  },
  TIMEOUT_MS + 5000,
);

verifies(
  'store.processes',
  'ten processes that start the same key on a fresh store run it once',
  async () => {
    expect(await runWithoutViolations('same-key.mjs', ['--rounds', '3'])).toMatchObject({
      rounds: 3,
      processes: 10,
      effects: 3,
    });
  },
  TIMEOUT_MS + 5000,
);

verifies(
  'authority.verbs',
  'every verb, used in a hostile clone, executes nothing, sends no secret and changes no file of the operator',
  async () => {
    const { clones, commands } = await runWithoutViolations('clones.mjs', ['--clones', '1', '--seed', '11']);
    expect(clones).toBe(1);
    expect(commands).toBeGreaterThan(15);
  },
  TIMEOUT_MS + 5000,
);

verifies(
  'host.restart',
  'two servers that are replaced by turns, gracefully and by kill -9, finish every accepted turn with every effect once',
  async () => {
    const args = ['--restarts', '3', '--clients', '1', '--seed', '5'];
    const { restarts, turns, effects } = await runWithoutViolations('rolling-restarts.mjs', args);
    expect({ restarts, effects }).toEqual({ restarts: 3, effects: turns });
    expect(turns).toBeGreaterThan(2);
  },
  TIMEOUT_MS + 5000,
);

verifies(
  'host.restart',
  'a second server wakes the sleeping turns of the first within 2 seconds of its exit or kill',
  async () => {
    const summary = await runWithoutViolations('wake.mjs', ['--rounds', '1', '--turns', '4', '--seed', '5']);
    expect(summary).toMatchObject({ rounds: 1, turns: 8, effects: 8 });
  },
  TIMEOUT_MS + 5000,
);

verifies(
  'host.work',
  'sleeping turns and signals, some sent twice, are each processed once by a worker that is killed again and again',
  async () => {
    // Counted from its work: on a busy machine, a worker that is killed a second after its start continues nothing.
    const args = ['--turns', '15', '--every', '1000', '--from', 'work', '--seed', '5'];
    const { kills, turns, effects } = await runWithoutViolations('worker-kills.mjs', args);
    expect({ turns, effects }).toEqual({ turns: 30, effects: 30 });
    expect(kills).toBeGreaterThan(0);
  },
  TIMEOUT_MS + 5000,
);

verifies(
  'cli.server',
  'while a server runs, verbs act on its turns and a second program runs and resumes its own',
  async () => {
    const verbs = 'run,approve,signal';
    const { commands } = await runWithoutViolations('beside-a-server.mjs', ['--verbs', verbs]);
    expect(commands).toBe(6);
  },
  TIMEOUT_MS + 5000,
);

verifies(
  'grant.budget',
  'no random turn under a budget exceeds it, and counts are exact, on hosts that crash, restart, resume and fork',
  async () => {
    const args = ['--runs', '60', '--processes', '0'];
    const { runs, turns, stops, exact, crashes, forks } = await runWithoutViolations('budgets.mjs', args);
    expect(runs).toBe(60);
    for (const count of [turns, stops, exact, crashes, forks]) expect(count).toBeGreaterThan(10);
  },
  TIMEOUT_MS + 5000,
);

verifies(
  'grant.shared',
  'processes that share a budget and are killed never exceed it, and stop exactly at counts',
  async () => {
    const { processRuns, turns, kills } = await runWithoutViolations('budgets.mjs', [
      '--runs',
      '6',
      '--processes',
      '6',
    ]);
    expect(processRuns).toBe(6);
    for (const count of [turns, kills]) expect(count).toBeGreaterThan(3);
  },
  TIMEOUT_MS + 5000,
);

verifies(
  'grant.tools',
  'a hostile model causes no effect outside of the grant, and the campaign notices such effects without one',
  async () => {
    const { turns, calls } = await runWithoutViolations('hostile-model.mjs', ['--turns', '300']);
    expect(turns).toBe(300);
    expect(calls).toBeGreaterThan(1000);
    const control = runWithoutViolations('hostile-model.mjs', ['--turns', '20', '--control']);
    await expect(control, 'the campaign does not notice effects').rejects.toThrow();
  },
  TIMEOUT_MS + 5000,
);

verifies(
  'receipt.sealed',
  'effects and receipts of a process that is killed again and again match one to one',
  async () => {
    const { turns, effects, sealed } = await runWithoutViolations('effects-and-receipts.mjs', ['--kills', '4']);
    expect({ turns, effects, sealed }).toEqual({ turns: 12, effects: 36, sealed: 36 });
  },
  TIMEOUT_MS + 5000,
);

verifies(
  'receipt.sealed',
  'turns that are just ending when their processes close end with a receipt',
  async () => {
    const { accepted, verifications } = await runWithoutViolations('closing.mjs', ['--rounds', '3']);
    expect(accepted).toBeGreaterThan(0);
    expect(verifications).toBe(3);
  },
  TIMEOUT_MS + 5000,
);

verifies(
  'hosted.durable',
  'hosted loops lose no turn, run none twice and none early when their host crashes before or after a write',
  async () => {
    const { kills, turns, repeated } = await runWithoutViolations('hosted-kills.mjs', [
      '--mode',
      'writes',
      '--every',
      '29',
    ]);
    expect(kills).toBeGreaterThan(20);
    expect(turns).toBeGreaterThan(500);
    expect(repeated).toBeGreaterThan(0);
    const control = runWithoutViolations('hosted-kills.mjs', ['--mode', 'writes', '--control']);
    await expect(control, 'the campaign does not notice lost, repeated or early turns').rejects.toThrow();
  },
  2 * TIMEOUT_MS + 5000,
);

verifies(
  'hosted.durable',
  'hosted loops lose no turn, run none twice and none early while two workers are killed at random',
  async () => {
    const { kills, turns } = await runWithoutViolations('hosted-kills.mjs', ['--kills', '12']);
    expect(kills).toBe(12);
    expect(turns).toBeGreaterThan(11);
  },
  TIMEOUT_MS + 5000,
);

verifies(
  'hosted.schedule',
  'loops that are due in the same second all start, once and within the bounds, while workers are killed in turn',
  async () => {
    const args = ['--loops', '60', '--workers', '2', '--concurrency', '4', '--every', '1200'];
    const { kills, turns, peakConcurrency } = await runWithoutViolations('hosted-fleet.mjs', args);
    expect(kills).toBeGreaterThan(0);
    expect(turns).toBe(120);
    expect(peakConcurrency).toBeLessThanOrEqual(4);
  },
  TIMEOUT_MS + 5000,
);

verifies(
  'hosted.signals',
  'of random deliveries, each accepted one causes one turn and no other any, while the server and workers are killed',
  async () => {
    const args = ['--deliveries', '150', '--loops', '5', '--every', '1000'];
    const { turns, acknowledged } = await runWithoutViolations('hosted-signals.mjs', args);
    expect(acknowledged).toBeGreaterThan(40);
    expect(turns).toBe(acknowledged);
  },
  TIMEOUT_MS + 5000,
);
