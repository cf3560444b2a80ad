/**
 * The receipts of a store: lists, exports and verifies them, and closes sessions. It claims no session, except to close
 * it. Receipts that a crash kept out of the log are added to it first.
 */
import { Fault, LoopError } from '../../base/errors.js';
import { inclusionProofs, merkleRoot } from '../../base/merkle.js';
import { TrustedKeys } from '../../base/trusted-keys.js';
import type { Entry } from '../../protocol/entry.js';
import type { BundledReceipt, CheckpointScope, ReceiptState, ReceiptVerdict } from '../../protocol/receipt.js';
import { bundleBytes } from '../../views/receipt/bundle.js';
import { createCheckpoint } from '../../views/receipt/checkpoint.js';
import { logLeafOf, payloadOf } from '../../views/receipt/envelope.js';
import { Findings } from '../../views/receipt/findings.js';
import { RemovedLeaves, removalsOf } from '../../views/receipt/removed-sessions.js';
import { receiptsIn, type SealedReceipt } from '../../views/receipt/sealed-receipts.js';
import { parseStatement } from '../../views/receipt/statement.js';
import { entriesAfterClosed, unsealedTurns } from '../../views/receipt/unsealed-turns.js';
import { continuesWitness, type LogContents, logOrigin, verifyLogLeaves } from '../../views/receipt/verify-log.js';
import { verifyStore } from '../../views/receipt/verify-store.js';
import type { Archive } from '../archive.js';
import type { LogWitness, ReceiptKeys } from '../host-options.js';
import { logRewrittenFault } from './receipt-log.js';
import { receiptId, type Sealing } from './sealing.js';

/** A receipt in a list. */
export interface ReceiptListing {
  readonly id: string;
  readonly sessionId: string;
  /** Empty for the receipt that closes its session. */
  readonly turnId: string;
  readonly sequence: number;
  readonly loopId: string;
  readonly state: ReceiptState;
  readonly final: boolean;
  readonly reason?: string;
  readonly at: string;
  readonly effects: number;
}

/** Options of a verification. */
export interface ReceiptVerification {
  /** The keys that are trusted. @default those of the store */
  readonly trusted?: TrustedKeys | undefined;
  /** The recorded damage of the store that has not been accepted. @default none */
  readonly damage?: readonly string[] | undefined;
}

/** What the archive works with. */
interface ReceiptArchiveDeps {
  readonly archive: Archive;
  readonly keys: ReceiptKeys;
  readonly witness: LogWitness | undefined;
  readonly sealing: Sealing;
  /** Writes the terminal receipt of a session. */
  close(sessionId: string): Promise<SealedReceipt>;
}

/** The receipts of one store. */
export class ReceiptArchive {
  private readonly deps: ReceiptArchiveDeps;

  constructor(deps: ReceiptArchiveDeps) {
    this.deps = deps;
  }

  /** Lists the receipts of all sessions, or of one, in the order of their sessions. */
  async list(sessionId?: string): Promise<readonly ReceiptListing[]> {
    const ids = sessionId === undefined ? await this.sessionIds() : [sessionId];
    const all = await Promise.all(ids.map(async (id) => this.receiptsOf(id).then((each) => each.map(toListing(id)))));
    return all.flat().sort((a, b) => (a.at === b.at ? a.sequence - b.sequence : a.at < b.at ? -1 : 1));
  }

  /** Returns the sealed receipts of a session. */
  async receiptsOf(sessionId: string): Promise<readonly SealedReceipt[]> {
    return receiptsIn(await this.deps.archive.storedEntriesOf(sessionId));
  }

  /**
   * Returns the bundle of the receipts of sessions, with a new signed checkpoint, which is their list of contents. Throws
   * RECEIPT_NOT_FOUND if there are none, and a Fault with the code LOG_REWRITTEN if the log was removed or replaced.
   */
  async export(sessionIds?: readonly string[]): Promise<Buffer> {
    const { sessions, log } = await this.readContinued(sessionIds);
    const withReceipts = sessions.filter(({ receipts }) => receipts.length > 0);
    if (withReceipts.length === 0) throw new LoopError('RECEIPT_NOT_FOUND', 'There are no receipts to export.');
    const asOf = assertLogged(sessions, log, sessionIds === undefined);
    // guard: export-states-gaps
    const gaps = gapsOf(sessions, log, sessionIds);
    const note = await this.makeCheckpoint(log, withReceipts, { isWhole: sessionIds === undefined, asOf, gaps });
    return bundleBytes({ format: 'rondo.receipts.v1', checkpoint: note, receipts: bundled(log, withReceipts) });
  }

  /** Verifies the receipts of sessions, or of all, against the journal and the log of the store. */
  async verify(
    sessionIds: readonly string[] | undefined,
    { trusted, damage }: ReceiptVerification = {},
  ): Promise<ReceiptVerdict> {
    const keys = trusted ?? new TrustedKeys((await this.deps.keys.list()).keys);
    const { sessions, log, witness } = await this.read(sessionIds);
    const trust = trusted === undefined ? 'store' : 'file';
    const turnsWithoutDefinitions = await this.turnsWithoutDefinitions(sessions);
    const options = { trust, isWhole: sessionIds === undefined, witness, damage, turnsWithoutDefinitions } as const;
    return verifyStore(sessions, log, keys, options);
  }

  /**
   * Closes a session with its terminal receipt, after which no turn runs in it, makes a checkpoint, and returns the id of
   * the receipt. Throws SESSION_SEALED if a turn has not ended, TURN_NOT_FOUND for an unknown session, and a Fault with
   * the code LOG_REWRITTEN if the log was removed or replaced.
   */
  async close(sessionId: string): Promise<string> {
    const { sessions, log } = await this.readContinued([sessionId]);
    assertLogged(sessions, log, false);
    const receipt = await this.deps.close(sessionId);
    await this.makeCheckpoint((await this.readContinued([sessionId])).log, []);
    return receiptId(receipt);
  }

  /**
   * Makes a checkpoint of the log, and returns the number of its receipts: the position of the next one. Throws a Fault
   * with the code LOG_REWRITTEN if the log was removed or replaced.
   */
  async checkpoint(): Promise<number> {
    const { log } = await this.readContinued();
    if (log.storeId !== '') await this.makeCheckpoint(log, []);
    return log.leaves.length;
  }

  /**
   * Records in the log that a session is removed, if it has receipts, or did what no receipt covers. Call it before the
   * session is removed.
   */
  async recordRemoval(sessionId: string, by: string): Promise<void> {
    const sessions = await this.readSessions([sessionId]);
    const log = await this.caughtUpLog(sessions, await this.readLog());
    const gone = new RemovedLeaves(log);
    const count = log.leaves.filter(({ session, leaf }) => session === sessionId && !gone.has(leaf)).length;
    // A damaged session can be removed too: what it did is not known.
    const { entries, receipts } = sessions[0] as ReadSession;
    const unsealed = entries && unsealedTurns(entries).length;
    // guard: unsealed-removal-recorded
    if (count === 0 && unsealed === 0) return;
    const head = receipts.at(-1)?.hash ?? '';
    const removed = { session: sessionId, count, head, by, ...(unsealed !== undefined && { unsealed }) };
    await this.deps.sealing.log.recordRemoval(removed);
  }

  /** Resolves when all receipts of this host are in the log. */
  flush(): Promise<void> {
    return this.deps.sealing.flush();
  }

  private sessionIds(): Promise<readonly string[]> {
    return this.deps.archive.sessionIds();
  }

  private readSessions(ids: readonly string[]): Promise<readonly ReadSession[]> {
    const read = async (id: string): Promise<ReadSession> => {
      const entries = await this.deps.archive.storedEntriesOf(id).catch(() => undefined);
      return { id, entries, receipts: receiptsIn(entries ?? []) };
    };
    return Promise.all([...ids].sort((a, b) => (a < b ? -1 : 1)).map(read));
  }

  /** Leaves out the sessions that cannot be read because they were removed meanwhile. */
  private async withoutRemoved(sessions: readonly ReadSession[]): Promise<readonly ReadSession[]> {
    if (sessions.every(({ entries }) => entries !== undefined)) return sessions;
    const stored = new Set(await this.sessionIds());
    return sessions.filter(({ id, entries }) => entries !== undefined || stored.has(id));
  }

  /** Returns the turns of which the definitions are not in the store as they were. */
  private async turnsWithoutDefinitions(sessions: readonly ReadSession[]): Promise<readonly string[]> {
    const { archive } = this.deps;
    const lost = sessions.map(async ({ id, entries = [] }) => {
      const found = [...turnsByDefinition(entries)].map(async ([digest, turn]) =>
        (await archive.hasDefinitions(id, digest)) ? [] : [{ digest, turn }],
      );
      const missing = (await Promise.all(found)).flat();
      if (missing.length === 0) return [];
      const left = turnsByDefinition(await archive.storedEntriesOf(id).catch(() => entries));
      // guard: removed-session-lacks-no-definition
      return missing.flatMap(({ digest, turn }) => (left.has(digest) ? [turn] : []));
    });
    return (await Promise.all(lost)).flat();
  }

  /** Reads sessions, or all, and the log that new things are signed about: one that continues the witness. */
  private async readContinued(sessionIds?: readonly string[]): Promise<StoredReceipts> {
    const stored = await this.readSessionsAndLog(sessionIds);
    // guard: rewritten-log-not-signed
    if (!isContinued(stored)) throw logRewrittenFault();
    return { ...stored, log: await this.caughtUpLog(stored.sessions, stored.log) };
  }

  /** Reads sessions, or all, and the log that is verified. Nothing is added to one that is missing or was rewritten. */
  private async read(sessionIds: readonly string[] | undefined): Promise<StoredReceipts> {
    const stored = await this.readSessionsAndLog(sessionIds, emptyIfDamaged);
    if (stored.log.storeId === '' || !isContinued(stored)) return stored;
    return { ...stored, log: await this.caughtUpLog(stored.sessions, stored.log) };
  }

  /**
   * Reads the log, the sessions, and the log again. A receipt is in its session before it is in the log, so the sessions
   * have what the log had before they were read; what it got meanwhile may be missing in them.
   */
  private async readSessionsAndLog(
    sessionIds: readonly string[] | undefined,
    orElse: (thrown: unknown) => LogContents = rethrow,
  ): Promise<StoredReceipts> {
    // Read before the log: a process that makes a checkpoint meanwhile has added to the log before.
    const witness = await this.deps.witness?.read();
    const { expected } = await this.readLog().catch(orElse);
    const sessions = await this.withoutRemoved(await this.readSessions(sessionIds ?? (await this.sessionIds())));
    const log = { ...(await this.readLog().catch(orElse)), expected };
    return { sessions, log, witness };
  }

  private async readLog(): Promise<LogContents> {
    await this.deps.sealing.flush();
    return this.deps.sealing.log.read();
  }

  /** Adds the receipts of these sessions that the log lacks, and returns the log. */
  private async caughtUpLog(sessions: readonly ReadSession[], known: LogContents): Promise<LogContents> {
    const { log } = this.deps.sealing;
    const gone = new RemovedLeaves(known);
    // guard: receipt-logged-under-reused-id
    const current = known.leaves.filter(({ leaf }) => !gone.has(leaf));
    const logged = new Set(current.map(({ session, sequence }) => `${session}#${sequence}`));
    const isMissing = (id: string, { sequence, hash }: SealedReceipt): boolean =>
      !logged.has(`${id}#${sequence}`) && !gone.has(logLeafOf(hash));
    const missing = sessions.flatMap(({ id, receipts }) =>
      receipts.filter((receipt) => isMissing(id, receipt)).map((receipt) => ({ id, receipt })),
    );
    if (missing.length === 0) return known;
    for (const { id, receipt } of missing) log.append(id, receipt);
    await log.flush();
    return { ...(await log.read()), expected: known.expected };
  }

  /** Signs the state of the log with a list of sessions, and keeps it in the log and outside of the store. */
  private async makeCheckpoint(
    log: LogContents,
    sessions: readonly ReadSession[],
    scope?: CheckpointScope,
  ): Promise<string> {
    const root = merkleRoot(log.leaves.map(({ leaf }) => leaf));
    const listed = sessions.map(({ id, receipts }) => {
      const last = receipts.at(-1);
      return { id, count: receipts.length, head: last?.hash ?? '', isClosed: last?.state === 'closed' };
    });
    const signer = await this.deps.keys.signer('checkpoint');
    const state = { origin: logOrigin(log), size: log.leaves.length, root, ...(scope && { scope }), sessions: listed };
    const note = await createCheckpoint(state, [signer]);
    // guard: length-kept-before-checkpoint
    await this.deps.sealing.log.keepAtLeast(log.leaves.length + 1);
    // First outside of the store: a checkpoint of the log that is not kept there was removed.
    await this.deps.witness?.write(note);
    await this.deps.sealing.log.recordCheckpoint(note);
    return note;
  }
}

/**
 * Throws RECEIPT_INVALID if the log has receipts of these sessions that the sessions do not have, or others. What is
 * signed about such a session would hide that. Returns the length of the log as of which they have its receipts.
 */
function assertLogged(sessions: readonly ReadSession[], log: LogContents, isWhole: boolean): number {
  const findings = new Findings();
  const { asOf } = verifyLogLeaves(sessions, log, isWhole, findings);
  const { reasons } = findings;
  // guard: missing-receipts-not-signed-over
  if (reasons.length > 0)
    throw new LoopError(
      'RECEIPT_INVALID',
      `Nothing was signed: the sessions do not have the receipts that the log has (${reasons.join(', ')}). See: rondo verify --all`,
      { reasons },
    );
  return asOf;
}

/** Returns what keeps these sessions, or all, from being complete. What a session that cannot be read did is not known. */
function gapsOf(
  sessions: readonly ReadSession[],
  log: LogContents,
  sessionIds: readonly string[] | undefined,
): NonNullable<CheckpointScope['gaps']> {
  let unsealed = 0;
  for (const { entries } of sessions)
    unsealed += entries === undefined ? 1 : unsealedTurns(entries).length + Math.min(entriesAfterClosed(entries), 1);
  return { unsealed, removed: removalsOf(log.removed, sessionIds).length };
}

/** Returns an empty log for one that is damaged: it proves nothing, and the verdict says so. */
function emptyIfDamaged(thrown: unknown): LogContents {
  if (!(thrown instanceof Fault) || thrown.code !== 'STORE_DAMAGED') throw thrown;
  const empty = { storeId: '', leaves: [], removed: [], checkpoints: [], expected: 0 };
  return { ...empty, isCutOff: false, isWitnessMissing: false };
}

function rethrow(thrown: unknown): never {
  throw thrown;
}

/** True if the log continues the checkpoint that is kept outside of the store, and was not cut off. */
function isContinued({ log, witness }: StoredReceipts): boolean {
  return !log.isCutOff && (witness === undefined || continuesWitness(log, witness));
}

/** Sessions as they were read, and the log that they are judged by. */
interface StoredReceipts {
  readonly sessions: readonly ReadSession[];
  readonly log: LogContents;
  /** The newest checkpoint outside of the store. */
  readonly witness: string | undefined;
}

interface ReadSession {
  readonly id: string;
  readonly entries: readonly Entry[] | undefined;
  readonly receipts: readonly SealedReceipt[];
}

/** Returns a turn for each digest of definitions that the turns of a session began with. */
function turnsByDefinition(entries: readonly Entry[]): ReadonlyMap<string, string> {
  return new Map(
    entries.flatMap(({ type, key, definitionDigest }) =>
      type === 'call.started' && !key.includes('/') && definitionDigest !== undefined
        ? [[definitionDigest, key] as const]
        : [],
    ),
  );
}

function bundled({ leaves }: LogContents, sessions: readonly ReadSession[]): readonly BundledReceipt[] {
  // By their hashes, because a removed session may have had the id of another one.
  const indexes = new Map(leaves.map(({ leaf }, index) => [leaf, index]));
  const placed = sessions.flatMap(({ receipts }) =>
    receipts.map(({ envelope, hash }) => ({ envelope, index: indexes.get(logLeafOf(hash)) ?? 0 })),
  );
  const proofs = inclusionProofs(
    leaves.map(({ leaf }) => leaf),
    placed.map(({ index }) => index),
  );
  return placed.map(({ envelope, index }, i) => ({
    envelope,
    proof: { index, size: leaves.length, hashes: proofs[i] ?? [] },
  }));
}

function toListing(sessionId: string): (receipt: SealedReceipt) => ReceiptListing {
  return ({ hash, envelope }) => {
    const { predicate } = parseStatement(payloadOf(envelope) ?? Buffer.alloc(0));
    const { turn, sequence, state, final, reason, at, loop, effects } = predicate;
    const listing = { id: receiptId({ hash }), sessionId, turnId: turn, sequence, loopId: loop.id, state, final };
    return { ...listing, ...(reason !== undefined && { reason }), at, effects: effects.length };
  };
}
