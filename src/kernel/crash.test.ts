/** Crashes at every append of random programs: the finished journal equals that of a run without a crash. */
import { expect } from 'vitest';
import { repetitions } from '../../spec/support/repetitions.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { seededIds, seededRandom } from '../adapters/system/seeded-ids.js';
import { Fault, LoopError } from '../base/errors.js';
import { expandLeaves } from '../journal/leaf-entries.js';
import type { Store } from '../journal/store.js';
import type { Entry, Safety } from '../protocol/entry.js';
import type { Admit, Layer, RunOutcome } from '../protocol/session.js';
import { type CrashPoint, crashingStore } from '../testing/crashing-store.js';
import { ManualClock } from '../testing/manual-clock.js';
import { type ProgramStep, programEffectResult, programLoop, randomProgram } from '../testing/random-programs.js';
import { Session } from './session.js';

const macrotask = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Counts what really happened. It survives the crash. */
class Auditor {
  /** How often each effect was performed, by name. */
  readonly performed = new Map<string, number>();
  /** The names of the effects whose results were durable at the crash. */
  readonly durable = new Set<string>();
  readonly violations: string[] = [];

  perform(name: string, safety: Safety, key: string): void {
    if (this.durable.has(name)) this.violations.push(`${name} was performed again although its result was durable`);
    const times = (this.performed.get(name) ?? 0) + 1;
    this.performed.set(name, times);
    if (safety === 'once' && times > 1)
      this.violations.push(`${name} is a once effect and was performed ${times} times`);
    if (key === '') this.violations.push(`${name} has no idempotency key`);
  }
}

const budgetLayer: Layer = async (_effect, scope, next) => {
  await scope.record('budget.reserved', () => 1);
  return next();
};

interface World {
  readonly inner: Store;
  readonly auditor: Auditor;
  readonly clock: ManualClock;
  readonly steps: readonly ProgramStep[];
  readonly layers: readonly Layer[];
  /** The names of the effects at which the run was stopped; undefined for a program without admission. */
  readonly stops: Set<string> | undefined;
}

function world(seed: number): World {
  const random = seededRandom(seed);
  const layers = seed % 3 === 0 ? [budgetLayer] : [];
  return {
    inner: memoryStore(),
    auditor: new Auditor(),
    clock: new ManualClock(1000),
    steps: randomProgram(random, 14),
    layers,
    stops: seed % 4 === 1 ? new Set() : undefined,
  };
}

/** Refuses every seventh effect, and stops the run once at every third. */
function admission({ stops }: World, stop: ((effect: string) => void) | undefined): Admit | undefined {
  if (stops === undefined) return undefined;
  return (effect) => {
    const number = Number(effect.name.replace('effect-', ''));
    if (number % 7 === 6) throw new LoopError('TOOL_NOT_ADMITTED', `${effect.name} is not permitted`);
    if (number % 3 === 1 && !stops.has(effect.name)) {
      stops.add(effect.name);
      stop?.(effect.name);
    }
    return effect;
  };
}

async function drive(store: Store, driven: World, seed: number): Promise<RunOutcome> {
  const { auditor, clock, steps, layers } = driven;
  const admit = admission(driven, (reason) => session.stop('t1', { reason, message: 'by the test' }));
  const session = await Session.open('s', { store, clock, ids: seededIds(seed), layers, admit });
  const outside = {
    perform: (name: string, safety: Safety, key: string) => auditor.perform(name, safety, key),
    cancel: () => session.cancel('t1', 'the program cancels itself'),
  };
  const loop = programLoop('main', steps, outside);
  for (let round = 0; round < 200; round++) {
    const outcome = await session.run('t1', loop, null, { timers: 'pause' });
    if (outcome.status === 'stopped') continue;
    if (outcome.status !== 'paused') return outcome;
    await settlePending(session, outcome.pending, auditor, clock, steps);
  }
  throw new Error('The program does not end within 200 rounds.');
}

type Pending = (RunOutcome & { status: 'paused' })['pending'];

/** Delivers the signals, resolves the effects in doubt and reaches the timers that a paused run waits for. */
async function settlePending(
  session: Session,
  pending: Pending,
  auditor: Auditor,
  clock: ManualClock,
  steps: readonly ProgramStep[],
): Promise<void> {
  for (const { kind, key, ...item } of pending) {
    if (kind === 'signal' && 'name' in item)
      await session.signal({ id: `for ${item.name}`, name: item.name, value: item.name });
    if (kind !== 'doubt' || !('name' in item)) continue;
    if (!auditor.performed.has(item.name)) await session.resolveEffect(key, 'retry', 'auditor');
    else if (isFailing(steps, item.name)) await session.resolveEffect(key, 'fail', 'auditor');
    else
      await session.resolveEffect(key, 'supply', 'auditor', {
        value: programEffectResult(item.name, sizeOf(steps, item.name), findEffect(steps, item.name)?.form),
      });
  }
  const timers = pending.flatMap((item) => (item.kind === 'timer' ? [item.until] : []));
  if (pending.every((item) => item.kind === 'timer')) await clock.advanceTo(Math.min(...timers));
}

function findEffect(steps: readonly ProgramStep[], name: string): (ProgramStep & { op: 'effect' }) | undefined {
  for (const step of steps) {
    if (step.op === 'effect' && step.name === name) return step;
    const nested = step.op === 'call' ? [step.steps] : step.op === 'all' || step.op === 'race' ? step.branches : [];
    for (const branch of nested) {
      const effect = findEffect(branch, name);
      if (effect !== undefined) return effect;
    }
  }
  return undefined;
}

const isFailing = (steps: readonly ProgramStep[], name: string): boolean => findEffect(steps, name)?.fails ?? false;
const sizeOf = (steps: readonly ProgramStep[], name: string): number => findEffect(steps, name)?.size ?? 1;

/** Returns the entries of the journal; those of a leaf call as the entries of the call and its effect. */
async function entriesOf(store: Store): Promise<Entry[]> {
  const all: Entry[] = [];
  for await (const entries of store.journal.read('s', 0)) all.push(...expandLeaves(entries));
  return all;
}

/**
 * Returns the part of a journal that a crash must not change: everything but sequence numbers, times, random numbers,
 * resolutions, the entries of losing branches, and the end of the effect that was in flight when the run was cancelled.
 * Nothing is performed after a cancellation, so a crash leaves that effect without an end.
 */
function comparable(entries: readonly Entry[]): string[] {
  const races = entries.filter(({ type }) => type === 'race.won');
  const isInLosingBranch = (key: string): boolean =>
    races.some((race) => key.startsWith(`${race.key}/`) && !key.startsWith(`${race.key}/${race.winnerIndex}/`));
  const cancelKeys = new Set(entries.filter(({ name }) => name === 'cancel').map(({ key }) => key));
  const compared = entries.filter(
    ({ type, key, name }) =>
      type !== 'effect.resolved' &&
      type !== 'effect.repeated' &&
      type !== 'call.stopped' &&
      !key.includes('~') &&
      !isInLosingBranch(key) &&
      (name === 'cancel' || !cancelKeys.has(key)),
  );
  // A leaf call passes on the error of its effect, and with it the error of a resolution.
  const failedEffects = new Set(entries.filter(({ type }) => type === 'effect.failed').map(({ key }) => key));
  const isDoubted = ({ type, key }: Entry): boolean =>
    type === 'effect.failed' ||
    type === 'effect.settled' ||
    (type === 'call.errored' && (failedEffects.has(`${key}/0`) || layeredKeys.has(`${key}/0`)));
  const layeredKeys = new Set(entries.filter(({ type }) => type === 'effect.opened').map(({ key }) => key));
  return compared.map((entry) => comparableText(entry, isDoubted(entry))).sort();
}

function comparableText({ seq: _seq, at: _at, value, ...rest }: Entry, isDoubted: boolean): string {
  const comparableValue = rest.type === 'number.drawn' || rest.type === 'session.opened' ? undefined : value;
  return JSON.stringify({
    ...rest,
    incarnationId: undefined,
    error: isDoubted ? undefined : rest.error,
    value: comparableValue,
  });
}

async function crashAt(
  seed: number,
  point: CrashPoint,
): Promise<{ entries: Entry[]; auditor: Auditor; outcome: RunOutcome }> {
  const crashed = world(seed);
  const crashing = crashingStore(crashed.inner, point);
  try {
    await drive(crashing, crashed, seed);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
  }
  await macrotask();
  for (const { type, name, key } of await entriesOf(crashed.inner)) {
    if (type === 'effect.requested' && name !== undefined) {
      const hasEnded = (await entriesOf(crashed.inner)).some(
        (e) => e.key === key && (e.type === 'effect.returned' || e.type === 'effect.failed'),
      );
      if (hasEnded) crashed.auditor.durable.add(name);
    }
  }
  const outcome = await drive(crashed.inner, crashed, seed + 1);
  return { entries: await entriesOf(crashed.inner), auditor: crashed.auditor, outcome };
}

/** Crashes a program at each of its appends. Returns the number of crashes. */
async function crashEverywhere(seed: number): Promise<number> {
  const reference = world(seed);
  const counting = crashingStore(reference.inner);
  const expected = await drive(counting, reference, seed);
  const expectedEntries = comparable(await entriesOf(reference.inner));
  const isCancelled = expectedEntries.some((entry) => entry.includes('"cancel.requested"'));
  for (let append = 1; append <= counting.appendCount; append++) {
    for (const when of ['before', 'after'] as const) {
      const where = `seed ${seed}, append ${append}, ${when}`;
      const { entries, auditor, outcome } = await crashAt(seed, { appendNumber: append, when });
      expect(auditor.violations, where).toEqual([]);
      expect(outcome.status, where).toBe(expected.status);
      if (!isCancelled) expect(outcome, where).toEqual(expected);
      expect(comparable(entries), where).toEqual(expectedEntries);
    }
  }
  return counting.appendCount * 2;
}

const isRootEnd = ({ key, type }: Entry): boolean => key === 't1' && /^call\.(?:completed|errored)$/.test(type);

/**
 * Continues a program as a worker does: runs it whenever it is due. A run at any other time must change nothing; it only
 * tells which signals and resolutions the program waits for.
 */
async function driveAsWorker(driven: World, seed: number): Promise<void> {
  const { inner: store, auditor, clock, steps, layers } = driven;
  const admit = admission(driven, undefined);
  for (let round = 0; round < 200; round++) {
    const before = await entriesOf(store);
    const isStarted = before.some(({ key, type }) => key === 't1' && type === 'call.started');
    const isDue = (await store.dueTurns.list(clock.now(), 1)).length > 0;
    expect(isDue && !isStarted, 'a turn is due that has not started').toBe(false);
    if (before.some(isRootEnd)) return expect(await store.dueTurns.list(Number.MAX_VALUE, 1)).toEqual([]);
    const session = await Session.open('s', { store, clock, ids: seededIds(seed + round), layers, admit });
    const perform = (name: string, safety: Safety, key: string): void => auditor.perform(name, safety, key);
    const outside = { perform, cancel: () => session.cancel('t1', 'the program cancels itself') };
    const outcome = await session.run('t1', programLoop('main', steps, outside), null, { timers: 'pause' });
    if (isStarted && !isDue) expect(await entriesOf(store), 'a turn continues that is not due').toEqual(before);
    if (outcome.status === 'paused') await settlePending(session, outcome.pending, auditor, clock, steps);
    await session.close();
  }
  throw new Error('The program does not end within 200 rounds.');
}

const PROGRAMS = repetitions(2000, 50);

verifies(
  'kernel.crash',
  `a crash at any append leaves no trace in the finished journal but repeated effects (${PROGRAMS} programs)`,
  async () => {
    let crashCount = 0;
    const firstSeed = Number(process.env.RONDO_SEED ?? 1);
    for (let seed = firstSeed; seed < firstSeed + PROGRAMS; seed++) crashCount += await crashEverywhere(seed);
    expect(crashCount).toBeGreaterThan(PROGRAMS * 4);
  },
  300_000,
);

verifies(
  'kernel.due',
  `after a crash at any append a turn is due until it ends, except while it waits (${PROGRAMS / 20} programs)`,
  async () => {
    for (let seed = 1; seed <= PROGRAMS / 20; seed++) {
      const counting = crashingStore(memoryStore());
      await drive(counting, { ...world(seed), stops: undefined }, seed);
      for (let append = 1; append <= counting.appendCount; append++) {
        for (const when of ['before', 'after'] as const) {
          const crashed = { ...world(seed), stops: undefined };
          await drive(crashingStore(crashed.inner, { appendNumber: append, when }), crashed, seed).catch(() => {});
          await macrotask();
          await driveAsWorker(crashed, seed).catch((error: unknown) => {
            throw new Error(`seed ${seed}, append ${append}, ${when}`, { cause: error });
          });
        }
      }
    }
  },
  300_000,
);
