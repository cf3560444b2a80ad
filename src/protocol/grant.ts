/** Grants: the authority of a turn and of everything below it. Types only. */
import type { JsonSchema } from './loop.js';

/**
 * The limits of a grant. An absent limit is unlimited in a grant that is not derived from another, and that of the other
 * grant otherwise.
 */
export interface GrantLimits {
  /** How many turns may be opened. */
  readonly turns?: number;
  /** How many times models may be called. A repeated attempt at a call is not counted again. */
  readonly modelRounds?: number;
  /** How many replies of models may be acted on by running the tools that they call. */
  readonly toolRounds?: number;
  /** How many tokens models may read. */
  readonly inputTokens?: number;
  /** How many tokens models may write. */
  readonly outputTokens?: number;
  /** How much models may cost, in millionths of a currency unit. */
  readonly costMicros?: number;
  /**
   * How many effects other than model calls may be performed: all together, or of each tool that is named. Of a loop that
   * is no effect itself, such as a composite, its calls are counted by name. Attempts at one effect count once.
   */
  readonly effects?: number | { readonly [tool: string]: number };
  /** How long turns may run, in milliseconds of wall-clock time, pauses excluded. */
  readonly wallMs?: number;
  /** How many concurrent branches a group of steps may have, such as the tool calls of one reply. */
  readonly fanOut?: number;
  /** How deep calls may be nested. The calls of the turn's own loop have the depth 1. */
  readonly depth?: number;
}

/** What a grant demands before a tool runs: the approval of a person, or that it never runs. */
export type GrantReview = 'ask' | 'blocked';

/**
 * A grant. A pattern is an exact name, or a prefix followed by `.*`, which stands for exactly one further segment. An
 * empty list permits nothing.
 */
export interface Grant {
  /** All turns with this id share one budget, whatever their session. @default an id for the turn alone */
  readonly id?: string;
  /** The tools that may run, by pattern. */
  readonly allowedTools: readonly string[];
  /** The scopes that tools may require, by pattern. @default every scope */
  readonly scopes?: readonly string[];
  /** JSON Schemas that the arguments of tools must satisfy, by pattern. @default none */
  readonly arguments?: { readonly [tool: string]: JsonSchema };
  /**
   * Tools that need an approval or are blocked, by pattern; `*` stands for all tools and loops in code.
   * @default none
   */
  readonly review?: { readonly [tool: string]: GrantReview };
  readonly limits: GrantLimits;
  /** The directories that tools may use. @default every directory that the tools themselves allow */
  readonly roots?: readonly string[];
  /** The hosts that tools may reach: `HOST`, `HOST:PORT`, `*.HOST` or `*.HOST:PORT`. @default every host that the tools allow */
  readonly destinations?: readonly string[];
  /**
   * The tools and loops in code that may run under `roots` or `destinations` although nothing confines them, by id.
   * @default none
   */
  readonly unconfined?: readonly string[];
  /** The only principals that may answer approvals. @default those of the turn */
  readonly approvers?: readonly string[];
  /** When the grant ends, as an ISO time. @default never */
  readonly expiresAt?: string;
}
