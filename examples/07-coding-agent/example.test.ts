import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { verifyExample, verifyTwin } from '../twin.js';

verifies('example.runs', 'a coding agent does not look, ask, change and test as the example shows it', () => {
  const { status, stdout } = verifyExample('07-coding-agent');
  expect(status, stdout).toBe(0);
  expect(stdout).toContain('-  const sorted = [...numbers].sort();');
  expect(stdout).toContain('It holds.');
});

verifies('example.runs', 'the example of a coding agent calls itself good when a file is changed unasked', () => {
  const asks = 'edit_file, run_command]';
  const asksNobody = "edit_file.withApproval('always_allow'), run_command]";
  const { status, stdout } = verifyTwin('07-coding-agent', 'fixer.mjs', asks, asksNobody);
  expect(status, stdout).toBe(1);
  expect(stdout).toContain('✗ until that is approved, nothing is changed');
});
