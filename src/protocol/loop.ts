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

export interface CompositeSpec {
  readonly steps: readonly CompositeStep[];
  readonly outputMapping?: { readonly [member: string]: Mapping } | Mapping;
}

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
  readonly approval?: 'always_allow' | 'ask' | 'blocked';
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
