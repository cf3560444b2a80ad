/**
 * Ids composed of several parts, some of them untrusted. Parts are joined with ":". The separator and the escape
 * character "%" are escaped inside a part, so different lists of parts never have the same id.
 */

/**
 * The separator, the escape character, and lone surrogates, which UTF-8 (and therefore every digest) cannot
 * distinguish.
 */
const ESCAPED_IN_PARTS = /[%:]|\p{Surrogate}/gu;

/**
 * Returns the id of a list of parts. The encoding is injective; neither case nor Unicode normalization form is folded.
 *
 * @example compositeId('a:b', 'c') // 'a%3Ab:c'
 */
export function compositeId(...parts: readonly [string, ...string[]]): string {
  return parts
    .map((part) => /* guard: composite-id-escapes-parts */ part.replace(ESCAPED_IN_PARTS, escapeIdCharacter))
    .join(':');
}

function escapeIdCharacter(character: string): string {
  const code = character.charCodeAt(0).toString(16).toUpperCase();
  return code.length === 2 ? `%${code}` : `%u${code}`;
}

/** True if a text has no lone surrogates and therefore survives encoding as UTF-8. */
export function isWellFormed(text: string): boolean {
  return (text as unknown as { isWellFormed(): boolean }).isWellFormed();
}
