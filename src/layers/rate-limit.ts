/**
 * Holds effects back so that no more than `requests` of a name start within `perMs`, over all sessions of the process.
 * Each caller gets a place in time in the order of asking, and sleeps until then; the delay is recorded, so a replay
 * takes no second place. The windows live in memory: a new process starts with empty ones.
 */

import { LoopError } from '../base/errors.js';
import type { Clock } from '../journal/clock.js';
import type { Layer } from '../kernel/layer.js';
import type { Effect } from '../protocol/body.js';
import type { RateLimitSpec } from '../protocol/loop.js';
import { setting } from './setting.js';

/** How many may wait for one limit. */
const WAITING = 10_000;
/** How many windows are kept, at least, before those that hold nobody back are dropped. */
const WINDOWS = 1000;

/** The starts that one limit has granted, past and to come, in order. */
class Window {
  private readonly requests: number;
  private readonly perMs: number;
  /** By the monotonic clock. */
  private starts: number[] = [];

  constructor(requests: number, perMs: number) {
    this.requests = requests;
    this.perMs = perMs;
  }

  idle(now: number): boolean {
    return (this.starts.at(-1) ?? now - this.perMs) + this.perMs <= now;
  }

  /** The next start that is free; undefined if too many wait already. */
  take(now: number, waiting: number): number | undefined {
    this.forget(now);
    const { starts, requests, perMs } = this;
    const earlier = starts[starts.length - requests];
    const start = Math.max(now, starts.at(-1) ?? now, earlier === undefined ? now : earlier + perMs);
    const full = !(starts.length < waiting) && (starts[starts.length - waiting] ?? start) > now;
    if (start > now && full) return undefined;
    starts.push(start);
    return start;
  }

  /** Frees a start that nobody will use. */
  giveBack(start: number): void {
    const place = this.starts.lastIndexOf(start);
    if (place >= 0) this.starts.splice(place, 1);
  }

  /** Forgets starts that no longer count. */
  private forget(now: number): void {
    // Only once half of them are old, so that dropping them costs each start the same, however many there are.
    const old = now - this.perMs;
    if ((this.starts[this.starts.length >> 1] ?? now) > old) return;
    this.starts = this.starts.filter((start) => start > old);
  }
}

/** A start that was granted. */
export interface Place {
  readonly delayMs: number;
  giveBack(): void;
}

/** The windows of all limits, shared by every session of a process. The same limit for the same name is one window. */
export class RateLimits {
  private readonly windows = new Map<string, Window>();
  private readonly waiting: number;
  private sweepAt = WINDOWS;

  constructor({ waiting = WAITING }: { readonly waiting?: number } = {}) {
    this.waiting = waiting;
  }

  /** Takes the next free place of a name; undefined if too many wait for it. */
  take(name: string, spec: RateLimitSpec, now: number): Place | undefined {
    const requests = Math.floor(setting('rateLimit.requests', spec.requests, { least: 1 }));
    const perMs = setting('rateLimit.perMs', spec.perMs, { least: 1 });
    const key = JSON.stringify([name, requests, perMs]);
    const window = this.windows.get(key) ?? new Window(requests, perMs);
    this.windows.set(key, window);
    if (this.windows.size > this.sweepAt) this.sweep(key, now);
    const start = window.take(now, this.waiting);
    return start === undefined
      ? undefined
      : { delayMs: Math.ceil(start - now), giveBack: () => window.giveBack(start) };
  }

  private sweep(except: string, now: number): void {
    for (const [key, window] of this.windows) if (key !== except && window.idle(now)) this.windows.delete(key);
    this.sweepAt = Math.max(WINDOWS, 2 * this.windows.size);
  }
}

/** Waits for a place under the limit before each attempt; when too many wait, it fails at once and may be retried. */
export function rateLimitLayer(spec: RateLimitSpec, limits: RateLimits, clock: Clock): Layer {
  return async (effect, scope, next) => {
    const { name } = effect;
    let place: Place | undefined;
    const { delayMs } = await scope.record('rondo.rate.waited', () => {
      place = limits.take(name, spec, clock.elapsed());
      if (place === undefined) throw crowded(effect);
      return { name, delayMs: place.delayMs };
    });
    try {
      if (delayMs > 0) await scope.sleep(delayMs);
    } catch (thrown) {
      place?.giveBack();
      throw thrown;
    }
    return next();
  };
}

function crowded({ kind, name }: Effect): LoopError {
  const code = kind === 'model' ? 'BACKEND_FAILED' : 'TOOL_FAILED';
  const message = `Too many requests wait for the rate limit of "${name}"; ask again later.`;
  return new LoopError(code, message, { name, retryable: true });
}
