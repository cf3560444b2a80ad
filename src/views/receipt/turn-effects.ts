/**
 * The effects of a turn and their approvals, folded from its entries. An effect with layers is one effect, whatever
 * attempts are made at it: its key is that of `effect.opened`. The evaluation of an approval (a gate) is no effect of its
 * own. An approval counts only directly below the key of an open effect with layers, where bodies cannot write.
 */
import { ownProperty, ownText } from '../../base/own-property.js';
import { leafEffectKey } from '../../journal/leaf-entries.js';
import type { Entry, Safety } from '../../protocol/entry.js';
import type { ReceiptEffectState, ReceiptResolution } from '../../protocol/receipt.js';
import { parentKeyOf } from '../conversation/open-calls.js';
import { APPROVAL_SIGNAL_PREFIX, withoutRetrySuffix } from '../turns.js';
import { signableText } from './signable-text.js';

/** An approval that was given or denied. */
export interface AnsweredApproval {
  readonly id: string;
  readonly tool: string;
  readonly by: string;
  readonly approved: boolean;
}

/** An effect as it is known so far. */
export interface TurnEffect {
  readonly key: string;
  readonly name: string;
  readonly kind: string;
  readonly safety: Safety;
  readonly boundary: string | undefined;
  /** Undefined until it was started, or refused. */
  state: ReceiptEffectState | undefined;
  /** How often it was started, also after a crash. */
  attempts: number;
  /** How often it had been started when a retry of the turn opened it again. */
  earlierAttempts: number;
  /** The sequence number of the last intent. */
  intentSeq: number | undefined;
  /** The sequence number of the last start that repeats an interrupted one. */
  repeatedSeq: number | undefined;
  endSeq: number | undefined;
  /** The last intent; its value is the executed arguments. */
  intent: Entry | undefined;
  /** Of an effect with layers: the entry whose value is the arguments that are shown: `effect.opened`, or the filtered input. */
  shown: Entry | undefined;
  /** True once a fallback model, which the approval names, gets the request. */
  isFallback: boolean;
  approval: AnsweredApproval | undefined;
  /** How people resolved the effect while it was in doubt, in order. */
  resolutions: ReceiptResolution[] | undefined;
  /** The sequence number of the last entry that changed the effect. */
  changedSeq: number;
  /** The sequence number at which the approval was answered. */
  answeredSeq: number;
}

/** Returns the name of the person who gave the standing grant with this approval id. */
export type GrantedBy = (approvalId: string) => string | undefined;

/** The effects with layers of a turn. */
class LayeredEffects {
  /** The open ones, by key. */
  readonly open = new Map<string, TurnEffect>();
  /** The effect that an attempt or a gate belongs to, by the key of the attempt or the gate. */
  readonly attempts = new Map<string, TurnEffect>();
  readonly gates = new Map<string, TurnEffect>();
  /** The requested approval of an effect, and the wait for its answer. */
  readonly requests = new Map<TurnEffect, { readonly id: string; readonly tool: string }>();
  readonly waits = new Map<string, TurnEffect>();
}

/** Folds the entries of one turn into its effects. */
export class TurnEffects {
  private readonly effects = new Map<string, TurnEffect>();
  /** Created with the first effect with layers: most turns have none. */
  private layers: LayeredEffects | undefined;
  private readonly grantedBy: GrantedBy;

  constructor(grantedBy: GrantedBy) {
    this.grantedBy = grantedBy;
  }

  /** Returns the effects in the order in which they were opened or started. */
  all(): Iterable<TurnEffect> {
    return this.effects.values();
  }

  /** Applies an entry of a leaf call: the start or the end of its effect. */
  applyLeaf(entry: Entry): void {
    const key = leafEffectKey(entry.key);
    if (entry.type === 'call.started') this.start(entry, key, entry.effectName);
    else this.end(entry, key);
  }

  /** Applies the next entry of the turn that is not one of a leaf call. */
  apply(entry: Entry): void {
    const { type } = entry;
    if (type === 'effect.opened') this.open(entry);
    else if (type === 'effect.requested') this.start(entry);
    else if (type === 'effect.repeated') this.repeat(entry);
    else if (type === 'effect.returned' || type === 'effect.failed') this.end(entry);
    else if (type === 'step.refused') this.refuse(entry);
    else if (type === 'effect.resolved') this.resolve(entry);
    else if (this.layers === undefined || this.layers.open.size === 0) return;
    else if (type === 'effect.settled') this.settle(entry);
    else if (type === 'rondo.input.filtered') this.filterInput(entry);
    else if (type === 'rondo.backend.fallback') this.fallBack(entry);
    else if (type === 'rondo.approval.requested') this.request(entry);
    else if (type === 'wait.opened') this.openWait(entry);
    else if (type === 'wait.settled') this.answer(entry);
  }

  private open(entry: Entry): void {
    const known = this.effects.get(entry.key);
    const effect = known ?? newEffect(entry.key, entry, entry);
    this.effects.set(entry.key, effect);
    this.layers ??= new LayeredEffects();
    this.layers.open.set(entry.key, effect);
  }

  private start(entry: Entry, entryKey = entry.key, name = entry.name): void {
    const key = withoutRetrySuffix(entryKey);
    const outer = this.layeredAbove(key) ?? (entry.kind === 'gate' ? this.reopenAbove(key) : undefined);
    if (outer !== undefined && entry.kind === 'gate') {
      this.layers?.gates.set(key, outer);
      outer.isFallback = false;
      return;
    }
    const effect = outer ?? this.effects.get(key) ?? newEffect(key, entry, undefined, name);
    if (outer !== undefined) this.layers?.attempts.set(key, outer);
    else this.effects.set(key, effect);
    effect.attempts += 1;
    effect.state = 'unknown';
    effect.intent = entry;
    effect.intentSeq = entry.seq;
    effect.endSeq = undefined;
    effect.changedSeq = entry.seq;
  }

  private repeat({ key, seq }: Entry): void {
    const effect = this.layers?.attempts.get(key) ?? this.effects.get(key);
    if (effect === undefined) return;
    effect.attempts += 1;
    effect.repeatedSeq = seq;
    effect.changedSeq = seq;
  }

  /** An attempt that was not admitted: the effect did not start, unless an earlier attempt did. */
  private refuse(entry: Entry): void {
    // An approval that was requested again is no refusal.
    if (entry.name !== 'effect.requested' || ownProperty(entry.error?.data, 'isRequestedAgain') === true) return;
    const key = withoutRetrySuffix(entry.key);
    const effect = this.layeredAbove(key) ?? this.effects.get(key) ?? newEffect(key, refusedEffect(entry), undefined);
    if (effect.attempts > 0) return;
    this.effects.set(effect.key, effect);
    effect.state = 'denied';
    effect.endSeq = entry.seq;
    effect.changedSeq = entry.seq;
  }

  private resolve({ key: retryKey, by = '', resolution = 'fail' }: Entry): void {
    const key = withoutRetrySuffix(retryKey);
    const effect = this.layers?.attempts.get(key) ?? this.effects.get(key);
    if (effect === undefined) return;
    effect.resolutions ??= [];
    effect.resolutions.push({ by: signableText(by), resolution });
  }

  /** Opens the effect with layers above a gate again: a retry of the turn evaluates its approval once more. */
  private reopenAbove(gateKey: string): TurnEffect | undefined {
    const effect = this.effects.get(parentKeyOf(gateKey));
    if (effect?.shown === undefined) return undefined;
    effect.earlierAttempts = effect.attempts;
    this.layers?.open.set(effect.key, effect);
    return effect;
  }

  /** Returns the open effect with layers that a key is below. */
  private layeredAbove(key: string): TurnEffect | undefined {
    if (this.layers === undefined || this.layers.open.size === 0) return undefined;
    for (let above = parentKeyOf(key); above !== ''; above = parentKeyOf(above)) {
      const effect = this.layers.open.get(above);
      if (effect !== undefined) return effect;
    }
    return undefined;
  }

  private end(entry: Entry, key = entry.key): void {
    const { value } = entry;
    const gated = this.layers?.gates.get(key);
    if (gated !== undefined) {
      if (ownProperty(value, 'verdict') === 'granted') this.grant(gated, ownText(value, 'grant'), entry.seq);
      return;
    }
    const effect = this.layers?.attempts.get(key) ?? this.effects.get(key);
    if (effect !== undefined) endEffect(effect, entry);
  }

  private grant(effect: TurnEffect, id: string, seq: number): void {
    const by = this.grantedBy(id) ?? '';
    effect.approval = { id, tool: effect.name, by, approved: true };
    effect.answeredSeq = seq;
  }

  private settle(entry: Entry): void {
    const effect = this.layers?.open.get(entry.key);
    this.layers?.open.delete(entry.key);
    if (effect === undefined) return;
    // A result without an attempt comes from a cache: nothing happened. An error without one is a refusal.
    // A retry that is denied changes nothing of what happened before.
    if (effect.attempts > effect.earlierAttempts) endEffect(effect, entry);
    else if (effect.attempts === 0 && entry.error !== undefined) {
      effect.state = 'denied';
      effect.endSeq = entry.seq;
      effect.changedSeq = entry.seq;
    }
  }

  private filterInput(entry: Entry): void {
    const effect = this.layers?.open.get(parentKeyOf(entry.key));
    if (effect !== undefined) effect.shown = entry;
  }

  private fallBack({ key }: Entry): void {
    const effect = this.layers?.open.get(parentKeyOf(key));
    if (effect !== undefined) effect.isFallback = true;
  }

  private request({ key, value }: Entry): void {
    const effect = this.layers?.open.get(parentKeyOf(key));
    const id = ownText(value, 'id');
    if (effect !== undefined && id !== '') this.layers?.requests.set(effect, { id, tool: ownText(value, 'tool') });
  }

  private openWait({ key, name = '' }: Entry): void {
    const effect = this.layeredAbove(key);
    const request = effect && this.layers?.requests.get(effect);
    if (effect !== undefined && name === `${APPROVAL_SIGNAL_PREFIX}${request?.id}`) this.layers?.waits.set(key, effect);
  }

  private answer({ key, value, seq }: Entry): void {
    const effect = this.layers?.waits.get(key);
    const request = effect && this.layers?.requests.get(effect);
    if (effect === undefined || request === undefined) return;
    const approved = ownProperty(value, 'approved') === true;
    effect.approval = { ...request, by: ownText(value, 'by'), approved };
    effect.answeredSeq = seq;
  }
}

function newEffect(
  key: string,
  { name: ownName = '', kind = '', safety = 'once', boundary }: Entry,
  opened: Entry | undefined,
  name: string | undefined = ownName,
): TurnEffect {
  return {
    key,
    name,
    kind,
    safety,
    boundary,
    shown: opened,
    isFallback: false,
    state: undefined,
    attempts: 0,
    earlierAttempts: 0,
    intentSeq: undefined,
    repeatedSeq: undefined,
    endSeq: undefined,
    intent: undefined,
    approval: undefined,
    resolutions: undefined,
    changedSeq: -1,
    answeredSeq: -1,
  };
}

/** A refused step holds the name of its effect as its kind. */
function refusedEffect({ kind: name = '', ...entry }: Entry): Entry {
  return { ...entry, name, kind: 'tool' };
}

/** Applies the end of an attempt, or of an effect with layers. */
function endEffect(effect: TurnEffect, { seq, error }: Entry): void {
  if (error === undefined) effect.state = 'done';
  // An effect that was resolved as failed may have happened.
  else effect.state = error.code === 'EFFECT_IN_DOUBT' ? 'unknown' : 'failed';
  effect.endSeq = seq;
  effect.changedSeq = seq;
}
