import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { verifyExample, verifyTwin } from '../twin.js';

verifies('example.runs', 'one of the ways to run a tool does not work as the example shows it', () => {
  const { status, stdout } = verifyExample('04-tools');
  expect(status, stdout).toBe(0);
  expect(stdout).toMatch(/retry 1 after \d+ ms \(TOOL_FAILED\)/);
  expect(stdout).toContain('It holds.');
});

verifies('example.runs', 'the example of tools calls itself good when a tool is not tried again', () => {
  const { status, stdout } = verifyTwin('04-tools', 'reserve.json', '"attempts": 3', '"attempts": 1');
  expect(status, stdout).toBe(1);
  expect(stdout).toContain('answered 503');
});
