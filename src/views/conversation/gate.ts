/**
 * The gate as entries tell it: which effect asks for an approval, how that was answered, and when nobody waits for it
 * any more. A request counts only directly under an effect that was asked and is not settled: a place that layers
 * alone can write to, so no body can put up an approval of its own.
 */
import { ownProperty, ownText } from '../../base/own-property.js';
import { targetIn } from '../../base/target.js';
import type { Approval } from '../../protocol/approval.js';
import type { Entry } from '../../protocol/entry.js';
import type { Json } from '../../protocol/json.js';
import { iso } from '../time.js';
import { above, byStep, type Calls, isBelow, type OpenCall } from './calls.js';

/** How an approval was answered; `at` is the clock's milliseconds. */
export interface Answered {
  readonly approved: boolean;
  readonly by: string;
  readonly reason?: string;
  readonly at: number;
}

/** Hears what becomes of approvals, each at the entry that makes it so. */
export interface GateListener {
  asked(approval: Approval, entry: Entry): void;
  answered(approval: Approval, answer: Answered): void;
  /** Nobody waits for an answer any more, and none was given. */
  over(approval: Approval): void;
}

/** An effect that is open, with what it waits for. */
interface Asked {
  /** The call that it is an effect of. */
  readonly call: OpenCall;
  readonly value: Json;
  approval: Approval | undefined;
  /** Where the waiting is: the request, then the wait. */
  place: string;
}

const LATEST = 8.64e15;

export class Gate {
  private readonly sessionId: string;
  private readonly calls: Calls<OpenCall>;
  private readonly listener: GateListener;
  private readonly effects = new Map<string, Asked>();
  private waiting = 0;

  constructor(sessionId: string, calls: Calls<OpenCall>, listener: GateListener) {
    this.sessionId = sessionId;
    this.calls = calls;
    this.listener = listener;
  }

  /** To be told of an entry before the calls that it ends are forgotten. */
  apply(entry: Entry): void {
    const { type, key } = entry;
    if (type === 'effect.asked') this.ask(entry);
    else if (this.effects.size === 0) return;
    else if (type === 'effect.settled') this.drop(key);
    else if (type === 'rondo.approval.requested') this.request(entry);
    else if (type === 'wait.opened') this.wait(entry);
    else if (type === 'signal.received') this.receive(entry);
    else if (type === 'wait.settled') this.answer(entry);
    else if (type === 'call.completed' || type === 'call.errored') this.end(key);
    else if (type === 'cancel.requested') this.leave(key);
    else if (type === 'race.won') this.leave(key, `${key}/${entry.winner}`);
  }

  /**
   * The approvals that wait for an answer, turn by turn, in the order of the calls that they are for. Parallel calls record
   * their requests in any order, because each looks up its target first.
   */
  pending(): readonly Approval[] {
    const turns = new Map<string, [string, Approval][]>();
    for (const [key, { approval }] of this.effects) {
      if (approval === undefined) continue;
      const turn = turns.get(approval.turnId) ?? [];
      turn.push([key, approval]);
      turns.set(approval.turnId, turn);
    }
    const inOrder = [...turns.values()].flatMap((turn) => turn.sort(([a], [b]) => byStep(a, b)));
    return inOrder.map(([, approval]) => approval);
  }

  private ask({ key, value = null }: Entry): void {
    const call = this.calls.around(key);
    if (call === undefined) return;
    call.asked += 1;
    this.effects.set(key, { call, value, approval: undefined, place: '' });
  }

  private request(entry: Entry): void {
    const asked = this.effects.get(above(entry.key));
    if (asked === undefined || asked.approval !== undefined || ownText(entry.value, 'id') === '') return;
    asked.approval = approvalOf(this.sessionId, asked.call, asked.value, entry);
    asked.place = entry.key;
    this.waiting += 1;
    this.listener.asked(asked.approval, entry);
  }

  private wait({ key, name = '' }: Entry): void {
    if (this.waiting === 0 || !name.startsWith('approval ')) return;
    for (let at = above(key); at !== ''; at = above(at)) {
      const asked = this.effects.get(at);
      if (asked?.approval === undefined || name !== `approval ${asked.approval.id}`) continue;
      asked.place = key;
      return;
    }
  }

  /** An answer is given when it is let in, whenever the one that waits for it takes it. */
  private receive({ name = '', value, at }: Entry): void {
    if (this.waiting === 0 || !name.startsWith('approval ')) return;
    for (const asked of this.effects.values()) {
      const { approval } = asked;
      if (approval === undefined || name !== `approval ${approval.id}`) continue;
      this.quiet(asked);
      this.listener.answered(approval, answerOf(value, at));
      return;
    }
  }

  private answer({ key, value, at }: Entry): void {
    if (this.waiting === 0) return;
    for (let effect = above(key); effect !== ''; effect = above(effect)) {
      const asked = this.effects.get(effect);
      if (asked?.approval === undefined || asked.place !== key) continue;
      const { approval } = asked;
      this.quiet(asked);
      this.listener.answered(approval, answerOf(value, at));
      return;
    }
  }

  /** A call has ended: nearly always with nothing left in it, so nothing is looked for. */
  private end(key: string): void {
    const call = this.calls.get(key);
    if (call !== undefined && call.open + call.asked > 0) this.leave(key);
  }

  /** What lies below a key has ended, all but what lies below another. */
  private leave(key: string, but?: string): void {
    for (const [effect, asked] of this.effects) {
      if (isLeft(effect, key, but)) this.drop(effect);
      // A race inside the effect: it goes on, but not with the answer.
      else if (asked.approval !== undefined && isLeft(asked.place, key, but)) this.giveUp(asked);
    }
  }

  private drop(effect: string): void {
    const asked = this.effects.get(effect);
    if (asked === undefined) return;
    this.effects.delete(effect);
    asked.call.asked -= 1;
    this.giveUp(asked);
  }

  private giveUp(asked: Asked): void {
    const { approval } = asked;
    if (approval === undefined) return;
    this.quiet(asked);
    this.listener.over(approval);
  }

  private quiet(asked: Asked): void {
    asked.approval = undefined;
    this.waiting -= 1;
  }
}

function isLeft(key: string, ended: string, but: string | undefined): boolean {
  return isBelow(key, ended) && (but === undefined || !isBelow(key, but));
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
  const target = targetIn(ownProperty(value, 'target'));
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
    requestedAt: iso(at),
    // A time that is none has passed: what cannot be read must not hold for ever.
    expiresAt: iso(typeof expiresAt === 'number' && Math.abs(expiresAt) <= LATEST ? expiresAt : 0),
    path: path.reverse(),
  };
}

function answerOf(value: Json | undefined, at: number): Answered {
  const reason = ownProperty(value, 'reason');
  const when = ownProperty(value, 'at');
  return {
    approved: ownProperty(value, 'approved') === true,
    by: ownText(value, 'by'),
    ...(typeof reason === 'string' && { reason }),
    at: typeof when === 'number' ? when : at,
  };
}
