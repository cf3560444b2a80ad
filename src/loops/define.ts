/**
 * Loops in code: `defineLoop` infers the types of both ends from any Standard Schema and makes a loop that the kernel
 * runs and the registry knows, the same thing as a JSON definition. Exactly one of `body`, `tool` and `prompt` says what
 * it does; a body is straight-line code over its scope.
 */

import { LoopError } from '../base/errors.js';
import { optionKeys } from '../base/option-keys.js';
import { canonical } from '../json/canonical.js';
import type { Validator } from '../json/schema.js';
import type { Loop, Scope } from '../protocol/body.js';
import type { Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { BackendRef, LoopDef, PolicySpec, PromptSpec } from '../protocol/loop.js';
import { admitted } from './admission.js';
import { boundedBody } from './bounded.js';
import type { DefinedLoop } from './defined.js';
import { parseDefinition } from './definition/definition.js';
import type { ToolCall } from './implementation.js';
import type { Origin } from './origin.js';
import { promptBody } from './prompt.js';
import { endOf, type InputOf, type OutputOf, type Schema } from './standard.js';
import { toolBody } from './tool.js';

interface About<I extends Schema, O extends Schema> {
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
export interface BodyLoop<I extends Schema, O extends Schema> extends About<I, O> {
  readonly body: (input: OutputOf<I>, scope: Scope) => Promise<InputOf<O>> | InputOf<O>;
  readonly tool?: never;
  readonly prompt?: never;
}

/** A function that does something outside: one effect, recorded, with a declared safety. */
export interface ToolLoop<I extends Schema, O extends Schema> extends About<I, O> {
  readonly tool: (input: OutputOf<I>, call: ToolCall) => Promise<InputOf<O>> | InputOf<O>;
  readonly safety?: Safety;
  readonly body?: never;
  readonly prompt?: never;
}

/** A question to a model. */
export interface PromptLoop<I extends Schema, O extends Schema> extends About<I, O> {
  readonly prompt: PromptSpec | string;
  readonly backend?: BackendRef;
  readonly body?: never;
  readonly tool?: never;
}

export type LoopSpec<I extends Schema, O extends Schema> = BodyLoop<I, O> | ToolLoop<I, O> | PromptLoop<I, O>;

type KeyOf<T> = T extends unknown ? keyof T : never;

const KEYS = optionKeys<Record<KeyOf<LoopSpec<Schema, Schema>>, unknown>>({
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
const IN_CODE: Origin = { directory: undefined, trusted: true };

/** Makes a loop of code; a LoopError says what is wrong with it. */
export function defineLoop<const I extends Schema, const O extends Schema>(
  spec: LoopSpec<I, O>,
): DefinedLoop<InputOf<I>, OutputOf<O>> {
  assertSpec(spec);
  const { id } = spec;
  const input = endOf(spec.input, 'INPUT_VALIDATION_FAILED', id);
  const output = endOf(spec.output, 'OUTPUT_VALIDATION_FAILED', id);
  const definition = definitionOf(spec, input.validator, output.validator);
  return {
    name: id,
    version: definition.version,
    bodyKind: spec.body !== undefined ? 'code' : spec.prompt !== undefined ? 'prompt' : undefined,
    input: input.check as (value: unknown) => InputOf<I>,
    output: output.check as (value: unknown) => OutputOf<O>,
    body: bodyOf(spec, definition, output.validator) as Loop<InputOf<I>, OutputOf<O>>['body'],
    hasFastValidation: input.isFast && output.isFast,
    definition,
    ends: { input: input.validator, output: output.validator },
    source: String(spec.body ?? spec.tool ?? ''),
  };
}

function assertSpec(spec: LoopSpec<Schema, Schema>): void {
  const unknown = Object.keys(spec).filter((key) => !KEYS.has(key));
  const kinds = [spec.body, spec.tool, spec.prompt].filter((kind) => kind !== undefined).length;
  const flaw =
    unknown.length > 0
      ? `it has no member ${unknown.map((key) => `"${key}"`).join(', ')}; it has ${[...KEYS].join(', ')}`
      : kinds !== 1
        ? 'it needs exactly one of body, tool and prompt'
        : undefined;
  if (flaw === undefined) return;
  throw new LoopError('DEFINITION_INVALID', `defineLoop("${spec.id}"): ${flaw}.`, { reason: flaw });
}

/** The definition as a document would have it. Code cannot be written down: a body shows as a composite of no steps. */
function definitionOf(spec: LoopSpec<Schema, Schema>, input: Validator, output: Validator): LoopDef {
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

function bodyOf(spec: LoopSpec<Schema, Schema>, definition: LoopDef, output: Validator): Loop<Json, Json>['body'] {
  const { id, version, prompt, backend, policy } = definition;
  const { tool, body } = spec;
  // What an approval is bound to: all that the definition says, and the code.
  const state = `${canonical(definition as unknown as Json)}\n${String(tool ?? body ?? '')}`;
  if (prompt !== undefined) {
    const parts = { id, spec: prompt, output, backend, policy, origin: IN_CODE, definition: version };
    return admitted({ name: id, definition: state, named: false }, promptBody(parts));
  }
  if (tool === undefined) {
    const bounded = boundedBody(id, policy?.timeoutMs, body as unknown as Loop<Json, Json>['body']);
    return admitted({ name: id, definition: state, named: false }, bounded);
  }
  const open = (): ((input: Json, call: unknown) => unknown) => (input, call) => tool(input, call as ToolCall);
  return toolBody({ id, safety: definition.tool?.safety ?? 'once', config: {}, policy, definition: state, open });
}
