/**
 * Text from a model or a tool as a person may be shown it: nothing that moves the cursor, turns the reading direction,
 * hides or pretends to be something else gets through unseen, and it ends somewhere.
 */

/** Controls but for line feed and tab; marks of direction; what has no width; what is no character. */
const UNSEEN =
  /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}\u00a0\u115f\u1160\u2800\u3164\uffa0]|\p{Default_Ignorable_Code_Point}/gu;

/** The text with all that cannot be seen written out, cut to `most` characters with how many there were. */
export function shown(text: string, most: number): string {
  const cut = text.length > most ? text.slice(0, most) : text;
  const seen = cut.replace(UNSEEN, (character) =>
    character === '\n' || character === '\t' ? character : `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
  return text.length > most ? `${seen}… (${text.length} characters in all)` : seen;
}
