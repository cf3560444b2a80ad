/** Renders the status of a turn: facts with labels, the input, the output, and what it waits for. */
import { shortVersion } from '../../base/short-version.js';
import type { TurnStatus } from '../../protocol/trace.js';
import type { ApprovalRecord } from '../../views/approval-records.js';
import { type CallDetails, type UsageDetails, usageOf } from '../../views/call-details.js';
import { locationLines, pendingLines } from './outcome.js';
import { timeWithAge } from './relative-time.js';
import { type CallDetailRows, usageText } from './render-details.js';
import { formatDuration, sanitizeText } from './terminal-text.js';

/** A turn with its calls and approvals. */
export interface InspectedTurn {
  readonly turn: TurnStatus;
  readonly calls: readonly CallDetails[];
  readonly approvals: readonly ApprovalRecord[];
}

/** Returns the status of a turn with the input, the output, the usage and the approvals, as `--json` prints it. */
export function statusDocument({ turn, calls, approvals }: InspectedTurn): TurnStatus & {
  readonly input?: unknown;
  readonly output?: unknown;
  readonly usage?: UsageDetails;
  readonly approvals?: readonly ApprovalRecord[];
} {
  const [root] = calls;
  const usage = usageOf(calls);
  return {
    ...turn,
    ...(root?.input !== undefined && { input: root.input }),
    ...(root?.output !== undefined && { output: root.output }),
    ...(usage !== undefined && { usage }),
    ...(approvals.length > 0 && { approvals }),
  };
}

/** Options of `renderStatus`. */
interface StatusOptions {
  readonly width: number;
  /** The current time in milliseconds since the epoch. */
  readonly now: number;
  /** Renders input and output. Without it they are omitted. */
  readonly rows?: CallDetailRows;
  /**
   * True if nothing is shortened.
   * @default false
   */
  readonly full?: boolean;
  /** The working directory, to which locations in code are relative. */
  readonly cwd: string;
}

/** Renders the status of a turn as lines. */
export function statusLines(
  { turn, calls, approvals }: InspectedTurn,
  { width, now, rows, full, cwd }: StatusOptions,
): readonly string[] {
  const { turnId, sessionId, loopId, loopVersion, status, startedAt, endedAt, durationMs, principal } = turn;
  const { error, reason, pending, pid } = turn;
  const [root] = calls;
  const usage = usageOf(calls);
  const facts: (readonly [string, string | undefined])[] = [
    ['turn', turnId],
    ['session', sessionId],
    ['loop', loopId === '' ? undefined : `${loopId}@${shortVersion(loopVersion)}`],
    ['as', principal],
    ['status', pid === undefined ? status : `${status} in process ${pid}`],
    ['started', timeWithAge(startedAt, now)],
    [
      'ended',
      endedAt === undefined ? undefined : `${timeWithAge(endedAt, now)}, after ${formatDuration(durationMs ?? 0)}`,
    ],
    ['usage', usage === undefined ? undefined : usageText(usage)],
    ['reason', reason],
    ...approvals.map((record) => ['approval', approvalText(record, now)] as const),
    ['error', error === undefined ? undefined : `${error.code}: ${error.message}`],
  ];
  const limit = full === true ? { max: Number.POSITIVE_INFINITY } : {};
  const values = (['input', 'output'] as const).flatMap((label) => rows?.rowsFor(label, root?.[label], width) ?? []);
  return [
    ...facts.flatMap(([label, value]) =>
      value === undefined ? [] : [`${label.padEnd(8)} ${sanitizeText(value, limit)}`],
    ),
    ...locationLines(error?.stack, cwd).map((line) => `${''.padEnd(8)} ${line}`),
    ...values.map((spans) =>
      spans
        .map(([text]) => text)
        .join('')
        .trimEnd(),
    ),
    ...(pending ?? []).flatMap(pendingLines),
    ...(status === 'interrupted' ? interruptedLines(turnId) : []),
  ];
}

/** Describes an answered approval: `pay: approved by ada, 2026-11-17 14:32:15 UTC (3 min ago)`; undefined if there is no answer. */
function approvalText(
  { tool, status, by, answeredAt, reason, standing, id }: ApprovalRecord,
  now: number,
): string | undefined {
  if (by === undefined || answeredAt === undefined) return undefined;
  const when = timeWithAge(answeredAt, now);
  if (status === 'granted') return `${tool}: approved by the standing grant that ${by} gave with ${id}, ${when}`;
  const grant = standing === undefined ? '' : `, with a standing grant for ${JSON.stringify(standing)}`;
  return `${tool}: ${status} by ${by}, ${when}${grant}${reason === undefined ? '' : `: ${reason}`}`;
}

/** Returns the next commands for an interrupted turn. The journal does not record that changed code stopped it. */
function interruptedLines(turnId: string): readonly string[] {
  return [
    `Continue with: rondo resume ${sanitizeText(turnId)}`,
    'If its code has changed since it started, rondo check says what stops it.',
  ];
}
