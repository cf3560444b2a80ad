/**
 * Parses a document into a LoopDef. Schemas, paths, tools, backends and other loops that it refers to are checked when
 * they are compiled, linked or called. A misspelt key must never disable a policy: nested objects with known keys
 * refuse every other key, and the top level refuses keys that resemble `policy` or a missing required member. Other
 * unknown keys at the top level cause a warning.
 */

import { nearestWord } from '../../base/nearest-word.js';
import { isObject } from '../../base/own-property.js';
import type { JsonObject } from '../../protocol/json.js';
import type { LoopDef, LoopKind } from '../../protocol/loop.js';
import { checkBackendRef, checkPrompt, checkTool } from './bodies.js';
import { checkComposite } from './composite.js';
import { copyDocument } from './copy-document.js';
import { checkLoopId, checkVersion } from './loop-identity.js';
import { checkPolicy } from './policy.js';
import { checkPolicyApplies, type LoopForm, loopFormOf } from './policy-table.js';
import {
  anyObject,
  anyText,
  appendPointer,
  checkThat,
  type DefinitionCheck,
  type DefinitionIssue,
  DefinitionIssues,
  nonBlankText,
  oneOf,
} from './shape.js';

const MAX_MEMBERS = 1000;
/** The kinds of loops. The body of a loop is the member with the name of its kind. */
export const LOOP_KINDS: readonly LoopKind[] = ['prompt', 'composite', 'tool'];
/** The check of the body of each kind. */
export const bodyChecks: { readonly [kind in LoopKind]: DefinitionCheck } = {
  prompt: checkPrompt,
  composite: checkComposite,
  tool: checkTool,
};
const checkSchema = checkThat(
  'a JSON Schema: an object or a boolean',
  { type: ['object', 'boolean'] },
  (value) => typeof value === 'boolean' || isObject(value),
);

/** The members that every definition has. */
export const requiredMembers: { readonly [name: string]: DefinitionCheck } = {
  id: checkLoopId,
  name: nonBlankText,
  version: checkVersion,
  inputSchema: checkSchema,
  outputSchema: checkSchema,
  kind: oneOf(LOOP_KINDS),
};

/** The members that a definition may have, besides its body. */
export const optionalMembers: { readonly [name: string]: DefinitionCheck } = {
  description: anyText,
  backend: checkBackendRef,
  policy: checkPolicy,
  metadata: anyObject,
};

const memberChecks = new Map(Object.entries({ ...requiredMembers, ...optionalMembers }));
const knownMembers = [...memberChecks.keys(), ...LOOP_KINDS];

/** True for members that are allowed in any document and have no effect. */
const isNeutralMember = (key: string): boolean => key === '$schema' || key === '$comment' || key.startsWith('x-');

/** Top-level members that restrict a loop. Without them the loop still runs, but unrestricted. */
// guard: near-miss-of-policy-refused
const GUARD_MEMBERS: readonly string[] = ['policy'];

/** Nested members that restrict a loop, with the object that each belongs to. */
const NESTED_GUARD_MEMBERS: ReadonlyMap<string, string> = new Map([
  ...['approval', 'filters', 'rateLimit', 'retry', 'timeoutMs'].map((name) => [name, 'policy'] as const),
  ...['approvals', 'maxRounds', 'stop', 'toolTimeoutMs'].map((name) => [name, 'composite.agent'] as const),
  ['safety', 'tool'],
]);

const longMembers = knownMembers.filter((name) => name.length > 4);
const shortMembers = knownMembers.filter((name) => name.length === 4);

/**
 * Returns the known member that a misspelt key most likely means; undefined if none is close. Short names must be
 * closer to avoid false matches.
 */
function closestMember(key: string): string | undefined {
  return nearestWord(key, ['id'], 0) ?? nearestWord(key, shortMembers, 1) ?? nearestWord(key, longMembers, 2);
}

const isUnknownMember = (key: string): boolean => !knownMembers.includes(key) && !isNeutralMember(key);

/**
 * Checks one top-level member. An unknown key is an issue if it resembles `policy`, or if it resembles a required
 * member that is missing.
 */
function checkMember(key: string, document: JsonObject, issues: DefinitionIssues): void {
  memberChecks.get(key)?.(document[key] ?? null, appendPointer('', key), issues);
  if (!isUnknownMember(key)) return;
  const nearest = nearestWord(key, GUARD_MEMBERS) ?? closestMember(key);
  if (nearest === undefined || !(GUARD_MEMBERS.includes(nearest) || isMissingMember(nearest, document))) return;
  issues.add(appendPointer('', key), `is not a known key; did you mean "${nearest}"?`);
}

function isMissingMember(name: string, document: JsonObject): boolean {
  return (Object.hasOwn(requiredMembers, name) || name === document.kind) && !Object.hasOwn(document, name);
}

function checkBody(document: JsonObject, issues: DefinitionIssues): void {
  const kind = LOOP_KINDS.find((name) => name === document.kind);
  for (const name of LOOP_KINDS) {
    const body = document[name];
    const path = appendPointer('', name);
    if (name !== kind && body !== undefined && kind !== undefined) {
      issues.add(path, `is the body of another kind; a loop of kind "${kind}" has "${kind}" only`);
    }
    if (name !== kind) continue;
    if (body === undefined) issues.add(path, `is required for kind "${kind}"`);
    else bodyChecks[kind](body, path, issues);
  }
}

function checkDocument(document: JsonObject, form: LoopForm | undefined, issues: DefinitionIssues): void {
  const members = Object.keys(document);
  if (members.length > MAX_MEMBERS) issues.add('', `has ${members.length} members; the maximum is ${MAX_MEMBERS}`);
  for (const key of members.slice(0, MAX_MEMBERS)) checkMember(key, document, issues);
  for (const key of Object.keys(requiredMembers)) {
    if (!Object.hasOwn(document, key)) issues.add(appendPointer('', key), 'is required');
  }
  checkBody(document, issues);
  // guard: ineffective-policy-refused
  checkPolicyApplies(document, form ?? loopFormOf(document), issues);
}

/**
 * Returns a private copy of the document as a definition. Throws DEFINITION_INVALID with `path`, `reason` and up to 20
 * `flaws` in its data. `where` names the origin of the document in messages. `form` overrides the form that the
 * document implies, for a loop in code.
 */
export function parseDefinition(value: unknown, where: string, form?: LoopForm): LoopDef {
  const issues = new DefinitionIssues();
  const document = copyDocument(value, issues);
  if (isObject(document)) checkDocument(document, form, issues);
  else if (issues.count === 0) issues.add('', 'must be an object: one definition per document');
  if (issues.count > 0) throw issues.toError(where);
  return document as unknown as LoopDef;
}

/** A part of a valid definition that has no effect. */
export interface DefinitionWarning extends DefinitionIssue {
  /** True if it looks like a mistake rather than a member for another program. */
  readonly mistake: boolean;
}

/**
 * Returns a warning for each unknown top-level member, and for a `backend` that is ignored. Ignored members stay part
 * of the definition.
 */
export function warningsOf(definition: LoopDef): DefinitionWarning[] {
  const unknown = Object.keys(definition).filter(isUnknownMember).map(warningOf);
  const isUsed = definition.kind === 'prompt' || definition.backend === undefined;
  return isUsed ? unknown : [...unknown, { path: '/backend', reason: 'is for prompts and is ignored', mistake: false }];
}

function warningOf(key: string): DefinitionWarning {
  const path = appendPointer('', key);
  const nearest = closestMember(key);
  const parent = NESTED_GUARD_MEMBERS.get(key);
  if (nearest !== undefined) {
    return { path, reason: `is not a known key and is ignored; did you mean "${nearest}"?`, mistake: true };
  }
  if (parent !== undefined) {
    return { path, reason: `has no effect here and is ignored; it belongs in "${parent}"`, mistake: true };
  }
  return { path, reason: 'is not a known key; it is kept and ignored', mistake: false };
}
