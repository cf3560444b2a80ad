/**
 * The verification of the receipts of each session: their order, their chain, the ends of turns, and what is missing.
 * Order comes from sequence numbers and hashes, never from times. The log may have got a receipt later than the next one.
 */
import type { Checkpoint, CheckpointSession } from '../../protocol/receipt.js';
import type { Findings } from './findings.js';
import type { ReadReceipt } from './verify-envelope.js';

/** What is known about the receipts of a session. */
interface SessionState {
  readonly id: string;
  last: ReadReceipt | undefined;
  count: number;
  /** True if the first receipt is there, and no receipt between the first and the last is missing. */
  isGapless: boolean;
  isClosed: boolean;
  /** The last sequence number of the entries that the receipts of a turn cover, and whether it has ended. */
  readonly turns: Map<string, { coveredTo: number; isEnded: boolean }>;
}

/**
 * Verifies the receipts of a bundle, in their order. Returns how many sessions it has. `isFile` is false for those of a
 * store, whose log says what is missing.
 */
export function verifySessions(
  receipts: readonly ReadReceipt[],
  checkpoint: Checkpoint | undefined,
  isFile: boolean,
  findings: Findings,
): number {
  const sessions = new Map<string, SessionState>();
  let current: SessionState | undefined;
  for (const receipt of receipts) {
    const { session } = receipt.statement.predicate;
    if (session !== current?.id) {
      // Sessions are sorted, so that a bundle has one form.
      if (current !== undefined && session < current.id)
        findings.add('chain', 'receipts_out_of_order', `session "${session}"`);
      current = sessions.get(session) ?? newSession(session);
      sessions.set(session, current);
    }
    applyReceipt(current, receipt, findings);
  }
  verifyHostedTurns(receipts, isFile, findings);
  const listed = checkpoint === undefined ? undefined : new Map(checkpoint.sessions.map((each) => [each.id, each]));
  if (listed !== undefined) compareWithList(sessions, listed, findings);
  for (const { id, isGapless, isClosed } of sessions.values()) {
    if (!isGapless) findings.add('completeness', 'receipts_missing', `session "${id}"`);
    // guard: open-session-is-no-end
    if (!isClosed) findings.doubt('session_open', `session "${id}" is not closed`);
  }
  return sessions.size;
}

function newSession(id: string): SessionState {
  return { id, last: undefined, count: 0, isGapless: true, isClosed: false, turns: new Map() };
}

function applyReceipt(state: SessionState, receipt: ReadReceipt, findings: Findings): void {
  const { sequence, previous, state: outcome } = receipt.statement.predicate;
  const name = `session "${state.id}", receipt ${sequence}`;
  const expected = state.last === undefined ? 0 : state.last.statement.predicate.sequence + 1;
  // guard: receipts-in-order
  if (sequence < expected) findings.add('chain', 'receipts_out_of_order', name);
  // guard: gap-noticed
  if (sequence > expected) state.isGapless = false;
  // guard: chain-verified
  else if (previous !== state.last?.hash) findings.add('chain', 'chain_broken', name);
  // guard: nothing-after-closed
  if (state.isClosed) findings.add('chain', 'receipt_after_closed', name);
  applyTurn(state, receipt, name, findings);
  state.isClosed ||= outcome === 'closed';
  state.count += 1;
  state.last = receipt;
}

function applyTurn({ turns }: SessionState, { statement }: ReadReceipt, name: string, findings: Findings): void {
  const { turn, final, journal, reopened } = statement.predicate;
  if (turn === '') return;
  const known = turns.get(turn) ?? { coveredTo: -1, isEnded: false };
  // guard: nothing-after-final
  if (known.isEnded && reopened !== true) findings.add('chain', 'receipt_after_final', name);
  if (!known.isEnded && reopened === true) findings.add('chain', 'reopened_open_turn', name);
  if (journal.count > 0) {
    if (journal.from <= known.coveredTo) findings.add('chain', 'journal_overlap', name);
    known.coveredTo = journal.to;
  }
  known.isEnded = final;
  turns.set(turn, known);
}

/**
 * Verifies that each turn of a hosted loop names the final receipt of the turn before, as far as that is there, and that
 * no two turns have the same number. An export is of one session, which is one turn, or of all sessions: a file with
 * several turns of a loop has the receipt that each of them names.
 */
function verifyHostedTurns(receipts: readonly ReadReceipt[], isFile: boolean, findings: Findings): void {
  const turns = new Map<string, { readonly turn: string; hash?: string }>();
  const numbers = new Map<string, Set<number>>();
  for (const { hash, statement } of receipts) {
    const { hosted, turn, final } = statement.predicate;
    if (hosted === undefined) continue;
    const key = `${hosted.loop}#${hosted.turn}`;
    const known = turns.get(key) ?? { turn };
    // guard: hosted-turn-has-one-session
    if (known.turn !== turn) findings.add('chain', 'chain_broken', `${key} is both ${known.turn} and ${turn}`);
    turns.set(key, final ? { turn, hash } : known);
    numbers.set(hosted.loop, (numbers.get(hosted.loop) ?? new Set()).add(hosted.turn));
  }
  for (const { statement } of receipts) {
    const { hosted } = statement.predicate;
    if (hosted === undefined) continue;
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
    const present = session?.last === undefined ? 0 : session.last.statement.predicate.sequence + 1;
    // guard: listed-receipts-expected
    if (present < count)
      findings.add('completeness', 'receipts_missing', `session "${id}": ${count - present} at its end`);
    else if (
      present > count ||
      (session !== undefined && (session.last?.hash !== head || session.isClosed !== isClosed))
    )
      findings.add('checkpoint', 'checkpoint_mismatch', `session "${id}"`);
  }
}
