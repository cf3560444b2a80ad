import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { verifyExample, verifyTwin } from '../twin.js';

verifies('example.runs', 'the hello example greets the person in its input', () => {
  const { status, stdout } = verifyExample('02-hello');
  expect(status, stdout).toBe(0);
  expect(stdout).toContain('"greeting": "A mock greeting for: Greet Ada in one short sentence."');
  expect(stdout).toContain('All checks passed.');
});

verifies('example.runs', 'the verifier of the hello example detects a greeting without the name', () => {
  const { status, stdout } = verifyTwin('02-hello', 'hello.json', 'Greet {{name}}', 'Greet the customer');
  expect(status, stdout).toBe(1);
  expect(stdout).toContain('✗ the greeting is for Ada');
});
