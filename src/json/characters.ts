/** Counts the characters of a text as JSON Schema and JSONPath do: a surrogate pair is one character. */
export function countCharacters(text: string): number {
  let count = text.length;
  for (let i = 1; i < text.length; i++) {
    if ((text.charCodeAt(i) & 0xfc00) !== 0xdc00 || (text.charCodeAt(i - 1) & 0xfc00) !== 0xd800) continue;
    count -= 1;
    i += 1;
  }
  return count;
}
