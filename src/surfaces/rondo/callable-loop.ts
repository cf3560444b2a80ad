/**
 * `defineLoop`, `defineAgent` and `definePlan` of the package root: the loop that they return can also be called like a function, which
 * runs it once in memory.
 */
import { LoopError } from '../../base/errors.js';
import { defineLoop as defineUncallableLoop, type LoopSpec } from '../../loops/define.js';
import {
  type AgentDefinition,
  defineAgent as defineUncallableAgent,
  type PromptInputSchema,
  type TextOutputSchema,
} from '../../loops/define-agent.js';
import { definePlan as defineUncallablePlan, type PlanDefinition } from '../../loops/define-plan.js';
import type { DefinedLoop } from '../../loops/defined-loop.js';
import { isInsideCall } from '../../loops/inside-call.js';
import type { AnySchema, InputOf, OutputOf } from '../../loops/standard-schema.js';

/** A loop that can also be called like a function. It is a function, so a spread (`{ ...loop }`) does not copy its name. */
export interface CallableLoop<I = unknown, O = unknown> extends DefinedLoop<I, O> {
  /**
   * Runs the loop once in memory and returns its output. Throws like `Rondo.output`. Nothing is recorded, so it must
   * not be used inside of another loop: use `scope.call` there.
   */
  (input: I): Promise<O>;
}

/**
 * Defines a loop with a function, a tool function or a prompt. Throws DEFINITION_INVALID if an option is invalid.
 *
 * @example
 * const greet = defineLoop({
 *   id: 'greet',
 *   input: z.object({ name: z.string() }),
 *   output: z.object({ text: z.string() }),
 *   run: async ({ name }) => ({ text: `Hello ${name}` }),
 * });
 * await greet({ name: 'Ada' }); // { text: 'Hello Ada' }
 */
export function defineLoop<const I extends AnySchema, const O extends AnySchema>(
  spec: LoopSpec<I, O>,
): CallableLoop<InputOf<I>, OutputOf<O>> {
  return callable(defineUncallableLoop(spec));
}

/**
 * Defines an agent: it calls a model, runs the tools that the model chooses, and repeats until the model answers.
 * Throws DEFINITION_INVALID if an option is invalid.
 *
 * @example
 * const support = defineAgent({
 *   id: 'support',
 *   model: anthropic('claude-sonnet-4-5'),
 *   instructions: 'Help customers with their orders.',
 *   tools: { refund },
 * });
 */
export function defineAgent<
  const I extends AnySchema = PromptInputSchema,
  const O extends AnySchema = TextOutputSchema,
>(spec: AgentDefinition<I, O>): CallableLoop<InputOf<I>, OutputOf<O>> {
  return callable(defineUncallableAgent(spec));
}

/**
 * Defines a plan: steps, or a state machine, over other loops. It is data: the same plan in a workflow file has the same
 * digest. Throws DEFINITION_INVALID if it is invalid.
 *
 * @example
 * const publish = definePlan({
 *   id: 'publish',
 *   input: z.object({ text: z.string() }),
 *   steps: [
 *     { loop: review, input: { text: '$.input.text' }, capture: 'review' },
 *     { loop: upload, input: { text: '$.review.output.text' }, retry: { strategy: 'exponential', max_attempts: 5 } },
 *   ],
 * });
 */
export function definePlan<const I extends AnySchema, const O extends AnySchema = Record<never, never>>(
  spec: PlanDefinition<I, O>,
): CallableLoop<InputOf<I>, OutputOf<O>> {
  return callable(defineUncallablePlan(spec));
}

/** Returns a function with the members of the loop. */
function callable<I, O>(loop: DefinedLoop<I, O>): CallableLoop<I, O> {
  const { name, ...members } = loop;
  // A function is named when it is created: V8 makes objects whose name is redefined slow to read.
  const { [name]: call } = { [name]: (input: I): Promise<O> => runInMemory(callableLoop, input) };
  const callableLoop: CallableLoop<I, O> = Object.assign(call as object, members) as unknown as CallableLoop<I, O>;
  return callableLoop;
}

async function runInMemory<I, O>(loop: DefinedLoop<I, O>, input: I): Promise<O> {
  if (isInsideCall())
    throw new LoopError(
      'EXECUTION_FAILED',
      `"${loop.name}" was called like a function inside of a loop, which would bypass the journal. ` +
        'Use scope.call(loop, input) in a loop, and call plain functions in tools.',
      { loopId: loop.name },
    );
  const { createRondo } = await import('./create-rondo.js');
  const rondo = await createRondo({ store: 'memory:' });
  return await rondo.output(loop, input as never);
}
