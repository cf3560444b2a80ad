import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { verifyExample, verifyTwin } from '../twin.js';

verifies('example.runs', 'the example of policies retries, falls back, caches and filters', () => {
  const { status, stdout } = verifyExample('05-policy');
  expect(status, stdout).toBe(0);
  expect(stdout).toMatch(/retry 1 after \d+ ms \(TIMEOUT\)/);
  expect(stdout).toContain('fell back to mock');
  expect(stdout).toContain('All checks passed.');
});

verifies('example.runs', 'the verifier of the example of policies detects an address that is sent', () => {
  const { status, stdout } = verifyTwin('05-policy', 'reply.toml', '@[', '#[');
  expect(status, stdout).toBe(1);
  expect(stdout).toContain('✗ no address was sent');
});
