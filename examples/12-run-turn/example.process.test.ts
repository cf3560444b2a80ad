import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { verifyExample } from '../twin.js';

verifies('example.runs', 'a turn runs from a script, from the worker of a queue and from another orchestrator', () => {
  const { status, stdout } = verifyExample('12-run-turn');
  expect(status, stdout).toBe(0);
  expect(stdout).toContain('script: sent A-1');
  expect(stdout).toContain('queue worker: sent B-1, B-2\n');
  expect(stdout).toContain('orchestrator: sent monday/C-1, monday/C-2, monday/C-3');
  expect(stdout).toContain('All checks passed.');
});
