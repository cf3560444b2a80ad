/** What a loop body is written against: the loop it belongs to, the scope it is given and the effects it asks for. Types only. */
import type { ApprovalTarget } from './approval.js';
import type { Safety } from './entry.js';
import type { Json } from './json.js';
import type { PolicySpec } from './loop.js';

/** Returns the validated value, or throws a LoopError that says what is wrong with it. */
export type Validate<T> = (value: unknown) => T;

/** A loop as the kernel runs it: a name, a body, and what may go in and come out. */
export interface Loop<I = unknown, O = unknown> {
  readonly name: string;
  readonly version?: string | undefined;
  /** The digest of the definition and of everything it calls. Recorded with the call, so that the definition can be found again. */
  readonly definitionDigest?: string | undefined;
  /** What the body is, unless it is a tool's one effect. Recorded with the call, so that a view can attribute its effects. */
  readonly bodyKind?: 'prompt' | 'agent' | 'code' | undefined;
  readonly input?: Validate<I> | undefined;
  readonly output?: Validate<O> | undefined;
  /** True if both validations return the value they are given and are fast for a few kilobytes; then they are not timed. */
  readonly hasFastValidation?: boolean | undefined;
  body(input: I, scope: Scope): Promise<O> | O;
}

/** What an effect is given when it is performed. */
export interface EffectContext {
  /** The same for every attempt at a non-pure effect, in any process. Pass it to systems that accept an idempotency key. */
  readonly idempotencyKey: string;
  /** Aborted when the run is cancelled or this branch lost a race. */
  readonly signal: AbortSignal;
  /** The same signal, shared with later effects and cheaper to obtain. Remove your listener when done. */
  readonly sharedSignal?: AbortSignal;
}

/** Something done outside the run: a model call, a tool call, a request to another system. */
export interface Effect<O = unknown> extends EffectRules {
  readonly kind: string;
  readonly name: string;
  readonly input: unknown;
  /** How a crash between the intent and the result is handled. */
  readonly safety: Safety;
  /** Performs the effect with the input as it was journaled. */
  perform(input: Json, context: EffectContext): Promise<O> | O;
}

/** What layers and the approval gate need to know about an effect. The kernel passes it on without reading it. */
export interface EffectRules {
  /** The policy of the loop that asks for the effect; backends in it are resolved to models by name. */
  readonly policy?: PolicySpec | undefined;
  /** Distinguishes two definitions with the same id. An approval is bound to it. */
  readonly definition?: string | undefined;
  /** Returns what an approver is asked, or null if this input needs no approval. */
  readonly describe?: ((input: Json, context: { readonly mode?: string }) => unknown) | undefined;
  /** The mode that `describe` is given for the tool's own policy, whatever the mode of its agent. */
  readonly mode?: string | undefined;
  /** True if it needs approval without a policy of its own, unless the agent that has the tool allows it by name. */
  readonly asksByDefault?: boolean | undefined;
  /** How approvals are bound to what the call acts on; absent for a tool that resolves nothing. */
  readonly binding?: (() => TargetBinding | undefined) | undefined;
}

/** Binds an approval to what a call acts on. */
export interface TargetBinding {
  /** What the call acts on right now. */
  resolve(input: Json): Promise<ApprovalTarget | undefined>;
  /** Performs the call only if it still acts on what was approved; each attempt checks that first. */
  perform(approved: ApprovalTarget | undefined): Effect['perform'];
}

/** A body without a name: one branch of an `all` or a `race`. */
export type Branch<O> = (scope: Scope) => Promise<O> | O;

/** What the branches of an `all` return, by position. */
export type BranchResults<B extends readonly Branch<unknown>[]> = {
  -readonly [I in keyof B]: Awaited<ReturnType<B[I]>>;
};

/** Everything a body may use of the outside world. Each step is recorded once; a body that runs again gets what was recorded. */
export interface Scope {
  /** The path of this scope: the key of its call, branch or effect. */
  readonly key: string;
  /** True once the run was cancelled or this branch lost a race; no further step starts. */
  readonly isCancelled: boolean;
  /** What the session was opened with for its bodies. */
  readonly context: unknown;
  /** Calls a loop. */
  call<I, O>(loop: Loop<I, O>, input: I): Promise<O>;
  /** Performs an effect through the session's layers. */
  effect<O>(effect: Effect<O>): Promise<O>;
  /** Runs branches concurrently and waits for all of them. If some failed, throws the error of the first one by position. */
  all<const B extends readonly Branch<unknown>[]>(branches: B): Promise<BranchResults<B>>;
  /** Runs branches concurrently until one ends, and cancels the others. The winner is recorded. */
  race<const B extends readonly Branch<unknown>[]>(branches: B): Promise<Awaited<ReturnType<B[number]>>>;
  /** Waits for at least this long, across restarts. */
  sleep(ms: number): Promise<void>;
  /** Waits for a signal and returns its value. Signals that arrived earlier are delivered in order. */
  wait(name: string): Promise<Json | undefined>;
  /** Records a fact of a type of your own. `make` runs once. */
  record<V extends Json>(type: string, make: () => V): Promise<V>;
  /** Writes a line for people into the trace. */
  log(level: 'debug' | 'info' | 'warn' | 'error', message: string): Promise<unknown>;
  /** The time in milliseconds since the epoch, recorded. */
  now(): Promise<number>;
  /** A random number from 0 up to 1, recorded. */
  random(): Promise<number>;
}
