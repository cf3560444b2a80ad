import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { verifyExample, verifyTwin } from '../twin.js';

verifies('example.runs', 'an answer from another process continues the turn of the support agent', () => {
  const { status, stdout } = verifyExample('08-support-agent');
  expect(status, stdout).toBe(0);
  expect(stdout).toContain('The receipt is R-1.');
  expect(stdout).toContain('All checks passed.');
});

verifies('example.runs', 'the verifier of the support agent detects a refund without approval', () => {
  const { status, stdout } = verifyTwin('08-support-agent', 'support.json', '"ask"', '"always_allow"');
  expect(status, stdout).toBe(1);
  expect(stdout).toContain('✗ nothing is paid yet');
});
