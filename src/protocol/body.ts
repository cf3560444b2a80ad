/** The types that loop bodies are written against: the loop, its scope, and the effects it performs. Types only. */
import type { ApprovalTarget } from './approval.js';
import type { Safety } from './entry.js';
import type { Json } from './json.js';
import type { JsonSchema, PolicySpec } from './loop.js';

/** Returns the validated value, or throws a LoopError that states what is wrong with it. */
export type Validate<T> = (value: unknown) => T;

/** A loop as the kernel runs it: a name, a body, and the validation of its input and output. */
export interface Loop<I = unknown, O = unknown> {
  readonly name: string;
  readonly version?: string | undefined;
  /**
   * The digest of the definition and of everything it calls. Recorded with the call, so that the definition can be
   * found again.
   */
  readonly definitionDigest?: string | undefined;
  /**
   * The kind of body; absent for a tool and for a composite of steps. `model` is the model call of an agent. Recorded
   * with the call, so that a view can attribute its effects.
   */
  readonly bodyKind?: 'prompt' | 'model' | 'agent' | 'code' | undefined;
  readonly input?: Validate<I> | undefined;
  readonly output?: Validate<O> | undefined;
  /**
   * True if both validations return their argument unchanged and are fast for a few kilobytes. Validations of such
   * small values are then not timed.
   */
  readonly hasFastValidation?: boolean | undefined;
  /** True if the body is known to await each of its steps. The kernel then does not look for steps that it forgot. */
  readonly awaitsSteps?: boolean | undefined;
  /**
   * The one effect of which every call of the loop consists, if that is all that its body does. A call without layers is
   * then recorded together with its effect.
   */
  readonly leaf?: Leaf<I> | undefined;
  /** Runs the loop. Must be deterministic outside of its scope, because a resumed turn runs it again. */
  body(input: I, scope: Scope): Promise<O> | O;
}

/** The effect of a leaf call: a call that is its own effect. */
export interface Leaf<I = unknown> {
  /**
   * Returns the effect of a call. Starts no step of the scope. The layers are chosen for this effect before the start of
   * the call is recorded.
   */
  effect(input: I, scope: Scope): Effect;
  /** The member of the effect's result that is the output; absent if the result itself is the output. */
  readonly outputMember?: string | undefined;
}

/**
 * A signal with a name and a schema for its payload. `T` is the type that a wait returns, `P` the payload that a sender
 * gives.
 */
export interface SignalType<T = unknown, P = unknown> {
  /** The name under which it is delivered. */
  readonly name: string;
  /** The JSON Schema of the payload; `true` if the schema cannot be converted to JSON Schema. */
  readonly schema: JsonSchema;
  /** Returns the parsed payload. Throws INPUT_VALIDATION_FAILED if it does not fit the schema. */
  readonly validate: Validate<T>;
  /** Never set: it holds the types for the compiler. */
  readonly types?: { readonly value: T; readonly payload: P } | undefined;
}

/** The context of one attempt at an effect. */
export interface EffectContext {
  /**
   * The same for every attempt at a non-pure effect, in any process. Pass it to systems that accept an idempotency key.
   */
  readonly idempotencyKey: string;
  /** Aborted when the run is cancelled or this branch lost a race. */
  readonly signal: AbortSignal;
  /**
   * A signal that aborts at the same time, reused by later effects and cheaper to obtain. Remove your listener when
   * done.
   */
  readonly sharedSignal?: AbortSignal;
  /** Under a grant: what the effect is confined to. A tool that cannot confine itself to it must not act. */
  readonly confinement?: Confinement | undefined;
  /** Of a model call under a grant with a limit of its output: counts what the model writes. */
  readonly outputMeter?: OutputMeter | undefined;
}

/** The directories and hosts that a grant permits; absent if it permits all. */
export interface Confinement {
  readonly roots?: readonly string[] | undefined;
  readonly destinations?: readonly string[] | undefined;
}

/** Counts the output of a model call while it is streamed. */
export interface OutputMeter {
  /** The maximum number of tokens to request. */
  readonly maxTokens: number;
  /** Counts a piece of the reply. Throws once the reply has more tokens than were requested. */
  addPiece(piece: string): void;
}

/** What a model call can use at most. */
export interface TokenBound {
  /** The size of the request in bytes of UTF-8, including the tools: no model reads more tokens than that. */
  readonly inputBytes: number;
  /** The minimum number of tokens of its texts: a provider that reports fewer is not believed. */
  readonly minInputTokens: number;
  /** The maximum number of output tokens of the request; absent if it has none. */
  readonly maxOutputTokens?: number | undefined;
}

/** Something done outside of the journal: a model call, a tool call, a request to another system. */
export interface Effect<O = unknown> extends EffectRules {
  /** The kind of effect, such as `code`. `gate` and `context` are reserved for the runtime; under a grant, also `model`. */
  readonly kind: string;
  readonly name: string;
  /** Journaled before the effect is performed; must be JSON. */
  readonly input: unknown;
  /** How a crash between the intent and the result is handled. */
  readonly safety: Safety;
  /** Performs the effect with the input as it was journaled. */
  perform(input: Json, context: EffectContext): Promise<O> | O;
  /**
   * Set by a layer. Called before an attempt that a retry of the turn makes after the effect had ended; throws to refuse it.
   */
  admitRetry?: (() => void) | undefined;
}

/** Performs an effect that is written as a function. What it returns is recorded as JSON. */
export type PerformEffect<O> = (context: EffectContext) => Promise<O> | O;

/** The policy of an effect that is written as a function. An effect with the safety `once` is not retried. */
export type EffectPolicy = Pick<PolicySpec, 'retry' | 'rateLimit' | 'timeoutMs'>;

/** Options of an effect that is written as a function. */
export interface EffectOptions {
  /**
   * How a crash between the intent and the result is handled.
   * @default 'once'
   */
  readonly safety?: Safety;
  /**
   * Retries, rate limit and timeout.
   * @default none
   */
  readonly policy?: EffectPolicy;
  /**
   * What is journaled before the effect is performed, as evidence of what was requested; must be JSON.
   * @default null
   */
  readonly input?: unknown;
}

/** The arguments of `Scope.effect`: an effect, or a name, a function and options. */
export type EffectArguments<O> =
  | readonly [effect: Effect<O>]
  | readonly [name: string, perform: PerformEffect<O>, options?: EffectOptions | undefined];

/** The members of an effect that layers and the approval gate read. The kernel does not read them. */
export interface EffectRules {
  /** The policy of the loop that performs the effect. Backends in it are resolved to models by name. */
  readonly policy?: PolicySpec | undefined;
  /** The scopes that the tool requires of a grant. */
  readonly scopes?: readonly string[] | undefined;
  /** Of a model call: what it can use at most. */
  readonly tokenBound?: ((input: Json) => TokenBound) | undefined;
  /** What runs the effect, and so confines it: `toolbox`, `http`, `builtin`, `exec`, `module`, `mcp` or `code`. */
  readonly boundary?: string | undefined;
  /** Distinguishes two definitions with the same id. An approval is bound to it. */
  readonly definition?: string | undefined;
  /** The source text of the function that performs the effect. Only the answer cache compares it. */
  readonly source?: string | undefined;
  /**
   * Returns the question for the approver, or null if this input needs no approval. Any other value asks a default
   * question.
   */
  readonly describe?: ((input: Json, context: { readonly mode?: string }) => unknown) | undefined;
  /** The mode passed to `describe` for the tool's own policy. Takes precedence over the mode of the agent. */
  readonly mode?: string | undefined;
  /** True if the tool needs approval even without a policy, unless its agent allows it by name. */
  readonly asksByDefault?: boolean | undefined;
  /**
   * Returns the binding of approvals to the target of the call; undefined, like an absent function, if the tool
   * resolves no target.
   */
  readonly binding?: (() => TargetBinding | undefined) | undefined;
}

/** Binds an approval to the target of a call. */
export interface TargetBinding {
  /** Resolves the current target of a call with this input. */
  resolve(input: Json): Promise<ApprovalTarget | undefined>;
  /** Returns a `perform` that checks, on each attempt, that the target is still the approved one. */
  perform(approved: ApprovalTarget | undefined): Effect['perform'];
}

/** A body without a name: one branch of `all` or `race`. */
export type Branch<O> = (scope: Scope) => Promise<O> | O;

/** The results of the branches of `all`, by position. */
export type BranchResults<B extends readonly Branch<unknown>[]> = {
  -readonly [I in keyof B]: Awaited<ReturnType<B[I]>>;
};

/**
 * The interface of a body to the outside world. Each step is recorded once; a replayed body gets the recorded result.
 */
export interface Scope {
  /** The path of this scope: the key of its call, branch or effect. */
  readonly key: string;
  /** True once the run was cancelled or this branch lost a race; no further step starts. */
  readonly isCancelled: boolean;
  /** The value that the session was opened with for its bodies. */
  readonly context: unknown;
  /** Calls a loop and returns its output, or throws its error. */
  call<I, O>(loop: Loop<I, O>, input: I): Promise<O>;
  /**
   * Performs an effect: code that acts outside of the journal. Returns its result, or throws its error; both are
   * recorded.
   *
   * @example
   * const stock = await scope.effect('reserve', () => reserve(sku), { safety: 'idempotent', policy: { retry: { attempts: 3 } } });
   */
  effect<O>(name: string, perform: PerformEffect<O>, options?: EffectOptions | undefined): Promise<O>;
  /** Performs an effect with a kind and an input of its own through the session's layers. */
  effect<O>(effect: Effect<O>): Promise<O>;
  /**
   * Runs branches concurrently and waits for all of them. If some failed, throws the error of the first one by
   * position.
   */
  all<const B extends readonly Branch<unknown>[]>(branches: B): Promise<BranchResults<B>>;
  /**
   * Runs branches concurrently until one ends, and cancels the others. Returns the result of the winner or throws its
   * error; both are recorded. Throws if there is no branch.
   */
  race<const B extends readonly Branch<unknown>[]>(branches: B): Promise<Awaited<ReturnType<B[number]>>>;
  /**
   * Waits for at least this long: milliseconds, or a text such as `'90s'`, `'1 hour 30 minutes'` or `'3 days'`. The
   * timer survives restarts.
   */
  sleep(duration: number | string): Promise<void>;
  /**
   * Waits for a signal and returns its payload. Signals that arrived earlier are received oldest first. A payload that
   * does not fit the schema of a signal type is discarded with a warning in the log of the turn, and the wait continues.
   *
   * @example
   * const payment = await scope.race([(s) => s.wait(paid), (s) => s.sleep('3 days')]);
   */
  wait<T>(signal: SignalType<T>): Promise<T>;
  wait(name: string): Promise<Json | undefined>;
  /**
   * Records a fact under a type of your own and returns it. `make` runs only the first time; an error that it throws is
   * recorded and thrown on replay too.
   */
  record<V extends Json>(type: string, make: () => V): Promise<V>;
  /** Records a log line, which becomes an event of the trace. */
  log(level: 'debug' | 'info' | 'warn' | 'error', message: string): Promise<unknown>;
  /** Returns the wall-clock time in milliseconds since the epoch. It is recorded: a replay returns the same time. */
  now(): Promise<number>;
  /** Returns a random number from 0 up to but not including 1. It is recorded: a replay returns the same number. */
  random(): Promise<number>;
}
