/**
 * `defineLoop`: defines a loop in code. It infers the types of input and output from any Standard Schema and returns a
 * loop that is registered and run like a JSON definition. Exactly one of `run`, `tool` and `prompt` is its
 * implementation.
 */

import { LoopError } from '../base/errors.js';
import { optionKeys } from '../base/option-keys.js';
import { canonicalJson } from '../json/canonical.js';
import type { Validator } from '../json/schema.js';
import type { Loop, Scope } from '../protocol/body.js';
import type { Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { LoopDef, PromptSpec } from '../protocol/loop.js';
import { withApprovalGate } from './approval-gate.js';
import { withCallTimeout } from './call-timeout.js';
import type { DefinedLoop } from './defined-loop.js';
import { parseDefinition } from './definition/definition.js';
import { leafMembers } from './leaf-loop.js';
import {
  type ModelObject,
  type ModelOption,
  missingModelReason,
  type PolicyOption,
  resolveModels,
} from './model-ref.js';
import { CODE_ORIGIN } from './origin.js';
import { promptBody } from './prompt.js';
import { type AnySchema, compileIoSchema, type InputOf, type OutputOf } from './standard-schema.js';
import { toolLeaf } from './tool.js';
import type { ToolCallContext } from './tool-implementation.js';
import { unknownOptionsReason } from './unknown-options.js';

interface LoopSpecBase<I extends AnySchema, O extends AnySchema> {
  /** The id under which the loop is registered and called. */
  readonly id: string;
  /**
   * A semantic version. Raise it when the behaviour of the loop changes.
   * @default '1.0.0'
   */
  readonly version?: string;
  /**
   * The name shown to people.
   * @default the id
   */
  readonly name?: string;
  /** What the loop does. A model that has this loop as a tool reads it. */
  readonly description?: string;
  /** The schema of the input: a Standard Schema (zod, valibot, arktype, …) or a JSON Schema. */
  readonly input: I;
  /** The schema of the output: a Standard Schema or a JSON Schema. */
  readonly output: O;
  /**
   * Retries, timeouts, approvals and other rules for the effects of the loop. A body in code accepts only `timeoutMs`.
   */
  readonly policy?: PolicyOption;
  /** Arbitrary data that is stored with the definition. */
  readonly metadata?: { readonly [name: string]: Json };
}

/** A loop whose implementation is a function over its scope. The function is replayed, so it must be deterministic. */
export interface BodyLoopSpec<I extends AnySchema, O extends AnySchema> extends LoopSpecBase<I, O> {
  /** Does all its work through the scope: calls, effects, waits, timers and records. */
  readonly run: (input: OutputOf<I>, scope: Scope) => Promise<InputOf<O>> | InputOf<O>;
  readonly tool?: never;
  readonly prompt?: never;
}

/** A loop whose implementation is one effect: a function with side effects whose result is recorded. */
export interface ToolLoopSpec<I extends AnySchema, O extends AnySchema> extends LoopSpecBase<I, O> {
  /** Performs the effect. It is not called again for the same call once its result is recorded. */
  readonly tool: (input: OutputOf<I>, call: ToolCallContext) => Promise<InputOf<O>> | InputOf<O>;
  /**
   * Whether the effect may be performed again after a crash before its result was recorded.
   * @default 'once'
   */
  readonly safety?: Safety;
  readonly run?: never;
  readonly prompt?: never;
}

/** A loop whose implementation is one prompt to a model. */
export interface PromptLoopSpec<I extends AnySchema, O extends AnySchema> extends LoopSpecBase<I, O> {
  /** The prompt, or its template with `{{name}}` placeholders. */
  readonly prompt: PromptSpec | string;
  /** The model that answers the prompt: a model object of the AI SDK, `'PROVIDER'`, `'PROVIDER:MODEL'`, or a reference. */
  readonly model: ModelOption;
  readonly run?: never;
  readonly tool?: never;
}

/** The options of `defineLoop`. */
export type LoopSpec<I extends AnySchema, O extends AnySchema> =
  | BodyLoopSpec<I, O>
  | ToolLoopSpec<I, O>
  | PromptLoopSpec<I, O>;

type KeyOf<T> = T extends unknown ? keyof T : never;

const LOOP_SPEC_KEYS = optionKeys<Record<KeyOf<LoopSpec<AnySchema, AnySchema>>, unknown>>({
  id: true,
  version: true,
  name: true,
  description: true,
  input: true,
  output: true,
  policy: true,
  metadata: true,
  run: true,
  tool: true,
  safety: true,
  prompt: true,
  model: true,
});

/**
 * Defines a loop with a function, a tool function or a prompt. Throws DEFINITION_INVALID if an option is invalid.
 *
 * @example
 * ```ts
 * const price = defineLoop({
 *   id: 'price',
 *   input: z.object({ sku: z.string() }),
 *   output: z.object({ cents: z.number() }),
 *   safety: 'idempotent',
 *   tool: async ({ sku }) => ({ cents: await lookUpPrice(sku) }),
 * });
 * const total = defineLoop({
 *   id: 'total',
 *   input: z.object({ skus: z.array(z.string()) }),
 *   output: z.object({ cents: z.number() }),
 *   run: async ({ skus }, scope) => {
 *     const prices = await scope.all(skus.map((sku) => (branch) => branch.call(price, { sku })));
 *     return { cents: prices.reduce((sum, { cents }) => sum + cents, 0) };
 *   },
 * });
 * ```
 */
export function defineLoop<const I extends AnySchema, const O extends AnySchema>(
  spec: LoopSpec<I, O>,
): DefinedLoop<InputOf<I>, OutputOf<O>> {
  assertSpec(spec);
  const { id } = spec;
  const input = compileIoSchema(spec.input, 'INPUT_VALIDATION_FAILED', id);
  const output = compileIoSchema(spec.output, 'OUTPUT_VALIDATION_FAILED', id);
  const models = resolveModels(`defineLoop("${id}")`, spec.prompt && spec.model, spec.policy);
  const definition = definitionOf(spec, models, { input: input.validator, output: output.validator });
  const { modelObjects } = models;
  return {
    name: id,
    version: definition.version,
    bodyKind: spec.run !== undefined ? 'code' : spec.prompt !== undefined ? 'prompt' : undefined,
    input: input.check as (value: unknown) => InputOf<I>,
    output: output.check as (value: unknown) => OutputOf<O>,
    ...(createMembers(spec, definition, output.validator, modelObjects) as LoopMembers<InputOf<I>, OutputOf<O>>),
    hasFastValidation: input.isFast && output.isFast,
    definition,
    validators: { input: input.validator, output: output.validator },
    source: String(spec.run ?? spec.tool ?? ''),
    modelObjects,
  };
}

function assertSpec(spec: LoopSpec<AnySchema, AnySchema>): void {
  const unknown = Object.keys(spec).filter((key) => !LOOP_SPEC_KEYS.has(key));
  const kinds = [spec.run, spec.tool, spec.prompt].filter((kind) => kind !== undefined).length;
  const reason =
    unknown.length > 0
      ? unknownOptionsReason(unknown, [...LOOP_SPEC_KEYS])
      : kinds !== 1
        ? 'it needs exactly one of run, tool and prompt'
        : spec.prompt === undefined && Object.hasOwn(spec, 'model')
          ? 'model is an option of prompts'
          : spec.prompt !== undefined && spec.model === undefined
            ? missingModelReason()
            : undefined;
  if (reason === undefined) return;
  throw new LoopError('DEFINITION_INVALID', `defineLoop("${spec.id}"): ${reason}.`, { reason });
}

/**
 * Builds the definition that an equivalent JSON document would contain. JSON cannot express a body in code, which
 * therefore appears as a composite without steps.
 */
function definitionOf(
  spec: LoopSpec<AnySchema, AnySchema>,
  { backend, policy }: ReturnType<typeof resolveModels>,
  { input, output }: DefinedLoop['validators'],
): LoopDef {
  const { id, version = '1.0.0', name = id, description, metadata } = spec;
  const base = {
    id,
    name,
    ...(description !== undefined && { description }),
    version,
    inputSchema: input.schema,
    outputSchema: output.schema,
    ...(policy !== undefined && { policy }),
    ...(metadata !== undefined && { metadata }),
  };
  const where = `defineLoop("${id}")`;
  if (spec.prompt !== undefined) {
    const prompt = typeof spec.prompt === 'string' ? { template: spec.prompt } : spec.prompt;
    return parseDefinition({ ...base, kind: 'prompt', prompt, backend }, where);
  }
  const tool = { implementation: 'code:tool', ...(spec.tool !== undefined && spec.safety && { safety: spec.safety }) };
  const parsed = parseDefinition(
    { ...base, kind: 'tool', tool },
    where,
    // guard: form-of-code-loop-known
    spec.tool === undefined ? 'code' : 'tool',
  );
  if (spec.tool !== undefined) return parsed;
  const { tool: _, ...rest } = parsed;
  return { ...rest, kind: 'composite', composite: { steps: [] } };
}

type LoopMembers<I, O> = Pick<Loop<I, O>, 'leaf' | 'body'>;

function createMembers(
  spec: LoopSpec<AnySchema, AnySchema>,
  definition: LoopDef,
  output: Validator,
  modelObjects: readonly ModelObject[] | undefined,
): LoopMembers<Json, Json> {
  const { id, version, prompt, backend, policy } = definition;
  const { tool, run } = spec;
  // The approvals of the gate and of a tool are bound to the whole definition, not to the source of the code.
  const fingerprint = canonicalJson(definition as unknown as Json);
  if (prompt !== undefined && backend !== undefined) {
    const options = { id, spec: prompt, output, backend, policy, origin: CODE_ORIGIN, modelObjects };
    const body = withApprovalGate(
      { name: id, definitionFingerprint: fingerprint, exactNameOnly: false, policy },
      promptBody({ ...options, definitionFingerprint: version }),
    );
    return { body };
  }
  if (tool === undefined) {
    const bounded = withCallTimeout(id, policy?.timeoutMs, run as unknown as Loop<Json, Json>['body']);
    const gate = { name: id, definitionFingerprint: fingerprint, exactNameOnly: false, isCode: true };
    return { body: withApprovalGate(gate, bounded) };
  }
  const open = (): ((input: Json, call: unknown) => unknown) => (input, call) => tool(input, call as ToolCallContext);
  const leaf = toolLeaf({
    id,
    safety: definition.tool?.safety ?? 'once',
    config: {},
    policy,
    definitionFingerprint: fingerprint,
    source: String(tool),
    open,
  });
  return leafMembers(leaf);
}
