/**
 * Workflow files: converts a document with `workflow`, `steps` or `states` into the definition of a loop whose body is
 * a plan. Short forms (`context = "flat"`) become the long ones, so that one plan has one digest. The checks of
 * definitions find everything else that is wrong; `documentPointer` converts their paths back to paths in the document.
 */
import { nearestWord } from '../../base/nearest-word.js';
import { isObject, ownProperty } from '../../base/own-property.js';
import { compileSchema } from '../../json/schema.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import type { JsonSchema, LoopDef } from '../../protocol/loop.js';
import type { PlanSpec } from '../../protocol/plan.js';
import { parseDefinition } from '../definition/definition.js';
import { DefinitionIssues, didYouMean } from '../definition/shape.js';
import { soundPlan } from '../definition/sound-plan.js';
import { planDigest } from './plan.js';
import { RESERVED_PLACEHOLDERS } from './plan-inputs.js';
import { placeholdersIn } from './plan-placeholders.js';

/** The members of a workflow file, and those of its table `workflow`. */
const DOCUMENT_KEYS = ['workflow', 'steps', 'states', '$schema'];
const PLAN_KEYS = ['steps', 'states', 'initial_state', 'context', 'cache', 'retry', 'llm', 'limits'];
const WORKFLOW_KEYS = ['name', 'description', 'version', 'input', 'output', ...PLAN_KEYS];
/** Members whose short form is the name of a strategy. */
const STRATEGY_KEYS: ReadonlySet<string> = new Set(['context', 'cache', 'retry', 'llm']);

/** Returns the id of a workflow that a document refers to by its path; undefined for an id. */
type ResolveWorkflow = (path: string) => string | undefined;

/** True if a document is a workflow: it has no `kind`, and `workflow`, `steps` or `states`. */
function isWorkflowDocument(value: unknown): value is JsonObject {
  if (!isObject(value as Json)) return false;
  const document = value as JsonObject;
  return (
    !Object.hasOwn(document, 'kind') && ['workflow', 'steps', 'states'].some((key) => Object.hasOwn(document, key))
  );
}

/**
 * Converts a parsed document, a workflow or a definition, into a definition. Throws DEFINITION_INVALID if it is invalid.
 * `fileName` is the id of a workflow without a name; `workflowIds` has the ids of workflows by their paths.
 */
function parseDocument(
  value: unknown,
  where: string,
  fileName: string,
  workflowIds?: ReadonlyMap<string, string>,
): LoopDef {
  if (!isWorkflowDocument(value)) return parseDefinition(value, where);
  const issues = new DefinitionIssues();
  checkKeys(value, issues);
  const document = workflowDefinition(value, fileName, (path) => workflowIds?.get(path));
  const definition = issues.attempt(() => parseDefinition(document, where));
  if (definition === undefined || issues.count > 0) throw issues.toError(where);
  return definition;
}

/**
 * Returns the definition of a document that cannot be loaded, as far as its plan can be analyzed; undefined if it has no
 * plan. Adds the issues of its schemas. `workflowIds` is that of `parse`.
 */
function draftDocument(
  value: unknown,
  fileName: string,
  workflowIds: ReadonlyMap<string, string>,
  issues: DefinitionIssues,
): LoopDef | undefined {
  const document = isWorkflowDocument(value)
    ? workflowDefinition(value, fileName, (path) => workflowIds.get(path))
    : value;
  const plan = soundPlan((ownProperty(ownProperty(document, 'composite'), 'plan') ?? null) as Json);
  if (plan === undefined) return undefined;
  const { id, version, inputSchema, outputSchema } = document as JsonObject;
  const schemaAt = (schema: Json | undefined, path: string): JsonSchema =>
    (issues.attempt(() => compileSchema(schema, path)) && (schema as JsonSchema)) ?? {};
  const name = typeof id === 'string' ? id : fileName;
  return {
    id: name,
    name,
    version: typeof version === 'string' ? version : '0.0.0',
    kind: 'composite',
    inputSchema: schemaAt(inputSchema, '/inputSchema'),
    outputSchema: schemaAt(outputSchema, '/outputSchema'),
    composite: { plan },
  };
}

function workflowDefinition(document: JsonObject, fileName: string, resolve: ResolveWorkflow): JsonObject {
  const workflow = isObject(document.workflow) ? document.workflow : {};
  const { name, description, version, input, output } = workflow;
  const plan = planOf(document, workflow, resolve);
  const id = name ?? fileName;
  return {
    id,
    name: id,
    ...(description !== undefined && { description }),
    version: version ?? `0.0.0+${planDigest(plan as unknown as PlanSpec)}`,
    inputSchema: input ?? inferInputSchema(plan as unknown as PlanSpec),
    outputSchema: output ?? {},
    kind: 'composite',
    composite: { plan },
  };
}

/** Adds an issue for each unknown key, which the definition would not contain. */
function checkKeys(document: JsonObject, issues: DefinitionIssues): void {
  const workflow = isObject(document.workflow) ? document.workflow : {};
  const check = (table: JsonObject, known: readonly string[], path: string): void => {
    for (const key of Object.keys(table))
      if (!known.includes(key))
        issues.add(
          `${path}/${key}`,
          `is not a known key; known here: ${known.join(', ')}${didYouMean(nearestWord(key, known))}`,
        );
  };
  check(document, DOCUMENT_KEYS, '');
  if (document.workflow !== undefined && !isObject(document.workflow)) issues.add('/workflow', 'must be a table');
  check(workflow, WORKFLOW_KEYS, '/workflow');
  for (const key of ['steps', 'states'])
    if (Object.hasOwn(document, key) && Object.hasOwn(workflow, key))
      issues.add(`/${key}`, `is also in the table "workflow"; write it once`);
}

function planOf(document: JsonObject, workflow: JsonObject, resolve: ResolveWorkflow): JsonObject {
  const members = PLAN_KEYS.flatMap((key): (readonly [string, Json])[] => {
    const value = workflow[key] ?? (key === 'steps' || key === 'states' ? document[key] : undefined);
    return value === undefined ? [] : [[key, normalizeMember(key, value, resolve)]];
  });
  return Object.fromEntries(members);
}

function normalizeMember(key: string, value: Json, resolve: ResolveWorkflow): Json {
  if (key === 'steps' || key === 'states') return normalizeSteps(value, resolve);
  return STRATEGY_KEYS.has(key) && typeof value === 'string' ? { strategy: value } : value;
}

function normalizeSteps(value: Json, resolve: ResolveWorkflow): Json {
  return Array.isArray(value) ? value.map((step) => normalizeStep(step as Json, resolve)) : value;
}

/** Members of a step that hold further steps, in the table of its type. */
const STEP_LISTS: ReadonlySet<string> = new Set(['steps', 'else']);
const STEP_TABLES: ReadonlySet<string> = new Set(['cases', 'branches']);
const TYPE_TABLES: ReadonlySet<string> = new Set(['sequence', 'repeat', 'branch', 'each', 'fanout', 'scope']);

function normalizeStep(step: Json, resolve: ResolveWorkflow): Json {
  if (!isObject(step)) return step;
  return Object.fromEntries(
    Object.entries(step).map(([name, value]): [string, Json] => {
      const key = name === 'fan-out' ? 'fanout' : name;
      if (key === 'type' && value === 'fan-out') return [key, 'fanout'];
      if (TYPE_TABLES.has(key) && isObject(value)) return [key, normalizeTable(value, resolve)];
      if (key === 'workflow' && typeof value === 'string') return [key, resolve(value) ?? value];
      return [key, STRATEGY_KEYS.has(key) && typeof value === 'string' ? { strategy: value } : value];
    }),
  );
}

function normalizeTable(table: JsonObject, resolve: ResolveWorkflow): Json {
  return Object.fromEntries(
    Object.entries(table).map(([key, value]): [string, Json] => {
      if (STEP_LISTS.has(key)) return [key, normalizeSteps(value, resolve)];
      if (!STEP_TABLES.has(key) || !Array.isArray(value)) return [key, value];
      return [key, value.map((item) => (isObject(item as Json) ? normalizeTable(item as JsonObject, resolve) : item))];
    }),
  );
}

/** Returns the input schema of a plan: its placeholders, as texts that are required. */
export function inferInputSchema(plan: PlanSpec): JsonObject {
  const { placeholders, captured } = placeholdersIn(plan);
  const names = [...new Set(placeholders.map((name) => name.split('.')[0] as string))]
    .filter((name) => !captured.has(name) && !RESERVED_PLACEHOLDERS.includes(name))
    .sort();
  if (names.length === 0) return { type: 'object' };
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
    required: names,
  };
}

/** Converts a path in the definition of a workflow to the path of the same member in the document. */
function documentPointer(document: unknown, pointer: string): string {
  if (!isWorkflowDocument(document)) return pointer;
  const path = /^\/composite\/plan(\/.*)?$/.exec(pointer)?.[1];
  if (path !== undefined) {
    const [, key = ''] = path.split('/');
    return isObject(document.workflow) && Object.hasOwn(document.workflow, key) ? `/workflow${path}` : path;
  }
  const renamed: { readonly [member: string]: string } = {
    '/id': '/name',
    '/inputSchema': '/input',
    '/outputSchema': '/output',
  };
  const [member = ''] = /^\/[^/]*/.exec(pointer) ?? [];
  if (!Object.hasOwn(renamed, member) && member !== '/version' && member !== '/description') return pointer;
  return `/workflow${renamed[member] ?? member}${pointer.slice(member.length)}`;
}

/** Returns the paths of the workflows that a document refers to by their files. */
function workflowPaths(document: unknown): readonly string[] {
  const paths = new Set<string>();
  if (isWorkflowDocument(document)) {
    const note: ResolveWorkflow = (path) => {
      if (/\.(?:toml|json)$/.test(path)) paths.add(path);
      return undefined;
    };
    planOf(document, isObject(document.workflow) ? document.workflow : {}, note);
  }
  return [...paths];
}

/** Converts documents, which are definitions or workflows, into definitions. */
export const documentParser = { parse: parseDocument, draft: draftDocument, workflowPaths, documentPointer };
