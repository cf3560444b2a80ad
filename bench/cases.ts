// The cases of calls and turns, by name. A case is created only when it is measured.

import type { Store } from '../src/host-entry.js';
import { memoryStore } from '../src/host-entry.js';
import type { Loop } from '../src/index.js';
import { registrations, turns } from './loops.js';
import type { Case } from './measure.js';
import * as work from './work.js';

const start = { n: 0 };

type Make = () => Case | Promise<Case>;

const bare =
  (steps: number, run: () => Promise<unknown>): Make =>
  () => ({ steps, run });

/** Runs in a new store each time. */
const inNewStore =
  (steps: number, loop: Loop<work.Count, work.Count>, input: work.Count, store: () => Store = memoryStore): Make =>
  () => ({ steps, run: () => work.runOnce(loop, input, store()) });

/** Runs in one store. */
const inOneStore =
  (steps: number, loop: Loop<work.Count, work.Count>, open: () => Store | Promise<Store>): Make =>
  async () => {
    const store = await open();
    return { steps, run: () => work.runOnce(loop, start, store) };
  };

const sqlite = (): Promise<Store> => work.sqliteStore('os');

const discarding = work.discardingStore;

/** A hundred signals, each received by a wait, in a session with `others` stored signals of another name. */
const waitsBehind =
  (others: number): Make =>
  async () => ({ steps: 100, run: await work.waitsBehind(others, 100) });

/** The cases of calls. */
export const callCases = {
  'bare sequence': bare(10, () => work.bareInSequence(10)),
  'sequence of 10': inNewStore(10, work.inSequence(10), start),
  'sequence of 10,000': inNewStore(10_000, work.inSequence(10_000), start),
  'bare depth': bare(10, () => work.bareNested({ n: 9 })),
  'depth 10': inNewStore(10, work.nested, { n: 9 }),
  'depth 1,000': inNewStore(1_000, work.nested, { n: 999 }),
  'bare width': bare(100, () => work.bareSideBySide(100)),
  'width 100': inNewStore(100, work.sideBySide(100), start, discarding),
  'width 10,000': inNewStore(10_000, work.sideBySide(10_000), start, discarding),
  'width 100, SQLite': inOneStore(100, work.sideBySide(100), sqlite),
  'width 10,000, SQLite': inOneStore(10_000, work.sideBySide(10_000), sqlite),
  'width 100, memory': inNewStore(100, work.sideBySide(100), start),
  'width 10,000, memory': inNewStore(10_000, work.sideBySide(10_000), start),
  'width 100, memory, roomy': inNewStore(100, work.sideBySide(100), start),
  'width 10,000, memory, roomy': inNewStore(10_000, work.sideBySide(10_000), start),
  'sequence of 10, kept': inOneStore(10, work.inSequence(10), memoryStore),
  'waits behind 100': waitsBehind(100),
  'waits behind 10,000': waitsBehind(10_000),
  'once effects': inNewStore(10, work.effectsInSequence(10, 'once'), start),
} as const satisfies Record<string, Make>;

/** The cases of turns. */
export const turnCases = {
  'bare sequence': callCases['bare sequence'],
  'turn of 10': bare(10, turns('chain', 10)),
  'turn of 10, trace kept': bare(10, turns('chain', 10, 'kept')),
  'turn of 10, roomy': bare(10, turns('chain', 10)),
  'turn of 10,000': bare(10_000, turns('chain', 10_000)),
  'turn of 10,000, trace kept': bare(10_000, turns('chain', 10_000, 'kept')),
  'turn of 10,000, roomy': bare(10_000, turns('chain', 10_000)),
  'code of 10': bare(10, turns('code', 10)),
  'code of 10, trace kept': bare(10, turns('code', 10, 'kept')),
  'code of 10,000, trace kept': bare(10_000, turns('code', 10_000, 'kept')),
  'depth 10, trace kept': bare(10, turns('nested', 10, 'kept')),
  'depth 1,000, trace kept': bare(1_000, turns('nested', 1_000, 'kept')),
  'depth 10, trace read': bare(10, turns('nested', 10)),
  'depth 1,000, trace read': bare(1_000, turns('nested', 1_000)),
  'bare width of 1,000': bare(1_000, () => work.bareSideBySide(1_000)),
  'width of 1,000': bare(1_000, turns('wide', 1_000)),
  'registration of 1,000': bare(1_000, registrations(1_000)),
} as const satisfies Record<string, Make>;

/** The cases of plans. */
export const planCases = {
  'code of 1,000, trace kept': bare(1_000, turns('code', 1_000, 'kept')),
  'composite of 1,000, trace kept': bare(1_000, turns('chain', 1_000, 'kept')),
  'plan of 1,000, trace kept': bare(1_000, turns('plan', 1_000, 'kept')),
  'repeat of 1,000, trace kept': bare(1_000, turns('repeat', 1_000, 'kept')),
  'repeat of 10,000, trace kept': bare(10_000, turns('repeat', 10_000, 'kept')),
  'each of 1,000, trace kept': bare(1_000, turns('each', 1_000, 'kept')),
  'each of 10,000, trace kept': bare(10_000, turns('each', 10_000, 'kept')),
} as const satisfies Record<string, Make>;

/** All cases. */
export const cases = { ...callCases, ...turnCases, ...planCases };

/** Returns the Node flags of a case. `roomy`: the young generation is larger than a run, so that V8 promotes nothing. */
export function flagsOf(name: string): readonly string[] {
  return name.endsWith('roomy') ? ['--max-semi-space-size=64'] : [];
}
