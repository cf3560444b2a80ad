/**
 * Seals turns: when a turn pauses, stops or ends, what it did since its last receipt is signed, and the receipt is
 * recorded in the session together with the outcome. Receipts of a session are a chain, written by the one writer of the
 * session. The log of the store gets each receipt after it is durable.
 */
import { encodeBase64 } from '../../base/base64.js';
import type { Mutable } from '../../base/plain-constructor.js';
import type { Clock } from '../../journal/clock.js';
import type { Session } from '../../kernel/session.js';
import type { Entry } from '../../protocol/entry.js';
import type { ReceiptPredicate, ReceiptSigner } from '../../protocol/receipt.js';
import { isoTime } from '../../views/iso-time.js';
import { createEnvelope, newEnvelopeHash } from '../../views/receipt/envelope.js';
import {
  receiptFactId,
  receiptHeadView,
  receiptValue,
  type SealedReceipt,
  uncoveredFrom,
} from '../../views/receipt/sealed-receipts.js';
import { statementBytes } from '../../views/receipt/statement.js';
import { foldTurn, isEntryOfTurn } from '../../views/receipt/turn-fold.js';
import { RECEIPT_SEALED } from '../../views/turns.js';

/** What a sealer works with. */
interface SealerDeps {
  readonly clock: Clock;
  /** Returns the signer of receipts. The key is created on first use. */
  signer(): Promise<ReceiptSigner>;
  /** Returns a new secret salt of 16 bytes. */
  newSalt(): Uint8Array;
  /** True if this process runs no other turn. */
  isAlone(): boolean;
}

/** A turn that is sealed. */
export interface SealedTurn {
  readonly turnId: string;
  /** The entries of the turn, and possibly others of its session. */
  readonly entries: readonly Entry[];
  readonly grant?: ReceiptPredicate['grant'];
  readonly budget?: ReceiptPredicate['budget'];
  /** How many entries the ledger of the grant has, if the turn continues under it. */
  readonly ledgerLength?: number | undefined;
  readonly context?: ReceiptPredicate['context'];
  readonly origin?: ReceiptPredicate['origin'];
  readonly hosted?: ReceiptPredicate['hosted'];
}

/** What a receipt says, without its place in its session. */
type ReceiptPart = Omit<ReceiptPredicate, 'session' | 'sequence' | 'previous' | 'at'>;

/** An estimate of the size of a receipt in its entry, without its payload. */
const RECEIPT_BYTES = 512;

/** Makes the receipts of a host. */
export class Sealer {
  private readonly deps: SealerDeps;

  constructor(deps: SealerDeps) {
    this.deps = deps;
  }

  /**
   * Seals what a turn did since its last receipt, and records the receipt without waiting until it is durable. Returns
   * undefined if there is nothing new.
   */
  async seal(session: Session, turn: SealedTurn): Promise<SealedReceipt | undefined> {
    const { turnId, entries } = turn;
    const ofTurn = entries.filter((entry) => isEntryOfTurn(entry, turnId));
    const from = uncoveredFrom(turnId, entries);
    if ((ofTurn.at(-1)?.seq ?? -1) < from) return undefined;
    const salt = this.deps.newSalt();
    const part: Mutable<ReceiptPart> = { ...foldTurn(turnId, ofTurn, from, salt), turn: turnId };
    if (turn.grant !== undefined) part.grant = turn.grant;
    if (turn.budget !== undefined) part.budget = turn.budget;
    if (turn.context !== undefined && turn.context.length > 0) part.context = turn.context;
    if (turn.hosted !== undefined) part.hosted = turn.hosted;
    if (turn.origin !== undefined) part.origin = turn.origin;
    return this.record(session, part, { salt: encodeBase64(salt), ledgerLength: turn.ledgerLength });
  }

  /** Writes the terminal receipt of a session: nothing may follow it. */
  async close(session: Session): Promise<SealedReceipt> {
    const root = '0'.repeat(64);
    return this.record(session, {
      turn: '',
      state: 'closed',
      final: true,
      loop: { id: '', version: '', definition: '' },
      approvals: [],
      effects: [],
      journal: { from: 0, to: 0, count: 0, root },
    });
  }

  private async record(
    session: Session,
    part: ReceiptPart,
    { salt, ledgerLength }: Pick<Mutable<SealedReceipt>, 'salt'> & Pick<SealedTurn, 'ledgerLength'> = {},
  ): Promise<SealedReceipt> {
    const { clock, signer, isAlone } = this.deps;
    const { count: sequence, hash: previous } = session.state(receiptHeadView);
    const place = { at: isoTime(clock.now()), previous, sequence, session: session.name };
    const predicate = predicateOf(part, place);
    const envelope = await createEnvelope(statementBytes(predicate), [await signer()], isAlone());
    const { turn, final, state, journal } = predicate;
    const hash = newEnvelopeHash(envelope);
    const receipt: Mutable<SealedReceipt> = { turn, sequence, final, state, hash, to: journal.to, envelope };
    if (ledgerLength !== undefined) receipt.ledgerLength = ledgerLength;
    if (salt !== undefined) receipt.salt = salt;
    const size = envelope.payload.length + RECEIPT_BYTES;
    session.addFact(RECEIPT_SEALED, receiptFactId(sequence), receiptValue(receipt), size);
    return receipt;
  }
}

/** The place of a receipt in its session. */
type ReceiptPlace = Pick<ReceiptPredicate, 'at' | 'sequence' | 'session'> & { readonly previous: string };

/**
 * Returns what a receipt says. The members are in canonical order, so that the statement has not to be sorted, and are
 * written out, because objects with computed members are slow.
 */
function predicateOf(part: ReceiptPart, { at, previous, sequence, session }: ReceiptPlace): ReceiptPredicate {
  const { approvals, budget, code, context, effects, final, grant, hosted, journal, loop } = part;
  const { origin, principal, reason, reopened, state, turn } = part;
  const predicate: Partial<Mutable<ReceiptPredicate>> = { approvals, at };
  if (budget !== undefined) predicate.budget = budget;
  if (code !== undefined) predicate.code = code;
  if (context !== undefined) predicate.context = context;
  predicate.effects = effects;
  predicate.final = final;
  if (grant !== undefined) predicate.grant = grant;
  if (hosted !== undefined) predicate.hosted = hosted;
  predicate.journal = journal;
  predicate.loop = loop;
  if (origin !== undefined) predicate.origin = origin;
  if (sequence > 0) predicate.previous = previous;
  if (principal !== undefined) predicate.principal = principal;
  if (reason !== undefined) predicate.reason = reason;
  if (reopened !== undefined) predicate.reopened = reopened;
  predicate.sequence = sequence;
  predicate.session = session;
  predicate.state = state;
  predicate.turn = turn;
  return predicate as ReceiptPredicate;
}
