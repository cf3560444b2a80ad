/** Crashes at every append of random programs: the finished journal must not tell that there was a crash. */
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { seededIds, seededRandom } from '../adapters/system/seeded-ids.js';
import { Fault } from '../base/errors.js';
import type { Store } from '../journal/store.js';
import type { Entry, Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { Layer, RunOutcome } from '../protocol/session.js';
import { type CrashPoint, crashingStore } from '../testing/crashing-store.js';
import { ManualClock } from '../testing/manual-clock.js';
import { type ProgramStep, programEffectResult, programLoop, randomProgram } from '../testing/random-programs.js';
import { Session } from './session.js';

const macrotask = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The auditor: counts what really happened, and is not part of what crashes. */
class Sink {
  readonly done = new Map<string, number>();
  readonly durable = new Set<string>();
  readonly violations: string[] = [];

  perform(name: string, safety: Safety, key: string): void {
    if (this.durable.has(name)) this.violations.push(`${name} was performed again although its result was durable`);
    const times = (this.done.get(name) ?? 0) + 1;
    this.done.set(name, times);
    if (safety === 'once' && times > 1)
      this.violations.push(`${name} is a once effect and was performed ${times} times`);
    if (key === '') this.violations.push(`${name} has no idempotency key`);
  }
}

const spending: Layer = async (_effect, scope, next) => {
  await scope.record('budget.reserved', () => 1);
  return next();
};

interface World {
  readonly inner: Store;
  readonly sink: Sink;
  readonly clock: ManualClock;
  readonly steps: readonly ProgramStep[];
  readonly layers: readonly Layer[];
}

function world(seed: number): World {
  const random = seededRandom(seed);
  const layers = seed % 3 === 0 ? [spending] : [];
  return {
    inner: memoryStore(),
    sink: new Sink(),
    clock: new ManualClock(1000),
    steps: randomProgram(random, 14),
    layers,
  };
}

async function drive(store: Store, { sink, clock, steps, layers }: World, seed: number): Promise<RunOutcome> {
  const session = await Session.open('s', { store, clock, ids: seededIds(seed), layers });
  const outside = {
    perform: (name: string, safety: Safety, key: string) => sink.perform(name, safety, key),
    cancel: () => session.cancel('t1', 'the program says so'),
  };
  const loop = programLoop('main', steps, outside);
  for (let round = 0; round < 200; round++) {
    const outcome = await session.run('t1', loop, null, { timers: 'pause' });
    if (outcome.status !== 'paused') return outcome;
    await answer(session, outcome.pending, sink, clock, steps);
  }
  throw new Error('the program does not come to an end');
}

type Pending = (RunOutcome & { status: 'paused' })['pending'];

async function answer(
  session: Session,
  pending: Pending,
  sink: Sink,
  clock: ManualClock,
  steps: readonly ProgramStep[],
): Promise<void> {
  for (const { kind, key, ...item } of pending) {
    if (kind === 'signal' && 'name' in item)
      await session.signal({ id: `for ${item.name}`, name: item.name, value: item.name });
    if (kind !== 'doubt' || !('name' in item)) continue;
    if (!sink.done.has(item.name)) await session.resolveEffect(key, 'retry', 'auditor');
    else if (fails(steps, item.name)) await session.resolveEffect(key, 'fail', 'auditor');
    else
      await session.resolveEffect(key, 'supply', 'auditor', {
        value: programEffectResult(item.name, sizeOf(steps, item.name)),
      });
  }
  const timers = pending.flatMap((item) => (item.kind === 'timer' ? [item.until] : []));
  if (pending.every((item) => item.kind === 'timer')) await clock.advanceTo(Math.min(...timers));
}

function find(steps: readonly ProgramStep[], name: string): (ProgramStep & { op: 'effect' }) | undefined {
  for (const step of steps) {
    if (step.op === 'effect' && step.name === name) return step;
    const inside = step.op === 'call' ? [step.steps] : step.op === 'all' || step.op === 'race' ? step.branches : [];
    for (const branch of inside) {
      const found = find(branch, name);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

const fails = (steps: readonly ProgramStep[], name: string): boolean => find(steps, name)?.fails ?? false;
const sizeOf = (steps: readonly ProgramStep[], name: string): number => find(steps, name)?.size ?? 1;

async function entriesOf(store: Store): Promise<Entry[]> {
  const all: Entry[] = [];
  for await (const entries of store.journal.read('s', 0)) all.push(...entries);
  return all;
}

/**
 * What must be the same: everything but places, drawn numbers, decisions, what lost branches got to, and how the effect
 * ended that was in flight when the run was cancelled: after the cancel nothing is performed, so a crash leaves it open.
 */
function comparable(entries: readonly Entry[]): string[] {
  const lost: string[] = [];
  for (const { type, key, winnerIndex } of entries)
    if (type === 'race.won') lost.push(`${key}/|${key}/${winnerIndex}/`);
  const inLost = (key: string): boolean =>
    lost.some((pair) => {
      const [group = '', won = ''] = pair.split('|');
      return key.startsWith(group) && !key.startsWith(won);
    });
  const cancelling = new Set(entries.filter(({ name }) => name === 'cancel').map(({ key }) => key));
  const kept = entries.filter(
    ({ type, key, name }) =>
      type !== 'effect.resolved' && !key.includes('~') && !inLost(key) && (name === 'cancel' || !cancelling.has(key)),
  );
  return kept.map(({ seq: _seq, at: _at, value, ...rest }) => comparableText(rest, value)).sort();
}

function comparableText(rest: Omit<Entry, 'seq' | 'at' | 'value'>, value: Json | undefined): string {
  const doubted = rest.type === 'effect.failed' || rest.type === 'effect.settled';
  const shown = rest.type === 'number.drawn' || rest.type === 'session.opened' ? undefined : value;
  return JSON.stringify({ ...rest, incarnationId: undefined, error: doubted ? undefined : rest.error, value: shown });
}

async function crashAt(
  seed: number,
  point: CrashPoint,
): Promise<{ entries: Entry[]; sink: Sink; outcome: RunOutcome }> {
  const after = world(seed);
  const crashing = crashingStore(after.inner, point);
  try {
    await drive(crashing, after, seed);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
  }
  await macrotask();
  for (const { type, name, key } of await entriesOf(after.inner)) {
    if (type === 'effect.requested' && name !== undefined) {
      const closed = (await entriesOf(after.inner)).some(
        (e) => e.key === key && (e.type === 'effect.returned' || e.type === 'effect.failed'),
      );
      if (closed) after.sink.durable.add(name);
    }
  }
  const outcome = await drive(after.inner, after, seed + 1);
  return { entries: await entriesOf(after.inner), sink: after.sink, outcome };
}

/** Returns how many crashes were tried. */
async function tryProgram(seed: number): Promise<number> {
  const calm = world(seed);
  const counting = crashingStore(calm.inner);
  const expected = await drive(counting, calm, seed);
  const wanted = comparable(await entriesOf(calm.inner));
  const cancelled = wanted.some((entry) => entry.includes('"cancel.requested"'));
  for (let append = 1; append <= counting.appendCount; append++) {
    for (const when of ['before', 'after'] as const) {
      const where = `seed ${seed}, append ${append}, ${when}`;
      const { entries, sink, outcome } = await crashAt(seed, { appendNumber: append, when });
      expect(sink.violations, where).toEqual([]);
      expect(outcome.status, where).toBe(expected.status);
      if (!cancelled) expect(outcome, where).toEqual(expected);
      expect(comparable(entries), where).toEqual(wanted);
    }
  }
  return counting.appendCount * 2;
}

const PROGRAMS = Number(process.env.RONDO_PROGRAMS ?? 2000);

verifies(
  'kernel.crash',
  `a crash at any append shows in the finished journal (${PROGRAMS} programs)`,
  async () => {
    let crashes = 0;
    const from = Number(process.env.RONDO_SEED ?? 1);
    for (let seed = from; seed < from + PROGRAMS; seed++) crashes += await tryProgram(seed);
    expect(crashes).toBeGreaterThan(PROGRAMS * 4);
  },
  300_000,
);
