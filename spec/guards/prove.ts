// A guard is proved twice: its check holds on the library as it is, and fails on a copy without the guard.

import { afterAll, beforeAll, expect } from 'vitest';
import type { RequirementId } from '../requirements.js';
import { verifies } from '../verifies.js';
import type { Break, Workshop } from './library.js';

export interface Guard<L> extends Break {
  readonly id: RequirementId;
  readonly disaster: string;
  readonly check: (library: L) => Promise<void>;
}

/** A check that hangs has noticed too: the broken library never came to an end. */
function within<T>(ms: number, work: Promise<T>): Promise<T> {
  return Promise.race([work, new Promise<never>((_, reject) => setTimeout(reject, ms, new Error('no end')))]);
}

export function proveGuards<L>(open: () => Workshop<L>, guards: readonly Guard<L>[]): void {
  let workshop: Workshop<L>;
  let whole: L;
  beforeAll(async () => {
    workshop = open();
    whole = await workshop.load();
  });
  afterAll(() => workshop.close());
  for (const { id, disaster, check, ...broken } of guards) {
    const named = broken.from.replaceAll(/\s+/g, ' ').slice(0, 60);
    verifies(id, `${disaster} (and that is noticed when this guard is broken: ${named})`, async () => {
      await within(20_000, check(whole));
      const twin = await workshop.load(broken);
      await expect(within(5_000, check(twin))).rejects.toThrow();
    });
  }
}
