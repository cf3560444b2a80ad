/** What a store holds of turns: read without claiming a session, so it can be asked while a turn runs. */
import { Fault, LoopError } from '../base/errors.js';
import { fetchValue } from '../journal/fetch.js';
import type { Store } from '../journal/store.js';
import type { Outcome } from '../kernel/attempt.js';
import type { Approval } from '../protocol/approval.js';
import type { Entry } from '../protocol/entry.js';
import type { EventEnvelope } from '../protocol/events.js';
import type { TraceEvent, TurnResult, TurnStatus } from '../protocol/trace.js';
import { Approvals } from '../views/approvals.js';
import { conversationOf } from '../views/conversation.js';
import { iso } from '../views/time.js';
import { traceOf } from '../views/trace.js';
import { statusOf, type Turn, Turns } from '../views/turns.js';
import { type Identity, resultOf, sessionOf } from './result.js';

/** A turn as it was found in the store. */
export interface Known {
  readonly identity: Identity;
  readonly turn: Turn;
  readonly entries: readonly Entry[];
}

/** What is running: turns of this process, and what any process has written that may not be stored yet. */
export interface Running {
  has(turnId: string): boolean;
  /** Entries of a session from this one on. */
  unstored(sessionId: string, from: number): Promise<readonly Entry[]>;
}

type Runners = ReadonlyMap<string, { readonly pid: number }>;

export class Archive {
  private readonly store: Store;
  private readonly running: Running;

  constructor(store: Store, running: Running) {
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
        if (session !== undefined || !isDamage(thrown)) throw thrown;
        all.push(damaged(name, thrown));
      }
    }
    return all.sort((a, b) => a.startedAt.localeCompare(b.startedAt));
  }

  /** The processes that work on turns, by turn. */
  private async runners(): Promise<Runners> {
    return new Map((await this.store.leases.list()).map(({ turn, pid }) => [turn, { pid }]));
  }

  private runnerOf(turnId: string, runners: Runners): { readonly pid?: number } | undefined {
    return runners.get(turnId) ?? (this.running.has(turnId) ? {} : undefined);
  }

  private async turnsOf(session: string, runners: Runners): Promise<readonly TurnStatus[]> {
    const turns = new Turns();
    for await (const batch of this.store.journal.read(session, 0)) for (const entry of batch) turns.apply(entry);
    return turns.roots().flatMap((root) => {
      const turn = turns.get(root);
      return turn === undefined ? [] : [statusOf(session, root, turn, this.runnerOf(root, runners))];
    });
  }

  /** The turn of this id, or all turns of the session of this id. */
  async status(id: string): Promise<readonly TurnStatus[]> {
    const known = await this.known(id);
    if (known !== undefined) {
      const runner = this.runnerOf(id, await this.runners());
      return [statusOf(known.identity.sessionId, id, known.turn, runner)];
    }
    const turns = await this.turns(id);
    if (turns.length === 0) throw unknownTurn(id);
    return turns;
  }

  async trace(turnId: string): Promise<readonly TraceEvent[]> {
    const { entries } = await this.require(turnId);
    return traceOf(turnId, entries);
  }

  /** What a turn came to, as its caller got it; undefined while it has not ended. */
  async result(turnId: string): Promise<TurnResult | undefined> {
    const { identity, turn, entries } = await this.require(turnId);
    const { ended } = turn;
    if (ended === undefined) return undefined;
    const outcome: Outcome =
      ended.error === undefined ? { status: 'ok', output: ended.value } : { status: 'error', error: ended.error };
    return resultOf(identity, outcome, entries, ended.at);
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
        if (session !== undefined || !isDamage(thrown)) throw thrown;
      }
    }
    return all;
  }

  /** What is known of the approvals of a turn's session; undefined if there is no such turn. */
  async approvalsIn(turnId: string): Promise<Approvals | undefined> {
    const known = await this.known(turnId);
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
    for await (const batch of this.store.journal.read(sessionOf(turnId), 0)) {
      if (batch.some(({ key, type }) => key === turnId && type === 'call.started')) return true;
    }
    return false;
  }

  async known(turnId: string): Promise<Known | undefined> {
    const sessionId = sessionOf(turnId);
    if (sessionId === '') return undefined;
    const entries: Entry[] = [];
    const turns = new Turns();
    for await (const entry of this.entriesOf(sessionId)) {
      turns.apply(entry);
      entries.push(entry);
    }
    const turn = turns.get(turnId);
    if (turn === undefined) return undefined;
    const { name: loopId = '', version: loopVersion = '' } = turn.started;
    return { identity: { sessionId, turnId, loopId, loopVersion }, turn, entries };
  }

  async require(turnId: string): Promise<Known> {
    const known = await this.known(turnId);
    if (known === undefined) throw unknownTurn(turnId);
    return known;
  }

  /** The definitions that a turn was begun with, as they were kept. */
  async pinText({ identity, turn }: Known): Promise<string | undefined> {
    const { digest } = turn.started;
    return digest === undefined ? undefined : this.store.blobs.get(identity.sessionId, digest);
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
    for (const entry of await this.running.unstored(session, next)) yield entry;
  }
}

/** Whether a session cannot be read, which keeps no other from being told of. */
function isDamage(thrown: unknown): thrown is Fault {
  return thrown instanceof Fault && thrown.code === 'STORE_DAMAGED';
}

/** What can be told of a session that cannot be read: its name, and what is wrong. */
function damaged(sessionId: string, { code, message }: Fault): TurnStatus {
  const error = { code, message };
  return { turnId: sessionId, sessionId, loopId: '', loopVersion: '', status: 'error', startedAt: iso(0), error };
}

function unknownTurn(id: string): LoopError {
  return new LoopError('TURN_NOT_FOUND', `There is no turn or session "${id}" in the store.`, { id });
}
