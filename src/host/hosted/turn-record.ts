/**
 * What is recorded of a turn that has ended, and what follows it. Pure, and made from the state that it is appended to: it
 * follows a stop by another process too.
 */
import type { StreamEntry } from '../../journal/shared-stream.js';
import { type HostedStop, isTerminal, stopAfterTurn, stopBeforeTurn } from '../../policy/stop-policy.js';
import type { HostedLoopDocument } from '../../protocol/hosted-loop.js';
import type { Json } from '../../protocol/json.js';
import {
  type EndedTurn,
  HOSTED_ENDED,
  HOSTED_PAUSED,
  HOSTED_PLANNED,
  HOSTED_STOPPED,
  type HostedLoopState,
  jsonDigest,
  PAUSER,
  type RequestedTurn,
  unchangedAfter,
} from '../../views/hosted-loop.js';
import { documentOf, hostedTurnKey } from './hosted-stream.js';
import { dueAfterTurn, isEventDriven } from './schedule.js';
import { derivationError, handoffsOf } from './turn-derivation.js';
import type { TurnEnd } from './turn-ending.js';

/** Returns the entries about the end of a turn, without their keys. */
export function entriesOfEnd(
  state: HostedLoopState,
  request: RequestedTurn,
  turnId: string,
  end: TurnEnd,
  now: number,
): readonly Omit<StreamEntry, 'key'>[] {
  const { value, stop: failed } = endedTurnOf(state, request, turnId, end);
  const ended = { type: HOSTED_ENDED, value: value as unknown as Json };
  // guard: stopped-loop-plans-nothing
  if (state.now.stopped !== undefined) return [ended];
  const document = documentOf(state);
  const { missingPrice: reason } = end;
  const { turns } = state.now;
  // A turn that its operator can repair is no failure of the loop.
  const stop = failed ?? (reason ? stopBeforeTurn(document, { turns, now }) : stopOfEnd(state, value, end, now));
  if (stop !== undefined) return [ended, { type: HOSTED_STOPPED, value: { ...stop, at: now } }];
  const planned = { type: HOSTED_PLANNED, value: nextPlan(document, state, request, end.at) };
  // guard: turn-without-price-pauses
  if (reason === undefined || state.now.paused !== undefined) return [ended, planned];
  return [ended, planned, { type: HOSTED_PAUSED, value: { at: now, by: PAUSER, reason, cause: 'price' } }];
}

/** Returns the record of a turn that has ended, with the handoffs that follow it. */
function endedTurnOf(
  state: HostedLoopState,
  { turn, head, previous }: RequestedTurn,
  turnId: string,
  end: TurnEnd,
): { readonly value: EndedTurn; readonly stop?: HostedStop } {
  const { status, receipt, at, output, code } = end;
  const document = documentOf(state);
  const isRepeated = status !== 'ok' && (document.retry !== undefined || end.missingPrice !== undefined);
  const value: EndedTurn = {
    ...{ turn, turnId, status, receipt, at, head },
    ...(previous !== undefined && { previous }),
    ...(output !== undefined && { output: jsonDigest(output) }),
    ...(code !== undefined && { code }),
    ...(isRepeated && { retryAt: at + (document.retry?.delayMs ?? 0) }),
  };
  // guard: stopped-loop-hands-nothing-off
  if (status !== 'ok' || document.handoffs === undefined || state.now.stopped !== undefined) return { value };
  const last = { key: hostedTurnKey(document.id, turn), turnId, status, receipt, output: output ?? null };
  try {
    const projection = { loop: document.id, turn, head, input: document.input ?? null, used: {}, last };
    const handoffs = handoffsOf(document, projection, ({ when }) => when === undefined || isTerminal(when, end));
    return { value: { ...value, handoffs } };
  } catch (thrown) {
    return { value, stop: { reason: 'refused', message: `No input for a handoff: ${derivationError(thrown)}` } };
  }
}

/** Returns why the loop stops after a turn; undefined if it goes on. */
function stopOfEnd(
  { now: state }: HostedLoopState,
  ended: EndedTurn,
  end: TurnEnd,
  now: number,
): HostedStop | undefined {
  const { started, turns, failures } = state;
  if (started === undefined) return undefined;
  const { status, code } = ended;
  return stopAfterTurn(started.document, {
    ...{ turns, now, status, code, output: end.output, wasDenied: end.wasDenied },
    unchanged: unchangedAfter(state, ended),
    failures: status === 'ok' ? 0 : failures + 1,
  });
}

/** Returns the plan after a turn; null if the schedule has no further due time. */
function nextPlan(
  document: HostedLoopDocument,
  { now }: HostedLoopState,
  request: RequestedTurn,
  endedAt: number,
): Json {
  if (isEventDriven(document)) return null;
  const { through, started } = now;
  const turn = { through, requestedAt: request.at, endedAt };
  const plan = dueAfterTurn(document.schedule, document.overlap ?? 'skip', turn, started?.at ?? 0);
  return (plan ?? null) as unknown as Json;
}
