/** Renders hosted loops and their turns for people. All names are untrusted and are sanitised here or by the table. */
import type { HostedLoopStatus } from '../../protocol/hosted-loop.js';
import type { HostedTurnListing } from '../../views/hosted-turns.js';
import { timeWithAge } from './relative-time.js';
import { sanitizeText } from './terminal-text.js';

/** How many characters of a digest are shown where it only tells digests apart. */
const SHORT_DIGEST_CHARS = 19;

/** Returns the rows of a table of hosted loops: loop, status, reason, turns, next due time, last receipt. */
export function hostedRows(loops: readonly HostedLoopStatus[]): readonly (readonly string[])[] {
  return loops.map(({ loop, status, reason = '', turns, nextAt, lastReceipt = '' }) => [
    loop,
    status,
    reason,
    `${turns}`,
    nextAt === undefined ? '' : timeOf(nextAt),
    lastReceipt.slice(0, SHORT_DIGEST_CHARS),
  ]);
}

/** Returns the rows of a table of turns: key, status, receipt, cause, and what followed. */
export function hostedTurnRows(turns: readonly HostedTurnListing[]): readonly (readonly string[])[] {
  return turns.map(({ key, status, receipt = 'no receipt', cause, signal, code, next }) => [
    key,
    code === undefined ? status : `${status} ${code}`,
    receipt,
    signal === undefined ? cause : `${cause} ${signal}`,
    followingOf(next),
  ]);
}

function followingOf(next: HostedTurnListing['next']): string {
  if (next === undefined) return '';
  return 'stopped' in next ? `stopped: ${next.stopped}: ${next.message}` : `next due ${next.dueAt}`;
}

/** Returns the status of a hosted loop as lines. `now` is in milliseconds since the epoch. */
export function hostedLines(status: HostedLoopStatus, now: number): readonly string[] {
  const { loop, reason, message, turns, nextAt, projection, lastReceipt, turnId, signals } = status;
  const { head, fresh, asOf } = projection;
  const facts: (readonly [string, string | undefined])[] = [
    ['loop', loop],
    ['status', stateOf(status)],
    ['reason', reason === undefined || message === undefined ? message : `${reason}: ${message}`],
    ['turns', `${turns}`],
    ['turn', turnId],
    ['next', nextAt === undefined ? undefined : timeOf(nextAt)],
    ['signals', signals === 0 ? undefined : `${signals} ${signals === 1 ? 'waits' : 'wait'} for a turn`],
    ['receipt', lastReceipt],
    ['head', `${head.slice(0, SHORT_DIGEST_CHARS)}${fresh ? ', fresh' : ', not fresh'}`],
    ['as of', asOf === undefined ? undefined : timeWithAge(asOf, now)],
  ];
  return facts.flatMap(([label, value]) =>
    value === undefined || value === '' ? [] : [`${label.padEnd(8)} ${sanitizeText(value)}`],
  );
}

function stateOf({ status, reason, message }: HostedLoopStatus): string {
  return reason === undefined || message !== undefined ? status : `${status} (${reason})`;
}

/** Returns what happens next, and the command that makes it happen; undefined for a loop that has stopped. */
export function nextStepOf({ loop, status, reason, nextAt, turnId }: HostedLoopStatus): string | undefined {
  const shown = sanitizeText(loop);
  if (status === 'stopped') return undefined;
  if (status === 'paused') return `No turn starts until it is resumed: rondo host resume ${shown}`;
  if (reason === 'approval') return 'Its turn waits for an approval: rondo approvals';
  if (turnId !== undefined && status === 'waiting')
    return `What its turn waits for: rondo status ${sanitizeText(turnId)}`;
  if (nextAt === undefined && reason === 'signal')
    return `A signal causes its next turn: rondo signal ${shown} NAME. To run its turns: rondo worker`;
  return 'To run its turns: rondo worker';
}

/** Returns an ISO time to the second. */
function timeOf(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
}
