/**
 * Converts the definition of a plan into the document of a workflow file, the inverse of `workflow-document.ts`. A
 * definition that a workflow file cannot express, for example one with a policy, stays as it is: a file may also contain
 * a definition. TOML has no null; a definition that contains one cannot be written.
 */
import { LoopError } from '../../base/errors.js';
import { isObject } from '../../base/own-property.js';
import { canonicalJson } from '../../json/canonical.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import type { LoopDef } from '../../protocol/loop.js';
import type { PlanSpec } from '../../protocol/plan.js';
import { appendPointer } from '../definition/shape.js';
import { planDigest } from './plan.js';
import { inferInputSchema } from './workflow-document.js';

/** The members of a definition that a workflow file can express. */
const EXPRESSIBLE: ReadonlySet<string> = new Set([
  'id',
  'name',
  'description',
  'version',
  'inputSchema',
  'outputSchema',
  'kind',
  'composite',
]);
/** The members of a plan that registration adds, or that only a definition can have. */
const BINDINGS: readonly string[] = ['verbs', 'backend'];

/** Returns the document of the workflow file of a definition, or the definition itself if it is no such plan. */
export function workflowForm(definition: LoopDef): JsonObject {
  const plan = definition.composite?.plan;
  const document = definition as unknown as JsonObject;
  if (plan === undefined || !isExpressible(definition, plan)) return document;
  const { id, version, description, inputSchema, outputSchema } = definition;
  const { steps, states, ...settings } = plan as unknown as JsonObject;
  const workflow: JsonObject = {
    name: id,
    ...(version !== automaticVersion(plan) && { version }),
    ...(description !== undefined && { description }),
    ...settings,
    ...(!isSame(inputSchema as Json, inferInputSchema(plan)) && { input: inputSchema as Json }),
    ...(!isSame(outputSchema as Json, {}) && { output: outputSchema as Json }),
  };
  return { workflow, ...(steps !== undefined && { steps }), ...(states !== undefined && { states }) };
}

function automaticVersion(plan: PlanSpec): string {
  return `0.0.0+${planDigest(plan)}`;
}

function isExpressible(definition: LoopDef, plan: PlanSpec): boolean {
  const isKnown = Object.keys(definition).every((member) => EXPRESSIBLE.has(member));
  const hasBindings = BINDINGS.some((member) => Object.hasOwn(plan, member));
  return isKnown && !hasBindings && definition.name === definition.id;
}

function isSame(first: Json, second: Json): boolean {
  return canonicalJson(first) === canonicalJson(second);
}

/** Throws DEFINITION_INVALID if a document contains null, which TOML cannot express. */
export function assertExpressibleInToml(document: Json, where: string): void {
  const path = pathOfNull(document, '');
  if (path === undefined) return;
  const reason = 'is null, which TOML cannot express; keep this definition as JSON';
  throw new LoopError('DEFINITION_INVALID', `${where}: ${path}: ${reason}.`, { path, reason });
}

function pathOfNull(value: Json, path: string): string | undefined {
  if (value === null) return path;
  const members = Array.isArray(value) ? [...value.entries()] : isObject(value) ? Object.entries(value) : [];
  for (const [name, member] of members) {
    const found = pathOfNull(member as Json, appendPointer(path, name));
    if (found !== undefined) return found;
  }
  return undefined;
}
