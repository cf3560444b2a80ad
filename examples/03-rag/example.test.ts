import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { verifyExample, verifyTwin } from '../twin.js';

verifies('example.runs', 'the composite example does not answer from its notes', () => {
  const { status, stdout } = verifyExample('03-rag');
  expect(status, stdout).toBe(0);
  expect(stdout).toContain('Every second evening is enough');
  expect(stdout).toContain('It holds.');
});

verifies('example.runs', 'the composite example calls itself good when the notes never reach the model', () => {
  const all = '"$.retrieved.output.documents"';
  const { status, stdout } = verifyTwin('03-rag', 'rag-answer.json', all, '"$.retrieved.output.documents[5:]"');
  expect(status, stdout).toBe(1);
  expect(stdout).toContain('expects "every second evening"');
});
