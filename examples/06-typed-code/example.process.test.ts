import { expect, expectTypeOf } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { verifyExample, verifyTwin } from '../twin.js';

type Body = typeof import('./loops/triage.mjs').triage.body;
type Topic = 'billing' | 'delivery' | 'other';

verifies('example.runs', 'loops in code run as the example shows, with the types of their schemas', () => {
  expectTypeOf<Parameters<Body>[0]>().toEqualTypeOf<{ message: string; from?: string | undefined }>();
  expectTypeOf<Awaited<ReturnType<Body>>>().toEqualTypeOf<{ team: string; topic: Topic; note: string }>();
  const { status, stdout } = verifyExample('06-typed-code');
  expect(status, stdout).toBe(0);
  expect(stdout).toContain('ok {"team":"dispatch","topic":"delivery","note":"Ada wrote about delivery, urgently"}');
  expect(stdout).toContain('All checks passed.');
});

verifies(
  'example.runs',
  'the verifier of the example of code detects a difference between host and command line',
  () => {
    const { status, stdout } = verifyTwin('06-typed-code', 'triage.mjs', 'wrote about', 'asks about');
    expect(status, stdout).toBe(1);
    expect(stdout).toContain('✗ both outputs are equal');
  },
);
