/**
 * The receipts of a store: lists, exports and verifies them, and closes sessions. It claims no session, except to close
 * it. Receipts that a crash kept out of the log are added to it first.
 */
import { LoopError } from '../../base/errors.js';
import { inclusionProofs, merkleRoot } from '../../base/merkle.js';
import { TrustedKeys } from '../../base/trusted-keys.js';
import type { Store } from '../../journal/store.js';
import type { Entry } from '../../protocol/entry.js';
import type { BundledReceipt, ReceiptState, ReceiptVerdict } from '../../protocol/receipt.js';
import { bundleBytes } from '../../views/receipt/bundle.js';
import { createCheckpoint } from '../../views/receipt/checkpoint.js';
import { payloadOf } from '../../views/receipt/envelope.js';
import { receiptsIn, type SealedReceipt } from '../../views/receipt/sealed-receipts.js';
import { parseStatement } from '../../views/receipt/statement.js';
import type { LogContents } from '../../views/receipt/verify-log.js';
import { verifyStore } from '../../views/receipt/verify-store.js';
import type { Archive } from '../archive.js';
import type { ReceiptKeys } from '../host-options.js';
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

/** What the archive works with. */
interface ReceiptArchiveDeps {
  readonly archive: Archive;
  readonly store: Store;
  readonly keys: ReceiptKeys;
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
   * RECEIPT_NOT_FOUND if there are none.
   */
  async export(sessionIds?: readonly string[]): Promise<Buffer> {
    const sessions = await this.readSessions(sessionIds ?? (await this.sessionIds()));
    const withReceipts = sessions.filter(({ receipts }) => receipts.length > 0);
    if (withReceipts.length === 0) throw new LoopError('RECEIPT_NOT_FOUND', 'There are no receipts to export.');
    const log = await this.caughtUpLog(withReceipts);
    const note = await this.checkpoint(log, withReceipts);
    await this.deps.sealing.log.recordCheckpoint(note);
    return bundleBytes({ format: 'rondo.receipts.v1', checkpoint: note, receipts: bundled(log, withReceipts) });
  }

  /** Verifies the receipts of a session, or of all, against the journal and the log of the store. */
  async verify(
    sessionIds: readonly string[] | undefined,
    keys: { readonly trusted?: TrustedKeys | undefined } = {},
  ): Promise<ReceiptVerdict> {
    const trusted = keys.trusted ?? new TrustedKeys((await this.deps.keys.list()).keys);
    const sessions = await this.readSessions(sessionIds ?? (await this.sessionIds()));
    const log = await this.caughtUpLog(sessions);
    const trust = keys.trusted === undefined ? 'store' : 'file';
    const stored = sessions
      .filter(({ entries, receipts }) => entries === undefined || receipts.length > 0 || sessionIds !== undefined)
      .map(({ id, entries }) => ({ id, entries }));
    return verifyStore(stored, log, trusted, { trust, isWhole: sessionIds === undefined });
  }

  /**
   * Closes a session with its terminal receipt, after which no turn runs in it, and returns the id of the receipt. Throws
   * SESSION_SEALED if a turn has not ended, and TURN_NOT_FOUND for an unknown session.
   */
  async close(sessionId: string): Promise<string> {
    return receiptId(await this.deps.close(sessionId));
  }

  /** Returns the number of receipts in the log: the position of the next one. */
  async logSize(): Promise<number> {
    return (await this.caughtUpLog(await this.readSessions(await this.sessionIds()))).leaves.length;
  }

  /** Records in the log that a session is removed, if it has receipts. Call it before the session is removed. */
  async recordRemoval(sessionId: string, by: string): Promise<void> {
    // A damaged session can be removed too: what the log has of it is enough to record that.
    const receipts = await this.receiptsOf(sessionId).catch(() => []);
    const { leaves } = await this.caughtUpLog([{ id: sessionId, entries: [], receipts }]);
    const count = leaves.filter(({ session }) => session === sessionId).length;
    if (count === 0) return;
    await this.deps.sealing.log.recordRemoval({ session: sessionId, count, head: receipts.at(-1)?.hash ?? '', by });
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

  /** Reads the log, after receipts of these sessions that it lacks were added. */
  private async caughtUpLog(sessions: readonly ReadSession[]): Promise<LogContents> {
    const { log } = this.deps.sealing;
    await this.deps.sealing.flush();
    const known = await log.read();
    const logged = new Set(known.leaves.map(({ session, sequence }) => `${session}#${sequence}`));
    const missing = sessions.flatMap(({ id, receipts }) =>
      receipts.filter(({ sequence }) => !logged.has(`${id}#${sequence}`)).map((receipt) => ({ id, receipt })),
    );
    if (missing.length === 0) return known;
    for (const { id, receipt } of missing) log.append(id, receipt);
    await log.flush();
    return log.read();
  }

  private async checkpoint({ storeId, leaves }: LogContents, sessions: readonly ReadSession[]): Promise<string> {
    const root = merkleRoot(leaves.map(({ leaf }) => leaf));
    const listed = sessions.map(({ id, receipts }) => {
      const last = receipts.at(-1);
      return { id, count: receipts.length, head: last?.hash ?? '', isClosed: last?.state === 'closed' };
    });
    const signer = await this.deps.keys.signer('checkpoint');
    return createCheckpoint({ origin: `rondo/${storeId}`, size: leaves.length, root, sessions: listed }, [signer]);
  }
}

interface ReadSession {
  readonly id: string;
  readonly entries: readonly Entry[] | undefined;
  readonly receipts: readonly SealedReceipt[];
}

function bundled({ leaves }: LogContents, sessions: readonly ReadSession[]): readonly BundledReceipt[] {
  const indexes = new Map(leaves.map(({ session, sequence }, index) => [`${session}#${sequence}`, index]));
  const placed = sessions.flatMap(({ id, receipts }) =>
    receipts.map(({ envelope, sequence }) => ({ envelope, index: indexes.get(`${id}#${sequence}`) ?? 0 })),
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
