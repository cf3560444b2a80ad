/**
 * Sealing as the turns of a host use it: a receipt for each pause, stop, end and refusal of a turn, and the log that gets
 * them once they are durable. A host without keys seals nothing.
 */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../../journal/clock.js';
import type { Session } from '../../kernel/session.js';
import type { Entry } from '../../protocol/entry.js';
import type { ReceiptAmounts, ReceiptPredicate, ReceiptSigner } from '../../protocol/receipt.js';
import type { RunOutcome } from '../../protocol/session.js';
import type { TurnResult } from '../../protocol/trace.js';
import { CONTEXT_LOADED, contextItemsOf } from '../../views/loaded-context.js';
import { SALT_BYTES } from '../../views/receipt/leaf-hashes.js';
import { receiptsIn, type SealedReceipt } from '../../views/receipt/sealed-receipts.js';
import { isKeyOfTurn, SESSION_FORKED, TURN_REFUSED } from '../../views/turns.js';
import type { GovernedTurn } from '../budget/governed-turn.js';
import type { HostOptions } from '../host-options.js';
import type { RunningTurn } from '../running-turn.js';
import { ReceiptLog } from './receipt-log.js';
import { Sealer } from './sealer.js';

/** Seals the turns of one host. */
export class Sealing {
  readonly log: ReceiptLog;
  private readonly sealer: Sealer;
  /** The appends to the log that have not ended. */
  private readonly appends = new Set<Promise<void>>();

  private constructor(options: HostOptions, keys: NonNullable<HostOptions['receiptKeys']>) {
    const { store, clock, ids } = options;
    this.log = new ReceiptLog({ store, clock, ids });
    this.sealer = new Sealer({
      clock,
      newSalt: () => randomBytes(SALT_BYTES),
      signer: refreshing(clock, () => keys.signer('receipt')),
    });
  }

  /** Returns the sealing of a host; undefined if it has no keys. */
  static of(options: HostOptions): Sealing | undefined {
    return options.receiptKeys === undefined ? undefined : new Sealing(options, options.receiptKeys);
  }

  /** Seals what a running turn did since its last receipt. The receipt becomes durable with the outcome. */
  async sealTurn(session: Session, turn: RunningTurn, before: ReceiptAmounts | undefined): Promise<void> {
    const { turnId, entries, governed } = turn;
    governed?.endTimer();
    turn.receipt = await this.sealer.seal(session, {
      turnId,
      entries,
      ...authorityOf(governed, before),
      context: contextOf(turnId, entries),
      origin: originOf(entries),
    });
  }

  /** Records the refusal of a turn that was not opened, and seals it. */
  async sealRefusal(session: Session, turn: RunningTurn, outcome: RunOutcome): Promise<void> {
    const { turnId } = turn;
    session.addFact(TURN_REFUSED, turnId, refusalOf(outcome));
    turn.receipt = await this.sealer.seal(session, { turnId, entries: turn.entries });
    await session.flush();
  }

  /** Writes the terminal receipt of a session, and waits until it is durable. */
  async close(session: Session): Promise<SealedReceipt> {
    const receipt = await this.sealer.close(session);
    await session.flush();
    await this.log.append(session.name, receipt);
    return receipt;
  }

  /** Adds a durable receipt to the log, without waiting. What is not added here is added when the log is read. */
  append(sessionId: string, receipt: SealedReceipt): void {
    const append = this.log
      .append(sessionId, receipt)
      .catch(() => undefined)
      .finally(() => this.appends.delete(append));
    this.appends.add(append);
  }

  /** Resolves when all receipts of this host are in the log. */
  async flush(): Promise<void> {
    await Promise.all(this.appends);
  }
}

/** How long a key is used before it is read again, in milliseconds: another process may have replaced it. */
const KEY_REFRESH_MS = 1000;

/** Returns a function that loads a signer, and returns the same one for a while. */
function refreshing(clock: Clock, load: () => Promise<ReceiptSigner>): () => Promise<ReceiptSigner> {
  let loaded: { readonly signer: Promise<ReceiptSigner>; readonly at: number } | undefined;
  return () => {
    if (loaded !== undefined && clock.elapsed() - loaded.at < KEY_REFRESH_MS) return loaded.signer;
    const signer = load();
    loaded = { signer, at: clock.elapsed() };
    signer.catch(() => {
      loaded = undefined;
    });
    return signer;
  };
}

/** Sets the id of its last receipt on the result of a turn. */
export function withReceipt(result: TurnResult, { turnId, entries, receipt }: RunningTurn): TurnResult {
  const last = receipt ?? receiptsIn(entries).findLast(({ turn }) => turn === turnId);
  return last === undefined ? result : Object.assign(result, { receipt: receiptId(last) });
}

/** Returns the id of a receipt: the hash of its envelope. */
export function receiptId({ hash }: Pick<SealedReceipt, 'hash'>): string {
  return `sha256:${hash}`;
}

function authorityOf(
  governed: GovernedTurn | undefined,
  before: ReceiptAmounts = {},
): Pick<ReceiptPredicate, 'grant' | 'budget'> {
  if (governed === undefined) return {};
  const { grantId: id, budget } = governed.ledger;
  const digest = budget.registered?.digest ?? '';
  return { grant: { id, digest }, budget: { before, after: budget.totals() } };
}

function contextOf(turnId: string, entries: readonly Entry[]): NonNullable<ReceiptPredicate['context']> {
  return entries
    .filter(({ key, type }) => type === CONTEXT_LOADED && isKeyOfTurn(key, turnId))
    .flatMap(({ value }) => contextItemsOf(value).map(({ name, sha256, bytes }) => ({ name, digest: sha256, bytes })));
}

function originOf(entries: readonly Entry[]): ReceiptPredicate['origin'] {
  const forked = entries.find(({ type }) => type === SESSION_FORKED)?.value;
  if (forked === undefined) return undefined;
  const { session, turn, at } = forked as unknown as NonNullable<ReceiptPredicate['origin']>;
  return { session, turn, at };
}

function refusalOf(outcome: RunOutcome): { readonly reason: string; readonly code?: string } {
  if (outcome.status === 'stopped') return { reason: `${outcome.stop.reason}: ${outcome.stop.message}` };
  return outcome.status === 'error' ? { reason: outcome.error.message, code: outcome.error.code } : { reason: '' };
}
