/**
 * Where a text stands in another, in linear time (Knuth, Morris and Pratt). The platform's own search takes time in
 * proportion to both lengths when they are made for it: seconds for a file of a few megabytes, chosen by a model.
 */

/** How many characters of the text's beginning are matched again after a mismatch behind each of its characters. */
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

/** Every place where it begins, also those that overlap. */
export function findOccurrences(text: string, sought: string): readonly number[] {
  const places: number[] = [];
  const borders = failureTableOf(sought);
  let matched = 0;
  for (let i = 0; i < text.length; i++) {
    while (matched > 0 && text.charCodeAt(i) !== sought.charCodeAt(matched)) matched = borders[matched - 1] as number;
    if (text.charCodeAt(i) === sought.charCodeAt(matched)) matched++;
    if (matched < sought.length) continue;
    places.push(i + 1 - matched);
    matched = borders[matched - 1] as number;
  }
  return places;
}
