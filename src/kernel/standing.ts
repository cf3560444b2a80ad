/**
 * Where a session stands, folded from its entries: its birth, its roots, the signals nobody took yet, and the
 * effects whose intent has no result. Small, because finished work leaves only its place in the journal.
 */
import type { Entry, Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';

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
}

export class Standing {
  born = '';
  readonly roots: Map<string, Root> = new Map();
  /** Signals that no wait has taken, oldest first. */
  readonly inbox: Map<string, Entry> = new Map();
  /** The place of every signal ever received, by its delivery id. */
  readonly delivered: Map<string, number> = new Map();
  /** Non-pure effects with an intent and no result. */
  readonly intents: Map<string, Intent> = new Map();

  /** Whether a snapshot taken now would need nothing of the entries before it. */
  get quiet(): boolean {
    return this.intents.size === 0 && [...this.roots.values()].every((root) => root.last !== undefined);
  }

  apply(entry: Entry): void {
    const { key, type } = entry;
    if (type === 'session.opened') this.born = entry.born ?? '';
    else if (type === 'signal.received') this.receive(entry);
    else if (type === 'wait.settled') this.inbox.delete(entry.signal ?? '');
    else if (type === 'effect.requested') this.intend(entry);
    else if (type === 'effect.decided') this.decide(entry);
    else if (type === 'effect.returned' || type === 'effect.failed') this.intents.delete(key);
    else if (!key.includes('/')) this.applyRoot(entry);
  }

  /** The oldest signal of a name that nobody took, taken. */
  takeSignal(name: string): Entry | undefined {
    for (const entry of this.inbox.values()) {
      if (entry.name !== name) continue;
      this.inbox.delete(entry.key);
      return entry;
    }
    return undefined;
  }

  private receive(entry: Entry): void {
    this.inbox.set(entry.key, entry);
    this.delivered.set(entry.key, entry.seq);
  }

  private intend({ key, name = '', safety = 'once' }: Entry): void {
    const [base = key, redo = 0] = key.split('~');
    const begun = Number(redo);
    if (safety !== 'pure') this.intents.set(base, { name, safety, begun, decided: begun });
  }

  private decide({ key }: Entry): void {
    const [base = key, redo] = key.split('~');
    const intent = this.intents.get(base);
    if (intent !== undefined) intent.decided = Number(redo);
  }

  private applyRoot({ key, type, seq, reason }: Entry): void {
    const root = this.roots.get(key);
    if (root === undefined) {
      if (type === 'call.started') this.roots.set(key, { first: seq });
    } else if (type === 'call.completed' || type === 'call.errored') root.last = seq;
    else if (type === 'cancel.requested') root.cancelled = reason ?? '';
  }

  save(): Json {
    const { born } = this;
    const roots = [...this.roots].map(([key, { first, last = -1 }]) => [key, first, last] as const);
    return { born, roots, inbox: [...this.inbox.values()] as unknown as Json, delivered: [...this.delivered] };
  }

  restore(saved: Json): void {
    const { born, roots, inbox, delivered } = saved as unknown as {
      born: string;
      roots: [string, number, number][];
      inbox: Entry[];
      delivered: [string, number][];
    };
    this.born = born;
    for (const [key, first, last] of roots) this.roots.set(key, { first, last });
    for (const entry of inbox) this.inbox.set(entry.key, entry);
    for (const [id, seq] of delivered) this.delivered.set(id, seq);
  }
}
