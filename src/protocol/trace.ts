/** LSEM's wire types: the events of a trace with their payloads, and the result of a call. */
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

/** The effect of a code body: its kind and name as the body gave them. */
interface EffectPayload {
  readonly kind: string;
  readonly name: string;
}

/** The payloads of Rondo's own events for what a code body does outside of any loop (`scope.effect`). */
export interface VendorPayloads {
  'rondo.effect.requested': EffectPayload;
  'rondo.effect.returned': EffectPayload & { readonly durationMs: number };
  'rondo.effect.failed': EffectPayload & {
    readonly durationMs: number;
    readonly code: string;
    readonly message: string;
  };
}

/** The types that LSEM defines; any other is a vendor's, in a namespace of its own. */
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

/** Any event: the unit of observability. Events are not to be changed: payloads of one trace that are equal may be one object. */
export interface TraceEvent {
  readonly callId: string;
  /** ISO 8601, UTC. */
  readonly ts: string;
  readonly type: string;
  readonly payload?: unknown;
}

export interface ResultError {
  readonly code: string;
  readonly message: string;
  readonly details?: Json;
}

/** How a call ended, with everything that happened in it. */
export interface LoopResult<O = unknown> {
  readonly callId: string;
  readonly loopId: string;
  readonly loopVersion: string;
  readonly status: 'ok' | 'error';
  readonly output?: O;
  readonly error?: ResultError;
  readonly startedAt: string;
  readonly endedAt: string;
  readonly durationMs: number;
  readonly trace: readonly TraceEvent[];
}

/** What a paused turn waits for. */
export interface PendingItem {
  readonly kind: 'signal' | 'doubt' | 'timer' | 'approval';
  readonly key: string;
  readonly name?: string;
  /** Of an approval: what an answer is given to. */
  readonly id?: string;
  readonly input?: Json;
  readonly until?: string;
}

/** How a turn ended, or why it did not: the result of its root call, and where to find it again. */
export interface TurnResult<O = unknown> extends Omit<LoopResult<O>, 'status'> {
  readonly status: 'ok' | 'error' | 'paused' | 'stopped';
  readonly sessionId: string;
  readonly turnId: string;
  readonly pending?: readonly PendingItem[];
  readonly reason?: string;
}

/** What is known of a turn without running it. */
export interface TurnStatus {
  readonly turnId: string;
  readonly sessionId: string;
  readonly loopId: string;
  readonly loopVersion: string;
  /** `running`: in a live process; `interrupted`: begun, not ended, and nobody is at it. */
  readonly status: 'ok' | 'error' | 'stopped' | 'paused' | 'running' | 'interrupted';
  /** On whose behalf it runs. */
  readonly principal?: string;
  readonly startedAt: string;
  readonly endedAt?: string;
  readonly durationMs?: number;
  readonly error?: ResultError;
  /** Why it stopped short. */
  readonly reason?: string;
  readonly pending?: readonly PendingItem[];
  /** The process that runs it. */
  readonly pid?: number;
}
