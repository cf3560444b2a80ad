/**
 * `definePlan`: defines a plan in code. The result is data: the same definition, with the same digest, as that of a
 * workflow file or a JSON document with this plan. Code adds inferred types for input and output, and loops as objects.
 */
import { LoopError } from '../base/errors.js';
import { optionKeys } from '../base/option-keys.js';
import { isObject } from '../base/own-property.js';
import type { Json } from '../protocol/json.js';
import type { LoopDef } from '../protocol/loop.js';
import type { LoopStep, PlanCallBase, PlanSpec, PlanState, PlanStep } from '../protocol/plan.js';
import { type DefinedLoop, isDefinedLoop } from './defined-loop.js';
import { parseDefinition } from './definition/definition.js';
import { planDigest } from './plan/plan.js';
import { runUnlinked } from './run-unlinked.js';
import { type AnySchema, compileIoSchema, type InputOf, type OutputOf } from './standard-schema.js';
import { unknownOptionsReason } from './unknown-options.js';

/** A step of a plan in code: like one in a file, but it can call a loop that it is given as an object. */
export type CodePlanStep = PlanStep | (Omit<LoopStep, 'loop'> & { readonly loop: DefinedLoop });

/** A state of a plan in code. */
export type CodePlanState =
  | PlanState
  | (Omit<PlanState, keyof PlanCallBase> & PlanCallBase & { readonly loop: DefinedLoop });

/** The options of `definePlan`. */
export interface PlanDefinition<I extends AnySchema, O extends AnySchema>
  extends Omit<PlanSpec, 'steps' | 'states' | 'verbs'> {
  /** The id under which the plan is registered and called. */
  readonly id: string;
  /**
   * A semantic version.
   * @default `0.0.0+` and the digest of the plan
   */
  readonly version?: string;
  /** What the plan does. A model that has this plan as a tool reads it. */
  readonly description?: string;
  /** The schema of the input: a Standard Schema (zod, valibot, arktype, …) or a JSON Schema. */
  readonly input: I;
  /**
   * The schema of the output, which is that of the last step.
   * @default anything
   */
  readonly output?: O;
  /** The steps, one after another. */
  readonly steps?: readonly CodePlanStep[];
  /** The states, if the plan is a state machine. */
  readonly states?: readonly CodePlanState[];
  /** The loops that the verbs of its actions stand for. Each gets `{ verb, args, raw }`. */
  readonly verbs?: { readonly [verb: string]: string | DefinedLoop };
}

const PLAN_KEYS = optionKeys<PlanSpec>({
  steps: true,
  states: true,
  initial_state: true,
  context: true,
  cache: true,
  retry: true,
  llm: true,
  limits: true,
  verbs: true,
  backend: true,
});

const LOOP_KEYS = ['id', 'version', 'description', 'input', 'output'];

/**
 * Defines a plan: steps, or a state machine, over other loops. Throws DEFINITION_INVALID if it is invalid.
 *
 * @example
 * ```ts
 * const publish = definePlan({
 *   id: 'publish',
 *   input: z.object({ text: z.string() }),
 *   output: z.object({ url: z.string() }),
 *   steps: [
 *     { loop: review, input: { text: '$.input.text' }, capture: 'review' },
 *     { loop: upload, input: { text: '$.review.output.text' }, retry: { strategy: 'exponential', max_attempts: 5 } },
 *   ],
 * });
 * ```
 */
export function definePlan<const I extends AnySchema, const O extends AnySchema = Record<never, never>>(
  spec: PlanDefinition<I, O>,
): DefinedLoop<InputOf<I>, OutputOf<O>> {
  const { id } = spec;
  const known = [...LOOP_KEYS, ...PLAN_KEYS];
  const unknown = Object.keys(spec).filter((key) => !known.includes(key));
  if (unknown.length > 0) throw invalidPlanError(id, unknownOptionsReason(unknown, known));
  const input = compileIoSchema(spec.input, 'INPUT_VALIDATION_FAILED', id);
  const output = compileIoSchema(spec.output ?? {}, 'OUTPUT_VALIDATION_FAILED', id);
  for (const [name, { validator }] of [['input', input] as const, ['output', output] as const])
    if (validator.schema === true)
      throw invalidPlanError(
        id,
        `its ${name} cannot be written as JSON Schema, and a plan is data; use a simpler schema`,
      );
  const innerLoops: DefinedLoop[] = [];
  const members = Object.entries(spec).filter(([key, value]) => PLAN_KEYS.has(key) && value !== undefined);
  const plan = Object.fromEntries(members.map(([key, value]) => [key, withLoopIds(value, innerLoops)])) as PlanSpec;
  const validators = { input: input.validator, output: output.validator };
  const definition = definitionOf(spec, plan, validators);
  return {
    name: id,
    version: definition.version,
    input: input.check as DefinedLoop<InputOf<I>>['input'],
    output: output.check as DefinedLoop<unknown, OutputOf<O>>['output'],
    body: runUnlinked as DefinedLoop<InputOf<I>, OutputOf<O>>['body'],
    hasFastValidation: input.isFast && output.isFast,
    definition,
    validators,
    source: '',
    innerLoops,
  };
}

/** Builds the definition that an equivalent JSON document would contain. */
function definitionOf(
  { id, version, description }: PlanDefinition<AnySchema, AnySchema>,
  plan: PlanSpec,
  { input, output }: DefinedLoop['validators'],
): LoopDef {
  const document = {
    id,
    name: id,
    ...(description !== undefined && { description }),
    version: version ?? `0.0.0+${planDigest(plan)}`,
    inputSchema: input.schema,
    outputSchema: output.schema,
    kind: 'composite',
    composite: { plan },
  };
  return parseDefinition(document, `definePlan("${id}")`);
}

/** Returns a part of a plan in which loops given as objects are replaced by their ids; adds them to `innerLoops`. */
function withLoopIds(value: unknown, innerLoops: DefinedLoop[]): unknown {
  if (isDefinedLoop(value)) {
    if (!innerLoops.includes(value)) innerLoops.push(value);
    return value.definition.id;
  }
  if (Array.isArray(value)) return value.map((item) => withLoopIds(item, innerLoops));
  if (!isObject(value as Json)) return value;
  const members = Object.entries(value as object).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members.map(([name, member]) => [name, withLoopIds(member, innerLoops)]));
}

function invalidPlanError(id: string, reason: string): LoopError {
  return new LoopError('DEFINITION_INVALID', `definePlan("${id}"): ${reason}.`, { reason });
}
