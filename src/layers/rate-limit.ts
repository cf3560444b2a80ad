/**
 * The rate limit layer: at most `requests` attempts at effects of one name start within any period of `perMs`
 * milliseconds, across all sessions of the process. Each attempt reserves the next free start time in order of arrival
 * and sleeps until then. The delay is recorded, so a replay reserves nothing. Windows live in memory: a new process
 * starts with empty ones.
 */

import { LoopError } from '../base/errors.js';
import type { Clock } from '../journal/clock.js';
import type { Effect } from '../protocol/body.js';
import type { RateLimitSpec } from '../protocol/loop.js';
import type { Layer } from '../protocol/session.js';
import { policyNumber } from './policy-number.js';

const DEFAULT_MAX_WAITING = 10_000;
/** Idle windows are dropped only once there are more windows than this. */
const MIN_SWEEP_WINDOWS = 1000;

/** The start times that one limit has granted, past and future, in ascending order. */
class SlidingWindow {
  private readonly maxRequests: number;
  private readonly windowMs: number;
  /** Milliseconds of the monotonic clock. */
  private starts: number[] = [];

  constructor(requests: number, perMs: number) {
    this.maxRequests = requests;
    this.windowMs = perMs;
  }

  /** True if no granted start time is in the window or in the future. */
  isIdle(now: number): boolean {
    return (this.starts.at(-1) ?? now - this.windowMs) + this.windowMs <= now;
  }

  /** Reserves the next free start time. Returns undefined if `maxWaiting` effects are waiting already. */
  reserve(now: number, maxWaiting: number): number | undefined {
    this.dropExpired(now);
    const { starts, maxRequests, windowMs } = this;
    const earlier = starts[starts.length - maxRequests];
    const start = Math.max(now, starts.at(-1) ?? now, earlier === undefined ? now : earlier + windowMs);
    const isFull = !(starts.length < maxWaiting) && (starts[starts.length - maxWaiting] ?? start) > now;
    if (start > now && isFull) return undefined;
    starts.push(start);
    return start;
  }

  /** Frees a reserved start time that will not be used. */
  release(start: number): void {
    const index = this.starts.lastIndexOf(start);
    if (index >= 0) this.starts.splice(index, 1);
  }

  /** Drops start times that are before the window. */
  private dropExpired(now: number): void {
    // Only when half of them have expired, so the amortized cost of a start time is constant.
    const expiredAt = now - this.windowMs;
    if ((this.starts[this.starts.length >> 1] ?? now) > expiredAt) return;
    this.starts = this.starts.filter((start) => start > expiredAt);
  }
}

/** A reserved start time, as a delay from the time of the reservation. */
interface Reservation {
  readonly delayMs: number;
  release(): void;
}

/**
 * The windows of all rate limits, shared by every session of a process. The same limit for the same name is one window.
 */
export class RateLimiter {
  private readonly windows = new Map<string, SlidingWindow>();
  private readonly maxWaiting: number;
  private sweepThreshold = MIN_SWEEP_WINDOWS;

  /** `maxWaiting` bounds how many effects may wait for one window. */
  constructor({ maxWaiting = DEFAULT_MAX_WAITING }: { readonly maxWaiting?: number } = {}) {
    this.maxWaiting = maxWaiting;
  }

  /**
   * Reserves the next free start time for a name. `now` is a time of the monotonic clock. Returns undefined if too many
   * effects are waiting; throws DEFINITION_INVALID if the limit is invalid.
   */
  reserve(name: string, spec: RateLimitSpec, now: number): Reservation | undefined {
    const requests = Math.floor(policyNumber('rateLimit.requests', spec.requests, { min: 1 }));
    const perMs = policyNumber('rateLimit.perMs', spec.perMs, { min: 1 });
    const key = JSON.stringify([name, requests, perMs]);
    const window = this.windows.get(key) ?? new SlidingWindow(requests, perMs);
    this.windows.set(key, window);
    if (this.windows.size > this.sweepThreshold) this.sweep(key, now);
    const start = window.reserve(now, this.maxWaiting);
    return start === undefined ? undefined : { delayMs: Math.ceil(start - now), release: () => window.release(start) };
  }

  private sweep(except: string, now: number): void {
    for (const [key, window] of this.windows) if (key !== except && window.isIdle(now)) this.windows.delete(key);
    this.sweepThreshold = Math.max(MIN_SWEEP_WINDOWS, 2 * this.windows.size);
  }
}

/**
 * Returns a layer that delays each attempt until the rate limit allows it. It throws a retryable error if too many
 * attempts are waiting.
 */
export function rateLimitLayer(spec: RateLimitSpec, limiter: RateLimiter, clock: Clock): Layer {
  return async (effect, scope, next) => {
    const { name } = effect;
    let reservation: Reservation | undefined;
    const { delayMs } = await scope.record('rondo.rate.waited', () => {
      reservation = limiter.reserve(name, spec, clock.elapsed());
      if (reservation === undefined) throw tooManyWaitingError(effect);
      return { name, delayMs: reservation.delayMs };
    });
    try {
      if (delayMs > 0) await scope.sleep(delayMs);
    } catch (thrown) {
      reservation?.release();
      throw thrown;
    }
    return next();
  };
}

function tooManyWaitingError({ kind, name }: Effect): LoopError {
  const code = kind === 'model' ? 'BACKEND_FAILED' : 'TOOL_FAILED';
  const message = `Too many requests are waiting for the rate limit of "${name}"; try again later.`;
  return new LoopError(code, message, { name, retryable: true });
}
