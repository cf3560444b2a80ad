// A session on a store, with a manual clock and a record of the effects that were performed.

import type { RunOutcome, Session, SessionOptions, Store } from '../../src/host-entry.js';
import type { Effect, Loop, Scope } from '../../src/index.js';
import type { Entry, Json, Safety } from '../../src/protocol/index.js';
import type { CrashPoint, ManualClock } from '../../src/testing/index.js';
import type { Library } from '../guards/library.js';

export { codeOf } from './code-of.js';

/** A session and its effects. */
interface SessionFixture {
  readonly library: Library;
  readonly store: Store;
  readonly clock: ManualClock;
  /** The names of the performed effects, in order. */
  readonly performed: string[];
  /** The idempotency keys of the performed effects, in order. */
  readonly keys: string[];
  open(options?: Partial<SessionOptions>): Promise<Session>;
  effect(name: string, safety: Safety, more?: Partial<Effect>): Effect;
  entries(session?: string): Promise<Entry[]>;
}

/** Creates a fixture on a store. */
export function sessionFixture(library: Library, store: Store = library.memoryStore()): SessionFixture {
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

/** Creates an untyped loop from a body. */
export function loop(body: (scope: Scope) => Promise<unknown>, name = 'main'): Loop<Json, unknown> {
  return { name, body: (_input, scope) => body(scope) };
}

/** Runs a body as the root `t1`. */
export function run(session: Session, body: (scope: Scope) => Promise<unknown>): Promise<RunOutcome> {
  return session.run('t1', loop(body), null, { timers: 'pause' });
}

/** Runs a body on a store that crashes at an append, and ignores the error. */
export async function crash(
  fixture: SessionFixture,
  point: CrashPoint,
  body: (scope: Scope) => Promise<unknown>,
): Promise<void> {
  const session = await fixture.open({ store: fixture.library.crashingStore(fixture.store, point) });
  await run(session, body).catch(() => {});
  await new Promise((resolve) => setImmediate(resolve));
}

/** Waits for one iteration of the event loop. */
export const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
