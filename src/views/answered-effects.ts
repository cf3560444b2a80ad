/**
 * The effects whose approval is answered. An answer counts once: a fork must not begin between an answer and the end of
 * its effect, or of the call that was approved as a whole. A retry of a fork asks again, like every retry.
 */
import { ownText } from '../base/own-property.js';
import { reopenedKeysOf } from '../journal/replay-tree.js';
import { GATE_BOUNDARY } from '../journal/runtime-effects.js';
import type { Entry } from '../protocol/entry.js';
import { isDescendantKey, parentKeyOf } from './conversation/open-calls.js';
import { APPROVAL_SIGNAL_PREFIX } from './turns.js';

/** Folds entries into the effects whose approval is answered, with what became of each. */
export class AnsweredEffects {
  /** The open effects with layers. Only layers write below them, so a body cannot forge a request there. */
  private readonly opened = new Set<string>();
  /** The loops of the open calls. */
  private readonly loopByCall = new Map<string, string>();
  /** The gates of the open calls that are approved as a whole, by the key of the call. */
  private readonly gateByCall = new Map<string, string>();
  /** The effect that each approval is for, by the name of the signal that answers it. */
  private readonly effectBySignal = new Map<string, string>();
  /** `left`: in a call that ended or a branch that lost a race, which a replay does not enter unless a retry reopens it. */
  private readonly answered = new Map<string, 'unused' | 'settled' | 'left'>();

  /** True if an effect has not ended whose approval is answered. */
  get hasUnused(): boolean {
    for (const state of this.answered.values()) if (state === 'unused') return true;
    return false;
  }

  /** Applies the next entry; a leaf call is expanded. */
  apply({ key, type, name = '', value, winnerIndex, boundary }: Entry): void {
    if (type === 'signal.received') this.applyAnswer(name);
    else if (type === 'call.started') this.loopByCall.set(key, name);
    else if (type === 'effect.opened') this.applyOpened(key, boundary === GATE_BOUNDARY ? name : undefined);
    else if (type === 'rondo.approval.requested') this.applyRequest(parentKeyOf(key), ownText(value, 'id'));
    else if (type === 'effect.settled') this.settle(key);
    else if (type === 'race.won') this.leave(key, `${key}/${winnerIndex}`);
    else if (type === 'call.completed' || type === 'call.errored') this.endCall(key);
    else if (type === 'call.reopened') this.reopen(new Set(reopenedKeysOf(value)));
  }

  /** `gateName` is the name of a gate. One that has another name than its call is a question of a plan. */
  private applyOpened(key: string, gateName: string | undefined): void {
    this.opened.add(key);
    const call = parentKeyOf(key);
    if (gateName !== undefined && gateName === this.loopByCall.get(call)) this.gateByCall.set(call, key);
  }

  /** Settles an effect. What the gate of a call lets through ends with the call. */
  private settle(effect: string): void {
    // guard: approved-call-ends-with-its-body
    if (this.answered.has(effect) && this.gateByCall.get(parentKeyOf(effect)) !== effect)
      this.answered.set(effect, 'settled');
  }

  private endCall(key: string): void {
    const gate = this.gateByCall.get(key);
    if (gate !== undefined && this.answered.has(gate)) this.answered.set(gate, 'settled');
    this.gateByCall.delete(key);
    this.loopByCall.delete(key);
    this.leave(key);
  }

  private applyAnswer(signalName: string): void {
    const effect = this.effectBySignal.get(signalName);
    if (effect !== undefined) this.answered.set(effect, 'unused');
  }

  /** A call whose code changed after the answer requests another approval: the answer is not used. */
  private applyRequest(effect: string, id: string): void {
    if (!this.opened.has(effect) || id === '') return;
    this.answered.delete(effect);
    this.effectBySignal.set(`${APPROVAL_SIGNAL_PREFIX}${id}`, effect);
  }

  private leave(key: string, exceptKey?: string): void {
    for (const [effect, state] of this.answered)
      if (state === 'unused' && isDescendantKey(effect, key) && !(exceptKey && isDescendantKey(effect, exceptKey)))
        this.answered.set(effect, 'left');
  }

  private reopen(keys: ReadonlySet<string>): void {
    for (const [effect, state] of this.answered)
      if (state === 'left' || keys.has(effect)) this.answered.set(effect, 'unused');
  }
}
