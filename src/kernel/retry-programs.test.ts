/** Retries of random programs: after an outage, a retried program ends like one that never failed. */
import { expect } from 'vitest';
import { repetitions } from '../../spec/support/repetitions.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { seededIds, seededRandom } from '../adapters/system/seeded-ids.js';
import { Fault } from '../base/errors.js';
import { expandLeaves } from '../journal/leaf-entries.js';
import type { Store } from '../journal/store.js';
import { retryLayer } from '../layers/retry.js';
import type { Scope } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { Layer, RunOutcome } from '../protocol/session.js';
import { type CrashPoint, crashingStore } from '../testing/crashing-store.js';
import { ManualClock } from '../testing/manual-clock.js';
import { leafLoop, type ProgramStep, randomProgram } from '../testing/random-programs.js';
import { conversationOf } from '../views/conversation.js';
import { failurePathOf } from '../views/failure-path.js';
import { traceOf } from '../views/trace.js';
import { Turns } from '../views/turns.js';
import { Session } from './session.js';

/** The outside world of a program. It survives crashes. */
class World {
  /** While true, the effects that the program marks as failing fail. */
  hasOutage = true;
  readonly clock = new ManualClock(1000);
  readonly succeeded: string[] = [];
  readonly store: Store = memoryStore();
  readonly steps: readonly ProgramStep[];
  readonly layers: readonly Layer[];

  constructor(seed: number) {
    this.steps = randomProgram(seededRandom(seed), 14);
    this.layers = seed % 3 === 0 ? [retryLayer({ attempts: 2, backoffMs: 0, jitter: 0 })] : [];
  }

  /** Runs a step. Errors are passed on. Waits, failures and cancellations of the program are left out. */
  async step(step: ProgramStep, scope: Scope): Promise<Json> {
    const steps = (list: readonly ProgramStep[]) => (inner: Scope) => this.run(list, inner);
    if (step.op === 'call')
      return scope.call({ name: step.name, body: (_: Json, inner) => this.run(step.steps, inner) }, step.name);
    if (step.op === 'all') return scope.all(step.branches.map(steps));
    if (step.op === 'race') return scope.race(step.branches.map(steps));
    if (step.op === 'now') return (await scope.now()) > 0;
    if (step.op === 'sleep') {
      await scope.sleep(step.ms);
      return step.ms;
    }
    if (step.op !== 'effect') return null;
    const { name, fails } = step;
    // Effects in doubt are another matter: see crash.test.ts.
    const safety = step.safety === 'once' ? 'keyed' : step.safety;
    const perform = async (): Promise<string> => {
      await undefined;
      if (fails && this.hasOutage) throw new Error(`${name} is down`);
      this.succeeded.push(name);
      return name;
    };
    const effect = { kind: 'test', name, safety, input: null, perform };
    if (step.form === 'effect') return (await scope.effect(effect)) as Json;
    return scope.call(leafLoop(effect), null);
  }

  async run(steps: readonly ProgramStep[], scope: Scope): Promise<Json> {
    const values: Json[] = [];
    for (const step of steps) values.push(await this.step(step, scope));
    return values;
  }

  async drive(store: Store = this.store): Promise<RunOutcome> {
    const session = await this.open(store);
    for (;;) {
      const outcome = await session.run('t1', { name: 'main', body: (_: Json, s) => this.run(this.steps, s) }, null, {
        timers: 'pause',
      });
      if (outcome.status !== 'paused') return outcome;
      await this.clock.advanceTo(Math.min(...outcome.pending.map((item) => (item.kind === 'timer' ? item.until : 0))));
    }
  }

  /** Reopens the program at its failure, unless a crashed retry has done so. */
  async retry(store: Store = this.store): Promise<RunOutcome> {
    const path = failurePathOf('t1', await this.entries());
    if (path.length > 0) {
      const session = await this.open(store);
      await session.reopen('t1', path);
      await session.close();
    }
    return this.drive(store);
  }

  /** Returns the entries with those of leaf calls expanded. */
  async entries(): Promise<readonly Entry[]> {
    return expandLeaves(await this.storedEntries());
  }

  async storedEntries(): Promise<readonly Entry[]> {
    const all: Entry[] = [];
    for await (const entries of this.store.journal.read('s', 0)) all.push(...entries);
    return all;
  }

  private open(store: Store): Promise<Session> {
    return Session.open('s', { store, clock: this.clock, ids: seededIds(1), layers: this.layers });
  }
}

/** Returns the outcome of a program without an outage. */
async function expectedOutcome(seed: number): Promise<RunOutcome> {
  const world = new World(seed);
  world.hasOutage = false;
  return world.drive();
}

/** Runs a program into its outage. Returns undefined if it does not fail. */
async function failedWorld(seed: number): Promise<World | undefined> {
  const world = new World(seed);
  const { status } = await world.drive();
  world.hasOutage = false;
  return status === 'error' ? world : undefined;
}

const PROGRAMS = repetitions(600);
const repeated = (names: readonly string[]): readonly string[] => names.filter((name, i) => names.indexOf(name) !== i);

verifies(
  'turn.retry',
  `one retry after an outage ends like a run that never failed (${PROGRAMS} programs)`,
  async () => {
    let failed = 0;
    for (let seed = 1; seed <= PROGRAMS; seed++) {
      const world = await failedWorld(seed);
      if (world === undefined) continue;
      failed += 1;
      expect(await world.retry(), `seed ${seed}`).toEqual(await expectedOutcome(seed));
      expect(repeated(world.succeeded), `seed ${seed}: performed twice`).toEqual([]);
    }
    expect(failed).toBeGreaterThan(PROGRAMS / 10);
  },
  120_000,
);

verifies(
  'kernel.leaf',
  `views of stored leaf calls equal those of the entries that they stand for (${PROGRAMS} programs)`,
  async () => {
    let leafEntries = 0;
    for (let seed = 1; seed <= PROGRAMS; seed++) {
      const world = new World(seed);
      await world.drive();
      world.hasOutage = false;
      await world.retry();
      const stored = await world.storedEntries();
      const expanded = expandLeaves(stored);
      leafEntries += expanded.length - stored.length;
      expect(traceOf('t1', stored), `seed ${seed}`).toEqual(traceOf('t1', expanded));
      expect(conversationOf('s', stored), `seed ${seed}`).toEqual(conversationOf('s', expanded));
      expect(turnOf(stored), `seed ${seed}`).toEqual(turnOf(expanded));
    }
    expect(leafEntries).toBeGreaterThan(PROGRAMS);
  },
  120_000,
);

function turnOf(entries: readonly Entry[]): unknown {
  const turns = new Turns();
  for (const entry of entries) turns.apply(entry);
  return turns.get('t1')?.pending;
}

verifies(
  'turn.retry',
  'a retry that crashes at any append continues, and repeats nothing that is durable',
  async () => {
    let crashes = 0;
    for (let seed = 1; seed <= Math.max(PROGRAMS / 10, 20); seed++) {
      const reference = await failedWorld(seed);
      if (reference === undefined) continue;
      const counting = crashingStore(reference.store);
      const expected = await reference.retry(counting);
      for (let appendNumber = 1; appendNumber <= counting.appendCount; appendNumber++)
        for (const when of ['before', 'after'] as const)
          crashes += await crashDuringRetry(seed, { appendNumber, when }, expected);
    }
    expect(crashes).toBeGreaterThan(PROGRAMS / 10);
  },
  120_000,
);

async function crashDuringRetry(seed: number, point: CrashPoint, expected: RunOutcome): Promise<number> {
  const where = `seed ${seed}, append ${point.appendNumber}, ${point.when}`;
  const world = await failedWorld(seed);
  if (world === undefined) return 0;
  await world.retry(crashingStore(world.store, point)).catch((error: unknown) => {
    if (!(error instanceof Fault)) throw error;
  });
  await new Promise((resolve) => setImmediate(resolve));
  const returned = (await world.entries()).filter(({ type }) => type === 'effect.returned').map(({ key }) => key);
  const durable = new Set(returned);
  const names = (await world.entries()).flatMap(({ type, key, name }) =>
    type === 'effect.requested' && durable.has(key.replace(/~.*/, '')) ? [name] : [],
  );
  world.succeeded.length = 0;
  expect(await world.retry(), where).toEqual(expected);
  expect(
    world.succeeded.filter((name) => names.includes(name)),
    where,
  ).toEqual([]);
  return 1;
}
