/** The status of a hosted loop, as it is reported. */
import type { Fault } from '../../base/errors.js';
import type { HostedLoopStatus } from '../../protocol/hosted-loop.js';
import type { HostedLoopState } from '../../views/hosted-loop.js';
import { isoTime } from '../../views/iso-time.js';
import type { HostedControl } from './hosted-loops.js';
import { hostedTurnId } from './hosted-stream.js';

type StatusPart = Pick<HostedLoopStatus, 'status'> & Partial<Pick<HostedLoopStatus, 'reason' | 'message' | 'nextAt'>>;

/** What the status of a hosted loop depends on, besides its entries. */
interface StatusFacts {
  /** True if the receipt of the last turn is there and is valid. */
  readonly isValid: boolean;
  /** True if a process holds the lease of the loop. */
  readonly isHeld: boolean;
}

/** Returns the status. */
export function statusOf(state: HostedLoopState, { isValid, isHeld }: StatusFacts): HostedLoopStatus {
  const { started, open, turns, head, asOf, last } = state.now;
  const isFresh = isValid && open === undefined && state.handoffs.length === 0;
  return {
    loop: started?.document.id ?? '',
    ...partOf(state, isHeld),
    turns,
    projection: { head, fresh: isFresh, ...(asOf !== undefined && { asOf: isoTime(asOf) }) },
    ...(last !== undefined && last.receipt !== '' && { lastReceipt: last.receipt }),
    ...(open !== undefined && started !== undefined && { turnId: hostedTurnId(started.document, open.request.turn) }),
    signals: state.signals.length,
  };
}

/** Returns the status that reports a loop which cannot be read. */
export function damagedLoopStatus(loop: string, { code, message }: Fault): HostedLoopStatus {
  const waiting = { status: 'waiting', reason: 'damaged', message: `${code}: ${message}` } as const;
  return { loop, ...waiting, turns: 0, projection: { head: '', fresh: false }, signals: 0 };
}

function partOf(state: HostedLoopState, isHeld: boolean): StatusPart {
  const { stopped, paused, open, plan, retryAt } = state.now;
  if (stopped !== undefined) return { status: 'stopped', reason: stopped.reason, message: stopped.message };
  if (paused?.cause !== undefined) return { status: 'paused', reason: paused.cause, message: paused.reason ?? '' };
  if (paused !== undefined) return { status: 'paused', message: actionOf('Paused', paused) };
  if (open !== undefined) return openPart(open.waitsFor, isHeld);
  if (retryAt !== undefined) return { status: 'waiting', reason: 'retry', nextAt: isoTime(retryAt) };
  const [signal] = state.signals;
  // The older one comes first, as in `nextCauseOf`.
  if (signal !== undefined && !(plan !== undefined && plan.dueAt <= signal.at))
    return { status: 'waiting', reason: 'signal', nextAt: isoTime(signal.at) };
  if (plan === undefined) return { status: 'waiting', reason: 'signal' };
  return { status: 'waiting', reason: 'schedule', nextAt: isoTime(plan.dueAt) };
}

/** Says who did something to a hosted loop, and why. */
export function actionOf(action: string, { by, reason = '' }: HostedControl): string {
  return reason === '' ? `${action} by ${by}.` : `${action} by ${by}: ${reason}`;
}

/** The open turn runs, waits for something, or waits for a process: the one that ran it has ended, or could not. */
function openPart(waitsFor: NonNullable<HostedLoopState['now']['open']>['waitsFor'], isHeld: boolean): StatusPart {
  if (waitsFor === undefined && isHeld) return { status: 'running', reason: 'turn' };
  if (waitsFor === undefined)
    return { status: 'waiting', reason: 'turn', message: 'No process runs its turn. A worker that has the loop does.' };
  const reason = waitsFor === 'timer' || waitsFor === 'doubt' ? 'turn' : waitsFor;
  const message = waitsFor === 'doubt' ? 'It is unknown whether an effect happened: rondo resolve.' : undefined;
  return { status: 'waiting', reason, ...(message !== undefined && { message }) };
}
