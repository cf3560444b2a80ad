// Proves guards. Every run checks that a promise holds in the intact library; `npm run proof` also breaks each guard of
// the promise in a twin of the library, where the check must fail.

import { afterAll, beforeAll, expect } from 'vitest';
import type { RequirementId } from '../requirements.js';
import { isProof } from '../support/repetitions.js';
import { verifies } from '../verifies.js';
import { type LibraryParts, loadLibrary } from './library.js';
import type { Operation } from './mutate.js';
import { type BrokenGuard, TwinBuilder } from './twin-builder.js';

type Check<L> = (library: L) => Promise<void>;

export interface Guard<L> extends BrokenGuard {
  readonly id: RequirementId;
  /** The behaviour that holds while the guard is in place. */
  readonly promise: string;
  readonly check: Check<L>;
}

/** Creates rows of a table of guards: a requirement, the promise of a check, a marked guard and how it is broken. */
export function guardsOf<L, P extends string>(
  checks: { readonly [promise in P]: Check<L> },
): (id: RequirementId, promise: P, slug: string, operation: Operation) => Guard<L> {
  return (id, promise, slug, operation) => ({ id, promise, slug, operation, check: checks[promise] });
}

/** A check that does not end has detected the broken guard as well. */
function within<T>(ms: number, work: Promise<T>): Promise<T> {
  return Promise.race([
    work,
    new Promise<never>((_, reject) => setTimeout(reject, ms, new Error('the check did not end'))),
  ]);
}

/**
 * Declares the tests of a table of guards. `twinsOnly`: the checks need modules that Node itself loads, so they do not
 * hold in the library as the test runner loads it.
 */
export function proveGuards<L>(parts: LibraryParts, guards: readonly Guard<L>[], { twinsOnly = false } = {}): void {
  if (isProof) proveTwins(parts, guards);
  else if (!twinsOnly) provePromises(parts, guards);
}

/** Declares a test for each promise. */
function provePromises<L>(parts: LibraryParts, guards: readonly Guard<L>[]): void {
  const distinct = new Map(guards.map((guard) => [`${guard.id} ${guard.promise}`, guard]));
  for (const { id, promise, check } of distinct.values())
    verifies(id, promise, async () => within(20_000, check(await loadLibrary<L>(parts))));
}

function proveTwins<L>(parts: LibraryParts, guards: readonly Guard<L>[]): void {
  let builder: TwinBuilder<L>;
  let intact: L;
  beforeAll(async () => {
    builder = new TwinBuilder<L>(parts);
    intact = await builder.load();
  });
  afterAll(() => builder.close());
  for (const { id, promise, check, slug, operation } of guards) {
    verifies(id, `${promise} (detected when guard "${slug}" is broken)`, async () => {
      await within(20_000, check(intact));
      const twin = await builder.load({ slug, operation });
      const isDetected = await within(5_000, check(twin)).then(
        () => false,
        () => true,
      );
      const undetected = `broken twin undetected: the check of "${promise}" passes although guard "${slug}" is broken`;
      expect(isDetected, undetected).toBe(true);
    });
  }
}
