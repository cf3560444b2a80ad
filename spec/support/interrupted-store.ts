// A store that does something once in the middle of an operation, as another process might.

import type { Journal, Store } from '../../src/journal/store.js';

/** Wraps a store. What is given to `arm` is called before the next read of the session, or append to it, and awaited. */
export function interruptedStore(inner: Store, session: string, operation: 'read' | 'append') {
  let interrupt: (() => Promise<unknown>) | undefined;
  const { journal } = inner;
  const interrupted = async (called: typeof operation, name: string): Promise<void> => {
    const now = called === operation && name === session ? interrupt : undefined;
    if (now !== undefined) interrupt = undefined;
    await now?.();
  };
  const wrapped: Journal = {
    async *read(name, from) {
      await interrupted('read', name);
      yield* journal.read(name, from);
    },
    append: async (batch) => {
      await interrupted('append', batch.session);
      return journal.append(batch);
    },
    claim: (name) => journal.claim(name),
    list: () => journal.list(),
    remove: (name) => journal.remove(name),
  };
  const arm = (action: () => Promise<unknown>): void => {
    interrupt = action;
  };
  return { store: { ...inner, journal: wrapped } satisfies Store, arm };
}
