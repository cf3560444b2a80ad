/**
 * Reads turns, results, traces and approvals from a store. It claims no session, so it can read while turns run, in
 * this process or another one. It includes the entries of running turns that are written but not stored yet.
 */
import { Fault, LoopError } from '../base/errors.js';
import { ownText } from '../base/own-property.js';
import { fetchValue } from '../journal/fetch-value.js';
import { isReservedSession } from '../journal/reserved-sessions.js';
import type { Store } from '../journal/store.js';
import type { Approval } from '../protocol/approval.js';
import type { Entry } from '../protocol/entry.js';
import type { EventEnvelope } from '../protocol/events.js';
import type { RunOutcome } from '../protocol/session.js';
import type { TraceEvent, TurnResult, TurnStatus } from '../protocol/trace.js';
import { type ApprovalRecord, approvalRecordsOf } from '../views/approval-records.js';
import { Approvals } from '../views/approvals.js';
import { type CallDetails, callDetailsOf } from '../views/call-details.js';
import { conversationOf } from '../views/conversation.js';
import { withoutReopenedEnds } from '../views/failure-path.js';
import { isoTime } from '../views/iso-time.js';
import { traceOf } from '../views/trace.js';
import { recordedStopOf, type TurnSummary, Turns, turnStatusOf } from '../views/turns.js';
import type { EntryTail } from './follow-entries.js';
import { withReceipt } from './receipts/sealing.js';
import { sessionIdOf, type TurnIdentity, turnResultOf } from './turn-result.js';

/** A stored turn and all entries of its session. */
export interface StoredTurn {
  readonly identity: TurnIdentity;
  readonly turn: TurnSummary;
  readonly entries: readonly Entry[];
}

/** What the archive needs to know of running turns. */
interface RunningTurns {
  /** Returns the turns that run in this process. */
  list(): readonly RunningTurnRef[];
  /**
   * Returns the entries of the running turn of a session, in any process, from sequence number `from` on. Some may not
   * be stored yet.
   */
  unstoredEntries(sessionId: string, from: number): Promise<readonly Entry[]>;
}

/** A turn that runs in this process. */
interface RunningTurnRef {
  readonly sessionId: string;
  readonly turnId: string;
}

/** The turn that some process runs in a session. `pid` is absent if the store has no leases. */
interface TurnRunner {
  readonly turnId: string;
  readonly pid?: number;
}

/** The running turns of all processes, by session. */
type TurnRunners = ReadonlyMap<string, TurnRunner>;

/** Read access to the turns of a store. */
export class Archive {
  private readonly store: Store;
  private readonly running: RunningTurns;
  private readonly now: () => number;

  /** `now` returns the wall-clock time in milliseconds since the epoch. */
  constructor(store: Store, running: RunningTurns, now: () => number) {
    this.store = store;
    this.running = running;
    this.now = now;
  }

  /**
   * Returns the status of all turns, or of the turns of one session, oldest first. A damaged session is one item with
   * the status `error`, or throws STORE_DAMAGED if it is requested by name.
   */
  async turns(session?: string): Promise<readonly TurnStatus[]> {
    const runners = await this.runners();
    const names = session === undefined ? await this.sessionNames(runners) : [session];
    const all: TurnStatus[] = [];
    for (const name of names) {
      try {
        all.push(...(await this.turnsOf(name, runners.get(name))));
      } catch (thrown) {
        // A damaged session must not hide the others. It is an error only if it is requested by name.
        if (session !== undefined || !isStoreDamage(thrown)) throw thrown;
        all.push(damagedStatus(name, thrown));
      }
    }
    return all.sort((a, b) => a.startedAt.localeCompare(b.startedAt));
  }

  /** Returns the names of the stored sessions and of those with a running turn, which may have no stored entry yet. */
  private async sessionNames(runners: TurnRunners): Promise<Iterable<string>> {
    const names = new Set((await this.store.journal.list()).map(({ session }) => session));
    for (const name of names) if (isReservedSession(name)) names.delete(name);
    for (const session of runners.keys()) names.add(session);
    return names;
  }

  private async runners(): Promise<TurnRunners> {
    const runners = new Map<string, TurnRunner>();
    for (const { sessionId, turnId } of this.running.list()) runners.set(sessionId, { turnId });
    // A lease of a hosted loop names the loop in place of a turn.
    // guard: reserved-lease-is-no-turn
    for (const { session, turn, pid } of await this.store.leases.list())
      if (!isReservedSession(session)) runners.set(session, { turnId: turn, pid });
    return runners;
  }

  private async turnsOf(session: string, runner: TurnRunner | undefined): Promise<readonly TurnStatus[]> {
    let turns = await this.readTurns(session, runner !== undefined);
    const isUnknown = (): boolean => runner !== undefined && turns.get(runner.turnId) === undefined;
    // A turn that ended between the two reads is neither in the first nor among the unstored entries.
    if (isUnknown()) turns = await this.readTurns(session, true);
    const all = turns.turnIds().flatMap((root) => {
      const turn = turns.get(root);
      return turn === undefined
        ? []
        : [turnStatusOf(session, root, turn, runner?.turnId === root ? runner : undefined)];
    });
    return isUnknown() && runner !== undefined ? [...all, ...(await this.unansweredStatus(session, runner))] : all;
  }

  /** Folds the turns of a session. `withUnstored` adds the entries of its running turn, from the process that runs it. */
  private async readTurns(session: string, withUnstored: boolean): Promise<Turns> {
    const turns = new Turns();
    let nextSeq = 0;
    for await (const batch of this.store.journal.read(session, 0)) {
      for (const entry of batch) turns.apply(entry);
      nextSeq = (batch.at(-1)?.seq ?? nextSeq - 1) + 1;
    }
    if (withUnstored) for (const entry of await this.running.unstoredEntries(session, nextSeq)) turns.apply(entry);
    return turns;
  }

  /**
   * Returns the status of a turn without a stored entry whose process does not answer, because a body blocks it; none
   * if the process has released the session. Its loop is unknown, and its start is the time of this reading.
   */
  private async unansweredStatus(sessionId: string, { turnId, pid }: TurnRunner): Promise<readonly TurnStatus[]> {
    if ((await this.runners()).get(sessionId)?.turnId !== turnId) return [];
    const startedAt = isoTime(this.now());
    const loop = { loopId: '', loopVersion: '' };
    return [{ turnId, sessionId, ...loop, status: 'running', startedAt, ...(pid !== undefined && { pid }) }];
  }

  /**
   * Returns the status of the turn with this id, or of all turns of the session with this id. Throws TURN_NOT_FOUND if
   * there is neither.
   */
  async status(id: string): Promise<readonly TurnStatus[]> {
    const stored = await this.find(id);
    if (stored !== undefined) {
      const { sessionId } = stored.identity;
      const runner = (await this.runners()).get(sessionId);
      return [turnStatusOf(sessionId, id, stored.turn, runner?.turnId === id ? runner : undefined)];
    }
    const turns = await this.turns(id);
    if (turns.length > 0) return turns;
    // A turn whose process does not answer is known by its lease only.
    const sessionId = sessionIdOf(id);
    const started = sessionId === '' ? [] : (await this.turns(sessionId)).filter(({ turnId }) => turnId === id);
    if (started.length === 0) throw turnNotFoundError(id);
    return started;
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
    return recordedResult(identity, outcome, entries, endedEntry.at);
  }

  /**
   * Returns the result of a turn that has ended or waits for something; undefined for one that was interrupted. The turn
   * must not be running. Throws TURN_NOT_FOUND.
   */
  async restingResult(turnId: string): Promise<TurnResult | undefined> {
    const ended = await this.result(turnId);
    if (ended !== undefined) return ended;
    const { identity, turn, entries } = await this.get(turnId);
    const { stoppedEntry } = turn;
    if (stoppedEntry !== undefined) {
      const outcome: RunOutcome = { status: 'stopped', stop: recordedStopOf(stoppedEntry) };
      return recordedResult(identity, outcome, entries, stoppedEntry.at);
    }
    if (turn.pending.length === 0) return undefined;
    const paused = recordedResult(identity, { status: 'paused', pending: [] }, entries, entries.at(-1)?.at ?? 0);
    return Object.defineProperty(paused, 'pending', { value: turn.pending, enumerable: true });
  }

  /**
   * Returns the pending approvals of all sessions or of one. A damaged session is skipped, or throws STORE_DAMAGED if
   * it is requested by name.
   */
  async approvals(session?: string): Promise<readonly Approval[]> {
    const names = session === undefined ? await this.sessionNames(await this.runners()) : [session];
    const all: Approval[] = [];
    for (const name of names) {
      const approvals = new Approvals(name);
      try {
        for (const entry of await this.entries(name)) approvals.apply(entry);
        all.push(...approvals.pending());
      } catch (thrown) {
        if (session !== undefined || !isStoreDamage(thrown)) throw thrown;
      }
    }
    return all;
  }

  /** Returns the ids of all approvals that were ever requested. Damaged sessions are skipped. */
  async approvalIds(): Promise<readonly string[]> {
    const ids = new Set<string>();
    for (const name of await this.sessionNames(await this.runners())) {
      try {
        for (const { type, value } of await this.entries(name))
          if (type === 'rondo.approval.requested') ids.add(ownText(value, 'id'));
      } catch (thrown) {
        if (!isStoreDamage(thrown)) throw thrown;
      }
    }
    return [...ids];
  }

  /** Returns the approvals of a turn with their answers, in the order of their requests. Throws TURN_NOT_FOUND. */
  async approvalRecords(turnId: string): Promise<readonly ApprovalRecord[]> {
    const { identity, entries } = await this.get(turnId);
    return approvalRecordsOf(identity.sessionId, turnId, entries);
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

  /**
   * Returns the entries of a session; empty for an unknown one. Values that are stored as blobs are loaded. The ends of
   * calls that a retry reopened are left out.
   */
  async entries(sessionId: string): Promise<readonly Entry[]> {
    const entries: Entry[] = [];
    for await (const entry of this.entriesOf(sessionId)) entries.push(entry);
    return withoutReopenedEnds(entries);
  }

  /** Returns the stored entries of a session exactly as they were written, with the values that are stored as blobs. */
  async storedEntriesOf(sessionId: string): Promise<readonly Entry[]> {
    const entries: Entry[] = [];
    for await (const entry of this.storedEntries(sessionId, 0)) entries.push(entry);
    return entries;
  }

  /** Returns the ids of all stored sessions, except those of the runtime itself. */
  async sessionIds(): Promise<readonly string[]> {
    return [...(await this.sessionNames(new Map()))];
  }

  /** Returns the entries of a session from sequence number `from` on: those in the store, and those not stored yet. */
  async tail(sessionId: string, from: number): Promise<EntryTail> {
    const stored: Entry[] = [];
    for await (const entry of this.storedEntries(sessionId, from)) stored.push(entry);
    return { stored, unstored: await this.running.unstoredEntries(sessionId, from + stored.length) };
  }

  /** Returns the calls of a turn with their inputs, prompts, replies and outputs. Throws TURN_NOT_FOUND. */
  async calls(turnId: string): Promise<readonly CallDetails[]> {
    const { entries } = await this.get(turnId);
    return callDetailsOf(turnId, entries);
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
    return { identity: { sessionId, turnId, loopId, loopVersion }, turn, entries: withoutReopenedEnds(entries) };
  }

  /** Returns the turn with this id. Throws TURN_NOT_FOUND if there is none. */
  async get(turnId: string): Promise<StoredTurn> {
    const stored = await this.find(turnId);
    if (stored === undefined) throw turnNotFoundError(turnId);
    return stored;
  }

  /** True if the store has the definitions with this digest, of turns of a session, as they were. */
  async hasDefinitions(sessionId: string, digest: string): Promise<boolean> {
    const text = await this.store.blobs.get(sessionId, digest).catch((thrown: unknown) => {
      if (!isStoreDamage(thrown)) throw thrown;
      return undefined;
    });
    return text !== undefined;
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
    for await (const entry of this.storedEntries(session, 0)) {
      nextSeq = entry.seq + 1;
      yield entry;
    }
    for (const entry of await this.running.unstoredEntries(session, nextSeq)) yield entry;
  }

  private async *storedEntries(session: string, from: number): AsyncGenerator<Entry> {
    for await (const batch of this.store.journal.read(session, from)) {
      for (const entry of batch) {
        const value = entry.blob === undefined ? undefined : await fetchValue(this.store.blobs, session, entry);
        yield value === undefined ? entry : { ...entry, value };
      }
    }
  }
}

/** Returns the result of a turn from its entries, with the id of its last receipt, as a run of the turn returns it. */
function recordedResult(
  identity: TurnIdentity,
  outcome: RunOutcome,
  entries: readonly Entry[],
  endedAt: number,
): TurnResult {
  return withReceipt(turnResultOf(identity, outcome, entries, endedAt), { turnId: identity.turnId, entries });
}

/** True if an error says that the store is damaged where it was read. */
export function isStoreDamage(thrown: unknown): thrown is Fault {
  return thrown instanceof Fault && thrown.code === 'STORE_DAMAGED';
}

/** Returns the status that reports a session which cannot be read. Its `turnId` is the session id. */
function damagedStatus(sessionId: string, { code, message }: Fault): TurnStatus {
  const error = { code, message };
  return { turnId: sessionId, sessionId, loopId: '', loopVersion: '', status: 'error', startedAt: isoTime(0), error };
}

/** Returns the error for an id that no turn and no session has. */
export function turnNotFoundError(id: string): LoopError {
  return new LoopError('TURN_NOT_FOUND', `There is no turn or session "${id}" in the store.`, { id });
}
