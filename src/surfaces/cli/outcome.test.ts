import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import type { TurnResult } from '../../protocol/trace.js';
import { pendingLines, summaryLineOf } from './outcome.js';

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
