/**
 * What is recorded before a turn starts: its principals, its grant, what it sees of earlier turns, and the hosted loop
 * that requested it. The receipts of the turn cover it.
 */
import { digestOfText } from '../journal/record.js';
import { canonicalJson } from '../json/canonical.js';
import type { Session } from '../kernel/session.js';
import type { Entry } from '../protocol/entry.js';
import type { Grant } from '../protocol/grant.js';
import type { HostedTurnOrigin, SeenHistory } from '../protocol/hosted-loop.js';
import type { Json } from '../protocol/json.js';
import type { ModelMessage } from '../protocol/model.js';
import { History } from '../views/history.js';
import { TURN_OPENED } from '../views/turns.js';

/** The principal of a turn, and the principals that may answer its approvals. */
export interface TurnPrincipals {
  readonly principal?: string;
  readonly approvers?: readonly string[];
}

/** What the opening of a turn records. */
export interface TurnOpening extends TurnPrincipals {
  readonly grant?: Grant | undefined;
  readonly sealed: boolean;
  readonly history?: 'none' | 'session';
  readonly hosted?: HostedTurnOrigin | undefined;
}

/** Records the opening of a turn before its start. It becomes durable with it. */
export function recordOpening(
  session: Session,
  turnId: string,
  opening: TurnOpening,
  earlierEntries: readonly Entry[],
): void {
  const { principal, approvers, grant, sealed, history, hosted } = opening;
  const value: { [name: string]: Json } = {};
  if (sealed) value.sealed = true;
  if (principal !== undefined) value.principal = principal;
  if (approvers !== undefined) value.approvers = approvers;
  if (grant !== undefined) value.grant = grant as unknown as Json;
  if (history !== undefined) value.history = history;
  if (hosted !== undefined) value.hosted = hosted as unknown as Json;
  // guard: seen-history-recorded
  if (hosted !== undefined && history === 'session') value.seen = seenHistory(turnId, earlierEntries);
  if (Object.keys(value).length > 0) session.addFact(TURN_OPENED, turnId, value);
}

/** Returns the principals that the opening of a turn records. */
export function principalsIn({ value }: Entry): TurnPrincipals {
  const { principal, approvers } = (value ?? {}) as TurnPrincipals;
  return { ...(principal !== undefined && { principal }), ...(approvers !== undefined && { approvers }) };
}

/** Returns the messages of the turns of a session before a turn started. */
export function historyBefore(turnId: string, entries: readonly Entry[]): readonly ModelMessage[] {
  const history = new History();
  for (const entry of entries) {
    if (entry.key === turnId) break;
    history.apply(entry);
  }
  return history.messages();
}

function seenHistory(turnId: string, earlierEntries: readonly Entry[]): SeenHistory {
  const messages = historyBefore(turnId, earlierEntries);
  const text = canonicalJson(messages as unknown as Json);
  return { messages: messages.length, bytes: Buffer.byteLength(text), digest: digestOfText(text) };
}
