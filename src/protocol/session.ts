/**
 * The types that a session exchanges with its callers: layers around effects, signals, and the outcome of a run. Types
 * only.
 */
import type { Effect, Scope } from './body.js';
import type { Entry, ErrorRecord } from './entry.js';
import type { Json } from './json.js';

/**
 * A function around an effect. It may admit, refuse, answer, change, delay or repeat the effect, and never performs it
 * itself. `scope` belongs to the effect: timers, waits and records of the layer are journaled under the effect's key,
 * so a replayed layer gets its recorded results. `next` runs the layers inside this one, with the same effect or
 * another; every call of the innermost `next` is one attempt.
 *
 * @example
 * const admitReads: Layer = async (effect, scope, next) => {
 *   if (effect.name.startsWith('read_')) return next();
 *   throw new LoopError('TOOL_NOT_ADMITTED', `${effect.name} may change something.`);
 * };
 */
export type Layer = (
  effect: Effect,
  scope: LayerScope,
  next: (effect?: Effect) => Promise<unknown>,
) => Promise<unknown>;

/** The scope of an effect, as its layers use it. */
export interface LayerScope extends Scope {
  /**
   * An entry of the step that is recorded next; undefined if nothing is recorded after the last step. A layer whose next
   * step depends on the code of the process repeats a recorded step with it, whatever the code is now.
   */
  readonly nextRecordedEntry: Entry | undefined;
  /** The key of the last step. */
  readonly stepKey: string;
}

/** A fact from outside of the session. */
export interface Signal {
  /** The id of the delivery: a signal that is delivered twice under one id is received once. */
  readonly id: string;
  /** The name that a body waits for. */
  readonly name: string;
  readonly value?: unknown;
  /**
   * The key of the root (a top-level call) that receives it.
   * @default any root of the session
   */
  readonly turn?: string | undefined;
}

/** Details of the resolution of an effect in doubt. */
export interface ResolutionDetails {
  /** The result of the effect, for `supply`. */
  readonly value?: unknown;
  /** The reason, for the journal and for the error of `fail`. */
  readonly reason?: string;
}

/**
 * What a run does when only timers can continue it: wait for them (`hold`), end as paused with a list of them (`pause`),
 * or wait only if one of them fires within this many milliseconds.
 */
export type TimerMode = 'hold' | 'pause' | number;

/** Options of one run of a session. */
export interface RunOptions {
  /**
   * Called with the outcome before it is durable and returned, once no effect is in flight. What it records becomes
   * durable together with the outcome.
   */
  readonly seal?: ((outcome: RunOutcome) => Promise<void>) | undefined;
  /** @default 'hold' */
  readonly timers?: TimerMode;
}

/**
 * What a paused run waits for: a signal, the resolution of an effect in doubt, or a point in time (`until`, in
 * milliseconds since the epoch).
 */
export type PendingStep =
  | { readonly kind: 'signal'; readonly key: string; readonly name: string }
  | { readonly kind: 'doubt'; readonly key: string; readonly name: string; readonly input?: Json }
  | { readonly kind: 'timer'; readonly key: string; readonly until: number };

/** Why a run was stopped from outside of its bodies, which cannot notice it. */
export interface RunStop {
  /** The name of the reason, such as that of a limit. */
  readonly reason: string;
  readonly message: string;
  readonly data?: Json;
}

/**
 * Decides on each attempt at an effect, before its intent is written, and again when an attempt that was interrupted is
 * repeated. Returns the effect to perform, which may differ in `perform` only. Throws a LoopError to refuse it; the
 * refusal is recorded. It may also stop the run (`Session.stop`); then nothing is performed.
 */
export type Admit = (effect: Effect, effectKey: string) => Effect;

/** How a run ended, or what it waits for. The journal holds it durably before it is returned. */
export type RunOutcome<O = unknown> =
  | { readonly status: 'ok'; readonly output: O }
  | {
      readonly status: 'error';
      /** The recorded error. Its `cause`, which is not enumerable, is what was thrown, if that was in this run. */
      readonly error: ErrorRecord & { readonly cause?: unknown };
    }
  | { readonly status: 'paused'; readonly pending: readonly PendingStep[] }
  /** The root stays open: a later run continues it. */
  | { readonly status: 'stopped'; readonly stop: RunStop };
