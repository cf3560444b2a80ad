/** Forks random programs at every entry: a fork ends like the original and performs what the original did afterwards. */
import { expect } from 'vitest';
import { repetitions } from '../../spec/support/repetitions.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { seededIds, seededRandom } from '../adapters/system/seeded-ids.js';
import { LoopError } from '../base/errors.js';
import { expandLeaves } from '../journal/leaf-entries.js';
import type { Store } from '../journal/store.js';
import { Session } from '../kernel/session.js';
import type { Entry } from '../protocol/entry.js';
import type { Layer, RunOutcome } from '../protocol/session.js';
import { ManualClock } from '../testing/manual-clock.js';
import { type ProgramStep, programLoop, randomProgram } from '../testing/random-programs.js';
import { forkPointsOf } from '../views/fork-points.js';
import { forkTurn } from './fork-turn.js';

const budgetLayer: Layer = async (_effect, scope, next) => {
  await scope.record('budget.reserved', () => 1);
  return next();
};

interface Program {
  readonly store: Store;
  readonly steps: readonly ProgramStep[];
  readonly layers: readonly Layer[];
  readonly seed: number;
}

interface Performed {
  readonly name: string;
  readonly key: string;
}

/** Runs a turn to its end: delivers the signals and reaches the timers that it waits for. */
async function drive({ store, steps, layers, seed }: Program, sessionId: string, turnId: string, clock: ManualClock) {
  const performed: Performed[] = [];
  const session = await Session.open(sessionId, { store, clock, ids: seededIds(seed), layers });
  const outside = {
    perform: (name: string, _safety: string, key: string) => void performed.push({ name, key }),
    cancel: () => session.cancel(turnId, 'the program cancels itself'),
  };
  const loop = programLoop('main', steps, outside);
  for (let round = 0; round < 200; round++) {
    const outcome = await session.run(turnId, loop, null, { timers: 'pause' });
    if (outcome.status !== 'paused') {
      await session.close();
      return { outcome, performed };
    }
    const { pending } = outcome;
    for (const item of pending)
      if (item.kind === 'signal') await session.signal({ id: `for ${item.name}`, name: item.name, value: item.name });
    const timers = pending.flatMap((item) => (item.kind === 'timer' ? [item.until] : []));
    if (timers.length === pending.length) await clock.advanceTo(Math.min(...timers));
    expect(pending.some(({ kind }) => kind === 'doubt')).toBe(false);
  }
  throw new Error('The program does not end within 200 rounds.');
}

/** Returns what an outcome says, apart from the ids in its texts. */
function endOf(outcome: RunOutcome): object {
  return outcome.status === 'error' ? { status: 'error', code: outcome.error.code } : { ...outcome };
}

async function entriesOf(store: Store, session: string): Promise<Entry[]> {
  const all: Entry[] = [];
  for await (const entries of store.journal.read(session, 0)) all.push(...entries);
  return all;
}

/** Returns the effects of the program that have no recorded end at an entry. Pure ones may have been started. */
function unendedAt(entries: readonly Entry[], seq: number): readonly string[] {
  const parts = expandLeaves(entries);
  const isEnd = ({ type }: Entry): boolean => type === 'effect.returned' || type === 'effect.failed';
  const ended = new Set(parts.filter((entry) => isEnd(entry) && entry.seq <= seq).map(({ key }) => key));
  return parts
    .filter(
      ({ type, kind, name, key }) =>
        type === 'effect.requested' && kind === 'test' && name !== 'cancel' && !ended.has(key),
    )
    .map(({ name = '' }) => name)
    .sort();
}

async function forkEverywhere(seed: number): Promise<number> {
  const random = seededRandom(seed);
  const layers = seed % 3 === 0 ? [budgetLayer] : [];
  const program: Program = { store: memoryStore(), steps: randomProgram(random, 14), layers, seed };
  const { store } = program;
  const original = await drive(program, 's', 's.1', new ManualClock(1000));
  const entries = await entriesOf(store, 's');
  const points = forkPointsOf('s.1', entries);
  const ids = seededIds(seed + 1);
  for (const { seq: at, at: time } of entries) {
    const clock = new ManualClock(time);
    const fork = await forkTurn({ store, clock, ids }, 's.1', { at }).catch((thrown: unknown) => thrown);
    if (!points.includes(at)) {
      expect(fork).toMatchObject({ code: 'FORK_REFUSED' });
      continue;
    }
    if (fork instanceof LoopError) throw fork;
    const { sessionId, turnId } = fork as { sessionId: string; turnId: string };
    const label = `seed ${seed}, entry ${at}`;
    const { outcome, performed } = await drive(program, sessionId, turnId, clock);
    expect(endOf(outcome), `${label}: the fork ended differently`).toEqual(endOf(original.outcome));
    expect(performed.map(({ name }) => name).sort(), `${label}: other effects`).toEqual(unendedAt(entries, at));
    const keys = new Set(original.performed.map(({ key }) => key));
    expect(
      performed.filter(({ key }) => keys.has(key)),
      `${label}: an idempotency key was used twice`,
    ).toEqual([]);
  }
  expect(await entriesOf(store, 's'), 'the original was changed').toEqual(entries);
  return points.length;
}

verifies(
  'fork.effects',
  'a fork of a random program at any admissible entry ends like the original and performs only what comes after',
  async () => {
    let count = 0;
    for (let seed = 1; seed <= repetitions(800, 20); seed++) count += await forkEverywhere(seed);
    expect(count).toBeGreaterThan(100);
  },
  300_000,
);
