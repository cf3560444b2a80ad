/**
 * The verification of the receipts of each session: their order, their chain, the ends of turns, and what is missing.
 * Order comes from sequence numbers and hashes, never from times. The log may have got a receipt later than the next one.
 */
import type { Checkpoint, CheckpointSession, ReceiptPredicate } from '../../protocol/receipt.js';
import type { Findings } from './findings.js';
import type { ReadReceipt } from './verify-envelope.js';

/** What is known about the receipts of a session. Only of the current one, its turns. */
interface SessionState {
  readonly id: string;
  /** How many receipts it has at least: one more than the sequence of its last one. */
  count: number;
  /** The hash of its last receipt; undefined before the first one. */
  head: string | undefined;
  /** True if the first receipt is there, and no receipt between the first and the last is missing. */
  isGapless: boolean;
  isClosed: boolean;
}

/** The last sequence number of the entries that the receipts of a turn cover, and whether it has ended. */
interface TurnState {
  coveredTo: number;
  isEnded: boolean;
}

/** A receipt of a turn of a hosted loop. */
interface HostedReceipt {
  readonly hash: string;
  readonly hosted: NonNullable<ReceiptPredicate['hosted']>;
  readonly turn: string;
  readonly final: boolean;
}

/** Verifies the receipts of a bundle, which are added in its order. It keeps little of them. */
export class SessionChains {
  private readonly findings: Findings;
  private readonly sessions = new Map<string, SessionState>();
  private readonly hosted: HostedReceipt[] = [];
  private current: SessionState | undefined;
  private turns = new Map<string, TurnState>();

  constructor(findings: Findings) {
    this.findings = findings;
  }

  /** How many sessions the receipts are of. */
  get size(): number {
    return this.sessions.size;
  }

  /** Adds the next receipt. Returns false if it is not after the one before: the bundle has more than one order. */
  add({ statement, hash }: ReadReceipt): boolean {
    const { session, sequence, hosted, turn, final } = statement.predicate;
    const isNext = this.current === undefined || session > this.current.id;
    const state = !isNext && session === this.current?.id ? this.current : newSession(session);
    const isSorted = isNext || (state === this.current && sequence >= state.count);
    // guard: receipts-in-order
    if (!isSorted) {
      this.findings.add('chain', 'receipts_out_of_order', `session "${session}", receipt ${sequence}`);
      return false;
    }
    if (isNext) {
      this.sessions.set(session, state);
      this.current = state;
      this.turns = new Map();
    }
    if (hosted !== undefined) this.hosted.push({ hash, hosted, turn, final });
    this.addToSession(state, statement.predicate);
    state.head = hash;
    return true;
  }

  private addToSession(state: SessionState, predicate: ReceiptPredicate): void {
    const { sequence, previous, state: outcome } = predicate;
    const name = `session "${state.id}", receipt ${sequence}`;
    // guard: gap-noticed
    if (sequence > state.count) state.isGapless = false;
    // guard: chain-verified
    else if (previous !== state.head) this.findings.add('chain', 'chain_broken', name);
    // guard: nothing-after-closed
    if (state.isClosed) this.findings.add('chain', 'receipt_after_closed', name);
    this.addToTurn(predicate, name);
    state.isClosed ||= outcome === 'closed';
    state.count = sequence + 1;
  }

  private addToTurn({ turn, final, journal, reopened }: ReceiptPredicate, name: string): void {
    if (turn === '') return;
    const known = this.turns.get(turn) ?? { coveredTo: -1, isEnded: false };
    // guard: nothing-after-final
    if (known.isEnded && reopened !== true) this.findings.add('chain', 'receipt_after_final', name);
    if (!known.isEnded && reopened === true) this.findings.add('chain', 'reopened_open_turn', name);
    if (journal.count > 0) {
      if (journal.from <= known.coveredTo) this.findings.add('chain', 'journal_overlap', name);
      known.coveredTo = journal.to;
    }
    known.isEnded = final;
    this.turns.set(turn, known);
  }

  /**
   * Verifies what only all receipts show. `isFile` is false for those of a store, whose log says what is missing.
   */
  finish(checkpoint: Checkpoint | undefined, isFile: boolean): void {
    const { findings, sessions } = this;
    verifyHostedTurns(this.hosted, isFile, findings);
    const listed = checkpoint === undefined ? undefined : new Map(checkpoint.sessions.map((each) => [each.id, each]));
    if (listed !== undefined) compareWithList(sessions, listed, findings);
    for (const { id, isGapless, isClosed } of sessions.values()) {
      if (!isGapless) findings.add('completeness', 'receipts_missing', `session "${id}"`);
      // guard: open-session-is-no-end
      if (!isClosed) findings.doubt('session_open', `session "${id}" is not closed`);
    }
  }
}

function newSession(id: string): SessionState {
  return { id, count: 0, head: undefined, isGapless: true, isClosed: false };
}

/**
 * Verifies that each turn of a hosted loop names the final receipt of the turn before, as far as that is there, and that
 * no two turns have the same number. An export is of one session, which is one turn, or of all sessions: a file with
 * several turns of a loop has the receipt that each of them names.
 */
function verifyHostedTurns(receipts: readonly HostedReceipt[], isFile: boolean, findings: Findings): void {
  const turns = new Map<string, { readonly turn: string; hash?: string }>();
  const numbers = new Map<string, Set<number>>();
  for (const { hash, hosted, turn, final } of receipts) {
    const key = `${hosted.loop}#${hosted.turn}`;
    const known = turns.get(key) ?? { turn };
    // guard: hosted-turn-has-one-session
    if (known.turn !== turn) findings.add('chain', 'chain_broken', `${key} is both ${known.turn} and ${turn}`);
    turns.set(key, final ? { turn, hash } : known);
    numbers.set(hosted.loop, (numbers.get(hosted.loop) ?? new Set()).add(hosted.turn));
  }
  for (const { hosted } of receipts) {
    const { loop, turn, previous } = hosted;
    const before = turns.get(`${loop}#${turn - 1}`)?.hash;
    // guard: hosted-chain-verified
    if ((turn === 1) !== (previous === undefined) || (before !== undefined && previous !== `sha256:${before}`))
      findings.add('chain', 'chain_broken', `${loop}#${turn} does not name the receipt of the turn before`);
    const isOneOfSeveral = (numbers.get(loop)?.size ?? 0) > 1;
    // guard: hosted-gap-noticed
    if (isFile && isOneOfSeveral && turn > 1 && before === undefined)
      findings.add('completeness', 'receipts_missing', `${loop}#${turn} names a receipt of ${loop}#${turn - 1}`);
  }
}

/** Compares the sessions with the signed list of contents. */
function compareWithList(
  sessions: ReadonlyMap<string, SessionState>,
  listed: ReadonlyMap<string, CheckpointSession>,
  findings: Findings,
): void {
  const unlisted = [...sessions.keys()].find((id) => !listed.has(id));
  // guard: unlisted-session-refused
  if (unlisted !== undefined) findings.add('checkpoint', 'session_not_listed', `session "${unlisted}"`);
  for (const { id, count, head, isClosed } of listed.values()) {
    const session = sessions.get(id);
    const present = session?.count ?? 0;
    // guard: listed-receipts-expected
    if (present < count)
      findings.add('completeness', 'receipts_missing', `session "${id}": ${count - present} at its end`);
    else if (present > count || (session !== undefined && (session.head !== head || session.isClosed !== isClosed)))
      findings.add('checkpoint', 'checkpoint_mismatch', `session "${id}"`);
  }
}
