/**
 * The wire types of LSEM, the Loop Stack Execution Model: the definition of a loop as a JSON document. LSEM does not
 * specify the members of prompt, tool, backend and policy; those are Rondo's published profile (docs/profile.md).
 */
import type { Safety } from './entry.js';
import type { Json } from './json.js';
import type { PlanSpec } from './plan.js';

/** A JSON Schema document, draft 2020-12. */
export type JsonSchema = boolean | { readonly [key: string]: Json };

/** The kind of a loop. An agent is a composite. */
export type LoopKind = 'prompt' | 'composite' | 'tool';

/** A reference to a model: the id of a backend, and options for it. `backend` is LSEM's word for a model provider. */
export interface BackendRef {
  /** The id of a registered provider. */
  readonly id: string;
  /**
   * The name of the model.
   * @default the provider's default model
   */
  readonly model?: string;
  /** Settings that are passed to the provider. */
  readonly options?: { readonly [name: string]: Json };
}

/** The body of a prompt loop. */
export interface PromptSpec {
  /** Text with placeholders for members of the input: `{{name}}`, `{{a.b}}`. Values are not expanded again. */
  readonly template: string;
  /**
   * The placeholders that the template may use.
   * @default any
   */
  readonly variables?: readonly string[];
  readonly systemPrompt?: string;
  /** The maximum number of tokens of the reply. */
  readonly maxTokens?: number;
  readonly temperature?: number;
  /**
   * Texts that the model gets as untrusted data before the prompt, at most 12: paths below the directory of the
   * definition, `skill:NAME` or `receipt:TURN`.
   * @default []
   */
  readonly contextSkills?: readonly string[];
}

/** The body of a tool loop. */
export interface ToolSpec {
  /** `builtin:NAME`, `module:PATH#export`, `exec:PATH` or `http:URL`. */
  readonly implementation: string;
  /** Settings of the implementation. */
  readonly config?: { readonly [name: string]: Json };
  /**
   * What may happen to a call of the tool after a crash.
   * @default 'once'
   */
  readonly safety?: Safety;
  /**
   * The scopes that the tool requires of a grant that lists scopes.
   * @default []
   */
  readonly scopes?: readonly string[];
}

/** An RFC 9535 path, optionally prefixed with `optional:`; or `literal:` followed by text. */
export type Mapping = string;

/** One step of a composite: a call of another loop. */
export interface CompositeStep {
  readonly loopId: string;
  /**
   * The version of the loop.
   * @default the newest one that is not a prerelease
   */
  readonly loopVersion?: string;
  /** One path for each member of the step's input, or one path for the entire input. */
  readonly inputMapping: { readonly [member: string]: Mapping } | Mapping;
  /** The name under which later mappings find the result of the step. */
  readonly outputBinding?: string;
}

/** A composite of steps that run one after another. */
export interface StepsSpec {
  readonly steps: readonly CompositeStep[];
  /**
   * One path for each member of the output, or one path for the entire output.
   * @default the output of the last step
   */
  readonly outputMapping?: { readonly [member: string]: Mapping } | Mapping;
  readonly agent?: never;
  readonly plan?: never;
}

/** Whether a tool runs without approval, requires approval for each call, or must not run. */
export type ApprovalPolicy = 'always_allow' | 'ask' | 'blocked';

/** The limits at which an agent stops. Reaching one is not an error: the turn ends as `stopped`, with a reason. */
export interface StopSpec {
  /** The maximum number of tokens that the model reads, over all rounds. */
  readonly inputTokens?: number;
  /** The maximum number of tokens that the model writes, over all rounds. */
  readonly outputTokens?: number;
  /**
   * How long after its first round the agent may start new work, in milliseconds. Time spent waiting for people counts.
   */
  readonly deadlineMs?: number;
}

/** The body of an agent: call the model, run the tools that it chose, and repeat until the model answers. */
export interface AgentSpec {
  readonly backend: BackendRef;
  /** The system prompt. */
  readonly instructions?: string;
  /** The ids of loops that the model may call: tools, other agents, or loops of any other kind. */
  readonly tools: readonly string[];
  /** The ids of agents that may take over. Their answer becomes the answer of this agent. */
  readonly handoffs?: readonly string[];
  /**
   * The maximum number of rounds.
   * @default 20
   */
  readonly maxRounds?: number;
  readonly stop?: StopSpec;
  /** The mode of supervision that is passed to the tools, such as `unsupervised`. */
  readonly mode?: string;
  /**
   * The approval policy of each tool by loop id; `*` applies to all others. It applies to everything below this agent
   * and only makes a policy stricter, with one exception: `always_allow` for a tool by its id waives the approval that
   * a tool without a policy requests by default.
   * @default 'always_allow' for every tool
   */
  readonly approvals?: { readonly [tool: string]: ApprovalPolicy };
  /** The maximum number of tokens of one reply. */
  readonly maxTokens?: number;
  readonly temperature?: number;
  /**
   * The time limit of one tool call, in milliseconds.
   * @default 600_000
   */
  readonly toolTimeoutMs?: number;
  /**
   * Texts that the model gets as untrusted data before the prompt, at most 12: paths below the directory of the
   * definition, `skill:NAME` or `receipt:TURN`.
   * @default []
   */
  readonly contextSkills?: readonly string[];
}

/** A composite that is an agent. */
export interface AgentComposite {
  readonly agent: AgentSpec;
  readonly steps?: never;
  readonly plan?: never;
  readonly outputMapping?: never;
}

/** A composite that is a plan. */
export interface PlanComposite {
  readonly plan: PlanSpec;
  readonly steps?: never;
  readonly agent?: never;
  readonly outputMapping?: never;
}

/** The body of a composite loop: steps, a plan or an agent. */
export type CompositeSpec = StepsSpec | PlanComposite | AgentComposite;

/**
 * Retries of failed attempts. A NonRetryableError and outcomes that repeating cannot change are not retried, nor are
 * effects with the safety `once`.
 */
export interface RetrySpec {
  /** The maximum number of attempts, including the first. */
  readonly attempts: number;
  /**
   * The delay before the second attempt, in milliseconds.
   * @default 200
   */
  readonly backoffMs?: number;
  /**
   * The factor by which each delay exceeds the one before.
   * @default 2
   */
  readonly factor?: number;
  /**
   * The upper bound of a delay, in milliseconds. If it is absent, a delay that the provider requests is bounded by
   * 60,000.
   * @default 10_000
   */
  readonly maxBackoffMs?: number;
  /**
   * The largest share of a delay that is subtracted at random, from 0 to 1.
   * @default 0.5
   */
  readonly jitter?: number;
}

/** A limit on attempts, shared by all sessions of the process. Attempts over the limit wait. */
export interface RateLimitSpec {
  /** The maximum number of attempts that start in a window of `perMs` milliseconds. */
  readonly requests: number;
  /** The length of the window, in milliseconds. */
  readonly perMs: number;
}

/** Returns the results of earlier equal requests from memory. Effects with the safety `once` are not cached. */
export interface CacheSpec {
  /**
   * How long an answer is reused, in milliseconds.
   * @default no limit
   */
  readonly ttlMs?: number;
}

/** A content filter: a pattern in RE2 syntax, and the action for text that matches it. */
export interface FilterSpec {
  readonly pattern: string;
  /** @default 'refuse' */
  readonly action?: 'refuse' | 'redact';
  /**
   * The text that replaces each match, for the action `redact`.
   * @default '[redacted]'
   */
  readonly replacement?: string;
  /** The reason in the error, for the action `refuse`. */
  readonly reason?: string;
}

/** A routing rule. The first rule whose conditions all hold selects the backend. */
export interface RouteSpec {
  readonly when: { readonly promptLengthOver?: number; readonly input?: { readonly [path: string]: Json } };
  readonly backend: BackendRef;
}

/** The policy of a loop. Each member except `routing` becomes a layer around the loop's effects. */
export interface PolicySpec {
  /** Selects the backend of a prompt. */
  readonly routing?: readonly RouteSpec[];
  /** The backends that are tried, in order, after a model failed or timed out. */
  readonly fallback?: readonly BackendRef[];
  /** Retries of attempts that failed. Not for a tool with the safety `once`. */
  readonly retry?: RetrySpec;
  /** The time limit of one attempt, in milliseconds; of a composite, of the entire call. */
  readonly timeoutMs?: number;
  /** The maximum rate of attempts. */
  readonly rateLimit?: RateLimitSpec;
  /** How long results are reused for equal requests. Not for a tool with the safety `once`. */
  readonly cache?: CacheSpec;
  /** The filters of the request (`before`) and of the reply (`after`). */
  readonly filters?: { readonly before?: readonly FilterSpec[]; readonly after?: readonly FilterSpec[] };
  /**
   * Whether the effect runs, waits for an approval, or is refused. Of a prompt, its request; of a tool, each call.
   * @default 'always_allow', except for a tool that asks itself
   */
  readonly approval?: ApprovalPolicy;
}

/** The definition of a loop. It has exactly one body, which matches its kind. */
export interface LoopDef {
  readonly id: string;
  readonly name: string;
  readonly description?: string;
  /** A semantic version. A loop is identified by its id and version. */
  readonly version: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema;
  readonly kind: LoopKind;
  readonly prompt?: PromptSpec;
  readonly composite?: CompositeSpec;
  readonly tool?: ToolSpec;
  /** The model of a prompt. */
  readonly backend?: BackendRef;
  readonly policy?: PolicySpec;
  readonly metadata?: { readonly [name: string]: Json };
}
