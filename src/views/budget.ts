/**
 * The view of a budget: what the turns under one grant have reserved and spent, by account and counter. The account ''
 * is that of the grant itself; a derived grant has an account of its own below it. A reservation counts as spent until
 * it is settled with what was really used.
 */

import type { Grant } from '../protocol/grant.js';
import type { Json, JsonObject } from '../protocol/json.js';

/** The types of the entries of a budget. */
export const GRANT_REGISTERED = 'rondo.grant.registered';
export const BUDGET_RESERVED = 'rondo.budget.reserved';
export const BUDGET_SETTLED = 'rondo.budget.settled';
export const BUDGET_TURN_ENDED = 'rondo.budget.turn-ended';

/** The account of the grant itself. */
export const GRANT_ACCOUNT = '';

/** Amounts by counter, such as `effects` or `outputTokens`. */
export type Amounts = { readonly [counter: string]: number };

/** An account and the limits of its counters. */
export interface Account {
  readonly id: string;
  readonly limits: Amounts;
}

/** A limit that an amount would exceed. */
export interface ExceededLimit {
  readonly account: string;
  readonly counter: string;
  readonly used: number;
  readonly limit: number;
  /** What a model call was to reserve, for the message. */
  readonly needed?: number;
}

interface Reservation {
  readonly accounts: readonly string[];
  readonly amounts: Amounts;
}

/** A reservation that is not settled. */
export interface OpenReservation {
  readonly key: string;
  readonly effect: string;
  readonly amounts: Amounts;
}

/** What a charge adds: for the effect once, and for each attempt at it. */
export interface Charge {
  readonly perEffect: Amounts;
  readonly perAttempt: Amounts;
}

/** An entry of a budget. */
export interface BudgetEntry {
  readonly type: string;
  readonly key: string;
  readonly value?: Json;
}

/** The state of one budget. */
export class Budget {
  /** The grant that the budget belongs to; undefined before it is registered. */
  registered: { readonly digest: string; readonly grant: Grant } | undefined;
  private readonly used = new Map<string, Map<string, number>>();
  private readonly open = new Map<string, Reservation>();
  /** The number of paid attempts by effect, of each turn that has not ended. */
  private readonly attempts = new Map<string, Map<string, number>>();

  constructor(saved?: Json) {
    if (saved !== undefined) this.restore(saved as unknown as SavedBudget);
  }

  /** Applies the next entry of the budget. */
  apply({ type, key, value }: BudgetEntry): void {
    if (type === GRANT_REGISTERED) this.registered = value as unknown as Budget['registered'];
    else if (type === BUDGET_RESERVED) this.applyReserved(key, value as unknown as ReservedValue);
    else if (type === BUDGET_SETTLED) this.applySettled(key, value as unknown as SettledValue);
    else if (type === BUDGET_TURN_ENDED) this.applyTurnEnded(key);
  }

  /** Forgets a turn: its attempts, and its account if it had one. */
  private applyTurnEnded(turn: string): void {
    this.attempts.delete(turn);
    this.used.delete(turn);
  }

  /** Returns how many attempts at an effect are paid. */
  attemptsAt(turn: string, effect: string): number {
    return this.attempts.get(turn)?.get(effect) ?? 0;
  }

  /** Returns what an account has reserved and spent of a counter. */
  usedOf(account: string, counter: string): number {
    return this.used.get(account)?.get(counter) ?? 0;
  }

  /** Returns the counters of an account. */
  totals(account: string = GRANT_ACCOUNT): Amounts {
    return Object.fromEntries([...(this.used.get(account) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Returns the first limit that the amounts would exceed; undefined if none. */
  exceededBy(accounts: readonly Account[], amounts: Amounts): ExceededLimit | undefined {
    for (const { id: account, limits } of accounts) {
      const used = this.used.get(account);
      for (const counter in amounts) {
        const limit = limits[counter];
        if (limit === undefined) continue;
        const before = used?.get(counter) ?? 0;
        // guard: reservation-within-limit
        if (before + (amounts[counter] ?? 0) > limit) return { account, counter, used: before, limit };
      }
    }
    return undefined;
  }

  /** Returns the first limit that is exceeded already, because more was used than reserved. */
  overdrawn(accounts: readonly Account[]): ExceededLimit | undefined {
    for (const { id: account, limits } of accounts)
      for (const [counter, used] of this.used.get(account) ?? [])
        if (used > (limits[counter] ?? Number.POSITIVE_INFINITY))
          return { account, counter, used, limit: limits[counter] ?? 0 };
    return undefined;
  }

  /**
   * Returns the last attempts at effects of a turn that are reserved and not settled. An earlier attempt that is not
   * settled was interrupted: what it used is unknown, and no recorded reply belongs to it.
   */
  openReservations(turn: string): readonly OpenReservation[] {
    const found: OpenReservation[] = [];
    for (const [key, { amounts }] of this.open) {
      const effect = key.slice(0, key.lastIndexOf('#'));
      // guard: interrupted-attempt-stays-charged
      const isLast = key === `${effect}#${this.attemptsAt(turn, effect) - 1}`;
      if (isLast && effect.startsWith(`${turn}/`)) found.push({ key, effect, amounts });
    }
    return found;
  }

  private applyReserved(
    key: string,
    { turn, amounts: stored, accounts = [GRANT_ACCOUNT], isOpen }: ReservedValue,
  ): void {
    const amounts = usedAmounts(stored);
    for (const account of accounts) this.add(account, amounts);
    if (isOpen === true) this.open.set(key, { accounts, amounts });
    const effect = key.slice(0, key.lastIndexOf('#'));
    const ofTurn = this.attempts.get(turn) ?? new Map<string, number>();
    this.attempts.set(turn, ofTurn);
    ofTurn.set(effect, (ofTurn.get(effect) ?? 0) + 1);
  }

  private applySettled(key: string, { amounts, accounts }: SettledValue): void {
    const reservation = this.open.get(key);
    // A second settlement, by a process that was too slow, changes nothing.
    // guard: reservation-settled-once
    if (reservation === undefined && accounts === undefined) return;
    this.open.delete(key);
    // What the use does not state, such as the number of rounds, stays charged.
    const change: { [counter: string]: number } = {};
    // guard: settled-counters-replaced
    for (const [counter, used] of Object.entries(usedAmounts(amounts)))
      change[counter] = used - (reservation?.amounts[counter] ?? 0);
    for (const account of accounts ?? reservation?.accounts ?? [GRANT_ACCOUNT]) this.add(account, change);
  }

  private add(account: string, amounts: Amounts): void {
    const counters = this.used.get(account) ?? new Map<string, number>();
    this.used.set(account, counters);
    for (const counter in amounts) counters.set(counter, (counters.get(counter) ?? 0) + (amounts[counter] ?? 0));
  }

  /** Returns the state as JSON. */
  save(): Json {
    const saved: SavedBudget = {
      registered: this.registered,
      used: [...this.used].map(([account, counters]) => [account, [...counters]]),
      open: [...this.open],
      attempts: [...this.attempts].map(([turn, effects]) => [turn, [...effects]]),
    };
    return saved as unknown as Json;
  }

  private restore({ registered, used, open, attempts }: SavedBudget): void {
    this.registered = registered;
    for (const [account, counters] of used) this.used.set(account, new Map(counters));
    for (const [key, reservation] of open) this.open.set(key, reservation);
    for (const [turn, effects] of attempts) this.attempts.set(turn, new Map(effects));
  }
}

/** Returns stored amounts. One that is no use of anything, such as a negative one, counts as more than any limit. */
function usedAmounts(stored: Amounts): Amounts {
  const used = Object.entries(stored).map(([counter, amount]): [string, number] => [
    counter,
    // guard: use-is-not-negative
    typeof amount === 'number' && amount >= 0 ? amount : Number.MAX_SAFE_INTEGER,
  ]);
  return Object.fromEntries(used);
}

interface ReservedValue {
  readonly turn: string;
  readonly amounts: Amounts;
  /** Absent if only the account of the grant is charged. */
  readonly accounts?: readonly string[];
  /** True if the reservation is settled later with what was used. */
  readonly isOpen?: true;
}

interface SettledValue {
  readonly amounts: Amounts;
  /** Present for an amount that was not reserved. */
  readonly accounts?: readonly string[];
}

interface SavedBudget {
  readonly registered: Budget['registered'];
  readonly used: readonly (readonly [string, readonly (readonly [string, number])[]])[];
  readonly open: readonly (readonly [string, Reservation])[];
  readonly attempts: readonly (readonly [string, readonly (readonly [string, number])[]])[];
}

/** Returns the entry of a reservation. `attempt` is the zero-based number of the attempt at the effect. */
export function newReservedEntry(
  turn: string,
  effect: string,
  attempt: number,
  amounts: Amounts,
  { accounts, isOpen }: { readonly accounts: readonly Account[]; readonly isOpen: boolean },
): BudgetEntry {
  const value: { [name: string]: Json } = { turn, amounts: amounts as JsonObject };
  if (accounts.length > 1) value.accounts = accounts.map(({ id }) => id);
  if (isOpen) value.isOpen = true;
  return { type: BUDGET_RESERVED, key: `${effect}#${attempt}`, value };
}
