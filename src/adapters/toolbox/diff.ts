/**
 * What a change does to a text, as a unified diff for people and models. The shortest script (Myers) is looked for as long
 * as it is cheap; a larger change is shown as lines replaced, and one too long to show says how much is left out.
 */
import { createRequire } from 'node:module';
import type * as Diff from 'diff';
import { firstChars } from './text.js';

type Hunk = Diff.StructuredPatchHunk;

const CONTEXT_LINES = 3;
/** Lines that may differ before the search is given up: its time and memory grow with the square. */
const MAX_DIFFERENCES = 400;
const MAX_SEARCHED_LINES = 20_000;
const MAX_CHANGED_LINES = 100_000;
const MAX_DIFF_LINES = 400;
const MAX_DIFF_CHARS = 24_000;
const MAX_LINE_CHARS = 400;
/** Loads `diff` with the first change: tools that only read do not need it. */
const load = createRequire(import.meta.url);
const NO_NEWLINE = '\\ No newline at end of file';

/** The diff of two texts; `undefined` stands for a file that is not there. */
export function unifiedDiff(path: string, before: string | undefined, after: string): string {
  if (before === after) return '(no change)';
  const head = [`--- ${before === undefined ? '(new file)' : path}`, `+++ ${path}`];
  return truncateDiff([...head, ...formatChanges(before ?? '', after)]);
}

function formatChanges(before: string, after: string): readonly string[] {
  const start = commonPrefixChars(before, after);
  const end = commonSuffixChars(before, after, start);
  const old = before.slice(start, before.length - end);
  const now = after.slice(start, after.length - end);
  const [gone, come] = [countNewlines(old), countNewlines(now)];
  if (gone + come > MAX_CHANGED_LINES) return [`… too long to show: ${gone} lines are replaced by ${come} others.`];
  const skipped = countNewlines(before.slice(0, start));
  return hunksOf(old, now, gone + come).flatMap((hunk) => [headerOf(hunk, skipped), ...hunk.lines.map(formatEdit)]);
}

/** The characters of all lines that are the same at the start, but for those that are shown around a change. */
function commonPrefixChars(before: string, after: string): number {
  const least = Math.min(before.length, after.length);
  let same = 0;
  while (same < least && before.charCodeAt(same) === after.charCodeAt(same)) same++;
  let start = same;
  for (let lines = 0; lines <= CONTEXT_LINES && start > 0; lines++) {
    // The first round only goes back to where the line begins.
    const from = lines === 0 ? start - 1 : start - 2;
    start = from < 0 ? 0 : before.lastIndexOf('\n', from) + 1;
  }
  return start;
}

/** The same for the end. */
function commonSuffixChars(before: string, after: string, start: number): number {
  const most = Math.min(before.length, after.length) - start;
  let same = 0;
  while (same < most && before.charCodeAt(before.length - 1 - same) === after.charCodeAt(after.length - 1 - same))
    same++;
  let from = before.length - same;
  for (let lines = 0; lines <= CONTEXT_LINES; lines++) {
    const end = before.indexOf('\n', from);
    if (end === -1) return 0;
    from = end + 1;
  }
  return before.length - from;
}

function countNewlines(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

/** The hunks of the shortest script if it is found cheaply, otherwise a single hunk that replaces all lines. */
function hunksOf(old: string, now: string, lines: number): readonly Hunk[] {
  if (lines <= MAX_SEARCHED_LINES) {
    const { structuredPatch } = load('diff/lib/patch/create.js') as Pick<typeof Diff, 'structuredPatch'>;
    const options = { context: CONTEXT_LINES, maxEditLength: MAX_DIFFERENCES };
    const patch = structuredPatch('', '', old, now, undefined, undefined, options);
    if (patch !== undefined) return patch.hunks;
  }
  return [replacement(splitKeepingNewlines(old), splitKeepingNewlines(now))];
}

/** Lines with their ends, so that a missing last line end is a difference. */
function splitKeepingNewlines(text: string): readonly string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** All lines replaced, but for those that are the same around them. */
function replacement(before: readonly string[], after: readonly string[]): Hunk {
  const least = Math.min(before.length, after.length);
  let start = 0;
  while (start < least && before[start] === after[start]) start++;
  let end = 0;
  while (end < least - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const signed = (sign: string, lines: readonly string[]): string[] =>
    lines.flatMap((line) => (line.endsWith('\n') ? [sign + line.slice(0, -1)] : [sign + line, NO_NEWLINE]));
  const lines = [
    ...signed(' ', before.slice(0, start)),
    ...signed('-', before.slice(start, before.length - end)),
    ...signed('+', after.slice(start, after.length - end)),
    ...signed(' ', before.slice(before.length - end)),
  ];
  return { oldStart: 1, oldLines: before.length, newStart: 1, newLines: after.length, lines };
}

/** `skipped` lines stand before the compared text. As in every unified diff, a side without lines names the line before it. */
function headerOf({ oldStart, oldLines, newStart, newLines }: Hunk, skipped: number): string {
  const side = (start: number, count: number): string => `${skipped + start - (count === 0 ? 1 : 0)},${count}`;
  return `@@ -${side(oldStart, oldLines)} +${side(newStart, newLines)} @@`;
}

function formatEdit(line: string): string {
  const more = line.length - 1 - MAX_LINE_CHARS;
  return more > 0 ? `${firstChars(line, MAX_LINE_CHARS + 1)}… (${more} more characters)` : line;
}

function truncateDiff(lines: readonly string[]): string {
  let characters = 0;
  const fits = lines.findIndex((line, at) => {
    characters += line.length + 1;
    return at >= MAX_DIFF_LINES || characters > MAX_DIFF_CHARS;
  });
  if (fits === -1) return lines.join('\n');
  const rest = lines.slice(fits);
  const count = (sign: string): number => rest.filter((line) => line.startsWith(sign)).length;
  return [
    ...lines.slice(0, fits),
    `… too long to show whole: ${count('-')} more lines are removed and ${count('+')} more are added.`,
  ].join('\n');
}
