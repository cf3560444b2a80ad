// The measured work: typed steps, as plain async functions with a compiled validator and as loops.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { type Durability, openSqlite } from '../src/adapters/sqlite/index.js';
import type { Store } from '../src/host-entry.js';
import { memoryStore, Session, systemClock, systemIds } from '../src/host-entry.js';
import type { Effect, Loop, Scope } from '../src/index.js';
import type { Safety } from '../src/protocol/index.js';

/** The value of every step. */
export interface Count {
  readonly n: number;
}

const validate = new Ajv().compile({ type: 'object', properties: { n: { type: 'number' } }, required: ['n'] });

/** Validates a count. */
function check(value: unknown): Count {
  if (!validate(value)) throw new TypeError('not a count');
  return value as Count;
}

/** A loop that adds one. */
const increment: Loop<Count, Count> = {
  name: 'increment',
  input: check,
  output: check,
  body: async ({ n }) => ({ n: n + 1 }),
};

async function bareBody({ n }: Count): Promise<Count> {
  return { n: n + 1 };
}

/** Adds one, with validation. */
async function bareIncrement(input: Count): Promise<Count> {
  return check(await bareBody(check(input)));
}

/** A loop of `steps` calls in sequence. */
export const inSequence = (steps: number): Loop<Count, Count> => ({
  name: 'in-sequence',
  body: async (input, scope) => {
    let value = input;
    for (let i = 0; i < steps; i++) value = await scope.call(increment, value);
    return value;
  },
});

/** The same with plain functions. */
export async function bareInSequence(steps: number): Promise<Count> {
  let value: Count = { n: 0 };
  for (let i = 0; i < steps; i++) value = await bareIncrement(value);
  return value;
}

/** A loop that calls itself `n` times. */
export const nested: Loop<Count, Count> = {
  name: 'nested',
  input: check,
  output: check,
  body: async ({ n }, scope) => (n === 0 ? { n } : scope.call(nested, { n: n - 1 })),
};

/** The same with plain functions. */
export async function bareNested(input: Count): Promise<Count> {
  const { n } = check(input);
  return check(n === 0 ? { n } : await bareNested({ n: n - 1 }));
}

/** A loop of parallel calls. */
export const sideBySide = (branches: number): Loop<Count, Count> => ({
  name: 'side-by-side',
  body: async (_input, scope) => {
    const each = Array.from({ length: branches }, (_, n) => (branch: Scope) => branch.call(increment, { n }));
    return { n: (await scope.all(each)).length };
  },
});

/** The same with plain functions. */
export async function bareSideBySide(branches: number): Promise<number> {
  return (await Promise.all(Array.from({ length: branches }, (_, n) => bareIncrement({ n })))).length;
}

/** An effect that returns at once. */
export function effect(safety: Safety): Effect<Count> {
  return { kind: 'bench', name: 'increment', safety, input: { n: 1 }, perform: async () => ({ n: 2 }) };
}

/** A loop of `steps` effects in sequence. */
export const effectsInSequence = (steps: number, safety: Safety): Loop<Count, Count> => ({
  name: `effects-${safety}`,
  body: async (input, scope) => {
    const repeated = effect(safety);
    for (let i = 0; i < steps; i++) await scope.effect(repeated);
    return input;
  },
});

/** A store that discards every entry, so that only the cost of the kernel is measured. */
export function discardingStore(): Store {
  const { leases, dueTurns } = memoryStore();
  return {
    journal: {
      claim: async () => ({ fence: 1, nextSeq: 0 }),
      append: async () => {},
      read: async function* () {},
      list: async () => [],
      remove: async () => {},
    },
    blobs: { put: async () => {}, get: async () => undefined },
    snapshots: { load: async () => undefined, save: async () => {} },
    leases,
    dueTurns,
    close: async () => {},
  };
}

/** Opens an SQLite store in a temporary directory that is removed when the process ends. */
export function sqliteStore(durability: Durability): Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), 'rondo-bench-'));
  process.once('exit', () => rmSync(folder, { recursive: true }));
  return openSqlite(join(folder, 'bench.db'), { durability });
}

let sessions = 0;

/** Opens a new session and runs one loop; throws if it does not end with ok. */
export async function runOnce(loop: Loop<Count, Count>, input: Count, store: Store = memoryStore()): Promise<void> {
  sessions += 1;
  const session = await Session.open(`bench-${sessions}`, { store, clock: systemClock, ids: systemIds });
  const outcome = await session.run('t1', loop, input);
  if (outcome.status !== 'ok') throw new Error(`The run ended as ${JSON.stringify(outcome)}.`);
}

/** Returns a function that runs `waits` waits with their signals, in a session with `others` signals of another name. */
export async function waitsBehind(others: number, waits: number): Promise<() => Promise<void>> {
  const session = await Session.open('waits', { store: discardingStore(), clock: systemClock, ids: systemIds });
  for (let i = 0; i < others; i++) await session.signal({ id: `other-${i}`, name: 'other' });
  const loop: Loop<Count, Count> = {
    name: 'waits',
    body: async (input, scope) => {
      for (let i = 0; i < waits; i++) await scope.wait('one');
      return input;
    },
  };
  let sent = 0;
  return async () => {
    for (let i = 0; i < waits; i++) void session.signal({ id: `one-${sent++}`, name: 'one' });
    const outcome = await session.run(`run-${sent}`, loop, { n: 0 });
    if (outcome.status !== 'ok') throw new Error(`The run ended as ${JSON.stringify(outcome)}.`);
  };
}
