import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { verifyExample, verifyTwin } from '../twin.js';

verifies('example.runs', 'the composite example answers from its notes', () => {
  const { status, stdout } = verifyExample('03-rag');
  expect(status, stdout).toBe(0);
  expect(stdout).toContain('Every second evening is enough');
  expect(stdout).toContain('All checks passed.');
});

verifies('example.runs', 'the verifier of the composite example detects that the notes do not reach the model', () => {
  const path = '"$.retrieved.output.documents"';
  const { status, stdout } = verifyTwin('03-rag', 'rag-answer.json', path, '"$.retrieved.output.documents[5:]"');
  expect(status, stdout).toBe(1);
  expect(stdout).toContain('expects "every second evening"');
});
