/**
 * The wire types of LSEM, the Loop Stack Execution Model, for results: the events of a trace with their payloads, and
 * the result of a call. `TurnResult` and `TurnStatus` extend them for turns.
 */
import type { Json } from './json.js';

/** The payload of each event type that LSEM v0.1 defines. */
export interface TracePayloads {
  'call.started': { readonly loopId: string; readonly loopVersion: string; readonly parentCallId?: string };
  'call.input.validated': { readonly durationMs: number };
  'call.backend.requested': { readonly backendId: string; readonly model: string; readonly promptLength: number };
  'call.backend.responded': {
    readonly durationMs: number;
    readonly inputTokens: number;
    readonly outputTokens: number;
  };
  'call.tool.invoked': { readonly toolName: string };
  'call.tool.returned': { readonly durationMs: number };
  'child.started': { readonly childCallId: string; readonly loopId: string; readonly stepIndex: number };
  'child.completed': { readonly childCallId: string; readonly status: 'ok' | 'error' };
  'call.output.validated': { readonly durationMs: number };
  'call.completed': { readonly totalDurationMs: number };
  'call.errored': { readonly code: string; readonly message: string; readonly details?: Json };
  log: { readonly level: string; readonly message: string };
}

/** The kind and the name of an effect, as the code body passed them. */
interface EffectPayload {
  readonly kind: string;
  readonly name: string;
}

/** The payloads of Rondo's vendor events for effects that a code body performs itself (`scope.effect`). */
export interface VendorPayloads {
  'rondo.effect.requested': EffectPayload;
  'rondo.effect.returned': EffectPayload & { readonly durationMs: number };
  'rondo.effect.failed': EffectPayload & {
    readonly durationMs: number;
    readonly code: string;
    readonly message: string;
  };
  /** A branch of a body in code begins to wait: for a signal, or until a point in time (ISO 8601, UTC). `key` is its step. */
  'rondo.wait.opened': { readonly key: string; readonly signal?: string; readonly until?: string };
  /** A body in code slept. */
  'rondo.timer.fired': { readonly key: string; readonly durationMs: number };
  /** A body in code received a signal that it waited for. */
  'rondo.signal.received': { readonly key: string; readonly name: string } & {
    readonly durationMs: number;
    readonly payload?: Json;
  };
  /** The race of a branch that waits was lost. */
  'rondo.wait.cancelled': { readonly key: string };
  /** The call received the answer to its approval. `at` is when the answer was given: ISO 8601, UTC. */
  'rondo.approval.answered': { readonly id: string; readonly approved: boolean; readonly by: string } & {
    readonly reason?: string;
    readonly at: string;
  };
  /** A standing grant approved the call. `id` is the approval whose answer gave the grant. */
  'rondo.approval.granted': { readonly id: string };
}

/** The event types that LSEM defines. Any other type belongs to a vendor and has that vendor's namespace. */
export type CoreEventType = keyof TracePayloads;

/** An event of a type that LSEM defines, narrowed by `type`. */
export type CoreEvent = {
  [T in CoreEventType]: {
    readonly callId: string;
    readonly ts: string;
    readonly type: T;
    readonly payload: TracePayloads[T];
  };
}[CoreEventType];

/** An event of any type. Do not modify events: equal payloads in one trace may share one object. */
export interface TraceEvent {
  /** The path of the call, as in `t1/2/0`. */
  readonly callId: string;
  /** The time of the event: ISO 8601, UTC. */
  readonly ts: string;
  readonly type: string;
  readonly payload?: unknown;
}

/** The error of a failed call. The codes are listed in docs/errors.md. */
export interface ResultError {
  readonly code: string;
  readonly message: string;
  readonly details?: Json;
  /** The stack of what was thrown, as text that begins with the user's frames; absent for errors of the runtime. */
  readonly stack?: string;
  /** What was thrown, if that happened in this process. It is not enumerable, so JSON leaves it out. */
  readonly cause?: unknown;
}

/** The result of a call, with its trace. */
export interface LoopResult<O = unknown> {
  readonly callId: string;
  readonly loopId: string;
  readonly loopVersion: string;
  readonly status: 'ok' | 'error';
  /** Present if the status is `ok`. */
  readonly output?: O;
  /** Present if the status is `error`. */
  readonly error?: ResultError;
  readonly startedAt: string;
  readonly endedAt: string;
  readonly durationMs: number;
  /** The events of the call and of all calls below it, in order. */
  readonly trace: readonly TraceEvent[];
}

/** Something that a paused turn waits for. */
export interface PendingItem {
  /** A signal, the resolution of an effect in doubt, a timer, or the answer to an approval. */
  readonly kind: 'signal' | 'doubt' | 'timer' | 'approval';
  /** The key of the step that waits. */
  readonly key: string;
  /** Of a signal: the name that the step waits for. Of an effect in doubt: the name of the effect. */
  readonly name?: string;
  /** Of an approval: the id to answer. */
  readonly id?: string;
  /** Of an effect in doubt: its input. */
  readonly input?: Json;
  /** Of a timer: when it fires, ISO 8601, UTC. */
  readonly until?: string;
}

/** What the results of all turns have. */
interface TurnResultBase extends Omit<LoopResult, 'status' | 'output' | 'error'> {
  readonly sessionId: string;
  readonly turnId: string;
  /** The id of its last receipt: the hash of the signed envelope. Absent if the store makes no receipts. */
  readonly receipt?: string;
}

/** The result of a turn that completed. */
export interface OkResult<O = unknown> extends TurnResultBase {
  readonly status: 'ok';
  readonly output: O;
}

/** The result of a turn that failed. */
export interface ErrorResult extends TurnResultBase {
  readonly status: 'error';
  readonly error: ResultError;
}

/** The result of a turn that waits: for approvals, signals, resolutions of effects in doubt, or points in time. */
export interface PausedResult extends TurnResultBase {
  readonly status: 'paused';
  /** The steps that wait. */
  readonly pending: readonly PendingItem[];
}

/** The result of a turn that reached a stop condition, such as a limit of its budget. */
export interface StoppedResult extends TurnResultBase {
  readonly status: 'stopped';
  /** Which condition was reached. */
  readonly reason: string;
}

/** The result of a turn that was cancelled. */
export interface CancelledResult extends TurnResultBase {
  readonly status: 'cancelled';
  /** The reason that the caller of the cancellation gave. */
  readonly reason: string;
  /** The error that the cancellation caused in the turn; its code is CANCELLED. */
  readonly error: ResultError;
}

/**
 * The result of a turn, narrowed by `status`.
 *
 * @example
 * const result = await rondo.run(greet, { name: 'Ada' });
 * if (result.status === 'ok') console.log(result.output.text);
 * else if (result.status === 'paused') console.log(result.pending);
 */
export type TurnResult<O = unknown> = OkResult<O> | ErrorResult | PausedResult | StoppedResult | CancelledResult;

/** The status of a turn, read from the store without running the turn. */
export interface TurnStatus {
  readonly turnId: string;
  readonly sessionId: string;
  readonly loopId: string;
  readonly loopVersion: string;
  /** `running`: a live process runs the turn; `interrupted`: the turn has not ended and no process runs it. */
  readonly status: 'ok' | 'error' | 'stopped' | 'cancelled' | 'paused' | 'running' | 'interrupted';
  /** The principal on whose behalf the turn runs. */
  readonly principal?: string;
  readonly startedAt: string;
  readonly endedAt?: string;
  readonly durationMs?: number;
  readonly error?: ResultError;
  /** Why the turn stopped or was cancelled. */
  readonly reason?: string;
  /** What the branches of a turn that is paused or running wait for. */
  readonly pending?: readonly PendingItem[];
  /** The id of the process that runs the turn. */
  readonly pid?: number;
}
