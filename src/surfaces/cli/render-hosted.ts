/** Renders hosted loops and their turns for people. All names are untrusted and are sanitised here or by the table. */
import type { HostedLoopDocument, HostedLoopStatus } from '../../protocol/hosted-loop.js';
import type { HostedTurnListing } from '../../views/hosted-turns.js';
import { relativeTime, timeToSecond, timeWithAge } from './relative-time.js';
import { sanitizeText } from './terminal-text.js';

/** How many characters of a receipt are shown where it only tells receipts apart. */
const SHORT_RECEIPT_CHARS = 19;
const SHORT_HEAD_CHARS = 12;

/** Returns the rows of a table of hosted loops: loop, status, reason, turns, next due time, last receipt. */
export function hostedRows(loops: readonly HostedLoopStatus[]): readonly (readonly string[])[] {
  return loops.map(({ loop, status, reason = '', turns, nextAt, lastReceipt = '' }) => [
    loop,
    status,
    reason,
    `${turns}`,
    nextAt === undefined ? '' : timeToSecond(nextAt),
    lastReceipt.slice(0, SHORT_RECEIPT_CHARS),
  ]);
}

/** Returns the rows of a table of turns for a program: key, status, receipt, cause, and what followed; nothing is shortened. */
export function hostedTurnRows(turns: readonly HostedTurnListing[]): readonly (readonly string[])[] {
  return turns.map((turn) => {
    const { key, receipt = 'no receipt', next } = turn;
    const following = next !== undefined && 'dueAt' in next ? `next due ${next.dueAt}` : '';
    const stop = next !== undefined && 'stopped' in next ? `stopped: ${next.stopped}: ${next.message}` : '';
    return [key, endOf(turn), receipt, causeOf(turn), `${following}${stop}`];
  });
}

/** The head of the table of turns for people. */
export const TURN_TABLE_HEAD = ['TURN', 'STATUS', 'ENDED', 'RECEIPT', 'CAUSE', 'NEXT'] as const;

/** Returns the rows of a table of turns for people. What followed a turn is on the next row, so only the last row says it. */
export function shortTurnRows(
  turns: readonly HostedTurnListing[],
  { schedule }: Pick<HostedLoopDocument, 'schedule'>,
  now: number,
): readonly (readonly string[])[] {
  return turns.map((turn, index) => {
    const { key, receipt = '', cause, signal, next, endedAt } = turn;
    const follows = turn.turn === 1 ? 'start' : 'last turn';
    const shownCause = cause === 'schedule' && schedule === undefined ? follows : cause;
    const isLast = index === turns.length - 1;
    return [
      key,
      endOf(turn),
      endedAt === undefined ? '' : relativeTime(endedAt, now),
      receipt.slice(0, SHORT_RECEIPT_CHARS),
      signal === undefined ? shownCause : causeOf(turn, SHORT_RECEIPT_CHARS),
      isLast ? followingText(next, now) : '',
    ];
  });
}

const HANDOFF = 'handoff ';

/** Returns the cause of a turn with the signal or the receipt of the handoff, shortened to a number of characters. */
function causeOf({ cause, signal }: HostedTurnListing, receiptChars?: number): string {
  if (signal === undefined) return cause;
  if (!signal.startsWith(`${HANDOFF}sha256:`)) return `${cause} ${signal}`;
  // The number of the rule, which follows the receipt, tells deliveries apart.
  const [receipt = ''] = signal.slice(HANDOFF.length).split(' ');
  return `${cause === 'handoff' ? '' : `${cause} `}${HANDOFF}${receipt.slice(0, receiptChars)}`;
}

function endOf({ status, code }: HostedTurnListing): string {
  return code === undefined ? status : `${status} ${code}`;
}

/** Returns why the loop stopped, or when its next turn is due: without the date if that is today. */
function followingText(next: HostedTurnListing['next'], now: number): string {
  if (next === undefined) return '';
  if ('stopped' in next) return `stopped: ${next.stopped}`;
  const isToday = next.dueAt.slice(0, 10) === new Date(now).toISOString().slice(0, 10);
  return timeToSecond(next.dueAt).slice(isToday ? 11 : 0);
}

/** Returns a reason with its message; the message alone if it begins with the reason. */
function reasonText(reason: string, message: string): string {
  return message.toLowerCase().startsWith(reason.replaceAll('_', ' ')) ? message : `${reason}: ${message}`;
}

/** Returns the status of a hosted loop as lines. `now` is in milliseconds since the epoch. */
export function hostedLines(status: HostedLoopStatus, now: number): readonly string[] {
  const { loop, reason, message, nextAt, projection, lastReceipt, turnId, signals } = status;
  const facts: (readonly [string, string | undefined])[] = [
    ['loop', loop],
    ['status', stateOf(status)],
    ['reason', reason === undefined || message === undefined ? message : reasonText(reason, message)],
    ['turns', turnsText(status, now)],
    ['turn', turnId],
    ['next', nextAt === undefined ? undefined : nextText(nextAt, now)],
    ['signals', signals === 0 ? undefined : signalsText(status)],
    ['receipt', lastReceipt],
    ['head', `${projection.head.slice(0, SHORT_HEAD_CHARS)}…, ${freshnessOf(status)}`],
  ];
  return facts.flatMap(([label, value]) =>
    value === undefined || value === '' ? [] : [`${label.padEnd(8)} ${sanitizeText(value)}`],
  );
}

function stateOf({ status, reason, message }: HostedLoopStatus): string {
  return reason === undefined || message !== undefined ? status : `${status} (${reason})`;
}

/** Returns the number of turns, and when the last one ended or, before the first one, when the loop was started. */
function turnsText({ turns, turnId, projection: { asOf } }: HostedLoopStatus, now: number): string {
  if (turnId !== undefined) return `${turns}, the last one is open`;
  if (asOf === undefined) return `${turns}`;
  return turns === 0
    ? `0, started ${timeWithAge(asOf, now)}`
    : `${turns}, the last one ended ${timeWithAge(asOf, now)}`;
}

/** Returns how many signals wait for a turn, or are left without one. */
function signalsText({ status, signals }: HostedLoopStatus): string {
  if (status === 'stopped') return `${signals} got no turn before it stopped`;
  return `${signals} ${signals === 1 ? 'waits' : 'wait'} for a turn`;
}

/** Returns a line about each handoff that its target refused. */
export function refusedHandoffLines(turns: readonly HostedTurnListing[]): readonly string[] {
  return turns.flatMap(({ key, handoffs = [] }) =>
    handoffs
      .filter(({ result }) => result !== 'accepted' && result !== 'duplicate')
      .map(({ target, result }) => sanitizeText(`The handoff of ${key} to ${target} was refused. ${result}`)),
  );
}

function nextText(iso: string, now: number): string {
  return Date.parse(iso) > now ? timeToSecond(iso) : `due since ${timeWithAge(iso, now)}`;
}

/** Says whether the projection, from which the next turn is derived, has everything that happened, or why it has not. */
function freshnessOf({ turns, turnId, projection: { fresh } }: HostedLoopStatus): string {
  if (fresh) return 'the projection is current';
  const why =
    turnId === undefined ? 'the last receipt is missing or not valid, or a handoff waits' : `turn ${turns} is open`;
  return `the projection is not current: ${why}`;
}

/** Returns what happens next, and the command that makes it happen; undefined for a loop that has stopped. */
export function nextStepOf({ loop, status, reason, nextAt, turnId }: HostedLoopStatus): string | undefined {
  const shown = sanitizeText(loop);
  if (status === 'stopped') return undefined;
  if (status === 'paused') return `No turn starts until it is resumed: rondo host resume ${shown}`;
  if (reason === 'approval') return 'Its turn waits for an approval: rondo approvals';
  if (turnId !== undefined && status === 'waiting' && reason !== 'turn')
    return `What its turn waits for: rondo status ${sanitizeText(turnId)}`;
  if (nextAt === undefined && reason === 'signal')
    return `A signal causes its next turn: rondo signal ${shown} NAME. To run its turns: rondo worker`;
  return 'To run its turns: rondo worker';
}
