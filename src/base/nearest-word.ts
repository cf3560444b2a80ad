/** The known word that somebody probably meant. */

/** Words that differ by more than this are different words. */
const MAX_DISTANCE = 2;

/** Case, dashes, underscores and the plural of a word that ends in y do not make another word. */
function normalizeWord(word: string): string {
  return word.toLowerCase().replace(/[-_]/g, '').replace(/ies$/, 'y');
}

/** How many letters were left out, added, changed or swapped with their neighbour. */
function editDistance(a: string, b: string): number {
  let older: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, place) => place);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = (last[j - 1] ?? 0) + Number(a[i - 1] !== b[j - 1]);
      const least = Math.min(changed, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row.push(swapped ? Math.min(least, (older[j - 2] ?? 0) + 1) : least);
    }
    older = last;
    last = row;
  }
  return last[b.length] ?? 0;
}

/** The nearest of the known words within two letters, if any. */
export function nearestWord(word: string, known: readonly string[], furthest = MAX_DISTANCE): string | undefined {
  const written = normalizeWord(word);
  let best: string | undefined;
  let least = furthest + 1;
  for (const candidate of known) {
    const meant = normalizeWord(candidate);
    if (Math.abs(meant.length - written.length) >= least) continue;
    const far = editDistance(written, meant);
    if (far < least) [best, least] = [candidate, far];
  }
  return best;
}
