/**
 * A definition as a document: whether it is a LoopDef, all of it. What it names (schemas, paths, tools, backends, other
 * loops) is judged by whoever compiles it. A renamed key must never switch a guard off, so inside the parts every
 * unknown key is refused, and at the top every key that looks like `policy`; other unknown keys are warned of.
 */

import { nearest } from '../../base/nearest.js';
import { isObject } from '../../base/own-property.js';
import type { LoopDef, LoopKind } from '../../protocol/loop.js';
import { backend, prompt, tool } from './bodies.js';
import { composite } from './composite.js';
import { privateCopy } from './copy.js';
import { loopId, version } from './identity.js';
import { policy } from './policy.js';
import { checkPolicyApplies, formOf, type LoopForm } from './policy-table.js';
import { anyFields, anyText, type Check, type Fields, type Flaw, Flaws, must, oneOf, pointer, text } from './shape.js';

const MEMBERS = 1000;
const kinds: readonly LoopKind[] = ['prompt', 'composite', 'tool'];
const bodies: { readonly [kind in LoopKind]: Check } = { prompt, composite, tool };
const schema = must('a JSON Schema: an object or a boolean', (value) => typeof value === 'boolean' || isObject(value));

const required: { readonly [name: string]: Check } = {
  id: loopId,
  name: text,
  version,
  inputSchema: schema,
  outputSchema: schema,
  kind: oneOf(kinds),
};

const optional: { readonly [name: string]: Check } = { description: anyText, backend, policy, metadata: anyFields };

const checks = new Map(Object.entries({ ...required, ...optional }));
const known = [...checks.keys(), ...kinds];

/** Members that are nobody's misspelling. */
const neutral = (key: string): boolean => key === '$schema' || key === '$comment' || key.startsWith('x-');

/** Members at the top that keep something from happening: without them a loop still runs. */
// guard: near-miss-of-policy-refused
const GUARDS: readonly string[] = ['policy'];

/** Members of the parts that do the same, and where each belongs. */
const INSIDE: ReadonlyMap<string, string> = new Map([
  ...['approval', 'filters', 'rateLimit', 'retry', 'timeoutMs'].map((name) => [name, 'policy'] as const),
  ...['approvals', 'maxRounds', 'stop', 'toolTimeoutMs'].map((name) => [name, 'composite.agent'] as const),
  ['safety', 'tool'],
]);

const long = known.filter((name) => name.length > 4);
const short = known.filter((name) => name.length === 4);

/** A known name that is so near that it was meant. Of short names half the dictionary is near, so they allow less. */
function misspelt(key: string): string | undefined {
  return nearest(key, ['id'], 0) ?? nearest(key, short, 1) ?? nearest(key, long, 2);
}

const isUnknown = (key: string): boolean => !known.includes(key) && !neutral(key);

/** A misspelt policy would switch a guard off, and a misspelt member that is missing is the reason for its absence. */
function checkMember(key: string, document: Fields, flaws: Flaws): void {
  checks.get(key)?.(document[key] ?? null, pointer('', key), flaws);
  if (!isUnknown(key)) return;
  const meant = nearest(key, GUARDS) ?? misspelt(key);
  if (meant === undefined || !(GUARDS.includes(meant) || isMissing(meant, document))) return;
  flaws.add(pointer('', key), `is not a known key; did you mean "${meant}"?`);
}

function isMissing(name: string, document: Fields): boolean {
  return (Object.hasOwn(required, name) || name === document.kind) && !Object.hasOwn(document, name);
}

function checkBody(document: Fields, flaws: Flaws): void {
  const kind = kinds.find((name) => name === document.kind);
  for (const name of kinds) {
    const body = document[name];
    const place = pointer('', name);
    if (name !== kind && body !== undefined && kind !== undefined) {
      flaws.add(place, `is the body of another kind; a loop of kind "${kind}" has "${kind}" only`);
    }
    if (name !== kind) continue;
    if (body === undefined) flaws.add(place, `is required for kind "${kind}"`);
    else bodies[kind](body, place, flaws);
  }
}

function checkDocument(document: Fields, form: LoopForm | undefined, flaws: Flaws): void {
  const members = Object.keys(document);
  if (members.length > MEMBERS) flaws.add('', `has ${members.length} members; ${MEMBERS} is the most`);
  for (const key of members.slice(0, MEMBERS)) checkMember(key, document, flaws);
  for (const key of Object.keys(required)) {
    if (!Object.hasOwn(document, key)) flaws.add(pointer('', key), 'is required');
  }
  checkBody(document, flaws);
  // guard: ineffective-policy-refused
  checkPolicyApplies(document, form ?? formOf(document), flaws);
}

/**
 * A private copy of the document as a definition, or DEFINITION_INVALID with `path`, `reason` and up to twenty `flaws`.
 * `where` tells people where the document comes from; `form` what the loop is made of, where the document does not say so.
 */
export function parseDefinition(value: unknown, where: string, form?: LoopForm): LoopDef {
  const flaws = new Flaws();
  const document = privateCopy(value, flaws);
  if (isObject(document)) checkDocument(document, form, flaws);
  else if (flaws.count === 0) flaws.add('', 'must be an object: one definition a document');
  if (flaws.count > 0) throw flaws.error(where);
  return document as unknown as LoopDef;
}

/** What is odd about a definition that can be run. */
export interface Warning extends Flaw {
  /** Whether it looks like a mistake, and not like a member that another program reads. */
  readonly mistake: boolean;
}

/** The members at the top that have no effect here: they are kept as they are, and ignored. */
export function warningsOf(definition: LoopDef): Warning[] {
  const unknown = Object.keys(definition).filter(isUnknown).map(warningOf);
  const isUsed = definition.kind === 'prompt' || definition.backend === undefined;
  return isUsed ? unknown : [...unknown, { path: '/backend', reason: 'is for prompts and is ignored', mistake: false }];
}

function warningOf(key: string): Warning {
  const path = pointer('', key);
  const meant = misspelt(key);
  const place = INSIDE.get(key);
  if (meant !== undefined) {
    return { path, reason: `is not a known key and is ignored; did you mean "${meant}"?`, mistake: true };
  }
  if (place !== undefined) {
    return { path, reason: `guards nothing here and is ignored; it belongs in "${place}"`, mistake: true };
  }
  return { path, reason: 'is not a key that means anything here; it is kept and ignored', mistake: false };
}
