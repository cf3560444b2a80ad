/**
 * Sealing as the turns of a host use it: a receipt for each pause, stop, end and refusal of a turn, and the log that gets
 * them once they are durable. A host without keys seals nothing.
 */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../../journal/clock.js';
import type { Store } from '../../journal/store.js';
import type { Session } from '../../kernel/session.js';
import type { Entry } from '../../protocol/entry.js';
import type { ReceiptAmounts, ReceiptPredicate, ReceiptSigner } from '../../protocol/receipt.js';
import type { RunOutcome } from '../../protocol/session.js';
import type { TurnResult } from '../../protocol/trace.js';
import { parentKeyOf } from '../../views/conversation/open-calls.js';
import { CONTEXT_LOADED, contextItemsOf } from '../../views/loaded-context.js';
import { SALT_BYTES } from '../../views/receipt/leaf-hashes.js';
import { receiptsIn, type SealedReceipt } from '../../views/receipt/sealed-receipts.js';
import { forkedEntryOf, isKeyOfTurn, openingOf, TURN_REFUSED } from '../../views/turns.js';
import type { GovernedTurn } from '../budget/governed-turn.js';
import type { HostOptions, ReceiptKeys } from '../host-options.js';
import { readSession } from '../read-session.js';
import type { RunningTurn } from '../running-turn.js';
import { KEY_REFRESH_MS } from './key-rotation.js';
import { ReceiptLog } from './receipt-log.js';
import { Sealer } from './sealer.js';

/** Seals the turns of one host. */
export class Sealing {
  readonly log: ReceiptLog;
  private readonly sealer: Sealer;
  private readonly store: Store;

  private constructor(options: HostOptions, keys: ReceiptKeys, isAlone: () => boolean) {
    const { store, clock, ids, logWitness: witness, lengthWitness: lengths } = options;
    this.store = store;
    this.log = new ReceiptLog({ store, clock, ids, witness, lengths });
    this.sealer = new Sealer({
      clock,
      newSalt: saltSource(),
      isAlone,
      signer: refreshing(clock, () => keys.signer('receipt')),
    });
  }

  /** Returns the sealing of a host; undefined if it has no keys. `isAlone` returns true if it runs at most one turn. */
  static of(options: HostOptions, isAlone: () => boolean): Sealing | undefined {
    return options.receiptKeys === undefined ? undefined : new Sealing(options, options.receiptKeys, isAlone);
  }

  /**
   * Seals what a running turn did since its last receipt. The receipt becomes durable with the outcome.
   *
   * @param isOpen True if the turn continues later.
   */
  async sealTurn(
    session: Session,
    turn: RunningTurn,
    before: ReceiptAmounts | undefined,
    isOpen: boolean,
  ): Promise<void> {
    const { turnId, governed } = turn;
    governed?.endTimer();
    const entries = await this.storedForm(session, turn);
    const ledgerLength = isOpen ? await governed?.ledger.durableLength() : undefined;
    turn.receipt = await this.sealer.seal(session, {
      turnId,
      entries,
      ...authorityOf(governed, before),
      ledgerLength,
      context: contextOf(turnId, entries),
      hosted: hostedOf(turnId, entries),
      origin: originOf(entries),
    });
  }

  /**
   * Returns the entries of a turn as they are stored. A turn that was retried runs on entries without the ends that no
   * longer apply, in another form (`withoutReopenedEnds`), which is not what a receipt covers.
   */
  private async storedForm(session: Session, { turnId, entries }: RunningTurn): Promise<readonly Entry[]> {
    if (!entries.some(({ key, type }) => type === 'call.reopened' && key === turnId)) return entries;
    await session.flush();
    return readSession(this.store, session.name);
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
    this.log.append(session.name, receipt);
    await this.log.flush();
    return receipt;
  }

  /** Resolves when all receipts of this host are in the log, or cannot be written to it. */
  async flush(): Promise<void> {
    await this.log.flush().catch(() => undefined);
  }
}

/** How many salts are drawn at once: a draw costs about as much for one as for many. */
const SALTS_PER_DRAW = 256;

/** Returns a function that returns another secret salt each time. */
function saltSource(): () => Uint8Array {
  let drawn = Buffer.alloc(0);
  return () => {
    if (drawn.length === 0) drawn = randomBytes(SALTS_PER_DRAW * SALT_BYTES);
    const salt = drawn.subarray(0, SALT_BYTES);
    drawn = drawn.subarray(SALT_BYTES);
    return salt;
  };
}

/** Returns a function that loads a signer, and returns the same one for a while: another process may replace the key. */
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

/** A turn with its entries. */
interface SealedTurn {
  readonly turnId: string;
  readonly entries: readonly Entry[];
  /** Its last receipt, if that may not be among the entries. */
  readonly receipt?: SealedReceipt | undefined;
}

/** Sets the id of its last receipt on the result of a turn. */
export function withReceipt(result: TurnResult, { turnId, entries, receipt }: SealedTurn): TurnResult {
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
  return { grant: { digest, id }, budget: { after: budget.totals(), before } };
}

/** The kinds of bodies that load context. A body in code may record an entry of the same type. */
const CONTEXT_BODIES: ReadonlySet<string | undefined> = new Set(['prompt', 'agent']);

function contextOf(turnId: string, entries: readonly Entry[]): NonNullable<ReceiptPredicate['context']> {
  const { seen } = openingOf(turnId, entries) ?? {};
  const history = seen === undefined ? [] : [{ bytes: seen.bytes, digest: seen.digest, name: 'history' }];
  const loaded = entries.filter(({ key, type }) => type === CONTEXT_LOADED && isKeyOfTurn(key, turnId));
  if (loaded.length === 0) return history;
  const calls = new Map(
    entries.flatMap(({ key, type, bodyKind }) => (type === 'call.started' ? [[key, bodyKind]] : [])),
  );
  const texts = loaded
    .filter(({ key }) => CONTEXT_BODIES.has(calls.get(parentKeyOf(key))))
    .flatMap(({ value }) => contextItemsOf(value).map(({ name, sha256, bytes }) => ({ bytes, digest: sha256, name })));
  return [...history, ...texts];
}

function hostedOf(turnId: string, entries: readonly Entry[]): ReceiptPredicate['hosted'] {
  const { hosted } = openingOf(turnId, entries) ?? {};
  // The session of a fork has the opening of the turn that was forked.
  if (hosted === undefined || forkedEntryOf(entries) !== undefined) return undefined;
  const { handoff, head, loop, previous, turn } = hosted;
  // In the order of a canonical statement.
  return {
    ...(handoff !== undefined && { handoff }),
    ...{ head, loop },
    ...(previous !== undefined && { previous }),
    turn,
  };
}

function originOf(entries: readonly Entry[]): ReceiptPredicate['origin'] {
  const forked = forkedEntryOf(entries)?.value;
  if (forked === undefined) return undefined;
  const { session, turn, at } = forked as unknown as NonNullable<ReceiptPredicate['origin']>;
  return { at, session, turn };
}

function refusalOf(outcome: RunOutcome): { readonly reason: string; readonly code?: string } {
  if (outcome.status === 'stopped') return { reason: `${outcome.stop.reason}: ${outcome.stop.message}` };
  return outcome.status === 'error' ? { reason: outcome.error.message, code: outcome.error.code } : { reason: '' };
}
