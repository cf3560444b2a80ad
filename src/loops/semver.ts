/** Versions of loops: Semantic Versioning 2.0, exact. There are no ranges: a step pins one version or none. */
import { createRequire } from 'node:module';
import type { SemVer } from 'semver';

type Parse = (text: string) => SemVer | null;

const load = createRequire(import.meta.url);
let parse: Parse | undefined;

/** The parts of a version, or undefined for a text that is not one. */
export function parseVersion(text: string): SemVer | undefined {
  // `semver` also accepts blanks around a version and a `v` before it.
  if (!/^\d\S*$/.test(text)) return undefined;
  parse ??= load('semver/functions/parse.js') as Parse;
  return parse(text) ?? undefined;
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
  const order = left.compare(right);
  if (order !== 0 || left.version === right.version) return order;
  // `semver` compares numbers above 2^53 as doubles, so different ones can be equal to it.
  return left.version.localeCompare(right.version, 'en', { numeric: true });
}
