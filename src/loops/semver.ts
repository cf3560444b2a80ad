/** Versions of loops: Semantic Versioning 2.0, exact. There are no ranges: a step pins one version or none. */

export interface Version {
  readonly core: readonly [number, number, number];
  readonly prerelease: readonly string[];
  readonly build: readonly string[];
}

const LONGEST = 256;
const SHAPE = /^(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?$/;
const NUMERIC = /^\d+$/;

const padded = (digits: string): boolean => digits.length > 1 && digits.startsWith('0');
const identifiers = (dotted: string | undefined): string[] => (dotted === undefined ? [] : dotted.split('.'));

/** The parts of a version, or undefined for a text that is not one. */
export function parseVersion(text: string): Version | undefined {
  const found = text.length > LONGEST ? null : SHAPE.exec(text);
  if (found === null) return undefined;
  const [, major = '', minor = '', patch = ''] = found;
  const core = [Number(major), Number(minor), Number(patch)] as const;
  const prerelease = identifiers(found[4]);
  const build = identifiers(found[5]);
  if ([major, minor, patch].some(padded) || !core.every(Number.isSafeInteger)) return undefined;
  if ([...prerelease, ...build].includes('')) return undefined;
  if (prerelease.some((part) => NUMERIC.test(part) && padded(part))) return undefined;
  return { core, prerelease, build };
}

/** Whether a version is a candidate for a later one. */
export function isPrerelease(version: string): boolean {
  return (parseVersion(version)?.prerelease.length ?? 0) > 0;
}

/**
 * Negative when `a` comes before `b`, zero when neither does: build metadata does not count. A text that is not a
 * version comes before all that are.
 */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [parseVersion(a), parseVersion(b)];
  if (left === undefined || right === undefined) return Number(left !== undefined) - Number(right !== undefined);
  for (const place of [0, 1, 2] as const) {
    if (left.core[place] !== right.core[place]) return left.core[place] - right.core[place];
  }
  return comparePrereleases(left.prerelease, right.prerelease);
}

function comparePrereleases(a: readonly string[], b: readonly string[]): number {
  if (a.length === 0 || b.length === 0) return b.length - a.length;
  for (const [place, part] of a.entries()) {
    const other = b[place];
    if (other === undefined) return 1;
    if (part !== other) return compareIdentifiers(part, other);
  }
  return a.length - b.length;
}

/** Numbers come before words; numbers without leading zeros compare by length first, however long they are. */
function compareIdentifiers(a: string, b: string): number {
  const [left, right] = [NUMERIC.test(a), NUMERIC.test(b)];
  if (left !== right) return left ? -1 : 1;
  if (left && a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}
