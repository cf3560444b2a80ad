/**
 * The running time of a turn under a grant. It is reserved in slices before it passes, so that turns that run at the same
 * time share what is left, and a crash costs at most one slice. A slice is a part of what is left, so that there is time
 * for other turns too. Effects in flight when the time is used up still end; the time that they take is recorded.
 */

import type { Clock } from '../../journal/clock.js';
import type { Account, ExceededLimit } from '../../views/budget.js';
import type { Ledger, Reservation } from './ledger.js';

const MAX_SLICE_MS = 10_000;
const MIN_SLICE_MS = 20;
/** A slice is what is left divided by this. */
const SLICE_DIVISOR = 8;

interface WallTimeDeps {
  readonly turnId: string;
  readonly ledger: Ledger;
  readonly accounts: readonly Account[];
  readonly clock: Clock;
  /** Called when no time is left. */
  onExceeded(exceeded: ExceededLimit): void;
}

interface Slice {
  readonly reservation: Reservation;
  readonly ms: number;
}

/** The running time of one turn in this process. */
export class WallTime {
  private readonly deps: WallTimeDeps;
  private readonly sleeping = new AbortController();
  private readonly startedAt: number;
  private reservedMs = 0;
  /** The last slice, which is not settled. */
  private slice: Slice | undefined;

  private constructor(deps: WallTimeDeps) {
    this.deps = deps;
    this.startedAt = deps.clock.elapsed();
  }

  /** Starts to count, and reserves the first slice. */
  static start(deps: WallTimeDeps): WallTime {
    const time = new WallTime(deps);
    time.reserveSlice();
    return time;
  }

  /** Settles the last slice with the time that has passed. */
  end(): void {
    this.sleeping.abort();
    const { slice } = this;
    this.slice = undefined;
    if (slice === undefined) return;
    const passedMs = Math.ceil(this.deps.clock.elapsed() - this.startedAt);
    // guard: passed-time-stays-charged
    const wallMs = Math.max(0, passedMs - (this.reservedMs - slice.ms));
    this.deps.ledger.settle(slice.reservation, { wallMs });
  }

  private reserveSlice(): void {
    const { ledger, turnId, accounts, onExceeded } = this.deps;
    const tightest = this.tightestLimit();
    const rest = tightest.limit - tightest.used;
    const ms = Math.min(rest, MAX_SLICE_MS, Math.max(MIN_SLICE_MS, Math.ceil(rest / SLICE_DIVISOR)));
    if (ms <= 0) {
      onExceeded(tightest);
      return;
    }
    const reservation = ledger.reserveTime(turnId, accounts, ms);
    if ('counter' in reservation) onExceeded(reservation);
    else this.use({ reservation, ms });
  }

  /** Returns the limit of which the least is left. */
  private tightestLimit(): ExceededLimit {
    const { ledger, accounts } = this.deps;
    const limits = accounts.map(({ id, limits: { wallMs = Number.POSITIVE_INFINITY } }) => {
      return { account: id, counter: 'wallMs', used: ledger.budget.usedOf(id, 'wallMs'), limit: wallMs };
    });
    return limits.reduce((least, each) => (each.limit - each.used < least.limit - least.used ? each : least));
  }

  /** Replaces the last slice, which has passed, and waits until the new one has. */
  private use(slice: Slice): void {
    const { ledger, clock } = this.deps;
    if (this.slice !== undefined) ledger.settle(this.slice.reservation, { wallMs: this.slice.ms });
    this.slice = slice;
    this.reservedMs += slice.ms;
    const wait = this.startedAt + this.reservedMs - clock.elapsed();
    clock.sleep(wait, this.sleeping.signal).then(
      () => this.slice === slice && this.reserveSlice(),
      () => undefined,
    );
    slice.reservation.durable.then(
      // guard: refused-slice-not-used
      (isReserved) => isReserved || this.replaceRefused(slice),
      () => undefined,
    );
  }

  /** Reserves a slice in place of one that another process prevented: less is left than was known. */
  private replaceRefused(slice: Slice): void {
    if (this.slice !== slice) return;
    this.slice = undefined;
    this.reservedMs -= slice.ms;
    this.reserveSlice();
  }
}
