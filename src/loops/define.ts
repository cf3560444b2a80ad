/**
 * Loops in code: `defineLoop` infers the types of both ends from any Standard Schema and makes a loop that the kernel
 * runs and the registry knows, the same thing as a JSON definition. Exactly one of `body`, `tool` and `prompt` says what
 * it does; a body is straight-line code over its scope.
 */

import { LoopError } from '../base/errors.js';
import { optionKeys } from '../base/option-keys.js';
import { canonicalJson } from '../json/canonical.js';
import type { Validator } from '../json/schema.js';
import type { Loop, Scope } from '../protocol/body.js';
import type { Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { BackendRef, LoopDef, PolicySpec, PromptSpec } from '../protocol/loop.js';
import { withApprovalGate } from './approval-gate.js';
import { withCallTimeout } from './call-timeout.js';
import type { DefinedLoop } from './defined-loop.js';
import { parseDefinition } from './definition/definition.js';
import type { DefinitionOrigin } from './origin.js';
import { promptBody } from './prompt.js';
import { type AnySchema, compileIoSchema, type InputOf, type OutputOf } from './standard-schema.js';
import { toolBody } from './tool.js';
import type { ToolCallContext } from './tool-implementation.js';

interface LoopSpecBase<I extends AnySchema, O extends AnySchema> {
  readonly id: string;
  /** Semver; 1.0.0 unless told. Raise it when what the loop does changes. */
  readonly version?: string;
  readonly name?: string;
  readonly description?: string;
  readonly input: I;
  readonly output: O;
  readonly policy?: PolicySpec;
  readonly metadata?: { readonly [name: string]: Json };
}

/** A composite in code. */
export interface BodyLoopSpec<I extends AnySchema, O extends AnySchema> extends LoopSpecBase<I, O> {
  readonly body: (input: OutputOf<I>, scope: Scope) => Promise<InputOf<O>> | InputOf<O>;
  readonly tool?: never;
  readonly prompt?: never;
}

/** A function that does something outside: one effect, recorded, with a declared safety. */
export interface ToolLoopSpec<I extends AnySchema, O extends AnySchema> extends LoopSpecBase<I, O> {
  readonly tool: (input: OutputOf<I>, call: ToolCallContext) => Promise<InputOf<O>> | InputOf<O>;
  readonly safety?: Safety;
  readonly body?: never;
  readonly prompt?: never;
}

/** A question to a model. */
export interface PromptLoopSpec<I extends AnySchema, O extends AnySchema> extends LoopSpecBase<I, O> {
  readonly prompt: PromptSpec | string;
  readonly backend?: BackendRef;
  readonly body?: never;
  readonly tool?: never;
}

type LoopSpec<I extends AnySchema, O extends AnySchema> =
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
  body: true,
  tool: true,
  safety: true,
  prompt: true,
  backend: true,
});
const CODE_ORIGIN: DefinitionOrigin = { directory: undefined, trusted: true };

/** Makes a loop of code; a LoopError says what is wrong with it. */
export function defineLoop<const I extends AnySchema, const O extends AnySchema>(
  spec: LoopSpec<I, O>,
): DefinedLoop<InputOf<I>, OutputOf<O>> {
  assertSpec(spec);
  const { id } = spec;
  const input = compileIoSchema(spec.input, 'INPUT_VALIDATION_FAILED', id);
  const output = compileIoSchema(spec.output, 'OUTPUT_VALIDATION_FAILED', id);
  const definition = definitionOf(spec, input.validator, output.validator);
  return {
    name: id,
    version: definition.version,
    bodyKind: spec.body !== undefined ? 'code' : spec.prompt !== undefined ? 'prompt' : undefined,
    input: input.check as (value: unknown) => InputOf<I>,
    output: output.check as (value: unknown) => OutputOf<O>,
    body: createBody(spec, definition, output.validator) as Loop<InputOf<I>, OutputOf<O>>['body'],
    hasFastValidation: input.isFast && output.isFast,
    definition,
    validators: { input: input.validator, output: output.validator },
    source: String(spec.body ?? spec.tool ?? ''),
  };
}

function assertSpec(spec: LoopSpec<AnySchema, AnySchema>): void {
  const unknown = Object.keys(spec).filter((key) => !LOOP_SPEC_KEYS.has(key));
  const kinds = [spec.body, spec.tool, spec.prompt].filter((kind) => kind !== undefined).length;
  const flaw =
    unknown.length > 0
      ? `it has no member ${unknown.map((key) => `"${key}"`).join(', ')}; it has ${[...LOOP_SPEC_KEYS].join(', ')}`
      : kinds !== 1
        ? 'it needs exactly one of body, tool and prompt'
        : undefined;
  if (flaw === undefined) return;
  throw new LoopError('DEFINITION_INVALID', `defineLoop("${spec.id}"): ${flaw}.`, { reason: flaw });
}

/** The definition as a document would have it. Code cannot be written down: a body shows as a composite of no steps. */
function definitionOf(spec: LoopSpec<AnySchema, AnySchema>, input: Validator, output: Validator): LoopDef {
  const { id, version = '1.0.0', name = id, description, policy, metadata } = spec;
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
    return parseDefinition({ ...base, kind: 'prompt', prompt, ...(spec.backend && { backend: spec.backend }) }, where);
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

function createBody(
  spec: LoopSpec<AnySchema, AnySchema>,
  definition: LoopDef,
  output: Validator,
): Loop<Json, Json>['body'] {
  const { id, version, prompt, backend, policy } = definition;
  const { tool, body } = spec;
  // What an approval is bound to: all that the definition says, and the code.
  const state = `${canonicalJson(definition as unknown as Json)}\n${String(tool ?? body ?? '')}`;
  if (prompt !== undefined) {
    const parts = { id, spec: prompt, output, backend, policy, origin: CODE_ORIGIN, definitionFingerprint: version };
    return withApprovalGate({ name: id, definitionFingerprint: state, requiresName: false }, promptBody(parts));
  }
  if (tool === undefined) {
    const bounded = withCallTimeout(id, policy?.timeoutMs, body as unknown as Loop<Json, Json>['body']);
    return withApprovalGate({ name: id, definitionFingerprint: state, requiresName: false }, bounded);
  }
  const open = (): ((input: Json, call: unknown) => unknown) => (input, call) => tool(input, call as ToolCallContext);
  return toolBody({
    id,
    safety: definition.tool?.safety ?? 'once',
    config: {},
    policy,
    definitionFingerprint: state,
    open,
  });
}
