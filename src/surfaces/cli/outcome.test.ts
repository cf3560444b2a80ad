import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import type { TurnResult } from '../../protocol/trace.js';
import { outcomeLines, pendingLines, summaryLineOf } from './outcome.js';

const cwd = '/project';

verifies('cli.tree', 'the token totals include repairs and retries', () => {
  const payload = { durationMs: 1, inputTokens: 7, outputTokens: 3 };
  const trace = ['call.backend.responded', 'rondo.backend.responded'].map((type) => ({
    callId: 't',
    ts: '1970-01-01T00:00:00.000Z',
    type,
    payload,
  }));
  const result = { status: 'ok', durationMs: 1, turnId: 't', trace } as unknown as TurnResult;
  expect(summaryLineOf(result)).toContain('14 tokens in, 6 out');
});

verifies('cli.signal', 'the command for a pending signal quotes its name, and is left out for a reserved one', () => {
  const lines = (name: string) => pendingLines({ kind: 'signal', key: 's.1/0/2', name });
  expect(lines('paid')[1]).toBe('  rondo signal s.1 paid --payload JSON');
  expect(lines("it's paid; rm")[1]).toBe("  rondo signal s.1 'it'\\''s paid; rm' --payload JSON");
  expect(lines('steer')).toHaveLength(1);
});

verifies('cli.tree', 'the next command is left out if this process continues the turn itself', () => {
  const pending = [{ kind: 'timer', key: 's.1/0', until: '2026-11-17T14:32:15.000Z' }];
  const result = { status: 'paused', turnId: 's.1', pending } as unknown as TurnResult;
  expect(outcomeLines(result, { cwd })[1]).toMatch(/^When it is due: rondo resume s\.1\. .*rondo worker/);
  expect(outcomeLines(result, { cwd, continuesTimers: true })).toEqual([
    'Waits until 2026-11-17T14:32:15.000Z (s.1/0).',
  ]);
});

verifies('identity.change', 'a turn that changed code stops gets one advice', () => {
  const error = { code: 'REPLAY_MISMATCH', message: 'Step s.1/0: it differs. Run the earlier code.' };
  const lines = outcomeLines({ status: 'error', turnId: 's.1', trace: [], error } as unknown as TurnResult, { cwd });
  expect(lines).toEqual([
    'REPLAY_MISMATCH: Step s.1/0: it differs. Run the earlier code.',
    'The turn is unchanged. For all turns that changed code stops: rondo check',
  ]);
});

verifies('cli.tree', 'the error of a failed step names the step and its call, and leaves out what is not known', () => {
  const whereOf = (failedStep: object) => {
    const error = { code: 'TOOL_FAILED', message: 'Boom.', details: { failedStep } };
    const result = { status: 'error', turnId: 's.1', trace: [], error } as unknown as TurnResult;
    return outcomeLines(result, { cwd })[1];
  };
  expect(whereOf({ step: 'second', loopId: 'boom', callId: 's.1/1' })).toBe('Where: step second (boom), call s.1/1');
  expect(whereOf({ stepIndex: 0, loopId: 'boom', callId: 's.1/0' })).toBe('Where: step 0 (boom), call s.1/0');
  expect(whereOf({ step: '3', loopId: 'boom' })).toBe('Where: step 3 (boom)');
});
