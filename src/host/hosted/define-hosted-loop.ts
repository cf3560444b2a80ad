/**
 * `defineHostedLoop`: a hosted loop in code. What can be data is the same document as that of a file; code adds a
 * function that derives the next input, a loop as an object, and the types of both.
 */
import { type DefinedLoop, isDefinedLoop } from '../../loops/defined-loop.js';
import type { HostedLoopDocument, HostedProjection } from '../../protocol/hosted-loop.js';
import { parseHostedLoop } from './hosted-document.js';

/** Returns the input of the next turn. It must depend on nothing but the projection, because it may be called again. */
export type NextInput<I = unknown> = (projection: HostedProjection) => I;

/** The options of `defineHostedLoop`: those of a hosted loop file. */
export interface HostedLoopDefinition<I = unknown> extends Omit<HostedLoopDocument, 'loop' | 'input' | 'next'> {
  /** The loop that each turn runs, or its id. */
  readonly loop: string | DefinedLoop<I>;
  /** The input of the first turn, and of the others if there is no `next`. */
  readonly input?: NoInfer<I>;
  /** Derives the input of the next turn from the projection: a mapping, or a function. */
  readonly next?: NonNullable<HostedLoopDocument['next']> | NextInput<NoInfer<I>>;
}

/** A hosted loop in code. */
export interface HostedLoop {
  /** Everything that can be data. */
  readonly document: HostedLoopDocument;
  /** The function that derives the next input; absent if the document has a mapping, or neither. */
  readonly next?: NextInput;
  /** The loop, if it was given as an object. The document has its id. */
  readonly loop?: DefinedLoop;
}

/**
 * Defines a hosted loop: its turns are run one after another, only while its stop policy allows it. Throws
 * DEFINITION_INVALID or GRANT_INVALID if an option is invalid.
 *
 * @example
 * ```ts
 * const watch = defineHostedLoop({
 *   id: 'watch-prices',
 *   loop: comparePrices,
 *   input: { since: null },
 *   next: ({ last }) => ({ since: last?.turnId ?? null }),
 *   grant: { allowedTools: ['shop.read'], limits: { turns: 24, costMicros: 500_000 } },
 *   stop: { maxTurns: 24, deadline: '2030-01-31T12:00:00Z', noProgress: 3 },
 *   schedule: { cron: '0 * * * *', zone: 'Europe/Berlin' },
 * });
 * ```
 */
export function defineHostedLoop<I = unknown>(definition: HostedLoopDefinition<I>): HostedLoop {
  const { loop, next, ...data } = definition;
  const loopId = typeof loop === 'string' ? loop : isDefinedLoop(loop) ? loop.definition.id : undefined;
  const document = parseHostedLoop(
    {
      ...data,
      loop: loopId,
      ...(typeof next !== 'function' && { next }),
    },
    `defineHostedLoop(${JSON.stringify(definition.id)})`,
  );
  return Object.freeze({
    document,
    ...(typeof next === 'function' && { next }),
    ...(typeof loop !== 'string' && { loop: loop as DefinedLoop }),
  });
}
