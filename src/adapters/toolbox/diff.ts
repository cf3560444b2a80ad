/**
 * What a change does to a text, as a unified diff for people and models. The shortest script (Myers) is looked for as long
 * as it is cheap; a larger change is shown as lines replaced, and one too long to show says how much is left out.
 */
import { headOf } from './text.js';

type Edit = { readonly sign: ' ' | '-' | '+'; readonly line: string };

const CONTEXT = 3;
/** Lines that may differ before the search is given up: its time and memory grow with the square. */
const DIFFERENCES = 400;
const SEARCHED_LINES = 20_000;
const SHOWABLE_LINES = 100_000;
const SHOWN_LINES = 400;
const SHOWN_CHARACTERS = 24_000;
const LINE = 400;

/** The diff of two texts; `undefined` stands for a file that is not there. */
export function diffOf(path: string, before: string | undefined, after: string): string {
  if (before === after) return '(no change)';
  const head = [`--- ${before === undefined ? '(new file)' : path}`, `+++ ${path}`];
  return bounded([...head, ...changes(before ?? '', after)]);
}

function changes(before: string, after: string): readonly string[] {
  const start = alikeAtStart(before, after);
  const end = alikeAtEnd(before, after, start);
  const old = before.slice(start, before.length - end);
  const now = after.slice(start, after.length - end);
  const [gone, come] = [lineEnds(old), lineEnds(now)];
  if (gone + come > SHOWABLE_LINES) return [`… too long to show: ${gone} lines are replaced by ${come} others.`];
  return hunks(editsOf(linesOf(old), linesOf(now)), lineEnds(before.slice(0, start)));
}

/** The characters of all lines that are the same at the start, but for those that are shown around a change. */
function alikeAtStart(before: string, after: string): number {
  const least = Math.min(before.length, after.length);
  let same = 0;
  while (same < least && before.charCodeAt(same) === after.charCodeAt(same)) same++;
  let start = same;
  for (let lines = 0; lines <= CONTEXT && start > 0; lines++) {
    // The first round only goes back to where the line begins.
    const from = lines === 0 ? start - 1 : start - 2;
    start = from < 0 ? 0 : before.lastIndexOf('\n', from) + 1;
  }
  return start;
}

/** The same for the end. */
function alikeAtEnd(before: string, after: string, start: number): number {
  const most = Math.min(before.length, after.length) - start;
  let same = 0;
  while (same < most && before.charCodeAt(before.length - 1 - same) === after.charCodeAt(after.length - 1 - same))
    same++;
  let from = before.length - same;
  for (let lines = 0; lines <= CONTEXT; lines++) {
    const end = before.indexOf('\n', from);
    if (end === -1) return 0;
    from = end + 1;
  }
  return before.length - from;
}

function lineEnds(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

/** Lines with their ends, so that a missing last line end is a difference. */
function linesOf(text: string): readonly string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function editsOf(before: readonly string[], after: readonly string[]): readonly Edit[] {
  const least = Math.min(before.length, after.length);
  let start = 0;
  while (start < least && before[start] === after[start]) start++;
  let end = 0;
  while (end < least - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  const gone = before.slice(start, before.length - end);
  const come = after.slice(start, after.length - end);
  const all = (sign: Edit['sign'], lines: readonly string[]): Edit[] => lines.map((line) => ({ sign, line }));
  return [
    ...all(' ', before.slice(0, start)),
    ...(shortest(gone, come) ?? [...all('-', gone), ...all('+', come)]),
    ...all(' ', before.slice(before.length - end)),
  ];
}

/** Myers' greedy search: for each number of differences, how far each diagonal reaches; undefined if it takes too long. */
function shortest(before: readonly string[], after: readonly string[]): readonly Edit[] | undefined {
  if (before.length + after.length > SEARCHED_LINES) return undefined;
  const [old, now] = numbered(before, after);
  const reached: number[][] = [];
  for (let d = 0; d <= DIFFERENCES; d++) {
    const next: number[] = [];
    for (let k = -d; k <= d; k += 2) {
      let x = d === 0 ? 0 : begins(reached[d - 1] ?? [], d, k);
      while (x < old.length && x - k < now.length && old[x] === now[x - k]) x++;
      next[k + d] = x;
      if (x >= old.length && x - k >= now.length) return script(before, after, reached, d);
    }
    reached.push(next);
  }
  return undefined;
}

/** Equal lines as equal numbers: comparing long lines again and again would be slow. */
function numbered(...texts: readonly (readonly string[])[]): readonly [readonly number[], readonly number[]] {
  const numbers = new Map<string, number>();
  const [old = [], now = []] = texts.map((lines) =>
    lines.map((line) => {
      const number = numbers.get(line) ?? numbers.size;
      numbers.set(line, number);
      return number;
    }),
  );
  return [old, now];
}

/** Whether the d-th difference on diagonal `k` is a line that came; otherwise it is one that went. */
function comes(previous: readonly number[], d: number, k: number): boolean {
  return k === -d || (k !== d && (previous[k + d - 2] ?? -1) < (previous[k + d] ?? -1));
}

/** Where diagonal `k` begins with `d` differences. */
function begins(previous: readonly number[], d: number, k: number): number {
  return comes(previous, d, k) ? (previous[k + d] ?? 0) : (previous[k + d - 2] ?? 0) + 1;
}

/** The way back from the end, diagonal by diagonal. */
function script(
  before: readonly string[],
  after: readonly string[],
  reached: readonly (readonly number[])[],
  differences: number,
): readonly Edit[] {
  const edits: Edit[] = [];
  let x = before.length;
  let y = after.length;
  const back = (sign: Edit['sign'], line: string | undefined): void => void edits.push({ sign, line: line ?? '' });
  for (let d = differences; d > 0; d--) {
    const previous = reached[d - 1] ?? [];
    const k = x - y;
    for (const from = begins(previous, d, k); x > from; y--) back(' ', before[--x]);
    if (comes(previous, d, k)) back('+', after[--y]);
    else back('-', before[--x]);
  }
  while (x > 0) back(' ', before[--x]);
  return edits.reverse();
}

/** The changed parts; `skipped` lines stand before the edits. */
function hunks(edits: readonly Edit[], skipped: number): readonly string[] {
  const lines: string[] = [];
  let [old, now] = [skipped + 1, skipped + 1];
  let from = 0;
  for (let i = 0; i < edits.length; i = from) {
    let first = i;
    while (edits[first]?.sign === ' ') first++;
    if (first === edits.length) break;
    const start = Math.max(i, first - CONTEXT);
    old += start - i;
    now += start - i;
    from = endOf(edits, first);
    const part = edits.slice(start, from);
    const [gone, come] = [
      part.filter(({ sign }) => sign !== '+').length,
      part.filter(({ sign }) => sign !== '-').length,
    ];
    // As in every unified diff: a side without lines is told by the line before it.
    lines.push(`@@ -${gone === 0 ? old - 1 : old},${gone} +${come === 0 ? now - 1 : now},${come} @@`);
    for (const edit of part) lines.push(...shown(edit));
    old += gone;
    now += come;
  }
  return lines;
}

/** Where the hunk ends that holds this change: after its context, unless the next change is that near. */
function endOf(edits: readonly Edit[], first: number): number {
  let last = first;
  for (let i = first; i < edits.length && i <= last + 2 * CONTEXT; i++) if (edits[i]?.sign !== ' ') last = i;
  return Math.min(edits.length, last + CONTEXT + 1);
}

function shown({ sign, line }: Edit): readonly string[] {
  const text = line.endsWith('\n') ? line.slice(0, -1) : line;
  const cut = text.length > LINE ? `${headOf(text, LINE)}… (${text.length - LINE} more characters)` : text;
  return line.endsWith('\n') ? [sign + cut] : [sign + cut, '\\ No newline at end of file'];
}

function bounded(lines: readonly string[]): string {
  let characters = 0;
  const fits = lines.findIndex((line, at) => {
    characters += line.length + 1;
    return at >= SHOWN_LINES || characters > SHOWN_CHARACTERS;
  });
  if (fits === -1) return lines.join('\n');
  const rest = lines.slice(fits);
  const count = (sign: string): number => rest.filter((line) => line.startsWith(sign)).length;
  return [
    ...lines.slice(0, fits),
    `… too long to show whole: ${count('-')} more lines are removed and ${count('+')} more are added.`,
  ].join('\n');
}
