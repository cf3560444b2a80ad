// A stage for checks: one session on a store, with a clock by hand and a count of what effects really did.

import type { Effect, Loop, Outcome, Scope, Session, SessionOptions, Store } from '../../src/index.js';
import type { Entry, Json, Safety } from '../../src/protocol/index.js';
import type { ManualClock } from '../../src/testing/index.js';
import type { Library } from './library.js';

export { codeOf } from '../code-of.js';

export interface Stage {
  readonly library: Library;
  readonly store: Store;
  readonly clock: ManualClock;
  /** What was performed, in order: `name` of each effect. */
  readonly performed: string[];
  /** The idempotency keys effects were given, in order. */
  readonly keys: string[];
  open(options?: Partial<SessionOptions>): Promise<Session>;
  effect(name: string, safety: Safety, more?: Partial<Effect>): Effect;
  entries(session?: string): Promise<Entry[]>;
}

export function stage(library: Library, store: Store = library.memoryStore()): Stage {
  const clock = new library.ManualClock(1_000);
  const performed: string[] = [];
  const keys: string[] = [];
  let opened = 0;
  return {
    library,
    store,
    clock,
    performed,
    keys,
    open: (options) => {
      opened += 1;
      return library.Session.open('s', { store, clock, ids: library.seededIds(opened), ...options });
    },
    effect: (name, safety, more) => ({
      kind: 'test',
      name,
      safety,
      input: { name },
      perform: (_input, { idempotencyKey }) => {
        performed.push(name);
        keys.push(idempotencyKey);
        return `${name} done`;
      },
      ...more,
    }),
    entries: async (session = 's') => {
      const all: Entry[] = [];
      for await (const some of store.journal.read(session, 0)) all.push(...some);
      return all;
    },
  };
}

/** A loop from a body, for checks that need no types. */
export function loop(body: (scope: Scope) => Promise<unknown>, name = 'main'): Loop<Json, unknown> {
  return { name, body: (_input, scope) => body(scope) };
}

export function run(session: Session, body: (scope: Scope) => Promise<unknown>): Promise<Outcome> {
  return session.run('t1', loop(body), null, { timers: 'pause' });
}

/** Runs a body on a store that dies at an append, and forgets the error. */
export async function crash(
  on: Stage,
  point: { append: number; when: 'before' | 'after' },
  body: (scope: Scope) => Promise<unknown>,
): Promise<void> {
  const session = await on.open({ store: on.library.crashingStore(on.store, point) });
  await run(session, body).catch(() => {});
  await new Promise((resolve) => setImmediate(resolve));
}

export const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
