import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { verifyExample, verifyTwin } from '../twin.js';

verifies('example.runs', 'the first example that a newcomer runs does not work', () => {
  const { status, stdout } = verifyExample('02-hello');
  expect(status, stdout).toBe(0);
  expect(stdout).toContain('"greeting": "A mock greeting for: Greet Ada in one short sentence."');
  expect(stdout).toContain('It holds.');
});

verifies('example.runs', 'the hello example calls itself good when it greets nobody', () => {
  const { status, stdout } = verifyTwin('02-hello', 'hello.json', 'Greet {{name}}', 'Greet the customer');
  expect(status, stdout).toBe(1);
  expect(stdout).toContain('✗ the greeting is for Ada');
});
