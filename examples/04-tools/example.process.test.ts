import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { verifyExample, verifyTwin } from '../twin.js';

verifies('example.runs', 'the example of tools runs a tool of each kind', () => {
  const { status, stdout } = verifyExample('04-tools');
  expect(status, stdout).toBe(0);
  expect(stdout).toMatch(/retry 1 after \d+ ms \(TOOL_FAILED\)/);
  expect(stdout).toContain('All checks passed.');
});

verifies('example.runs', 'the verifier of the example of tools detects a missing retry', () => {
  const { status, stdout } = verifyTwin('04-tools', 'reserve.json', '"attempts": 3', '"attempts": 1');
  expect(status, stdout).toBe(1);
  expect(stdout).toContain('answered 503');
});
