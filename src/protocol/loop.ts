/**
 * LSEM's wire types: the definition of a loop as a JSON document. What LSEM leaves open (the members of prompt, tool,
 * backend and policy) is our published profile; see docs/profile.md.
 */
import type { Safety } from './entry.js';
import type { Json } from './json.js';

/** A JSON Schema document, draft 2020-12. */
export type JsonSchema = boolean | { readonly [key: string]: Json };

export type LoopKind = 'prompt' | 'composite' | 'tool';

/** Which model answers: a backend by id, and what it is told. */
export interface BackendRef {
  readonly id: string;
  readonly model?: string;
  readonly options?: { readonly [name: string]: Json };
}

export interface PromptSpec {
  /** Text with `{{name}}` and `{{a.b}}` from the input; values are never expanded again. */
  readonly template: string;
  /** The names that the template may use; without it, any. */
  readonly variables?: readonly string[];
  readonly systemPrompt?: string;
  readonly maxTokens?: number;
  readonly temperature?: number;
}

export interface ToolSpec {
  /** `builtin:NAME`, `module:PATH#export`, `exec:PATH` or `http:URL`. */
  readonly implementation: string;
  readonly config?: { readonly [name: string]: Json };
  /** How the tool may be treated after a crash; `once` unless told. */
  readonly safety?: Safety;
}

/** An RFC 9535 path, or `literal:` and a text. */
export type Mapping = string;

export interface CompositeStep {
  readonly loopId: string;
  readonly loopVersion?: string;
  /** One path for each member of the step's input, or one path for the whole of it. */
  readonly inputMapping: { readonly [member: string]: Mapping } | Mapping;
  readonly outputBinding?: string;
}

/** Steps, one after another. */
export interface StepsSpec {
  readonly steps: readonly CompositeStep[];
  readonly outputMapping?: { readonly [member: string]: Mapping } | Mapping;
  readonly agent?: never;
}

/** Whether a tool runs, is asked about, or may not run at all. */
export type ApprovalPolicy = 'always_allow' | 'ask' | 'blocked';

/** Where an agent stops short, with a reason: none of these is a failure of anything. */
export interface StopSpec {
  /** Tokens that its model may read and write, all rounds together. */
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** How long after its start it may still begin something, in milliseconds; waiting for people counts too. */
  readonly deadlineMs?: number;
}

/** Repeat until done: ask the model, run the tools that it chose. */
export interface AgentSpec {
  readonly backend: BackendRef;
  readonly instructions?: string;
  /** Loops that the model may call, by id: tools, other agents, anything. */
  readonly tools: readonly string[];
  /** Agents that may take over: what they answer is the answer. */
  readonly handoffs?: readonly string[];
  /** How often the model may be asked; 20 unless told. */
  readonly maxRounds?: number;
  readonly stop?: StopSpec;
  /** What tools are told of how they are watched, as in `unsupervised`. */
  readonly mode?: string;
  /** By the tool's name; `*` is for all others. Holds for everything below this agent too, and only narrows. */
  readonly approvals?: { readonly [tool: string]: ApprovalPolicy };
  readonly maxTokens?: number;
  readonly temperature?: number;
  /** How long one tool may take, in milliseconds; ten minutes unless told. */
  readonly toolTimeoutMs?: number;
}

/** A composite that is an agent. */
export interface AgentComposite {
  readonly agent: AgentSpec;
  readonly steps?: never;
  readonly outputMapping?: never;
}

export type CompositeSpec = StepsSpec | AgentComposite;

/** Repeats what failed in a way that may pass: `attempts` counts the first one too. */
export interface RetrySpec {
  readonly attempts: number;
  readonly backoffMs?: number;
  readonly factor?: number;
  readonly maxBackoffMs?: number;
  /** The share of a delay that is left to chance, 0 to 1. */
  readonly jitter?: number;
}

export interface RateLimitSpec {
  readonly requests: number;
  readonly perMs: number;
}

export interface CacheSpec {
  readonly ttlMs?: number;
}

/** Text that may not go out or come in: a linear-time pattern, and whether it is refused or replaced. */
export interface FilterSpec {
  readonly pattern: string;
  readonly action?: 'refuse' | 'redact';
  readonly replacement?: string;
  readonly reason?: string;
}

/** The first route whose conditions all hold names the backend. */
export interface RouteSpec {
  readonly when: { readonly promptLengthOver?: number; readonly input?: { readonly [path: string]: Json } };
  readonly backend: BackendRef;
}

export interface PolicySpec {
  readonly routing?: readonly RouteSpec[];
  readonly fallback?: readonly BackendRef[];
  readonly retry?: RetrySpec;
  readonly timeoutMs?: number;
  readonly rateLimit?: RateLimitSpec;
  readonly cache?: CacheSpec;
  readonly filters?: { readonly before?: readonly FilterSpec[]; readonly after?: readonly FilterSpec[] };
  readonly approval?: ApprovalPolicy;
}

export interface LoopDef {
  readonly id: string;
  readonly name: string;
  readonly description?: string;
  readonly version: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema;
  readonly kind: LoopKind;
  readonly prompt?: PromptSpec;
  readonly composite?: CompositeSpec;
  readonly tool?: ToolSpec;
  readonly backend?: BackendRef;
  readonly policy?: PolicySpec;
  readonly metadata?: { readonly [name: string]: Json };
}
