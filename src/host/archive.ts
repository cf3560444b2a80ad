/** What a store holds of turns: read without claiming a session, so it can be asked while a turn runs. */
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

/** A turn as it was found in the store. */
export interface StoredTurn {
  readonly identity: TurnIdentity;
  readonly turn: TurnSummary;
  readonly entries: readonly Entry[];
}

/** What is running: turns of this process, and what any process has written that may not be stored yet. */
export interface RunningTurns {
  has(turnId: string): boolean;
  /** Entries of a session from this one on. */
  unstoredEntries(sessionId: string, from: number): Promise<readonly Entry[]>;
}

type TurnRunners = ReadonlyMap<string, { readonly pid: number }>;

export class Archive {
  private readonly store: Store;
  private readonly running: RunningTurns;

  constructor(store: Store, running: RunningTurns) {
    this.store = store;
    this.running = running;
  }

  /** How all turns of the store stand, or those of one session, oldest first. */
  async turns(session?: string): Promise<readonly TurnStatus[]> {
    const names = session === undefined ? (await this.store.journal.list()).map((item) => item.session) : [session];
    const runners = await this.runners();
    const all: TurnStatus[] = [];
    for (const name of names) {
      try {
        all.push(...(await this.turnsOf(name, runners)));
      } catch (thrown) {
        // A session that is damaged keeps no other from being told of; asked for by its name, it is refused.
        if (session !== undefined || !isStoreDamage(thrown)) throw thrown;
        all.push(damagedStatus(name, thrown));
      }
    }
    return all.sort((a, b) => a.startedAt.localeCompare(b.startedAt));
  }

  /** The processes that work on turns, by turn. */
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

  /** The turn of this id, or all turns of the session of this id. */
  async status(id: string): Promise<readonly TurnStatus[]> {
    const known = await this.find(id);
    if (known !== undefined) {
      const runner = this.runnerOf(id, await this.runners());
      return [turnStatusOf(known.identity.sessionId, id, known.turn, runner)];
    }
    const turns = await this.turns(id);
    if (turns.length === 0) throw turnNotFoundError(id);
    return turns;
  }

  async trace(turnId: string): Promise<readonly TraceEvent[]> {
    const { entries } = await this.get(turnId);
    return traceOf(turnId, entries);
  }

  /** What a turn came to, as its caller got it; undefined while it has not ended. */
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

  /** What waits for an answer, in all sessions or in one. */
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

  /** What is known of the approvals of a turn's session; undefined if there is no such turn. */
  async approvalsIn(turnId: string): Promise<Approvals | undefined> {
    const known = await this.find(turnId);
    if (known === undefined) return undefined;
    const approvals = new Approvals(known.identity.sessionId);
    for (const entry of known.entries) approvals.apply(entry);
    return approvals;
  }

  /** The session as envelopes. */
  async events(sessionId: string): Promise<readonly EventEnvelope[]> {
    return conversationOf(sessionId, await this.entries(sessionId));
  }

  /** All entries of a session, each with its value. */
  async entries(sessionId: string): Promise<readonly Entry[]> {
    const entries: Entry[] = [];
    for await (const entry of this.entriesOf(sessionId)) entries.push(entry);
    return entries;
  }

  /** True if the store holds a turn of this id. */
  async has(turnId: string): Promise<boolean> {
    for await (const batch of this.store.journal.read(sessionIdOf(turnId), 0)) {
      if (batch.some(({ key, type }) => key === turnId && type === 'call.started')) return true;
    }
    return false;
  }

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

  async get(turnId: string): Promise<StoredTurn> {
    const known = await this.find(turnId);
    if (known === undefined) throw turnNotFoundError(turnId);
    return known;
  }

  /** The definitions that a turn was begun with, as they were kept. */
  async pinnedText({ identity, turn }: StoredTurn): Promise<string | undefined> {
    const { definitionDigest } = turn.startedEntry;
    return definitionDigest === undefined ? undefined : this.store.blobs.get(identity.sessionId, definitionDigest);
  }

  /** A session's entries, each with its value; those of a turn that runs are included before they are stored. */
  private async *entriesOf(session: string): AsyncGenerator<Entry> {
    let next = 0;
    for await (const batch of this.store.journal.read(session, 0)) {
      for (const entry of batch) {
        next = entry.seq + 1;
        const value = entry.blob === undefined ? undefined : await fetchValue(this.store.blobs, session, entry);
        yield value === undefined ? entry : { ...entry, value };
      }
    }
    for (const entry of await this.running.unstoredEntries(session, next)) yield entry;
  }
}

/** Whether a session cannot be read, which keeps no other from being told of. */
function isStoreDamage(thrown: unknown): thrown is Fault {
  return thrown instanceof Fault && thrown.code === 'STORE_DAMAGED';
}

/** What can be told of a session that cannot be read: its name, and what is wrong. */
function damagedStatus(sessionId: string, { code, message }: Fault): TurnStatus {
  const error = { code, message };
  return { turnId: sessionId, sessionId, loopId: '', loopVersion: '', status: 'error', startedAt: isoTime(0), error };
}

function turnNotFoundError(id: string): LoopError {
  return new LoopError('TURN_NOT_FOUND', `There is no turn or session "${id}" in the store.`, { id });
}
