/**
 * Where a session stands, folded from its entries: its birth, its roots, the signals nobody took yet, and the
 * effects whose intent has no result. Small, because finished work leaves only its place in the journal.
 */
import type { Entry, Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { Inbox } from './inbox.js';

export interface RootCall {
  readonly firstSeq: number;
  lastSeq?: number;
  cancelReason?: string;
}

/** An intent without a result. It waits for a decision when as many were made as it was begun again. */
interface OpenIntent {
  readonly name: string;
  readonly safety: Safety;
  readonly retryCount: number;
  resolutionCount: number;
  /** The last decision, until it is acted on. */
  resolution?: Entry;
}

/** Most sessions never have a signal or an effect in flight, so what holds them is made when it is needed. */
const EMPTY_MAP: ReadonlyMap<string, never> = new Map<string, never>();

export class SessionState {
  incarnationId = '';
  readonly roots: Map<string, RootCall> = new Map();
  /** Roots that have begun and not ended. */
  private openRootCount = 0;
  private inbox: Inbox | undefined;
  private signalSeqs: Map<string, number> | undefined;
  /** Races that are not decided, and the signals that waits inside them took. */
  private openRaces: Set<string> | undefined;
  private signalsTakenInRaces: Map<string, Entry> | undefined;
  private intentsByKey: Map<string, OpenIntent> | undefined;

  /** The place of every signal ever received, by its delivery id. */
  get deliveredSignals(): ReadonlyMap<string, number> {
    return this.signalSeqs ?? EMPTY_MAP;
  }

  /** Non-pure effects with an intent and no result. */
  get intents(): ReadonlyMap<string, OpenIntent> {
    return this.intentsByKey ?? EMPTY_MAP;
  }

  /** `once` effects that wait for a decision; one that is being performed, as `flying` tells, does not. */
  effectsInDoubt(flying: { has(key: string): boolean }): readonly { readonly key: string; readonly name: string }[] {
    const doubts: { key: string; name: string }[] = [];
    for (const [key, { name, safety, retryCount, resolutionCount }] of this.intents) {
      if (safety === 'once' && retryCount === resolutionCount && !flying.has(key)) doubts.push({ key, name });
    }
    return doubts;
  }

  /** Whether a snapshot taken now would need nothing of the entries before it. */
  get isQuiescent(): boolean {
    return this.intents.size === 0 && this.openRootCount === 0;
  }

  apply(entry: Entry): void {
    const { key, type } = entry;
    if (type === 'session.opened')
      /* guard: idempotency-key-bound-to-session */ this.incarnationId = entry.incarnationId ?? '';
    else if (type === 'signal.received') this.applySignalReceived(entry);
    else if (type === 'wait.settled') this.applyWaitSettled(entry);
    else if (type === 'group.opened' && entry.name === 'race') this.applyRaceOpened(key);
    else if (type === 'effect.requested') this.applyIntent(entry);
    else if (type === 'effect.resolved') this.applyResolution(entry);
    else if (type === 'effect.returned' || type === 'effect.failed') this.intentsByKey?.delete(key);
    else if (type === 'race.won') this.applyRaceWon(entry);
    else if (!key.includes('/')) this.applyRoot(entry);
  }

  /** A signal that was taken inside a race may have to be given back. */
  private applyWaitSettled({ key, signalId = '' }: Entry): void {
    const taken = this.inbox?.take(signalId);
    if (taken === undefined || !this.isInOpenRace(key)) return;
    this.signalsTakenInRaces ??= new Map();
    this.signalsTakenInRaces.set(key, taken);
  }

  private applyRaceOpened(key: string): void {
    this.openRaces ??= new Set();
    this.openRaces.add(key);
  }

  private isInOpenRace(key: string): boolean {
    for (const race of this.openRaces ?? []) if (key.startsWith(`${race}/`)) return true;
    return false;
  }

  /** What the losers took is there again; what the winner took stays taken, unless a race around it is lost. */
  private applyRaceWon({ key, winnerIndex }: Entry): void {
    this.dropIntentsUnder(key);
    this.openRaces?.delete(key);
    for (const [wait, signal] of this.signalsTakenInRaces ?? []) {
      if (!wait.startsWith(`${key}/`)) continue;
      const won = wait.startsWith(`${key}/${winnerIndex}/`);
      // guard: losing-branch-returns-its-signal
      if (!won) this.addToInbox(signal);
      if (!won || !this.isInOpenRace(wait)) this.signalsTakenInRaces?.delete(wait);
    }
  }

  /** What lies under a race that is decided, or a root that ended, needs no decision any more. */
  private dropIntentsUnder(key: string): void {
    for (const intent of this.intents.keys()) if (intent.startsWith(`${key}/`)) this.intentsByKey?.delete(intent);
  }

  /** The oldest signal of a name that nobody took. */
  oldestSignal(name: string): Entry | undefined {
    return this.inbox?.oldest(name);
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

  private applyIntent({ key, name = '', safety = 'once' }: Entry): void {
    if (safety === 'pure') return;
    const cut = key.indexOf('~');
    const begun = cut < 0 ? 0 : Number(key.slice(cut + 1));
    this.intentsByKey ??= new Map();
    this.intentsByKey.set(cut < 0 ? key : key.slice(0, cut), {
      name,
      safety,
      retryCount: begun,
      resolutionCount: begun,
    });
  }

  private applyResolution(decision: Entry): void {
    const [base = '', redo] = decision.key.split('~');
    const intent = this.intents.get(base);
    if (intent === undefined) return;
    intent.resolutionCount = Number(redo);
    intent.resolution = decision;
  }

  /** A decision that was made while nobody listened. */
  resolutionAt(redo: string): Entry | undefined {
    const [base = ''] = redo.split('~');
    const decision = this.intents.get(base)?.resolution;
    return decision?.key === redo ? decision : undefined;
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
    } else if (type === 'cancel.requested') root.cancelReason = reason ?? '';
  }

  save(): Json {
    const { incarnationId, inbox, signalSeqs } = this;
    const roots = [...this.roots].map(([key, { firstSeq, lastSeq = -1 }]) => [key, firstSeq, lastSeq] as const);
    const signals = (inbox?.all ?? []) as unknown as Json;
    return { incarnationId, roots, inbox: signals, delivered: [...(signalSeqs ?? [])] };
  }

  /** Reads what `save` made, or throws; nothing of it is believed halfway. */
  static parse(saved: Json, upToDate: (entry: Entry) => Entry): SessionState {
    const { incarnationId, roots, inbox, delivered } = saved as unknown as {
      incarnationId: string;
      roots: [string, number, number][];
      inbox: Entry[];
      delivered: [string, number][];
    };
    const state = new SessionState();
    state.incarnationId = incarnationId;
    for (const [key, first, last] of roots) state.roots.set(key, { firstSeq: first, lastSeq: last });
    for (const entry of inbox) state.addToInbox(upToDate(entry));
    state.signalSeqs = new Map(delivered);
    return state;
  }

  restoreFrom(other: SessionState): void {
    this.incarnationId = other.incarnationId;
    for (const [key, root] of other.roots) this.roots.set(key, root);
    this.inbox = other.inbox;
    this.signalSeqs = other.signalSeqs;
  }
}
