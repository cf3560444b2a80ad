/**
 * Reads turns, results, traces and approvals from a store. It claims no session, so it can read while turns run, in
 * this process or another one. Apart from the lists of turns, it includes entries that are written but not stored yet.
 */
import { Fault, LoopError } from '../base/errors.js';
import { fetchValue } from '../journal/fetch-value.js';
import type { Store } from '../journal/store.js';
import type { Approval } from '../protocol/approval.js';
import type { Entry } from '../protocol/entry.js';
import type { EventEnvelope } from '../protocol/events.js';
import type { RunOutcome } from '../protocol/session.js';
import type { TraceEvent, TurnResult, TurnStatus } from '../protocol/trace.js';
import { Approvals } from '../views/approvals.js';
import { conversationOf } from '../views/conversation.js';
import { isoTime } from '../views/iso-time.js';
import { traceOf } from '../views/trace.js';
import { type TurnSummary, Turns, turnStatusOf } from '../views/turns.js';
import { sessionIdOf, type TurnIdentity, turnResultOf } from './turn-result.js';

/** A stored turn and all entries of its session. */
export interface StoredTurn {
  readonly identity: TurnIdentity;
  readonly turn: TurnSummary;
  readonly entries: readonly Entry[];
}

/** What the archive needs to know of running turns. */
interface RunningTurns {
  /** Returns true if the turn runs in this process. */
  has(turnId: string): boolean;
  /**
   * Returns the entries of the running turn of a session, in any process, from sequence number `from` on. Some may not
   * be stored yet.
   */
  unstoredEntries(sessionId: string, from: number): Promise<readonly Entry[]>;
}

/** The processes that run turns, by turn id. */
type TurnRunners = ReadonlyMap<string, { readonly pid: number }>;

/** Read access to the turns of a store. */
export class Archive {
  private readonly store: Store;
  private readonly running: RunningTurns;

  constructor(store: Store, running: RunningTurns) {
    this.store = store;
    this.running = running;
  }

  /**
   * Returns the status of all turns, or of the turns of one session, oldest first. A damaged session is one item with
   * the status `error`, or throws STORE_DAMAGED if it is requested by name.
   */
  async turns(session?: string): Promise<readonly TurnStatus[]> {
    const names = session === undefined ? (await this.store.journal.list()).map((item) => item.session) : [session];
    const runners = await this.runners();
    const all: TurnStatus[] = [];
    for (const name of names) {
      try {
        all.push(...(await this.turnsOf(name, runners)));
      } catch (thrown) {
        // A damaged session must not hide the others. It is an error only if it is requested by name.
        if (session !== undefined || !isStoreDamage(thrown)) throw thrown;
        all.push(damagedStatus(name, thrown));
      }
    }
    return all.sort((a, b) => a.startedAt.localeCompare(b.startedAt));
  }

  private async runners(): Promise<TurnRunners> {
    return new Map((await this.store.leases.list()).map(({ turn, pid }) => [turn, { pid }]));
  }

  private runnerOf(turnId: string, runners: TurnRunners): { readonly pid?: number } | undefined {
    return runners.get(turnId) ?? (this.running.has(turnId) ? {} : undefined);
  }

  private async turnsOf(session: string, runners: TurnRunners): Promise<readonly TurnStatus[]> {
    const turns = new Turns();
    for await (const batch of this.store.journal.read(session, 0)) for (const entry of batch) turns.apply(entry);
    return turns.turnIds().flatMap((root) => {
      const turn = turns.get(root);
      return turn === undefined ? [] : [turnStatusOf(session, root, turn, this.runnerOf(root, runners))];
    });
  }

  /**
   * Returns the status of the turn with this id, or of all turns of the session with this id. Throws TURN_NOT_FOUND if
   * there is neither.
   */
  async status(id: string): Promise<readonly TurnStatus[]> {
    const stored = await this.find(id);
    if (stored !== undefined) {
      const runner = this.runnerOf(id, await this.runners());
      return [turnStatusOf(stored.identity.sessionId, id, stored.turn, runner)];
    }
    const turns = await this.turns(id);
    if (turns.length === 0) throw turnNotFoundError(id);
    return turns;
  }

  /** Returns the trace of a turn so far. Throws TURN_NOT_FOUND. */
  async trace(turnId: string): Promise<readonly TraceEvent[]> {
    const { entries } = await this.get(turnId);
    return traceOf(turnId, entries);
  }

  /** Returns the result of a turn, as its caller received it; undefined if it has not ended. Throws TURN_NOT_FOUND. */
  async result(turnId: string): Promise<TurnResult | undefined> {
    const { identity, turn, entries } = await this.get(turnId);
    const { endedEntry } = turn;
    if (endedEntry === undefined) return undefined;
    const outcome: RunOutcome =
      endedEntry.error === undefined
        ? { status: 'ok', output: endedEntry.value }
        : { status: 'error', error: endedEntry.error };
    return turnResultOf(identity, outcome, entries, endedEntry.at);
  }

  /**
   * Returns the result of a turn that has ended or waits for something; undefined for one that was interrupted. The turn
   * must not be running. Throws TURN_NOT_FOUND.
   */
  async restingResult(turnId: string): Promise<TurnResult | undefined> {
    const ended = await this.result(turnId);
    if (ended !== undefined) return ended;
    const { identity, turn, entries } = await this.get(turnId);
    if (turn.pending.length === 0) return undefined;
    const paused = turnResultOf(identity, { status: 'paused', pending: [] }, entries, entries.at(-1)?.at ?? 0);
    return Object.defineProperty(paused, 'pending', { value: turn.pending, enumerable: true });
  }

  /**
   * Returns the pending approvals of all sessions or of one. A damaged session is skipped, or throws STORE_DAMAGED if
   * it is requested by name.
   */
  async approvals(session?: string): Promise<readonly Approval[]> {
    const names = session === undefined ? (await this.store.journal.list()).map((item) => item.session) : [session];
    const all: Approval[] = [];
    for (const name of names) {
      const approvals = new Approvals(name);
      try {
        for await (const entry of this.entriesOf(name)) approvals.apply(entry);
        all.push(...approvals.pending());
      } catch (thrown) {
        if (session !== undefined || !isStoreDamage(thrown)) throw thrown;
      }
    }
    return all;
  }

  /** Returns the approvals of a turn's session; undefined if there is no such turn. */
  async approvalsIn(turnId: string): Promise<Approvals | undefined> {
    const stored = await this.find(turnId);
    if (stored === undefined) return undefined;
    const approvals = new Approvals(stored.identity.sessionId);
    for (const entry of stored.entries) approvals.apply(entry);
    return approvals;
  }

  /** Returns a session as the envelopes (events with an id) that front ends display. */
  async events(sessionId: string): Promise<readonly EventEnvelope[]> {
    return conversationOf(sessionId, await this.entries(sessionId));
  }

  /** Returns all entries of a session; empty for an unknown one. Values that are stored as blobs are loaded. */
  async entries(sessionId: string): Promise<readonly Entry[]> {
    const entries: Entry[] = [];
    for await (const entry of this.entriesOf(sessionId)) entries.push(entry);
    return entries;
  }

  /** Returns true if the store has a turn with this id. */
  async has(turnId: string): Promise<boolean> {
    for await (const batch of this.store.journal.read(sessionIdOf(turnId), 0)) {
      if (batch.some(({ key, type }) => key === turnId && type === 'call.started')) return true;
    }
    return false;
  }

  /** Returns the turn with this id; undefined if there is none. */
  async find(turnId: string): Promise<StoredTurn | undefined> {
    const sessionId = sessionIdOf(turnId);
    if (sessionId === '') return undefined;
    const entries: Entry[] = [];
    const turns = new Turns();
    for await (const entry of this.entriesOf(sessionId)) {
      turns.apply(entry);
      entries.push(entry);
    }
    const turn = turns.get(turnId);
    if (turn === undefined) return undefined;
    const { name: loopId = '', version: loopVersion = '' } = turn.startedEntry;
    return { identity: { sessionId, turnId, loopId, loopVersion }, turn, entries };
  }

  /** Returns the turn with this id. Throws TURN_NOT_FOUND if there is none. */
  async get(turnId: string): Promise<StoredTurn> {
    const stored = await this.find(turnId);
    if (stored === undefined) throw turnNotFoundError(turnId);
    return stored;
  }

  /** Returns the pin of a turn, the text of the definitions that it started with; undefined if it has none. */
  async pinnedText({ identity, turn }: StoredTurn): Promise<string | undefined> {
    const { definitionDigest } = turn.startedEntry;
    return definitionDigest === undefined ? undefined : this.store.blobs.get(identity.sessionId, definitionDigest);
  }

  /**
   * Yields the entries of a session with their blob values, then the entries of its running turn that are not stored
   * yet.
   */
  private async *entriesOf(session: string): AsyncGenerator<Entry> {
    let nextSeq = 0;
    for await (const batch of this.store.journal.read(session, 0)) {
      for (const entry of batch) {
        nextSeq = entry.seq + 1;
        const value = entry.blob === undefined ? undefined : await fetchValue(this.store.blobs, session, entry);
        yield value === undefined ? entry : { ...entry, value };
      }
    }
    for (const entry of await this.running.unstoredEntries(session, nextSeq)) yield entry;
  }
}

function isStoreDamage(thrown: unknown): thrown is Fault {
  return thrown instanceof Fault && thrown.code === 'STORE_DAMAGED';
}

/** Returns the status that reports a session which cannot be read. Its `turnId` is the session id. */
function damagedStatus(sessionId: string, { code, message }: Fault): TurnStatus {
  const error = { code, message };
  return { turnId: sessionId, sessionId, loopId: '', loopVersion: '', status: 'error', startedAt: isoTime(0), error };
}

function turnNotFoundError(id: string): LoopError {
  return new LoopError('TURN_NOT_FOUND', `There is no turn or session "${id}" in the store.`, { id });
}
