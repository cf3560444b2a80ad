/**
 * Finds all occurrences of a text in linear time (Knuth-Morris-Pratt). In the worst case, `indexOf` takes time
 * proportional to the product of both lengths: seconds for a file of a few megabytes with a text that a model chose.
 */

/** Returns, for each prefix of the text, the length of its longest proper prefix that is also a suffix. */
function failureTableOf(text: string): Int32Array {
  const borders = new Int32Array(text.length);
  let length = 0;
  for (let i = 1; i < text.length; i++) {
    while (length > 0 && text.charCodeAt(i) !== text.charCodeAt(length)) length = borders[length - 1] as number;
    if (text.charCodeAt(i) === text.charCodeAt(length)) length++;
    borders[i] = length;
  }
  return borders;
}

/** Returns the offsets of all occurrences, including overlapping ones. `search` must not be empty. */
export function findOccurrences(text: string, search: string): readonly number[] {
  const offsets: number[] = [];
  const borders = failureTableOf(search);
  let matched = 0;
  for (let i = 0; i < text.length; i++) {
    while (matched > 0 && text.charCodeAt(i) !== search.charCodeAt(matched)) matched = borders[matched - 1] as number;
    if (text.charCodeAt(i) === search.charCodeAt(matched)) matched++;
    if (matched < search.length) continue;
    offsets.push(i + 1 - matched);
    matched = borders[matched - 1] as number;
  }
  return offsets;
}
