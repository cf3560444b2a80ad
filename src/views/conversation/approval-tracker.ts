/**
 * The gate as entries tell it: which effect asks for an approval, how that was answered, and when nobody waits for it
 * any more. A request counts only directly under an effect that was asked and is not settled: a place that layers
 * alone can write to, so no body can put up an approval of its own.
 */

import { parseTarget } from '../../base/approval-target.js';
import { ownProperty, ownText } from '../../base/own-property.js';
import type { Approval, RecordedAnswer } from '../../protocol/approval.js';
import type { Entry } from '../../protocol/entry.js';
import type { Json } from '../../protocol/json.js';
import { isoTime } from '../iso-time.js';
import { compareByStep, isDescendantKey, type OpenCall, type OpenCalls, parentKeyOf } from './open-calls.js';

/** Hears what becomes of approvals, each at the entry that makes it so. */
interface ApprovalListener {
  onRequested(approval: Approval, entry: Entry): void;
  onAnswered(approval: Approval, answer: RecordedAnswer): void;
  /** Nobody waits for an answer any more, and none was given. */
  onAbandoned(approval: Approval): void;
}

/** An effect that is open, with what it waits for. */
interface OpenEffect {
  /** The call that it is an effect of. */
  readonly call: OpenCall;
  readonly input: Json;
  approval: Approval | undefined;
  /** Where the waiting is: the request, then the wait. */
  waitKey: string;
}

const MAX_DATE_MS = 8.64e15;

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

  /** To be told of an entry before the calls that it ends are forgotten. */
  apply(entry: Entry): void {
    const { type, key } = entry;
    if (type === 'effect.opened') this.openEffect(entry);
    else if (this.openEffects.size === 0) return;
    else if (type === 'effect.settled') this.closeEffect(key);
    else if (type === 'rondo.approval.requested') this.applyRequest(entry);
    else if (type === 'wait.opened') this.applyWait(entry);
    else if (type === 'signal.received') this.applySignal(entry);
    else if (type === 'wait.settled') this.applySettledWait(entry);
    else if (type === 'call.completed' || type === 'call.errored') this.endCall(key);
    else if (type === 'cancel.requested') this.abandonBelow(key);
    else if (type === 'race.won') this.abandonBelow(key, `${key}/${entry.winnerIndex}`);
  }

  /**
   * The approvals that wait for an answer, turn by turn, in the order of the calls that they are for. Parallel calls record
   * their requests in any order, because each looks up its target first.
   */
  pending(): readonly Approval[] {
    const turns = new Map<string, [string, Approval][]>();
    for (const [key, { approval }] of this.openEffects) {
      if (approval === undefined) continue;
      const turn = turns.get(approval.turnId) ?? [];
      turn.push([key, approval]);
      turns.set(approval.turnId, turn);
    }
    const inOrder = [...turns.values()].flatMap((turn) => turn.sort(([a], [b]) => compareByStep(a, b)));
    return inOrder.map(([, approval]) => approval);
  }

  private openEffect({ key, value = null }: Entry): void {
    const call = this.calls.enclosing(key);
    if (call === undefined) return;
    call.openEffects += 1;
    this.openEffects.set(key, { call, input: value, approval: undefined, waitKey: '' });
  }

  private applyRequest(entry: Entry): void {
    const asked = this.openEffects.get(parentKeyOf(entry.key));
    if (asked === undefined || asked.approval !== undefined || ownText(entry.value, 'id') === '') return;
    asked.approval = approvalOf(this.sessionId, asked.call, asked.input, entry);
    asked.waitKey = entry.key;
    this.pendingCount += 1;
    this.listener.onRequested(asked.approval, entry);
  }

  private applyWait({ key, name = '' }: Entry): void {
    if (this.pendingCount === 0 || !name.startsWith('approval ')) return;
    for (let at = parentKeyOf(key); at !== ''; at = parentKeyOf(at)) {
      const asked = this.openEffects.get(at);
      if (asked?.approval === undefined || name !== `approval ${asked.approval.id}`) continue;
      asked.waitKey = key;
      return;
    }
  }

  /** An answer is given when it is let in, whenever the one that waits for it takes it. */
  private applySignal({ name = '', value, at }: Entry): void {
    if (this.pendingCount === 0 || !name.startsWith('approval ')) return;
    for (const asked of this.openEffects.values()) {
      const { approval } = asked;
      if (approval === undefined || name !== `approval ${approval.id}`) continue;
      this.clearApproval(asked);
      this.listener.onAnswered(approval, recordedAnswerOf(value, at));
      return;
    }
  }

  private applySettledWait({ key, value, at }: Entry): void {
    if (this.pendingCount === 0) return;
    for (let effect = parentKeyOf(key); effect !== ''; effect = parentKeyOf(effect)) {
      const asked = this.openEffects.get(effect);
      if (asked?.approval === undefined || asked.waitKey !== key) continue;
      const { approval } = asked;
      this.clearApproval(asked);
      this.listener.onAnswered(approval, recordedAnswerOf(value, at));
      return;
    }
  }

  /** A call has ended: nearly always with nothing left in it, so nothing is looked for. */
  private endCall(key: string): void {
    const call = this.calls.get(key);
    if (call !== undefined && call.openChildren + call.openEffects > 0) this.abandonBelow(key);
  }

  /** What lies below a key has ended, all but what lies below another. */
  private abandonBelow(key: string, but?: string): void {
    for (const [effect, asked] of this.openEffects) {
      if (isInEndedBranch(effect, key, but)) this.closeEffect(effect);
      // A race inside the effect: it goes on, but not with the answer.
      else if (asked.approval !== undefined && isInEndedBranch(asked.waitKey, key, but)) this.abandonApproval(asked);
    }
  }

  private closeEffect(effect: string): void {
    const asked = this.openEffects.get(effect);
    if (asked === undefined) return;
    this.openEffects.delete(effect);
    asked.call.openEffects -= 1;
    this.abandonApproval(asked);
  }

  private abandonApproval(asked: OpenEffect): void {
    const { approval } = asked;
    if (approval === undefined) return;
    this.clearApproval(asked);
    this.listener.onAbandoned(approval);
  }

  private clearApproval(asked: OpenEffect): void {
    asked.approval = undefined;
    this.pendingCount -= 1;
  }
}

function isInEndedBranch(key: string, ended: string, but: string | undefined): boolean {
  return isDescendantKey(key, ended) && (but === undefined || !isDescendantKey(key, but));
}

function approvalOf(sessionId: string, leaf: OpenCall, given: Json, { at, value }: Entry): Approval {
  const path: string[] = [];
  let root = leaf;
  for (let call: OpenCall | undefined = leaf; call !== undefined; call = call.parent) {
    path.push(call.name);
    root = call;
  }
  const principal = ownProperty(value, 'principal');
  const approvers = ownProperty(value, 'approvers');
  const expiresAt = ownProperty(value, 'expiresAt');
  const target = parseTarget(ownProperty(value, 'target'));
  return {
    id: ownText(value, 'id'),
    sessionId,
    turnId: root.key,
    callId: leaf.key,
    tool: ownText(value, 'tool'),
    arguments: given,
    argumentsDigest: ownText(value, 'argumentsDigest'),
    definitionDigest: ownText(value, 'definition'),
    ...(target !== undefined && { target }),
    ...(typeof principal === 'string' && { principal }),
    ...(Array.isArray(approvers) && { approvers: approvers.filter((one) => typeof one === 'string') }),
    description: ownText(value, 'description'),
    requestedAt: isoTime(at),
    // A time that is none has passed: what cannot be read must not hold for ever.
    expiresAt: isoTime(typeof expiresAt === 'number' && Math.abs(expiresAt) <= MAX_DATE_MS ? expiresAt : 0),
    path: path.reverse(),
  };
}

function recordedAnswerOf(value: Json | undefined, at: number): RecordedAnswer {
  const reason = ownProperty(value, 'reason');
  const when = ownProperty(value, 'at');
  return {
    approved: ownProperty(value, 'approved') === true,
    by: ownText(value, 'by'),
    ...(typeof reason === 'string' && { reason }),
    at: typeof when === 'number' ? when : at,
  };
}
