/** Suggestions for misspelt words, as in "did you mean". */

const MAX_DISTANCE = 2;
/** How many known names a message lists. */
const MAX_LISTED_NAMES = 10;

/** Returns a word in lower case, without dashes and underscores, and with a final `ies` replaced by `y`. */
function normalizeWord(word: string): string {
  return word.toLowerCase().replace(/[-_]/g, '').replace(/ies$/, 'y');
}

/**
 * Returns the number of insertions, deletions, substitutions and swaps of adjacent letters that turn `a` into `b` (the
 * restricted Damerau–Levenshtein distance).
 */
function editDistance(a: string, b: string): number {
  let rowBeforeLast: number[] = [];
  let lastRow = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (lastRow[j - 1] ?? 0) + Number(a[i - 1] !== b[j - 1]);
      const distance = Math.min(substitution, (lastRow[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row.push(isSwap ? Math.min(distance, (rowBeforeLast[j - 2] ?? 0) + 1) : distance);
    }
    rowBeforeLast = lastRow;
    lastRow = row;
  }
  return lastRow[b.length] ?? 0;
}

/**
 * Returns the candidate nearest to a word, the first of equally near ones; undefined if all differ by more than
 * `maxDistance` edits. Case, dashes, underscores and plurals in `ies` are ignored.
 * @param maxDistance the maximum number of edits; 2 by default
 */
export function nearestWord(
  word: string,
  candidates: readonly string[],
  maxDistance = MAX_DISTANCE,
): string | undefined {
  const normalized = normalizeWord(word);
  let nearest: string | undefined;
  let smallest = maxDistance + 1;
  for (const candidate of candidates) {
    const other = normalizeWord(candidate);
    if (Math.abs(other.length - normalized.length) >= smallest) continue;
    const distance = editDistance(normalized, other);
    if (distance < smallest) [nearest, smallest] = [candidate, distance];
  }
  return nearest;
}

/**
 * Returns the sentences that follow one about an unknown name: the known names after `label`, at most ten, and the
 * nearest one; empty if no name is known.
 * @example
 * `There is no tag "ned".${namesHint('ned', ['red', 'blue'], 'Known are')}`; // … Known are red, blue. Did you mean "red"?
 */
export function namesHint(word: string, names: readonly string[], label: string): string {
  if (names.length === 0) return '';
  const more = names.length > MAX_LISTED_NAMES ? ` and ${names.length - MAX_LISTED_NAMES} more` : '';
  const nearest = nearestWord(word, names);
  const hint = nearest === undefined ? '' : ` Did you mean "${nearest}"?`;
  return ` ${label} ${names.slice(0, MAX_LISTED_NAMES).join(', ')}${more}.${hint}`;
}
