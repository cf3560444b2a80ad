// The line that shows the progress of a turn.

import { expect, onTestFinished, vi } from 'vitest';
import type { TraceEvent } from '../../src/protocol/trace.js';
import { TurnProgress } from '../../src/surfaces/cli/turn-progress.js';
import { verifies } from '../verifies.js';

const event = (type: string, callId: string, payload: object): TraceEvent => ({ callId, ts: '', type, payload });

verifies('cli.progress', 'the line names the innermost call and what it does, and is removed at the end', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const shown: (string | undefined)[] = [];
  const progress = new TurnProgress((text) => shown.push(text), Date.now);
  progress.apply(event('call.started', 't', { loopId: 'desk agent' }));
  progress.apply(event('call.started', 't/0', { loopId: 'refund\u001b[31m' }));
  progress.apply(event('call.tool.invoked', 't/0', { toolName: 'exec:pay' }));
  vi.advanceTimersByTime(1150);
  expect(shown[0]).toMatch(/^\S 1 s {2}refund.*\[31m {2}runs exec:pay$/);
  expect(shown[0]).not.toContain('\u001b');
  progress.apply(event('call.completed', 't/0', {}));
  vi.advanceTimersByTime(250);
  expect(shown.at(-1)).toMatch(/ {2}desk agent$/);
  progress.end();
  const count = shown.length;
  vi.advanceTimersByTime(250);
  expect([shown.at(-1), shown.length]).toEqual([undefined, count]);
});
