/**
 * Tracks approvals in the entries of a session: which effect requests one, and how it is answered or abandoned. A
 * request counts only directly below the key of an open effect with layers. Only layers can write there, so a body
 * cannot forge an approval.
 */

import { parseTarget } from '../../base/approval-target.js';
import { ownProperty, ownText } from '../../base/own-property.js';
import type { Approval, RecordedAnswer } from '../../protocol/approval.js';
import type { Entry } from '../../protocol/entry.js';
import type { Json } from '../../protocol/json.js';
import type { BackendRef } from '../../protocol/loop.js';
import { isoTime } from '../iso-time.js';
import { compareByStep, isDescendantKey, type OpenCall, type OpenCalls, parentKeyOf } from './open-calls.js';

/** Receives the state changes of approvals. Each method is called at the entry that causes the change. */
interface ApprovalListener {
  onRequested(approval: Approval, entry: Entry): void;
  onAnswered(approval: Approval, answer: RecordedAnswer): void;
  /** The approval will get no answer: its effect or call ended, its turn was cancelled, or it lost a race. */
  onAbandoned(approval: Approval): void;
}

/** An open effect with layers, and its pending approval. */
interface OpenEffect {
  /** The call that performs the effect. */
  readonly call: OpenCall;
  /** The input after its filters. */
  input: Json;
  approval: Approval | undefined;
  /** The key of the wait for the answer; before the wait opens, the key of the request. */
  waitKey: string;
}

/** The largest time that a Date can represent. */
const MAX_DATE_MS = 8.64e15;

/** Folds entries into approvals and reports their changes to a listener. */
export class ApprovalTracker {
  private readonly sessionId: string;
  private readonly calls: OpenCalls<OpenCall>;
  private readonly listener: ApprovalListener;
  private readonly openEffects = new Map<string, OpenEffect>();
  private pendingCount = 0;

  constructor(sessionId: string, calls: OpenCalls<OpenCall>, listener: ApprovalListener) {
    this.sessionId = sessionId;
    this.calls = calls;
    this.listener = listener;
  }

  /** Applies the next entry. Call it before the calls that the entry ends are removed from `calls`. */
  apply(entry: Entry): void {
    const { type, key } = entry;
    if (type === 'effect.opened') this.openEffect(entry);
    else if (this.openEffects.size === 0) return;
    else if (type === 'effect.settled') this.closeEffect(key);
    else if (type === 'rondo.input.filtered') this.applyFilteredInput(entry);
    else if (type === 'rondo.approval.requested') this.applyRequest(entry);
    else if (type === 'wait.opened') this.applyWait(entry);
    else if (type === 'signal.received') this.applySignal(entry);
    else if (type === 'wait.settled') this.applySettledWait(entry);
    else if (type === 'call.completed' || type === 'call.errored') this.endCall(key);
    else if (type === 'cancel.requested') this.abandonBelow(key);
    else if (type === 'race.won') this.abandonBelow(key, `${key}/${entry.winnerIndex}`);
  }

  /**
   * Returns the pending approvals, turn by turn, in the order of their calls. The order of the entries would be
   * arbitrary: parallel calls resolve their targets before they record their requests.
   */
  pending(): readonly Approval[] {
    const turns = new Map<string, [string, Approval][]>();
    for (const [key, { approval }] of this.openEffects) {
      if (approval === undefined) continue;
      const turn = turns.get(approval.turnId) ?? [];
      turn.push([key, approval]);
      turns.set(approval.turnId, turn);
    }
    const sorted = [...turns.values()].flatMap((turn) => turn.sort(([a], [b]) => compareByStep(a, b)));
    return sorted.map(([, approval]) => approval);
  }

  private openEffect({ key, value = null }: Entry): void {
    const call = this.calls.enclosing(key);
    if (call === undefined) return;
    call.openEffects += 1;
    this.openEffects.set(key, { call, input: value, approval: undefined, waitKey: '' });
  }

  private applyFilteredInput({ key, value = null }: Entry): void {
    const openEffect = this.openEffects.get(parentKeyOf(key));
    // guard: filtered-input-shown
    if (openEffect !== undefined) openEffect.input = value;
  }

  private applyRequest(entry: Entry): void {
    const openEffect = this.openEffects.get(parentKeyOf(entry.key));
    if (openEffect === undefined || openEffect.approval !== undefined || ownText(entry.value, 'id') === '') return;
    openEffect.approval = approvalOf(this.sessionId, openEffect.call, openEffect.input, entry);
    openEffect.waitKey = entry.key;
    this.pendingCount += 1;
    this.listener.onRequested(openEffect.approval, entry);
  }

  private applyWait({ key, name = '' }: Entry): void {
    if (this.pendingCount === 0 || !name.startsWith('approval ')) return;
    for (let effectKey = parentKeyOf(key); effectKey !== ''; effectKey = parentKeyOf(effectKey)) {
      const openEffect = this.openEffects.get(effectKey);
      if (openEffect?.approval === undefined || name !== `approval ${openEffect.approval.id}`) continue;
      openEffect.waitKey = key;
      return;
    }
  }

  /** Applies an answer when its signal is received, which can precede the end of the wait. */
  private applySignal({ name = '', value, at }: Entry): void {
    if (this.pendingCount === 0 || !name.startsWith('approval ')) return;
    for (const openEffect of this.openEffects.values()) {
      const { approval } = openEffect;
      if (approval === undefined || name !== `approval ${approval.id}`) continue;
      this.clearApproval(openEffect);
      this.listener.onAnswered(approval, recordedAnswerOf(value, at));
      return;
    }
  }

  /** Applies the answer that a wait for an approval received. */
  private applySettledWait({ key, value, at }: Entry): void {
    if (this.pendingCount === 0) return;
    for (let effectKey = parentKeyOf(key); effectKey !== ''; effectKey = parentKeyOf(effectKey)) {
      const openEffect = this.openEffects.get(effectKey);
      if (openEffect?.approval === undefined || openEffect.waitKey !== key) continue;
      const { approval } = openEffect;
      this.clearApproval(openEffect);
      this.listener.onAnswered(approval, recordedAnswerOf(value, at));
      return;
    }
  }

  /**
   * Abandons the approvals of effects that a call leaves open. Most calls leave nothing open, so the counters avoid a
   * search.
   */
  private endCall(key: string): void {
    const call = this.calls.get(key);
    if (call !== undefined && call.openChildren + call.openEffects > 0) this.abandonBelow(key);
  }

  /** Closes the effects below a key and abandons their approvals, except below `exceptKey`. */
  private abandonBelow(key: string, exceptKey?: string): void {
    for (const [effectKey, openEffect] of this.openEffects) {
      if (isInEndedBranch(effectKey, key, exceptKey)) this.closeEffect(effectKey);
      // A race inside the effect: the effect continues, but its wait for the answer has lost.
      else if (openEffect.approval !== undefined && isInEndedBranch(openEffect.waitKey, key, exceptKey))
        this.abandonApproval(openEffect);
    }
  }

  private closeEffect(effectKey: string): void {
    const openEffect = this.openEffects.get(effectKey);
    if (openEffect === undefined) return;
    this.openEffects.delete(effectKey);
    openEffect.call.openEffects -= 1;
    this.abandonApproval(openEffect);
  }

  private abandonApproval(openEffect: OpenEffect): void {
    const { approval } = openEffect;
    if (approval === undefined) return;
    this.clearApproval(openEffect);
    this.listener.onAbandoned(approval);
  }

  private clearApproval(openEffect: OpenEffect): void {
    openEffect.approval = undefined;
    this.pendingCount -= 1;
  }
}

function isInEndedBranch(key: string, endedKey: string, exceptKey: string | undefined): boolean {
  return isDescendantKey(key, endedKey) && (exceptKey === undefined || !isDescendantKey(key, exceptKey));
}

/** Returns the approval that an entry requests for the effect of a call with these arguments. */
function approvalOf(sessionId: string, leaf: OpenCall, args: Json, { at, value }: Entry): Approval {
  const path: string[] = [];
  let root = leaf;
  for (let call: OpenCall | undefined = leaf; call !== undefined; call = call.parent) {
    path.push(call.name);
    root = call;
  }
  const principal = ownProperty(value, 'principal');
  const grant = ownProperty(value, 'grant');
  const build = ownText(value, 'build');
  const approvers = ownProperty(value, 'approvers');
  const expiresAt = ownProperty(value, 'expiresAt');
  const target = parseTarget(ownProperty(value, 'target'));
  const fallback = ownProperty(value, 'fallback');
  return {
    id: ownText(value, 'id'),
    sessionId,
    turnId: root.key,
    callId: leaf.key,
    tool: ownText(value, 'tool'),
    arguments: args,
    argumentsDigest: ownText(value, 'argumentsDigest'),
    definitionDigest: ownText(value, 'definition'),
    ...(build !== '' && { build }),
    ...(target !== undefined && { target }),
    ...(Array.isArray(fallback) && { fallback: fallback as unknown as readonly BackendRef[] }),
    ...(typeof principal === 'string' && { principal }),
    ...(typeof grant === 'string' && { grant }),
    ...(Array.isArray(approvers) && { approvers: approvers.filter((one) => typeof one === 'string') }),
    description: ownText(value, 'description'),
    requestedAt: isoTime(at),
    // An invalid expiry counts as expired; otherwise the approval would never expire.
    expiresAt: isoTime(typeof expiresAt === 'number' && Math.abs(expiresAt) <= MAX_DATE_MS ? expiresAt : 0),
    path: path.reverse(),
  };
}

function recordedAnswerOf(value: Json | undefined, at: number): RecordedAnswer {
  const reason = ownProperty(value, 'reason');
  const answeredAt = ownProperty(value, 'at');
  return {
    approved: ownProperty(value, 'approved') === true,
    by: ownText(value, 'by'),
    ...(typeof reason === 'string' && { reason }),
    at: typeof answeredAt === 'number' ? answeredAt : at,
  };
}
