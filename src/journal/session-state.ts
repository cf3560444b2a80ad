/**
 * The state of a session, folded from its entries: its incarnation, its roots (top-level calls), its inbox and the
 * effects whose intent has no result. It stays small, because a root that has ended leaves only its position in the
 * journal.
 */
import { LoopError } from '../base/errors.js';
import type { Entry, Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { Inbox } from './inbox.js';
import { leafEffectKey } from './leaf-entries.js';

/** A root call and its position in the journal. */
export interface RootCall {
  readonly firstSeq: number;
  /** The sequence number of its last entry; undefined until it has ended. */
  lastSeq?: number;
  cancelReason?: string;
}

/**
 * An intent without a result. A `once` effect that is not in flight needs a resolution if `resolutionCount` equals
 * `retryCount`.
 */
interface OpenIntent {
  readonly name: string;
  readonly safety: Safety;
  readonly retryCount: number;
  resolutionCount: number;
  /** The last resolution, until the effect is retried or has ended. */
  resolution?: Entry;
}

/** Stands for a collection that was not created yet. Most sessions have no signal and no open intent. */
const EMPTY_MAP: ReadonlyMap<string, never> = new Map<string, never>();

/** The state of one session. */
export class SessionState {
  /** Distinguishes sessions that had the same name at different times. Part of every idempotency key. */
  incarnationId = '';
  readonly roots: Map<string, RootCall> = new Map();
  /** The number of roots that have started and not ended. */
  private openRootCount = 0;
  private inbox: Inbox | undefined;
  private signalSeqs: Map<string, number> | undefined;
  /** The keys of races without a winner, and the signals that waits inside of them received, by the key of the wait. */
  private openRaces: Set<string> | undefined;
  private signalsTakenInRaces: Map<string, Entry> | undefined;
  private intentsByKey: Map<string, OpenIntent> | undefined;

  /** The sequence number of every signal of the session, by delivery id. */
  get deliveredSignals(): ReadonlyMap<string, number> {
    return this.signalSeqs ?? EMPTY_MAP;
  }

  /** The non-pure effects with an intent and no result, by key. */
  get intents(): ReadonlyMap<string, OpenIntent> {
    return this.intentsByKey ?? EMPTY_MAP;
  }

  /** Returns the `once` effects that need a resolution. An effect in flight does not. */
  effectsInDoubt(inFlight: { has(key: string): boolean }): readonly { readonly key: string; readonly name: string }[] {
    const effects: { key: string; name: string }[] = [];
    for (const [key, { name, safety, retryCount, resolutionCount }] of this.intents) {
      if (safety === 'once' && retryCount === resolutionCount && !inFlight.has(key)) effects.push({ key, name });
    }
    return effects;
  }

  /** Returns the roots that have started and not ended: all of them, or only `root` if it is one. */
  openRoots(root?: string): readonly string[] {
    if (root !== undefined) {
      const rootCall = this.roots.get(root);
      return rootCall === undefined || rootCall.lastSeq !== undefined ? [] : [root];
    }
    const open: string[] = [];
    if (this.openRootCount > 0) for (const [key, { lastSeq }] of this.roots) if (lastSeq === undefined) open.push(key);
    return open;
  }

  /** True if no root and no intent is open: only then does a snapshot contain everything that a session needs. */
  get isQuiescent(): boolean {
    return this.intents.size === 0 && this.openRootCount === 0;
  }

  /** Applies the next entry of the session. `effectKey` is the key of the effect of a leaf call, if it is known. */
  apply(entry: Entry, effectKey?: string): void {
    // The parts of `expandLeaf`, without creating them: every leaf call runs this twice.
    const { key, type, name, safety, effectName = name } = entry;
    if (type === 'call.started' && safety !== undefined && safety !== 'pure')
      this.applyIntent(effectKey ?? leafEffectKey(key), effectName, safety);
    else if (entry.endsEffect !== undefined) this.intentsByKey?.delete(effectKey ?? leafEffectKey(key));
    if (type === 'session.opened')
      /* guard: idempotency-key-bound-to-session */ this.incarnationId = entry.incarnationId ?? '';
    else if (type === 'signal.received') this.applySignalReceived(entry);
    else if (type === 'wait.settled') this.applyWaitSettled(entry);
    else if (type === 'group.opened' && entry.name === 'race') this.applyRaceOpened(key);
    else if (type === 'effect.requested') this.applyIntent(key, entry.name, entry.safety);
    else if (type === 'effect.resolved') this.applyResolution(entry);
    else if (type === 'effect.returned' || type === 'effect.failed') this.intentsByKey?.delete(key);
    else if (type === 'race.won') this.applyRaceWon(entry);
    // A losing branch does not return a discarded signal.
    else if (type === 'signal.discarded') this.inbox?.take(key);
    else if (!key.includes('/')) this.applyRoot(entry);
  }

  /**
   * Takes the signal out of the inbox. If the wait is in an open race, the signal is kept aside, because a losing
   * branch returns it.
   */
  private applyWaitSettled({ key, signalId = '' }: Entry): void {
    const signal = this.inbox?.take(signalId);
    if (signal === undefined || !this.isInOpenRace(key)) return;
    this.signalsTakenInRaces ??= new Map();
    this.signalsTakenInRaces.set(key, signal);
  }

  private applyRaceOpened(key: string): void {
    this.openRaces ??= new Set();
    this.openRaces.add(key);
  }

  private isInOpenRace(key: string): boolean {
    for (const race of this.openRaces ?? []) if (key.startsWith(`${race}/`)) return true;
    return false;
  }

  /** Returns the signals of losing branches to the inbox. An enclosing race may still return the winner's. */
  private applyRaceWon({ key, winnerIndex }: Entry): void {
    this.dropIntentsUnder(key);
    this.openRaces?.delete(key);
    for (const [wait, signal] of this.signalsTakenInRaces ?? []) {
      if (!wait.startsWith(`${key}/`)) continue;
      const isInWinner = wait.startsWith(`${key}/${winnerIndex}/`);
      // guard: losing-branch-returns-its-signal
      if (!isInWinner) this.addToInbox(signal);
      if (!isInWinner || !this.isInOpenRace(wait)) this.signalsTakenInRaces?.delete(wait);
    }
  }

  /** Drops the intents below a race that has a winner or a root that has ended: they need no resolution. */
  private dropIntentsUnder(key: string): void {
    for (const intent of this.intents.keys()) if (intent.startsWith(`${key}/`)) this.intentsByKey?.delete(intent);
  }

  /** Returns the oldest signal of a name in the inbox that this root may receive; undefined if there is none. */
  oldestSignal(name: string, root: string): Entry | undefined {
    return this.inbox?.oldest(name, root);
  }

  /** Throws TURN_ENDED if this root has ended: a signal that is addressed to it cannot be received. */
  assertNotEnded(root: string | undefined): void {
    // guard: ended-turn-refuses-signals
    if (root === undefined || this.roots.get(root)?.lastSeq === undefined) return;
    throw new LoopError('TURN_ENDED', `The turn ${root} has ended: it receives no more signals.`, { turnId: root });
  }

  private applySignalReceived(entry: Entry): void {
    this.addToInbox(entry);
    this.signalSeqs ??= new Map();
    this.signalSeqs.set(entry.key, entry.seq);
  }

  private addToInbox(signal: Entry): void {
    this.inbox ??= new Inbox();
    this.inbox.put(signal);
  }

  private applyIntent(key: string, name = '', safety: Safety = 'once'): void {
    if (safety === 'pure') return;
    const tilde = key.indexOf('~');
    const effectKey = tilde < 0 ? key : key.slice(0, tilde);
    const retryCount = tilde < 0 ? 0 : Number(key.slice(tilde + 1));
    this.intentsByKey ??= new Map();
    this.intentsByKey.set(effectKey, { name, safety, retryCount, resolutionCount: retryCount });
  }

  private applyResolution(resolved: Entry): void {
    const [effectKey = '', retry] = resolved.key.split('~');
    const intent = this.intents.get(effectKey);
    if (intent === undefined) return;
    intent.resolutionCount = Number(retry);
    intent.resolution = resolved;
  }

  /**
   * Returns the resolution under a retry key (`<effect key>~<number>`); undefined if there is none, or if the effect
   * was retried since.
   */
  resolutionAt(retryKey: string): Entry | undefined {
    const [effectKey = ''] = retryKey.split('~');
    const resolved = this.intents.get(effectKey)?.resolution;
    return resolved?.key === retryKey ? resolved : undefined;
  }

  private applyRoot({ key, type, seq, reason }: Entry): void {
    const root = this.roots.get(key);
    if (root === undefined) {
      if (type !== 'call.started') return;
      this.roots.set(key, { firstSeq: seq });
      this.openRootCount += 1;
    } else if (type === 'call.completed' || type === 'call.errored') {
      if (root.lastSeq === undefined) this.openRootCount -= 1;
      root.lastSeq = seq;
      this.dropIntentsUnder(key);
      this.openRaces = undefined;
      this.signalsTakenInRaces = undefined;
      // A root that failed may be continued, so it keeps its signals.
      if (type === 'call.completed') this.inbox?.dropAddressedTo(key);
    } else if (type === 'call.reopened') {
      if (root.lastSeq !== undefined) this.openRootCount += 1;
      delete root.lastSeq;
    } else if (type === 'cancel.requested') root.cancelReason = reason ?? '';
  }

  /**
   * Returns the state as JSON for a snapshot. The state must be quiescent, because open roots and intents are not
   * saved.
   */
  save(): Json {
    const { incarnationId, inbox, signalSeqs } = this;
    const roots = [...this.roots].map(([key, { firstSeq, lastSeq = -1 }]) => [key, firstSeq, lastSeq] as const);
    const signals = (inbox?.all ?? []) as unknown as Json;
    return { incarnationId, roots, inbox: signals, delivered: [...(signalSeqs ?? [])] };
  }

  /**
   * Restores a state from the result of `save`, or throws if it is malformed. `upcastEntry` converts the entries of the
   * inbox.
   */
  static parse(saved: Json, upcastEntry: (entry: Entry) => Entry): SessionState {
    const { incarnationId, roots, inbox, delivered } = saved as unknown as {
      incarnationId: string;
      roots: [string, number, number][];
      inbox: Entry[];
      delivered: [string, number][];
    };
    const state = new SessionState();
    state.incarnationId = incarnationId;
    for (const [key, firstSeq, lastSeq] of roots) state.roots.set(key, { firstSeq, lastSeq });
    for (const entry of inbox) state.addToInbox(upcastEntry(entry));
    state.signalSeqs = new Map(delivered);
    return state;
  }

  /** Copies a parsed state into this empty one. */
  restoreFrom(other: SessionState): void {
    this.incarnationId = other.incarnationId;
    for (const [key, root] of other.roots) this.roots.set(key, root);
    this.inbox = other.inbox;
    this.signalSeqs = other.signalSeqs;
  }
}
