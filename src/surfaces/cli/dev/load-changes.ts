/** Compares two loads of a project, for people. */
import { shortVersion } from '../../../base/short-version.js';
import { describeBadFile } from '../definitions.js';
import { sanitizeText } from '../terminal-text.js';
import type { LoadedLoop, LoadReport } from './messages.js';

/** The loops that a reload added, removed and changed, as `id@version`. */
export interface LoadChanges {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Loops whose definition differs. A change of code alone does not change a definition. */
  readonly changed: readonly string[];
}

const referenceOf = ({ id, version }: LoadedLoop): string => `${id}@${version}`;

/** Returns what differs between two loads. */
export function changesBetween(before: readonly LoadedLoop[], after: readonly LoadedLoop[]): LoadChanges {
  const [old, current] = [before, after].map((loops) => new Map(loops.map((loop) => [referenceOf(loop), loop.digest])));
  const oldDigests = old ?? new Map<string, string>();
  const digests = current ?? new Map<string, string>();
  return {
    added: [...digests.keys()].filter((loop) => !oldDigests.has(loop)),
    removed: [...oldDigests.keys()].filter((loop) => !digests.has(loop)),
    changed: [...digests].filter(([loop, digest]) => (oldDigests.get(loop) ?? digest) !== digest).map(([loop]) => loop),
  };
}

/** Describes a load: the number of loops, what changed, and every problem with its place. */
export function loadLines(
  { loops, bad, skipped }: LoadReport,
  changes: LoadChanges,
  isFirst: boolean,
): readonly string[] {
  const names = (list: readonly string[]): string => list.map((name) => sanitizeText(shortVersion(name))).join(', ');
  const count = loops.length === 1 ? '1 loop' : `${loops.length} loops`;
  const differences = (['added', 'changed', 'removed'] as const)
    .filter((kind) => changes[kind].length > 0)
    .map((kind) => `${kind} ${names(changes[kind])}`);
  const summary = isFirst ? names(loops.map(referenceOf)) : differences.join('; ') || 'the same definitions';
  return [
    `${isFirst ? 'Loaded' : 'Reloaded'} ${count}${summary === '' ? '' : `: ${summary}`}.`,
    ...bad.map((item) => `  problem: ${describeBadFile(item)}`),
    ...(isFirst ? skipped.map((item) => `  skipped: ${describeBadFile(item)}`) : []),
  ];
}
