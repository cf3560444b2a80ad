/**
 * Grants as they are enforced: a grant document is checked field by field and converted to a form without defaults.
 * Unknown members are refused, so that a misspelled limit never means "unlimited".
 */

import { ISO_TIME_DESCRIPTION, parseIsoTime } from '../base/iso-time.js';
import { wholeNumbers } from '../base/number-range.js';
import { isObject } from '../base/own-property.js';
import { findHostProblem } from '../base/permits.js';
import { digestOfText } from '../journal/record.js';
import { canonicalJson } from '../json/canonical.js';
import { findUnknownKeyword } from '../json/schema/unknown-keyword.js';
import { compileSchema, type Validator } from '../json/schema.js';
import type { Grant, GrantLimits, GrantReview } from '../protocol/grant.js';
import type { Json, JsonObject } from '../protocol/json.js';
import type { JsonSchema } from '../protocol/loop.js';
import { assertNamesPermitted, effectsOf, invalidGrant } from './grant-names.js';
import { isPattern } from './grant-pattern.js';

/** The limits of a grant by counter: the names of `GrantLimits`, and `effects:TOOL` for a limit of one tool. */
export type CounterLimits = { readonly [counter: string]: number };

/** A schema for the arguments of the tools that a pattern covers. */
export interface ArgumentRule {
  readonly pattern: string;
  readonly validator: Validator;
}

/** A grant as it is enforced. An absent list permits everything, an empty one nothing. */
export interface EnforcedGrant {
  readonly id: string | undefined;
  readonly allowedTools: readonly string[];
  readonly scopes: readonly string[] | undefined;
  /** All rules whose pattern covers a tool must accept its arguments. */
  readonly argumentRules: readonly ArgumentRule[];
  readonly review: ReadonlyMap<string, GrantReview>;
  readonly limits: CounterLimits;
  readonly roots: readonly string[] | undefined;
  readonly destinations: readonly string[] | undefined;
  readonly unconfined: readonly string[];
  readonly approvers: readonly string[] | undefined;
  /** In milliseconds since the epoch. */
  readonly expiresAt: number | undefined;
}

/** The members of a grant. A new member of `Grant` must be added here, which the compiler checks. */
const GRANT_MEMBERS = {
  id: true,
  allowedTools: true,
  scopes: true,
  arguments: true,
  review: true,
  limits: true,
  roots: true,
  destinations: true,
  unconfined: true,
  approvers: true,
  expiresAt: true,
} as const satisfies Record<keyof Required<Grant>, true>;

const LIMIT_MEMBERS = {
  turns: true,
  modelRounds: true,
  toolRounds: true,
  inputTokens: true,
  outputTokens: true,
  costMicros: true,
  effects: true,
  wallMs: true,
  fanOut: true,
  depth: true,
} as const satisfies Record<keyof Required<GrantLimits>, true>;

const LIMIT_RANGE = wholeNumbers(0);
const GRANT_ID = /^[A-Za-z0-9_@-][A-Za-z0-9_@.:-]{0,99}$/;
const ABSOLUTE_PATH = /^\/(?:[^/\0]+(?:\/[^/\0]+)*)?$/;
/** An id followed by `@` and a version, which is the id of no tool. */
const VERSIONED_ID = /@\d+\.\d+\.\d+(?:[-+].*)?$/;
const MAX_ITEMS = 1000;

/** Returns the digest of a grant document, which identifies its content. */
export function grantDigest(grant: Grant): string {
  return digestOfText(canonicalJson(grant as unknown as Json));
}

/**
 * Checks a grant and returns it as it is enforced. `isOperators` permits the pattern `*` in `allowedTools` and `scopes`.
 * Throws GRANT_INVALID with the path of the problem.
 */
export function parseGrant(grant: unknown, { isOperators }: { readonly isOperators: boolean }): EnforcedGrant {
  const document = objectAt(grant, '', GRANT_MEMBERS) as Partial<Record<keyof Grant, unknown>>;
  const { id, expiresAt } = document;
  if (id !== undefined && !(typeof id === 'string' && GRANT_ID.test(id)))
    throw invalidGrant('/id', 'must be 1 to 100 letters, digits or _ @ . : -');
  if (document.allowedTools === undefined) throw invalidGrant('/allowedTools', 'is missing; [] permits no tool');
  const enforced: EnforcedGrant = {
    id: id as string | undefined,
    allowedTools: patternsAt(document.allowedTools, '/allowedTools', isOperators),
    scopes: optional(document.scopes, (scopes) => patternsAt(scopes, '/scopes', isOperators)),
    argumentRules: argumentRulesAt(document.arguments ?? {}),
    review: reviewAt(document.review ?? {}),
    limits: limitsAt(document.limits),
    roots: optional(document.roots, (roots) => listAt(roots, '/roots', findRootProblem)),
    destinations: optional(document.destinations, (hosts) => listAt(hosts, '/destinations', findDestinationProblem)),
    unconfined: listAt(document.unconfined ?? [], '/unconfined', (name) =>
      isToolPattern(name) && !name.endsWith('*') ? undefined : 'must be the id of a tool or loop',
    ),
    approvers: optional(document.approvers, (names) => listAt(names, '/approvers', findPrincipalProblem)),
    expiresAt: optional(expiresAt, timeAt),
  };
  assertNamesPermitted(enforced);
  return enforced;
}

function optional<T>(value: unknown, parse: (value: unknown) => T): T | undefined {
  return value === undefined ? undefined : parse(value);
}

/** Returns an object whose members are all known. */
function objectAt(value: unknown, path: string, members: Record<string, true> | undefined): JsonObject {
  if (!isObject(value)) throw invalidGrant(path, 'must be an object');
  // guard: unknown-grant-member-refused
  const unknown = members && Object.keys(value).find((name) => !Object.hasOwn(members, name));
  if (unknown !== undefined)
    throw invalidGrant(`${path}/${unknown}`, `is unknown; known are ${Object.keys(members ?? {}).join(', ')}`);
  return value as JsonObject;
}

function listAt(value: unknown, path: string, findProblem: (item: string) => string | undefined): readonly string[] {
  if (!Array.isArray(value) || value.length > MAX_ITEMS)
    throw invalidGrant(path, `must be a list of up to ${MAX_ITEMS} texts`);
  return value.map((item: unknown, index) => {
    const problem = typeof item === 'string' ? findProblem(item) : 'must be text';
    if (problem !== undefined) throw invalidGrant(`${path}/${index}`, problem);
    return item as string;
  });
}

function patternsAt(value: unknown, path: string, mayBeAny: boolean): readonly string[] {
  return listAt(value, path, (item) => {
    // guard: bare-wildcard-is-the-operators
    if (isPattern(item, mayBeAny)) return undefined;
    if (item === '*') return 'is "*", which only a grant of the operator may contain';
    return 'must be a name, or a prefix followed by .* for one further segment';
  });
}

/** Returns true for a pattern that can match the id of a tool. One with a version would match none, without a word. */
function isToolPattern(text: string): boolean {
  // guard: versioned-tool-name-refused
  return isPattern(text, true) && !VERSIONED_ID.test(text);
}

function argumentRulesAt(value: unknown): readonly ArgumentRule[] {
  return Object.entries(objectAt(value, '/arguments', undefined)).map(([pattern, schema]) => {
    const path = `/arguments/${pattern}`;
    if (!isToolPattern(pattern))
      throw invalidGrant(path, 'must be the name or the pattern of a tool, without a version');
    try {
      const validator = compileSchema(schema, 'the schema');
      const keyword = findUnknownKeyword(schema as JsonSchema);
      // guard: unknown-keyword-of-arguments-refused
      if (keyword !== undefined) throw new Error(`there is no keyword "${keyword}"`);
      return { pattern, validator };
    } catch (thrown) {
      throw invalidGrant(path, `is not a usable JSON Schema: ${thrown instanceof Error ? thrown.message : ''}`);
    }
  });
}

function reviewAt(value: unknown): ReadonlyMap<string, GrantReview> {
  return new Map(
    Object.entries(objectAt(value, '/review', undefined)).map(([pattern, review]) => {
      if (!isToolPattern(pattern))
        throw invalidGrant(`/review/${pattern}`, 'must be the name or the pattern of a tool, without a version');
      if (review !== 'ask' && review !== 'blocked')
        throw invalidGrant(`/review/${pattern}`, 'must be "ask" or "blocked"');
      return [pattern, review];
    }),
  );
}

function limitsAt(value: unknown): CounterLimits {
  if (value === undefined) throw invalidGrant('/limits', 'is missing; {} sets no limit');
  const { effects, ...others } = objectAt(value, '/limits', LIMIT_MEMBERS);
  const limits: { [counter: string]: number } = Object.create(null);
  const set = (counter: string, path: string, limit: unknown): void => {
    if (!LIMIT_RANGE.includes(limit)) throw invalidGrant(path, `must be ${LIMIT_RANGE.description}`);
    limits[counter] = limit;
  };
  for (const [name, limit] of Object.entries(others)) set(name, `/limits/${name}`, limit);
  if (isObject(effects)) {
    for (const [tool, limit] of Object.entries(effects)) {
      const path = `/limits/effects/${tool}`;
      if (!isToolPattern(tool) || tool.endsWith('*'))
        throw invalidGrant(path, 'must be the id of a tool, without a version');
      set(effectsOf(tool), path, limit);
    }
  } else if (effects !== undefined) set('effects', '/limits/effects', effects);
  return limits;
}

function findRootProblem(root: string): string | undefined {
  const isPlain = ABSOLUTE_PATH.test(root) && !root.split('/').some((segment) => segment === '.' || segment === '..');
  return isPlain ? undefined : 'must be an absolute path without . and ..';
}

function findDestinationProblem(host: string): string | undefined {
  if (!host.startsWith('*.')) return findHostProblem(host);
  // A name below a host has no scheme in front of the asterisk and is no address.
  return /^[^:[]+(?::\d+)?$/.test(host.slice(2))
    ? findHostProblem(host.slice(2))
    : 'must be *.HOST or *.HOST:PORT, without a scheme or an address';
}

function findPrincipalProblem(name: string): string | undefined {
  return name.trim() !== '' && name.length <= 200 ? undefined : 'must be text of 1 to 200 characters';
}

function timeAt(value: unknown): number {
  const time = parseIsoTime(value);
  if (time === undefined) throw invalidGrant('/expiresAt', `must be ${ISO_TIME_DESCRIPTION}`);
  return time;
}
