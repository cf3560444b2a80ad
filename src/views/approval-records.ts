/** The approvals of one turn with their answers: who approved or denied what, when and why. */
import { ownProperty, ownText } from '../base/own-property.js';
import type { StandingGrant } from '../protocol/approval.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { Approvals } from './approvals.js';
import { parentKeyOf } from './conversation/open-calls.js';
import { isoTime } from './iso-time.js';
import { isKeyOfTurn } from './turns.js';

/** An approval of a turn and its answer, or a call that a standing grant approved. */
export interface ApprovalRecord {
  /** The id of the approval; with the status `granted`, of the approval whose answer gave the grant. */
  readonly id: string;
  /** The loop id of the tool. */
  readonly tool: string;
  /** The key of the call. */
  readonly callId: string;
  /** `abandoned`: the call stopped waiting without an answer. `granted`: a standing grant approved the call. */
  readonly status: 'pending' | 'approved' | 'denied' | 'abandoned' | 'granted';
  /** The name of the person who answered or gave the grant; `rondo` for an approval that expired. */
  readonly by?: string;
  /** When the answer or the grant was given: ISO 8601, UTC. */
  readonly answeredAt?: string;
  readonly reason?: string;
  /** The JSON Schema of the standing grant that the answer gave, or that approved the call. */
  readonly standing?: Json;
}

/** Returns the approvals of a turn, from the entries of its session, in the order in which they were requested. */
export function approvalRecordsOf(sessionId: string, turnId: string, entries: Iterable<Entry>): ApprovalRecord[] {
  const approvals = new Approvals(sessionId);
  const layeredEffects = new Set<string>();
  /** The tools of the effects that decide whether a call needs an approval. */
  const gates = new Map<string, string>();
  const found: (() => ApprovalRecord | undefined)[] = [];
  for (const entry of entries) {
    const { key, type, kind, name = '', value } = entry;
    const isEnd = key === turnId && (type === 'call.completed' || type === 'call.errored');
    // The view drops the details of approvals when their turn ends, so the end of the turn is left out.
    if (!isEnd) approvals.apply(entry);
    if (!isKeyOfTurn(key, turnId)) continue;
    if (type === 'effect.opened') layeredEffects.add(key);
    else if (type === 'rondo.approval.requested') found.push(() => answeredRecord(approvals, ownText(value, 'id')));
    else if (type === 'effect.requested' && kind === 'gate' && layeredEffects.has(parentKeyOf(key)))
      gates.set(key, name);
    else if (type === 'effect.returned' && ownProperty(value, 'verdict') === 'granted') {
      const tool = gates.get(key);
      const callId = parentKeyOf(parentKeyOf(key));
      if (tool !== undefined) found.push(() => grantedRecord(approvals, ownText(value, 'grant'), tool, callId));
    }
  }
  return found.flatMap((recordOf) => recordOf() ?? []);
}

function answeredRecord(approvals: Approvals, approvalId: string): ApprovalRecord | undefined {
  const { approval, answer, isAbandoned } = approvals.get(approvalId) ?? {};
  if (approval === undefined) return undefined;
  const { id, tool, callId } = approval;
  if (answer === undefined) return { id, tool, callId, status: isAbandoned === true ? 'abandoned' : 'pending' };
  const { approved, by, at, reason } = answer;
  const grant = grantOf(approvals, id);
  return {
    ...{ id, tool, callId, status: approved ? 'approved' : 'denied', by, answeredAt: isoTime(at) },
    ...(reason !== undefined && { reason }),
    ...(grant !== undefined && { standing: grant.schema }),
  };
}

function grantedRecord(approvals: Approvals, id: string, tool: string, callId: string): ApprovalRecord | undefined {
  const grant = grantOf(approvals, id);
  if (grant === undefined) return undefined;
  const { by, givenAt, schema } = grant;
  return { id, tool, callId, status: 'granted', by, answeredAt: isoTime(givenAt), standing: schema };
}

function grantOf(approvals: Approvals, id: string): StandingGrant | undefined {
  return approvals.standingGrants().find(({ approvalId }) => approvalId === id);
}
