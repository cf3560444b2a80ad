/** The turns of a hosted loop: why each was requested, how it ended, and what followed; folded from its stream. */
import type { HostedStopReason } from '../protocol/hosted-loop.js';
import {
  type DeliveredHandoff,
  type DuePlan,
  type EndedTurn,
  HOSTED_ENDED,
  HOSTED_HANDED_OFF,
  HOSTED_PLANNED,
  HOSTED_REQUESTED,
  HOSTED_STOPPED,
  type HostedEntry,
  type RequestedTurn,
  type StoppedLoop,
  type TurnCause,
} from './hosted-loop.js';
import { isoTime } from './iso-time.js';

/** A turn of a hosted loop. */
export interface HostedTurnListing {
  /** `LOOP#n`. */
  readonly key: string;
  readonly turn: number;
  readonly turnId: string;
  readonly cause: TurnCause;
  /** When it was due and when it was requested, as ISO times. */
  readonly dueAt: string;
  readonly requestedAt: string;
  /** When it ended, as an ISO time; absent while it is open. */
  readonly endedAt?: string;
  /** The head of the projection that it was requested from. */
  readonly head: string;
  /** The delivery id of the signal or handoff that caused it. */
  readonly signal?: string;
  /** `open` until it has ended. */
  readonly status: EndedTurn['status'] | 'open';
  readonly receipt?: string;
  readonly code?: string;
  /** The handoffs that were delivered after it, and what became of each: `accepted`, or the error of its refusal. */
  readonly handoffs?: readonly { readonly target: string; readonly result: string }[];
  /** What followed: why the loop stopped, or when the next turn is due. */
  readonly next?: { readonly stopped: HostedStopReason; readonly message: string } | { readonly dueAt: string };
}

type Draft = { -readonly [K in keyof HostedTurnListing]: HostedTurnListing[K] };

/** Returns the turns in the entries of a stream, oldest first. */
export function hostedTurnsOf(
  entries: readonly HostedEntry[],
  turnIdOf: (turn: number) => string,
): readonly HostedTurnListing[] {
  const turns: Draft[] = [];
  for (const { type, key, value } of entries) {
    const last = turns.at(-1);
    if (type === HOSTED_REQUESTED) turns.push(listingOf(key, value as unknown as RequestedTurn, turnIdOf));
    else if (last === undefined) continue;
    else if (type === HOSTED_ENDED) Object.assign(last, endOf(value as unknown as EndedTurn));
    else if (type === HOSTED_STOPPED) last.next = stopOf(value as unknown as StoppedLoop);
    else if (type === HOSTED_HANDED_OFF) addHandoff(turns, value as unknown as DeliveredHandoff);
    else if (type === HOSTED_PLANNED && value !== null)
      last.next = { dueAt: isoTime((value as unknown as DuePlan).dueAt) };
  }
  return turns;
}

/** Adds a handoff to the turn that made it. */
function addHandoff(turns: readonly Draft[], { receipt, target, result }: DeliveredHandoff): void {
  const sender = turns.find((each) => each.receipt === receipt);
  if (sender !== undefined) sender.handoffs = [...(sender.handoffs ?? []), { target, result }];
}

function listingOf(key: string, request: RequestedTurn, turnIdOf: (turn: number) => string): Draft {
  const { turn, cause, dueAt, at, head, signal } = request;
  return {
    ...{ key, turn, turnId: turnIdOf(turn), cause, head, status: 'open' as const },
    dueAt: isoTime(dueAt),
    requestedAt: isoTime(at),
    ...(signal !== undefined && { signal: signal.id }),
  };
}

function endOf({ status, at, receipt, code }: EndedTurn): Partial<HostedTurnListing> {
  return { status, endedAt: isoTime(at), ...(receipt !== '' && { receipt }), ...(code !== undefined && { code }) };
}

function stopOf({ reason, message }: StoppedLoop): NonNullable<HostedTurnListing['next']> {
  return { stopped: reason, message };
}
