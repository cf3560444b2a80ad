// The definitions of the mini runtime. Its prompts, tools and backends differ deliberately from Rondo's, because the suite
// must work with any.

import type { PromptPiece } from '../../src/conformance/driver.js';
import type { Schema } from './mini-schema.js';

export type Members = { readonly [member: string]: unknown };

export interface MiniStep {
  readonly loopId: string;
  readonly inputMapping: { readonly [member: string]: string };
  readonly outputBinding?: string;
}

export interface MiniLoop {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly inputSchema: Schema;
  readonly outputSchema: Schema;
  readonly kind: 'prompt' | 'composite' | 'tool';
  readonly prompt?: { readonly say: readonly PromptPiece[]; readonly system?: string };
  /** `code` names a function of the driver, `agent` the loops that a model calls once each. */
  readonly composite?: {
    readonly steps: readonly MiniStep[];
    readonly code?: string;
    readonly agent?: readonly string[];
    readonly plan?: readonly string[];
  };
  readonly tool?: { readonly use: string };
  readonly backend?: { readonly is: string; readonly model?: string };
}

export const KINDS = ['prompt', 'composite', 'tool'] as const;

export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isSemver(text: unknown): boolean {
  const identifiers = '[0-9a-z-]+(?:\\.[0-9a-z-]+)*';
  const number = '(?:0|[1-9][0-9]*)';
  return (
    typeof text === 'string' &&
    new RegExp(`^(?:${number}\\.){2}${number}(?:-${identifiers})?(?:\\+${identifiers})?$`, 'i').test(text)
  );
}

/** Returns the problem of a step; undefined if it is valid. */
export function stepProblem(step: unknown): string | undefined {
  if (!isMembers(step)) return 'a step is not an object';
  if (typeof step.loopId !== 'string') return 'a step has no loopId';
  return isMembers(step.inputMapping) ? undefined : 'a step has no inputMapping';
}
