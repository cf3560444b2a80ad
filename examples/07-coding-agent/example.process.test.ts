import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { verifyExample, verifyTwin } from '../twin.js';

verifies('example.runs', 'the coding agent reads, requests approvals, edits and tests as the example shows', () => {
  const { status, stdout } = verifyExample('07-coding-agent');
  expect(status, stdout).toBe(0);
  expect(stdout).toContain('-  const sorted = [...numbers].sort();');
  expect(stdout).toContain('All checks passed.');
});

verifies('example.runs', 'the verifier of the coding agent detects a file that is changed without approval', () => {
  const tools = 'edit_file, run_command]';
  const toolsWithoutApproval = "edit_file.withApproval('always_allow'), run_command]";
  const { status, stdout } = verifyTwin('07-coding-agent', 'fixer.mjs', tools, toolsWithoutApproval);
  expect(status, stdout).toBe(1);
  expect(stdout).toContain('✗ nothing is changed before the approval');
});
