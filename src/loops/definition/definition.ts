/**
 * A definition as a document: whether it is a LoopDef, all of it. What it names (schemas, paths, tools, backends, other
 * loops) is judged by whoever compiles it. A renamed key must never switch a guard off, so inside the parts every
 * unknown key is refused, and at the top every key that looks like a known one.
 */
import type { Json } from '../../protocol/json.js';
import type { LoopDef, LoopKind } from '../../protocol/loop.js';
import { backend, prompt, tool } from './bodies.js';
import { composite } from './composite.js';
import { privateCopy } from './copy.js';
import { loopId, version } from './identity.js';
import { nearest } from './nearest.js';
import { policy } from './policy.js';
import { checkPolicyApplies, formOf, type LoopForm } from './policy-table.js';
import { anyFields, anyText, type Check, type Fields, Flaws, isFields, must, oneOf, pointer, text } from './shape.js';

const MEMBERS = 1000;
const kinds: readonly LoopKind[] = ['prompt', 'composite', 'tool'];
const bodies: { readonly [kind in LoopKind]: Check } = { prompt, composite, tool };
const schema = must('a JSON Schema: an object or a boolean', (value) => typeof value === 'boolean' || isFields(value));

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

const long = known.filter((name) => name.length > 4);
const short = known.filter((name) => name.length === 4);

/** A known name that is so near that it was meant. Of short names half the dictionary is near, so they allow less. */
function misspelt(key: string): string | undefined {
  return nearest(key, ['id'], 0) ?? nearest(key, short, 1) ?? nearest(key, long, 2);
}

function checkMember(key: string, value: Json, flaws: Flaws): void {
  checks.get(key)?.(value, pointer('', key), flaws);
  const meant = known.includes(key) || neutral(key) ? undefined : misspelt(key);
  if (meant !== undefined) flaws.add(pointer('', key), `is not a known key; did you mean "${meant}"?`);
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
  const members = Object.entries(document);
  if (members.length > MEMBERS) flaws.add('', `has ${members.length} members; ${MEMBERS} is the most`);
  for (const [key, value] of members.slice(0, MEMBERS)) checkMember(key, value, flaws);
  for (const key of Object.keys(required)) {
    if (!Object.hasOwn(document, key)) flaws.add(pointer('', key), 'is required');
  }
  checkBody(document, flaws);
  checkPolicyApplies(document, form ?? formOf(document), flaws);
}

/**
 * A private copy of the document as a definition, or DEFINITION_INVALID with `path`, `reason` and up to twenty `flaws`.
 * `where` tells people where the document comes from; `form` what the loop is made of, where the document does not say so.
 */
export function parseDefinition(value: unknown, where: string, form?: LoopForm): LoopDef {
  const flaws = new Flaws();
  const document = privateCopy(value, flaws);
  if (isFields(document)) checkDocument(document, form, flaws);
  else if (flaws.count === 0) flaws.add('', 'must be an object: one definition a document');
  if (flaws.count > 0) throw flaws.error(where);
  return document as unknown as LoopDef;
}

/** The members at the top that mean nothing to us: kept as they are, and worth a warning. */
export function strangers(definition: LoopDef): string[] {
  return Object.keys(definition).filter((key) => !known.includes(key) && !neutral(key));
}
