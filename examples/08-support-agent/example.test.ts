import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { verifyExample, verifyTwin } from '../twin.js';

verifies('example.runs', 'an agent that waits for an approval is not resumed as the example shows it', () => {
  const { status, stdout } = verifyExample('08-support-agent');
  expect(status, stdout).toBe(0);
  expect(stdout).toContain('The receipt is R-1.');
  expect(stdout).toContain('It holds.');
});

verifies('example.runs', 'the example of approvals calls itself good when money is paid unasked', () => {
  const { status, stdout } = verifyTwin('08-support-agent', 'support.json', '"ask"', '"always_allow"');
  expect(status, stdout).toBe(1);
  expect(stdout).toContain('✗ nothing is paid yet');
});
