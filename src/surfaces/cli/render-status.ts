/** Renders the status of a turn: facts with labels, the input, the output, and what it waits for. */
import type { TurnStatus } from '../../protocol/trace.js';
import { type CallDetails, type UsageDetails, usageOf } from '../../views/call-details.js';
import { locationLines, pendingLines } from './outcome.js';
import { timeWithAge } from './relative-time.js';
import { type CallDetailRows, usageText } from './render-details.js';
import { formatDuration, sanitizeText } from './terminal-text.js';

/** A turn with its calls. */
export interface InspectedTurn {
  readonly turn: TurnStatus;
  readonly calls: readonly CallDetails[];
}

/** Returns the status of a turn with the input, the output and the usage, as `--json` prints it. */
export function statusDocument({ turn, calls }: InspectedTurn): TurnStatus & {
  readonly input?: unknown;
  readonly output?: unknown;
  readonly usage?: UsageDetails;
} {
  const [root] = calls;
  const usage = usageOf(calls);
  return {
    ...turn,
    ...(root?.input !== undefined && { input: root.input }),
    ...(root?.output !== undefined && { output: root.output }),
    ...(usage !== undefined && { usage }),
  };
}

/** Options of `renderStatus`. */
interface StatusOptions {
  readonly width: number;
  /** The current time in milliseconds since the epoch. */
  readonly now: number;
  /** Renders input and output. Without it they are omitted. */
  readonly rows?: CallDetailRows;
}

/** Renders the status of a turn as lines. */
export function statusLines({ turn, calls }: InspectedTurn, { width, now, rows }: StatusOptions): readonly string[] {
  const { turnId, sessionId, loopId, loopVersion, status, startedAt, endedAt, durationMs, principal } = turn;
  const { error, reason, pending, pid } = turn;
  const [root] = calls;
  const usage = usageOf(calls);
  const facts: (readonly [string, string | undefined])[] = [
    ['turn', turnId],
    ['session', sessionId],
    ['loop', loopId === '' ? undefined : `${loopId}@${loopVersion}`],
    ['as', principal],
    ['status', pid === undefined ? status : `${status} in process ${pid}`],
    ['started', timeWithAge(startedAt, now)],
    [
      'ended',
      endedAt === undefined ? undefined : `${timeWithAge(endedAt, now)}, after ${formatDuration(durationMs ?? 0)}`,
    ],
    ['usage', usage === undefined ? undefined : usageText(usage)],
    ['reason', reason],
    ['error', error === undefined ? undefined : `${error.code}: ${error.message}`],
  ];
  const values = (['input', 'output'] as const).flatMap((label) => rows?.rowsFor(label, root?.[label], width) ?? []);
  return [
    ...facts.flatMap(([label, value]) => (value === undefined ? [] : [`${label.padEnd(8)} ${sanitizeText(value)}`])),
    ...locationLines(error?.stack).map((line) => `${''.padEnd(8)} ${line}`),
    ...values.map((spans) =>
      spans
        .map(([text]) => text)
        .join('')
        .trimEnd(),
    ),
    ...(pending ?? []).flatMap(pendingLines),
    ...(status === 'interrupted' ? [`Continue with: rondo resume ${sanitizeText(turnId)}`] : []),
  ];
}
