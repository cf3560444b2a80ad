/** Versions of loops: Semantic Versioning 2.0, without ranges. A step pins one exact version or none. */
import { createRequire } from 'node:module';
import type { SemVer } from 'semver';

type Parse = (text: string) => SemVer | null;

const load = createRequire(import.meta.url);
let parse: Parse | undefined;

/** A release with small numbers, such as `1.2.3`. Most versions are one, and need no parser, which takes time to load. */
const PLAIN_RELEASE = /^(?:0|[1-9]\d{0,8})\.(?:0|[1-9]\d{0,8})\.(?:0|[1-9]\d{0,8})$/;

/** True if a text is a semantic version. */
export function isVersion(text: string): boolean {
  return PLAIN_RELEASE.test(text) || parseVersion(text) !== undefined;
}

/** Parses a version. Returns undefined for a text that is not a version. */
function parseVersion(text: string): SemVer | undefined {
  // Stricter than `semver`, which also accepts surrounding whitespace and a leading `v`.
  if (!/^\d\S*$/.test(text)) return undefined;
  parse ??= load('semver/functions/parse.js') as Parse;
  return parse(text) ?? undefined;
}

/** True if the version is a prerelease, such as `2.0.0-beta.1`. */
export function isPrerelease(version: string): boolean {
  return !PLAIN_RELEASE.test(version) && (parseVersion(version)?.prerelease.length ?? 0) > 0;
}

/**
 * Compares two versions by precedence: negative if `a` is lower than `b`, zero if they are equal. Build metadata is
 * ignored. A text that is not a version is lower than every version.
 */
export function compareVersions(a: string, b: string): number {
  const [versionA, versionB] = [parseVersion(a), parseVersion(b)];
  if (versionA === undefined || versionB === undefined)
    return Number(versionA !== undefined) - Number(versionB !== undefined);
  const order = versionA.compare(versionB);
  if (order !== 0 || versionA.version === versionB.version) return order;
  // `semver` compares numbers as doubles, so different numbers above 2^53 can compare as equal.
  return versionA.version.localeCompare(versionB.version, 'en', { numeric: true });
}
