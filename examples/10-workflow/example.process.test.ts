import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { verifyExample, verifyTwin } from '../twin.js';

verifies('example.runs', 'the example of a workflow fixes files until its check passes', () => {
  const { status, stdout } = verifyExample('10-workflow');
  expect(status, stdout).toBe(0);
  expect(stdout).toContain('s1 --> s2 : has_errors');
  expect(stdout).toContain('All checks passed.');
});

verifies('example.runs', 'the verifier of the example of a workflow detects a state that leads nowhere', () => {
  const { status, stdout } = verifyTwin('10-workflow', 'tidy.toml', 'next = "checking"', 'next = "done"');
  expect(status, stdout).toBe(1);
  expect(stdout).toContain('✗ it ends when the check finds nothing');
});
