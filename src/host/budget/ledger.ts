/**
 * The ledger of a grant: reserves what an effect can use at most before it starts, and settles what it used afterwards.
 * All turns with the same grant id share it, in any session and process. It has a journal stream of its own, to which
 * every process appends by compare and retry.
 */

import { Fault, LoopError } from '../../base/errors.js';
import type { Clock } from '../../journal/clock.js';
import { RESERVED_SESSION_PREFIX } from '../../journal/reserved-sessions.js';
import { SharedStream } from '../../journal/shared-stream.js';
import type { Store } from '../../journal/store.js';
import { grantDigest } from '../../policy/grant.js';
import type { Grant } from '../../protocol/grant.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import {
  type Account,
  type Amounts,
  BUDGET_SETTLED,
  BUDGET_TURN_ENDED,
  Budget,
  type Charge,
  type ExceededLimit,
  GRANT_REGISTERED,
  newReservedEntry,
} from '../../views/budget.js';
import type { LengthWitness } from '../host-options.js';

/** A reservation of an attempt. */
export interface Reservation {
  /** Undefined if the attempt pays nothing. */
  readonly key: string | undefined;
  /** Resolves once the reservation is final: false if another process used up the budget first. */
  readonly durable: Promise<boolean>;
}

/** An effect that is charged, and the accounts that pay for it. */
export interface ChargedEffect {
  readonly turn: string;
  readonly effect: string;
  /** The tool round that the effect belongs to; its first effect pays for it. Undefined if rounds are not limited. */
  readonly round?: string | undefined;
  readonly accounts: readonly Account[];
  /** True if the reservation is settled later with what was used. */
  readonly isOpen: boolean;
}

const ONE_ROUND: Amounts = { toolRounds: 1 };

interface LedgerDeps {
  readonly store: Store;
  readonly clock: Clock;
  /** Keeps the length of the ledger outside of the store. */
  readonly witness?: LengthWitness | undefined;
}

/** The ledger of one grant, as one process uses it. */
export class Ledger {
  readonly grantId: string;
  private readonly stream: SharedStream<Budget>;
  private readonly witness: LengthWitness | undefined;
  /** The length is being kept; resolves when that has ended, in any way. */
  private keeping: Promise<void> | undefined;
  /** The reservations of effects that this process performs and will settle. */
  private readonly unsettled = new Set<Reservation>();
  private readonly settleListeners: (() => void)[] = [];

  private constructor(grantId: string, stream: SharedStream<Budget>, witness: LengthWitness | undefined) {
    this.grantId = grantId;
    this.stream = stream;
    this.witness = witness;
  }

  /** Opens the ledger of a grant, and registers the grant. Throws STORE_DAMAGED if the ledger is shorter than it was. */
  static async open(
    { store, clock, witness }: LedgerDeps,
    grantId: string,
    grant: Grant,
    mustBeKnown = false,
  ): Promise<Ledger> {
    const stream = await SharedStream.open({
      store,
      clock,
      name: ledgerName(grantId),
      create: (saved) => new Budget(saved),
    });
    const ledger = new Ledger(grantId, stream, witness);
    await ledger.assertLength((await witness?.read(ledgerName(grantId))) ?? 0);
    await ledger.register(grant, mustBeKnown);
    return ledger;
  }

  /** The budget with all reservations, durable or not. */
  get budget(): Budget {
    return this.stream.state;
  }

  /** Throws STORE_DAMAGED if the ledger is shorter than it was. */
  async assertLength(known: number): Promise<void> {
    const { stream } = this;
    // guard: shortened-ledger-refused
    if (!(await stream.reaches(known)))
      throw shortLedgerFault(this.grantId, `has ${stream.length} entries, and had ${known}`);
  }

  /** Waits until the ledger as it is now is durable, and returns the number of its entries. */
  durableLength(): Promise<number> {
    return this.stream.durableLength();
  }

  /** True if the ledger can be used; false after a failure of the store. */
  get isUsable(): boolean {
    return this.stream.failure === undefined;
  }

  /**
   * Registers a grant under the id. Throws GRANT_CONFLICT if the id is known with other content, and STORE_DAMAGED if
   * it must be known, because a turn has run under it, and is not.
   */
  async register(grant: Grant, mustBeKnown = false): Promise<void> {
    const digest = grantDigest(grant);
    // guard: lost-ledger-not-begun-again
    if (mustBeKnown && this.budget.registered === undefined) throw shortLedgerFault(this.grantId, 'is gone');
    const value = { digest, grant: grant as unknown as Json };
    const { durable } = this.stream.update(({ registered }) =>
      registered === undefined ? [{ type: GRANT_REGISTERED, key: 'grant', value }] : [],
    );
    // Kept before anything is spent.
    if ((await durable) && this.stream.length === 1) await this.keepLength();
    // guard: grant-id-has-one-content
    if (this.budget.registered?.digest === digest) return;
    const message =
      `The grant id "${this.grantId}" is known with other content. A grant never changes: ` +
      'give the changed grant another id.';
    throw new LoopError('GRANT_CONFLICT', message, { grantId: this.grantId });
  }

  /**
   * Reserves a charge, or returns the limit that it would exceed. What an effect pays once is not charged again for a
   * repeated attempt. An effect and its tool round are paid together or not at all.
   */
  reserve(charged: ChargedEffect, charge: Charge): Reservation | ExceededLimit {
    const reservation = this.decide(charged, charge);
    if (charged.isOpen && !('counter' in reservation)) this.awaitSettlement(reservation);
    return reservation;
  }

  /**
   * Reserves running time of a turn, or returns the limit that it would exceed. It is settled when the turn ends, so no
   * other reservation waits for that.
   */
  reserveTime(turn: string, accounts: readonly Account[], wallMs: number): Reservation | ExceededLimit {
    const charged = { turn, effect: `${turn}@wall`, accounts, isOpen: true };
    return this.decide(charged, { perEffect: {}, perAttempt: { wallMs } });
  }

  private decide(
    { turn, effect, round, accounts, isOpen }: ChargedEffect,
    charge: Charge,
  ): Reservation | ExceededLimit {
    let exceeded: ExceededLimit | undefined;
    let key: string | undefined;
    const { isAccepted, durable } = this.stream.update((budget) => {
      const attempt = budget.attemptsAt(turn, effect);
      // guard: repeated-attempt-not-counted-again
      const amounts = attempt === 0 ? { ...charge.perEffect, ...charge.perAttempt } : charge.perAttempt;
      const isNewRound = round !== undefined && budget.attemptsAt(turn, round) === 0;
      // guard: round-paid-with-its-effect
      exceeded = budget.exceededBy(accounts, isNewRound ? { ...ONE_ROUND, ...amounts } : amounts);
      if (exceeded !== undefined) return undefined;
      const entries = isNewRound ? [newReservedEntry(turn, round, 0, ONE_ROUND, { accounts, isOpen: false })] : [];
      if (attempt > 0 && Object.keys(amounts).length === 0) return entries;
      const entry = newReservedEntry(turn, effect, attempt, amounts, { accounts, isOpen });
      key = entry.key;
      return [...entries, entry];
    });
    if (!isAccepted && exceeded !== undefined) return exceeded;
    return {
      get key() {
        return key;
      },
      durable,
    };
  }

  /** Replaces what a durable reservation holds with what was used. */
  settle(reservation: Reservation, used: Amounts): void {
    if (reservation.key !== undefined) this.settleKey(reservation.key, used);
    this.forget(reservation);
  }

  /** Replaces what a reservation of an earlier process holds with what was used. */
  settleKey(key: string, used: Amounts): void {
    this.stream.update(() => [{ type: BUDGET_SETTLED, key, value: { amounts: used as JsonObject } }]);
  }

  /**
   * Resolves when this process has settled a reservation, which may release a part of it. Undefined if it has none to
   * settle: waiting would not help.
   */
  nextSettlement(): Promise<void> | undefined {
    if (this.unsettled.size === 0) return undefined;
    return new Promise((resolve) => this.settleListeners.push(resolve));
  }

  private awaitSettlement(reservation: Reservation): void {
    this.unsettled.add(reservation);
    const forget = (): void => this.forget(reservation);
    // A reservation that another process prevented is never settled.
    reservation.durable.then((isReserved) => isReserved || forget(), forget);
  }

  private forget(reservation: Reservation): void {
    this.unsettled.delete(reservation);
    for (const wake of this.settleListeners.splice(0)) wake();
  }

  /** Ends a turn: its effects are not repeated any more. Resolves when everything of the ledger is durable. */
  endTurn(turn: string): Promise<void> {
    this.stream.update(() => [{ type: BUDGET_TURN_ENDED, key: turn }]);
    return this.flush();
  }

  /** Resolves when everything that was decided so far is durable, and the length of the ledger is kept. */
  async flush(): Promise<void> {
    await this.stream.flush();
    // What is kept now may be older than the end of this turn.
    await this.keeping;
    this.keeping ??= this.keepLength();
    await this.keeping;
  }

  private async keepLength(): Promise<void> {
    const length = await this.durableLength().catch(() => 0);
    await this.witness?.write(ledgerName(this.grantId), length).catch(() => undefined);
    this.keeping = undefined;
  }
}

function shortLedgerFault(grantId: string, problem: string): Fault {
  return new Fault(
    'STORE_DAMAGED',
    `The ledger of the grant "${grantId}" ${problem}: what was spent is not known any more. Restore the store from a ` +
      'backup, or continue under a grant with another id.',
    { grantId },
  );
}

/** Returns the name of the session that holds the ledger of a grant. */
export function ledgerName(grantId: string): string {
  return `${RESERVED_SESSION_PREFIX}grant:${grantId}`;
}
