// The cases of the guard benchmark, by name. The modules that a case needs are loaded only when it is measured.

import { spawnSync } from 'node:child_process';
import { type Case, type Clock, processorClock, wallClock } from './measure.js';

/** What measures a case, and how to create it. */
export interface GuardCase {
  readonly clock: Clock;
  /** How long the case runs before its first pass, so that V8 has optimised its code. */
  readonly warmUpSeconds: number;
  /** How long a pass takes at least, by the clock. */
  readonly passSeconds: number;
  /** Creates the case for the checkout whose library is measured. */
  create(checkout: string): Promise<Case>;
}

const start = { n: 0 };

/** Work in memory, which only the processor limits. */
const inMemory = (create: () => Promise<Case>): GuardCase => ({
  clock: processorClock,
  warmUpSeconds: 1,
  passSeconds: 0.05,
  create,
});

/** Concurrent sessions of `once` effects in one store with `fsync`: the time of the syncs counts. */
const onDisk = (sessions: number, steps: number): GuardCase => ({
  clock: wallClock,
  warmUpSeconds: 0.3,
  passSeconds: 0,
  create: async () => {
    const work = await import('./work.js');
    const store = await work.sqliteStore('fsync');
    const loop = work.effectsInSequence(steps, 'once');
    const session = (): Promise<void> => work.runOnce(loop, start, store);
    return { steps: sessions * steps, run: () => Promise.all(Array.from({ length: sessions }, session)) };
  },
});

/** The processor time of all processes that `runProcess` has run, in microseconds. */
let childTime = 0;

/** A module that prints the processor time of its process to stderr when the process ends. */
const reporting = `data:text/javascript,process.once('exit', () => {
  const { user, system } = process.cpuUsage();
  console.error(user + system);
})`;

function runProcess(args: readonly string[], cwd: string): void {
  const { status, stderr } = spawnSync(process.execPath, ['--import', reporting, ...args], { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  childTime += Number(stderr.trimEnd().split('\n').at(-1));
}

/** The start of a process; each is one pass. */
const processStart = (run: (starts: typeof import('./start.js'), checkout: string) => void): GuardCase => ({
  clock: () => childTime,
  warmUpSeconds: 0,
  passSeconds: 0,
  create: async (checkout) => {
    const starts = await import('./start.js');
    return { steps: 1, run: async () => run(starts, checkout) };
  },
});

/** The cases by name. */
export const guardCases = {
  'ten calls, per call': inMemory(async () => {
    const work = await import('./work.js');
    const loop = work.inSequence(10);
    return { steps: 10, run: () => work.runOnce(loop, start) };
  }),
  'composite of ten tool steps, trace read, per step': inMemory(async () => {
    const { turns } = await import('./loops.js');
    return { steps: 10, run: turns('tools', 10) };
  }),
  'agent round': inMemory(async () => (await import('./agent-cases.js')).agentCases['20 rounds']()),
  'delta with a subscriber': inMemory(async () => (await import('./agent-cases.js')).agentCases['10,000 deltas']()),
  'durable once, per step': onDisk(1, 20),
  '64 sessions of once effects, per step': onDisk(64, 5),
  "import 'rondo'": processStart(({ importRondo }, checkout) => runProcess(importRondo, checkout)),
  'rondo list': processStart(({ listExample }, checkout) => runProcess(listExample(checkout), process.cwd())),
} as const satisfies Record<string, GuardCase>;

/** The name of a case. */
export type GuardCaseName = keyof typeof guardCases;
