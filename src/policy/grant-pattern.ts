/**
 * The patterns of grants for tools and scopes: an exact name, a prefix followed by `.*` or `:*`, which stands for exactly
 * one further segment, or `*` for all, which only a grant of the operator may contain.
 */

/** The pattern for all names. */
export const ANY_NAME = '*';

const NAME = /^[A-Za-z0-9_@~/-][\w@~/+-]*(?:[.:][\w@~/+-]+)*$/;
const WILDCARD = /[.:]\*$/;

/** Returns true if a text is a pattern. `*` alone is one only if `mayBeAny`. */
export function isPattern(text: unknown, mayBeAny: boolean): text is string {
  if (typeof text !== 'string' || text.length > 200) return false;
  if (text === ANY_NAME) return mayBeAny;
  return NAME.test(text.replace(WILDCARD, ''));
}

/** Returns true if a pattern covers a name. */
export function matchesPattern(pattern: string, name: string): boolean {
  if (pattern === ANY_NAME || pattern === name) return true;
  if (!WILDCARD.test(pattern)) return false;
  const prefix = pattern.slice(0, -1);
  if (!name.startsWith(prefix)) return false;
  // guard: pattern-covers-one-segment
  return /^[^.:*]+$/.test(name.slice(prefix.length));
}

/** Returns true if every name that `inner` covers is covered by `outer`. */
export function coversPattern(outer: string, inner: string): boolean {
  // A segment that a wildcard stands for contains no wildcard, so no other wildcard is inside of it.
  return matchesPattern(outer, inner);
}

/** Returns true if one of the patterns covers the name. */
export function isCovered(patterns: readonly string[], name: string): boolean {
  return patterns.some((pattern) => matchesPattern(pattern, name));
}
