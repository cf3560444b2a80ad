/**
 * Where a session stands, folded from its entries: its birth, its roots, the signals nobody took yet, and the
 * effects whose intent has no result. Small, because finished work leaves only its place in the journal.
 */
import type { Entry, Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { Inbox } from './inbox.js';

export interface Root {
  readonly first: number;
  last?: number;
  cancelled?: string;
}

/** An intent without a result. It waits for a decision when as many were made as it was begun again. */
interface Intent {
  readonly name: string;
  readonly safety: Safety;
  readonly begun: number;
  decided: number;
  /** The last decision, until it is acted on. */
  decision?: Entry;
}

/** Most sessions never have a signal or an effect in flight, so what holds them is made when it is needed. */
const NONE: ReadonlyMap<string, never> = new Map<string, never>();

export class Standing {
  born = '';
  readonly roots: Map<string, Root> = new Map();
  /** Roots that have begun and not ended. */
  private open = 0;
  private inbox: Inbox | undefined;
  private places: Map<string, number> | undefined;
  /** Races that are not decided, and the signals that waits inside them took. */
  private races: Set<string> | undefined;
  private taken: Map<string, Entry> | undefined;
  private intended: Map<string, Intent> | undefined;

  /** The place of every signal ever received, by its delivery id. */
  get delivered(): ReadonlyMap<string, number> {
    return this.places ?? NONE;
  }

  /** Non-pure effects with an intent and no result. */
  get intents(): ReadonlyMap<string, Intent> {
    return this.intended ?? NONE;
  }

  /** `once` effects that wait for a decision; one that is being performed, as `flying` tells, does not. */
  doubts(flying: { has(key: string): boolean }): readonly { readonly key: string; readonly name: string }[] {
    const doubts: { key: string; name: string }[] = [];
    for (const [key, { name, safety, begun, decided }] of this.intents) {
      if (safety === 'once' && begun === decided && !flying.has(key)) doubts.push({ key, name });
    }
    return doubts;
  }

  /** Whether a snapshot taken now would need nothing of the entries before it. */
  get quiet(): boolean {
    return this.intents.size === 0 && this.open === 0;
  }

  apply(entry: Entry): void {
    const { key, type } = entry;
    if (type === 'session.opened') /* guard: idempotency-key-bound-to-session */ this.born = entry.born ?? '';
    else if (type === 'signal.received') this.receive(entry);
    else if (type === 'wait.settled') this.settle(entry);
    else if (type === 'group.opened' && entry.name === 'race') this.openRace(key);
    else if (type === 'effect.requested') this.intend(entry);
    else if (type === 'effect.decided') this.decide(entry);
    else if (type === 'effect.returned' || type === 'effect.failed') this.intended?.delete(key);
    else if (type === 'race.won') this.decideRace(entry);
    else if (!key.includes('/')) this.applyRoot(entry);
  }

  /** A signal that was taken inside a race may have to be given back. */
  private settle({ key, signal = '' }: Entry): void {
    const taken = this.inbox?.take(signal);
    if (taken === undefined || !this.racing(key)) return;
    this.taken ??= new Map();
    this.taken.set(key, taken);
  }

  private openRace(key: string): void {
    this.races ??= new Set();
    this.races.add(key);
  }

  private racing(key: string): boolean {
    for (const race of this.races ?? []) if (key.startsWith(`${race}/`)) return true;
    return false;
  }

  /** What the losers took is there again; what the winner took stays taken, unless a race around it is lost. */
  private decideRace({ key, winner }: Entry): void {
    this.abandon(key);
    this.races?.delete(key);
    for (const [wait, signal] of this.taken ?? []) {
      if (!wait.startsWith(`${key}/`)) continue;
      const won = wait.startsWith(`${key}/${winner}/`);
      // guard: losing-branch-returns-its-signal
      if (!won) this.keep(signal);
      if (!won || !this.racing(wait)) this.taken?.delete(wait);
    }
  }

  /** What lies under a race that is decided, or a root that ended, needs no decision any more. */
  private abandon(key: string): void {
    for (const intent of this.intents.keys()) if (intent.startsWith(`${key}/`)) this.intended?.delete(intent);
  }

  /** The oldest signal of a name that nobody took. */
  kept(name: string): Entry | undefined {
    return this.inbox?.first(name);
  }

  private receive(entry: Entry): void {
    this.keep(entry);
    this.places ??= new Map();
    this.places.set(entry.key, entry.seq);
  }

  private keep(signal: Entry): void {
    this.inbox ??= new Inbox();
    this.inbox.put(signal);
  }

  private intend({ key, name = '', safety = 'once' }: Entry): void {
    if (safety === 'pure') return;
    const cut = key.indexOf('~');
    const begun = cut < 0 ? 0 : Number(key.slice(cut + 1));
    this.intended ??= new Map();
    this.intended.set(cut < 0 ? key : key.slice(0, cut), { name, safety, begun, decided: begun });
  }

  private decide(decision: Entry): void {
    const [base = '', redo] = decision.key.split('~');
    const intent = this.intents.get(base);
    if (intent === undefined) return;
    intent.decided = Number(redo);
    intent.decision = decision;
  }

  /** A decision that was made while nobody listened. */
  decisionAt(redo: string): Entry | undefined {
    const [base = ''] = redo.split('~');
    const decision = this.intents.get(base)?.decision;
    return decision?.key === redo ? decision : undefined;
  }

  private applyRoot({ key, type, seq, reason }: Entry): void {
    const root = this.roots.get(key);
    if (root === undefined) {
      if (type !== 'call.started') return;
      this.roots.set(key, { first: seq });
      this.open += 1;
    } else if (type === 'call.completed' || type === 'call.errored') {
      if (root.last === undefined) this.open -= 1;
      root.last = seq;
      this.abandon(key);
      this.races = undefined;
      this.taken = undefined;
    } else if (type === 'cancel.requested') root.cancelled = reason ?? '';
  }

  save(): Json {
    const { born, inbox, places } = this;
    const roots = [...this.roots].map(([key, { first, last = -1 }]) => [key, first, last] as const);
    const signals = (inbox?.all ?? []) as unknown as Json;
    return { born, roots, inbox: signals, delivered: [...(places ?? [])] };
  }

  /** Reads what `save` made, or throws; nothing of it is believed halfway. */
  static parse(saved: Json, upToDate: (entry: Entry) => Entry): Standing {
    const { born, roots, inbox, delivered } = saved as unknown as {
      born: string;
      roots: [string, number, number][];
      inbox: Entry[];
      delivered: [string, number][];
    };
    const standing = new Standing();
    standing.born = born;
    for (const [key, first, last] of roots) standing.roots.set(key, { first, last });
    for (const entry of inbox) standing.keep(upToDate(entry));
    standing.places = new Map(delivered);
    return standing;
  }

  take(other: Standing): void {
    this.born = other.born;
    for (const [key, root] of other.roots) this.roots.set(key, root);
    this.inbox = other.inbox;
    this.places = other.places;
  }
}
