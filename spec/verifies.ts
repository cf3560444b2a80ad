// A test that stands for a requirement and is named after the disaster it prevents.

import { type TestContext, test } from 'vitest';
import type { RequirementId } from './requirements.js';

/** Runs `fn` as a test called `[id] disaster`; the coverage test counts it as proof of the requirement. */
export function verifies(
  id: RequirementId,
  disaster: string,
  fn: (context: TestContext) => void | Promise<void>,
  timeoutMs?: number,
): void {
  test(`[${id}] ${disaster}`, fn, timeoutMs);
}
