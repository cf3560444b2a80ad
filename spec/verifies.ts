// Declares tests that prove requirements.

import { type TestContext, test } from 'vitest';
import type { RequirementId } from './requirements.js';

/**
 * Declares a test called `[id] promise` that proves the requirement `id`.
 * The title states the behaviour that holds; failure messages name the disaster.
 */
export function verifies(
  id: RequirementId,
  promise: string,
  fn: (context: TestContext) => void | Promise<void>,
  timeoutMs?: number,
): void {
  test(`[${id}] ${promise}`, fn, timeoutMs);
}
