import { expect, expectTypeOf } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { verifyExample, verifyTwin } from '../twin.js';

type Body = typeof import('./loops/triage.mjs').triage.body;
type Topic = 'billing' | 'delivery' | 'other';

verifies('example.runs', 'loops in code do not run as the example shows them, or have other types', () => {
  expectTypeOf<Parameters<Body>[0]>().toEqualTypeOf<{ message: string; from?: string | undefined }>();
  expectTypeOf<Awaited<ReturnType<Body>>>().toEqualTypeOf<{ team: string; topic: Topic; note: string }>();
  const { status, stdout } = verifyExample('06-typed-code');
  expect(status, stdout).toBe(0);
  expect(stdout).toContain('ok {"team":"dispatch","topic":"delivery","note":"Ada wrote about delivery, urgently"}');
  expect(stdout).toContain('It holds.');
});

verifies('example.runs', 'the example of code calls itself good when the two ways to run it differ', () => {
  const { status, stdout } = verifyTwin('06-typed-code', 'triage.mjs', 'wrote about', 'asks about');
  expect(status, stdout).toBe(1);
  expect(stdout).toContain('✗ with the same answer');
});
