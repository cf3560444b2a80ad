import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { verifyExample, verifyTwin } from '../twin.js';

verifies('example.runs', 'a policy does not do what the example shows', () => {
  const { status, stdout } = verifyExample('05-policy');
  expect(status, stdout).toBe(0);
  expect(stdout).toMatch(/retry 1 after \d+ ms \(TIMEOUT\)/);
  expect(stdout).toContain('fell back to mock');
  expect(stdout).toContain('It holds.');
});

verifies('example.runs', 'the example of policies calls itself good when an address is sent', () => {
  const { status, stdout } = verifyTwin('05-policy', 'reply.toml', '@[', '#[');
  expect(status, stdout).toBe(1);
  expect(stdout).toContain('✗ no address was sent');
});
