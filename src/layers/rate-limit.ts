/**
 * Holds effects back so that no more than `requests` of a name start within `perMs`, over all sessions of the process.
 * Each caller gets a place in time in the order of asking, and sleeps until then; the delay is recorded, so a replay
 * takes no second place. The windows live in memory: a new process starts with empty ones.
 */

import { LoopError } from '../base/errors.js';
import type { Clock } from '../journal/clock.js';
import type { Effect } from '../protocol/body.js';
import type { RateLimitSpec } from '../protocol/loop.js';
import type { Layer } from '../protocol/session.js';
import { policyNumber } from './policy-number.js';

/** How many may wait for one limit. */
const DEFAULT_MAX_WAITING = 10_000;
/** How many windows are kept, at least, before those that hold nobody back are dropped. */
const MIN_SWEEP_WINDOWS = 1000;

/** The starts that one limit has granted, past and to come, in order. */
class SlidingWindow {
  private readonly maxRequests: number;
  private readonly windowMs: number;
  /** By the monotonic clock. */
  private starts: number[] = [];

  constructor(requests: number, perMs: number) {
    this.maxRequests = requests;
    this.windowMs = perMs;
  }

  isIdle(now: number): boolean {
    return (this.starts.at(-1) ?? now - this.windowMs) + this.windowMs <= now;
  }

  /** The next start that is free; undefined if too many wait already. */
  reserve(now: number, waiting: number): number | undefined {
    this.dropExpired(now);
    const { starts, maxRequests, windowMs } = this;
    const earlier = starts[starts.length - maxRequests];
    const start = Math.max(now, starts.at(-1) ?? now, earlier === undefined ? now : earlier + windowMs);
    const full = !(starts.length < waiting) && (starts[starts.length - waiting] ?? start) > now;
    if (start > now && full) return undefined;
    starts.push(start);
    return start;
  }

  /** Frees a start that nobody will use. */
  release(start: number): void {
    const place = this.starts.lastIndexOf(start);
    if (place >= 0) this.starts.splice(place, 1);
  }

  /** Forgets starts that no longer count. */
  private dropExpired(now: number): void {
    // Only once half of them are old, so that dropping them costs each start the same, however many there are.
    const old = now - this.windowMs;
    if ((this.starts[this.starts.length >> 1] ?? now) > old) return;
    this.starts = this.starts.filter((start) => start > old);
  }
}

/** A start that was granted. */
export interface Reservation {
  readonly delayMs: number;
  release(): void;
}

/** The windows of all limits, shared by every session of a process. The same limit for the same name is one window. */
export class RateLimiter {
  private readonly windows = new Map<string, SlidingWindow>();
  private readonly maxWaiting: number;
  private sweepThreshold = MIN_SWEEP_WINDOWS;

  constructor({ waiting = DEFAULT_MAX_WAITING }: { readonly waiting?: number } = {}) {
    this.maxWaiting = waiting;
  }

  /** Takes the next free place of a name; undefined if too many wait for it. */
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

/** Waits for a place under the limit before each attempt; when too many wait, it fails at once and may be retried. */
export function rateLimitLayer(spec: RateLimitSpec, limits: RateLimiter, clock: Clock): Layer {
  return async (effect, scope, next) => {
    const { name } = effect;
    let place: Reservation | undefined;
    const { delayMs } = await scope.record('rondo.rate.waited', () => {
      place = limits.reserve(name, spec, clock.elapsed());
      if (place === undefined) throw tooManyWaitingError(effect);
      return { name, delayMs: place.delayMs };
    });
    try {
      if (delayMs > 0) await scope.sleep(delayMs);
    } catch (thrown) {
      place?.release();
      throw thrown;
    }
    return next();
  };
}

function tooManyWaitingError({ kind, name }: Effect): LoopError {
  const code = kind === 'model' ? 'BACKEND_FAILED' : 'TOOL_FAILED';
  const message = `Too many requests wait for the rate limit of "${name}"; ask again later.`;
  return new LoopError(code, message, { name, retryable: true });
}
