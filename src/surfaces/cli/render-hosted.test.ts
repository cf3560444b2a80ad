import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import type { HostedLoopStatus } from '../../protocol/hosted-loop.js';
import type { HostedTurnListing } from '../../views/hosted-turns.js';
import { hostedLines, hostedTurnRows, refusedHandoffLines, shortTurnRows } from './render-hosted.js';

const NOW = Date.parse('2030-01-02T12:00:00.000Z');
const RECEIPT = `sha256:${'a1'.repeat(32)}`;
const HEAD = 'f28ee6936717f80ce8bd';

function lines(changes: Partial<HostedLoopStatus>): readonly string[] {
  const projection = { head: HEAD, fresh: true, asOf: '2030-01-02T11:59:43.000Z' };
  return hostedLines({ loop: 'report', status: 'waiting', turns: 2, projection, signals: 0, ...changes }, NOW);
}

verifies('cli.times', 'the status of a hosted loop says what each of its times is', () => {
  expect(lines({})).toContain('turns    2, the last one ended 2030-01-02 11:59:43 UTC (17 s ago)');
  expect(lines({ turns: 0 })).toContain('turns    0, started 2030-01-02 11:59:43 UTC (17 s ago)');
  expect(lines({ turnId: 'hosted:report:2.k' })).toContain('turns    2, the last one is open');
  const later = lines({ nextAt: '2030-01-02T12:00:01.000Z' });
  expect(later).toContain('next     2030-01-02 12:00:01 UTC');
  const overdue = lines({ nextAt: '2030-01-02T11:59:50.000Z' });
  expect(overdue, 'a due time in the past looks like one to come').toContain(
    'next     due since 2030-01-02 11:59:50 UTC (10 s ago)',
  );
});

verifies('hosted.projection', 'the status of a hosted loop says why its projection is not current', () => {
  const stale = { head: HEAD, fresh: false };
  expect(lines({})).toContain('head     f28ee6936717…, the projection is current');
  expect(lines({ turnId: 'hosted:report:2.k', projection: stale })).toContain(
    'head     f28ee6936717…, the projection is not current: turn 2 is open',
  );
  expect(lines({ projection: stale })).toContain(
    'head     f28ee6936717…, the projection is not current: the last receipt is missing or not valid, or a handoff waits',
  );
});

verifies('hosted.stops', 'the reason of a stop is not said twice', () => {
  const stopped = { status: 'stopped', reason: 'stopped_by', message: 'Stopped by ada: lunch' } as const;
  expect(lines(stopped)).toContain('reason   Stopped by ada: lunch');
  const bounded = { status: 'stopped', reason: 'max_turns', message: 'It has had 2 of 2 turns.' } as const;
  expect(lines(bounded)).toContain('reason   max_turns: It has had 2 of 2 turns.');
});

const first: HostedTurnListing = {
  ...{ key: 'report#1', turn: 1, turnId: 'hosted:report:1.k', cause: 'schedule', head: HEAD, status: 'ok' },
  ...{ dueAt: '2030-01-02T11:00:00.000Z', requestedAt: '2030-01-02T11:00:00.000Z' },
  ...{ endedAt: '2030-01-02T11:57:00.000Z', receipt: RECEIPT, next: { dueAt: '2030-01-02T13:00:00.500Z' } },
};
const second: HostedTurnListing = {
  ...first,
  ...{ key: 'report#2', turn: 2, turnId: 'hosted:report:2.k', cause: 'signal', signal: 'mail-1' },
};

verifies('hosted.handoff', 'the cause of a turn names the receipt of its handoff once, and no number of a rule', () => {
  const turn = { ...first, cause: 'handoff', signal: `handoff ${RECEIPT} 0` } as const;
  expect(hostedTurnRows([turn])[0]?.[3]).toBe(`handoff ${RECEIPT}`);
  expect(hostedTurnRows([{ ...turn, cause: 'retry' }])[0]?.[3]).toBe(`retry handoff ${RECEIPT}`);
  expect(shortTurnRows([turn], {}, NOW)[0]?.[4]).toBe(`handoff ${RECEIPT.slice(0, 19)}`);
});

verifies('cli.times', 'the turns of a hosted loop are short for people, and complete for programs', () => {
  const scheduled = { schedule: { everyMs: 1000 } };
  expect(shortTurnRows([first, second], scheduled, NOW)).toEqual([
    ['report#1', 'ok', '3 min ago', RECEIPT.slice(0, 19), 'schedule', ''],
    ['report#2', 'ok', '3 min ago', RECEIPT.slice(0, 19), 'signal mail-1', '13:00:00 UTC'],
  ]);
  const tomorrow = { ...first, next: { dueAt: '2030-01-03T13:00:00.500Z' } };
  expect(shortTurnRows([tomorrow], scheduled, NOW)[0]?.at(-1)).toBe('2030-01-03 13:00:00 UTC');
  expect(hostedTurnRows([first])).toEqual([
    ['report#1', 'ok', RECEIPT, 'schedule', 'next due 2030-01-02T13:00:00.500Z'],
  ]);
});

verifies('hosted.schedule', 'without a schedule, no turn is said to be caused by one', () => {
  const next = { stopped: 'max_turns', message: 'It has had 2 of 2 turns.' } as const;
  const turns = [first, { ...first, turn: 2, key: 'report#2', next }];
  expect(shortTurnRows(turns, {}, NOW).map((row) => row.slice(4))).toEqual([
    ['start', ''],
    ['last turn', 'stopped: max_turns'],
  ]);
});

verifies('hosted.handoff', 'a handoff that its target refused is shown with the turn that made it', () => {
  const handoffs = [
    { target: 'accepting', result: 'accepted' },
    { target: 'other', result: 'HANDOFF_REFUSED: It was never started.' },
  ];
  expect(refusedHandoffLines([{ ...first, handoffs }])).toEqual([
    'The handoff of report#1 to other was refused. HANDOFF_REFUSED: It was never started.',
  ]);
});

verifies('hosted.signals', 'the status says how many signals a stopped loop left without a turn', () => {
  expect(lines({ signals: 1 })).toContain('signals  1 waits for a turn');
  expect(lines({ status: 'stopped', signals: 2 })).toContain('signals  2 got no turn before it stopped');
});
