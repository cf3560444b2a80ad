/**
 * A definition as a document: whether it is a LoopDef, all of it. What it names (schemas, paths, tools, backends, other
 * loops) is judged by whoever compiles it. A renamed key must never switch a guard off, so inside the parts every
 * unknown key is refused, and at the top every key that looks like `policy`; other unknown keys are warned of.
 */

import { nearestWord } from '../../base/nearest-word.js';
import { isObject } from '../../base/own-property.js';
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
  type JsonObject,
  nonEmptyText,
  oneOf,
} from './shape.js';

const MAX_MEMBERS = 1000;
const LOOP_KINDS: readonly LoopKind[] = ['prompt', 'composite', 'tool'];
const bodyChecks: { readonly [kind in LoopKind]: DefinitionCheck } = {
  prompt: checkPrompt,
  composite: checkComposite,
  tool: checkTool,
};
const checkSchema = checkThat(
  'a JSON Schema: an object or a boolean',
  (value) => typeof value === 'boolean' || isObject(value),
);

const requiredMembers: { readonly [name: string]: DefinitionCheck } = {
  id: checkLoopId,
  name: nonEmptyText,
  version: checkVersion,
  inputSchema: checkSchema,
  outputSchema: checkSchema,
  kind: oneOf(LOOP_KINDS),
};

const optionalMembers: { readonly [name: string]: DefinitionCheck } = {
  description: anyText,
  backend: checkBackendRef,
  policy: checkPolicy,
  metadata: anyObject,
};

const memberChecks = new Map(Object.entries({ ...requiredMembers, ...optionalMembers }));
const knownMembers = [...memberChecks.keys(), ...LOOP_KINDS];

/** Members that are nobody's misspelling. */
const isNeutralMember = (key: string): boolean => key === '$schema' || key === '$comment' || key.startsWith('x-');

/** Members at the top that keep something from happening: without them a loop still runs. */
// guard: near-miss-of-policy-refused
const GUARD_MEMBERS: readonly string[] = ['policy'];

/** Members of the parts that do the same, and where each belongs. */
const NESTED_GUARD_MEMBERS: ReadonlyMap<string, string> = new Map([
  ...['approval', 'filters', 'rateLimit', 'retry', 'timeoutMs'].map((name) => [name, 'policy'] as const),
  ...['approvals', 'maxRounds', 'stop', 'toolTimeoutMs'].map((name) => [name, 'composite.agent'] as const),
  ['safety', 'tool'],
]);

const longMembers = knownMembers.filter((name) => name.length > 4);
const shortMembers = knownMembers.filter((name) => name.length === 4);

/** A known name that is so near that it was meant. Of short names half the dictionary is near, so they allow less. */
function closestMember(key: string): string | undefined {
  return nearestWord(key, ['id'], 0) ?? nearestWord(key, shortMembers, 1) ?? nearestWord(key, longMembers, 2);
}

const isUnknownMember = (key: string): boolean => !knownMembers.includes(key) && !isNeutralMember(key);

/** A misspelt policy would switch a guard off, and a misspelt member that is missing is the reason for its absence. */
function checkMember(key: string, document: JsonObject, flaws: DefinitionIssues): void {
  memberChecks.get(key)?.(document[key] ?? null, appendPointer('', key), flaws);
  if (!isUnknownMember(key)) return;
  const meant = nearestWord(key, GUARD_MEMBERS) ?? closestMember(key);
  if (meant === undefined || !(GUARD_MEMBERS.includes(meant) || isMissingMember(meant, document))) return;
  flaws.add(appendPointer('', key), `is not a known key; did you mean "${meant}"?`);
}

function isMissingMember(name: string, document: JsonObject): boolean {
  return (Object.hasOwn(requiredMembers, name) || name === document.kind) && !Object.hasOwn(document, name);
}

function checkBody(document: JsonObject, flaws: DefinitionIssues): void {
  const kind = LOOP_KINDS.find((name) => name === document.kind);
  for (const name of LOOP_KINDS) {
    const body = document[name];
    const place = appendPointer('', name);
    if (name !== kind && body !== undefined && kind !== undefined) {
      flaws.add(place, `is the body of another kind; a loop of kind "${kind}" has "${kind}" only`);
    }
    if (name !== kind) continue;
    if (body === undefined) flaws.add(place, `is required for kind "${kind}"`);
    else bodyChecks[kind](body, place, flaws);
  }
}

function checkDocument(document: JsonObject, form: LoopForm | undefined, flaws: DefinitionIssues): void {
  const members = Object.keys(document);
  if (members.length > MAX_MEMBERS) flaws.add('', `has ${members.length} members; ${MAX_MEMBERS} is the most`);
  for (const key of members.slice(0, MAX_MEMBERS)) checkMember(key, document, flaws);
  for (const key of Object.keys(requiredMembers)) {
    if (!Object.hasOwn(document, key)) flaws.add(appendPointer('', key), 'is required');
  }
  checkBody(document, flaws);
  // guard: ineffective-policy-refused
  checkPolicyApplies(document, form ?? loopFormOf(document), flaws);
}

/**
 * A private copy of the document as a definition, or DEFINITION_INVALID with `path`, `reason` and up to twenty `flaws`.
 * `where` tells people where the document comes from; `form` what the loop is made of, where the document does not say so.
 */
export function parseDefinition(value: unknown, where: string, form?: LoopForm): LoopDef {
  const flaws = new DefinitionIssues();
  const document = copyDocument(value, flaws);
  if (isObject(document)) checkDocument(document, form, flaws);
  else if (flaws.count === 0) flaws.add('', 'must be an object: one definition a document');
  if (flaws.count > 0) throw flaws.toError(where);
  return document as unknown as LoopDef;
}

/** What is odd about a definition that can be run. */
export interface DefinitionWarning extends DefinitionIssue {
  /** Whether it looks like a mistake, and not like a member that another program reads. */
  readonly mistake: boolean;
}

/** The members at the top that have no effect here: they are kept as they are, and ignored. */
export function warningsOf(definition: LoopDef): DefinitionWarning[] {
  const unknown = Object.keys(definition).filter(isUnknownMember).map(warningOf);
  const isUsed = definition.kind === 'prompt' || definition.backend === undefined;
  return isUsed ? unknown : [...unknown, { path: '/backend', reason: 'is for prompts and is ignored', mistake: false }];
}

function warningOf(key: string): DefinitionWarning {
  const path = appendPointer('', key);
  const meant = closestMember(key);
  const place = NESTED_GUARD_MEMBERS.get(key);
  if (meant !== undefined) {
    return { path, reason: `is not a known key and is ignored; did you mean "${meant}"?`, mistake: true };
  }
  if (place !== undefined) {
    return { path, reason: `guards nothing here and is ignored; it belongs in "${place}"`, mistake: true };
  }
  return { path, reason: 'is not a key that means anything here; it is kept and ignored', mistake: false };
}
