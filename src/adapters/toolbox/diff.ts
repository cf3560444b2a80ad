/**
 * Formats the change of a text as a unified diff for people and models. Small changes use the shortest edit script
 * (Myers). For larger ones that search is too expensive, so all lines from the first change to the last are shown as
 * replaced. A long diff is truncated and states how much it omits; of a very large change, only the numbers of lines
 * are stated.
 */
import { createRequire } from 'node:module';
import type * as Diff from 'diff';
import { firstChars } from './text.js';

type Hunk = Diff.StructuredPatchHunk;

const CONTEXT_LINES = 3;
/** The maximum length of an edit script: time and memory of the search grow with its square. */
const MAX_DIFFERENCES = 400;
const MAX_SEARCHED_LINES = 20_000;
const MAX_CHANGED_LINES = 100_000;
const MAX_DIFF_LINES = 400;
const MAX_DIFF_CHARS = 24_000;
const MAX_LINE_CHARS = 400;
/** Used to load the package `diff` on first use, because tools that only read do not need it. */
const requireModule = createRequire(import.meta.url);
const NO_NEWLINE = '\\ No newline at end of file';

/** Returns the diff of two texts, or `(no change)`. `before` is undefined for a new file. */
export function unifiedDiff(path: string, before: string | undefined, after: string): string {
  if (before === after) return '(no change)';
  const header = [`--- ${before === undefined ? '(new file)' : path}`, `+++ ${path}`];
  return truncateDiff([...header, ...formatChanges(before ?? '', after)]);
}

function formatChanges(before: string, after: string): readonly string[] {
  const start = commonPrefixChars(before, after);
  const end = commonSuffixChars(before, after, start);
  const oldText = before.slice(start, before.length - end);
  const newText = after.slice(start, after.length - end);
  const [oldLines, newLines] = [countNewlines(oldText), countNewlines(newText)];
  if (oldLines + newLines > MAX_CHANGED_LINES)
    return [`… too long to show: ${oldLines} lines are replaced by ${newLines} others.`];
  const skippedLines = countNewlines(before.slice(0, start));
  return hunksOf(oldText, newText, oldLines + newLines).flatMap((hunk) => [
    headerOf(hunk, skippedLines),
    ...hunk.lines.map(formatEdit),
  ]);
}

/** Returns the length of the equal lines at the start, without the context lines of the first change. */
function commonPrefixChars(before: string, after: string): number {
  const maxLength = Math.min(before.length, after.length);
  let equalChars = 0;
  while (equalChars < maxLength && before.charCodeAt(equalChars) === after.charCodeAt(equalChars)) equalChars++;
  let start = equalChars;
  for (let lines = 0; lines <= CONTEXT_LINES && start > 0; lines++) {
    // The first round moves to the start of the changed line only.
    const searchEnd = lines === 0 ? start - 1 : start - 2;
    start = searchEnd < 0 ? 0 : before.lastIndexOf('\n', searchEnd) + 1;
  }
  return start;
}

/** Returns the length of the equal lines at the end, without the context lines of the last change. */
function commonSuffixChars(before: string, after: string, start: number): number {
  const maxLength = Math.min(before.length, after.length) - start;
  const charFromEnd = (text: string, index: number): number => text.charCodeAt(text.length - 1 - index);
  let equalChars = 0;
  while (equalChars < maxLength && charFromEnd(before, equalChars) === charFromEnd(after, equalChars)) equalChars++;
  let suffixStart = before.length - equalChars;
  for (let lines = 0; lines <= CONTEXT_LINES; lines++) {
    const newline = before.indexOf('\n', suffixStart);
    if (newline === -1) return 0;
    suffixStart = newline + 1;
  }
  return before.length - suffixStart;
}

function countNewlines(text: string): number {
  let count = 0;
  for (let index = text.indexOf('\n'); index !== -1; index = text.indexOf('\n', index + 1)) count++;
  return count;
}

/**
 * Returns the hunks of the shortest edit script, or a single hunk that replaces all lines if the search is too
 * expensive.
 */
function hunksOf(oldText: string, newText: string, lineCount: number): readonly Hunk[] {
  if (lineCount <= MAX_SEARCHED_LINES) {
    const { structuredPatch } = requireModule('diff/lib/patch/create.js') as Pick<typeof Diff, 'structuredPatch'>;
    const options = { context: CONTEXT_LINES, maxEditLength: MAX_DIFFERENCES };
    const patch = structuredPatch('', '', oldText, newText, undefined, undefined, options);
    if (patch !== undefined) return patch.hunks;
  }
  return [replacementHunk(splitKeepingNewlines(oldText), splitKeepingNewlines(newText))];
}

/** Splits a text into lines with their newlines, so that a missing newline at the end is a difference. */
function splitKeepingNewlines(text: string): readonly string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** Returns a hunk that replaces all lines except the equal ones at both ends. */
function replacementHunk(before: readonly string[], after: readonly string[]): Hunk {
  const maxEqual = Math.min(before.length, after.length);
  let start = 0;
  while (start < maxEqual && before[start] === after[start]) start++;
  let end = 0;
  while (end < maxEqual - start && before.at(-1 - end) === after.at(-1 - end)) end++;
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

/**
 * Formats the header of a hunk. `skippedLines` precede the compared text. As in every unified diff, a side without
 * lines has the number of the line before it.
 */
function headerOf({ oldStart, oldLines, newStart, newLines }: Hunk, skippedLines: number): string {
  const side = (start: number, count: number): string => `${skippedLines + start - (count === 0 ? 1 : 0)},${count}`;
  return `@@ -${side(oldStart, oldLines)} +${side(newStart, newLines)} @@`;
}

function formatEdit(line: string): string {
  const omittedChars = line.length - 1 - MAX_LINE_CHARS;
  return omittedChars > 0 ? `${firstChars(line, MAX_LINE_CHARS + 1)}… (${omittedChars} more characters)` : line;
}

function truncateDiff(lines: readonly string[]): string {
  let charCount = 0;
  const firstOmitted = lines.findIndex((line, index) => {
    charCount += line.length + 1;
    return index >= MAX_DIFF_LINES || charCount > MAX_DIFF_CHARS;
  });
  if (firstOmitted === -1) return lines.join('\n');
  const omitted = lines.slice(firstOmitted);
  const count = (sign: string): number => omitted.filter((line) => line.startsWith(sign)).length;
  return [
    ...lines.slice(0, firstOmitted),
    `… too long to show completely: ${count('-')} more lines are removed and ${count('+')} more are added.`,
  ].join('\n');
}
