/**
 * Identities composed of several parts, some of them from outside. Parts are joined with ":"; the separator and the escape
 * character "%" are escaped inside a part, so different lists of parts never give the same text.
 */

/** The separator, the escape character, and lone surrogates: UTF-8, and so every digest, cannot tell those apart. */
const ESCAPED_IN_PARTS = /[%:]|\p{Surrogate}/gu;

/**
 * The one text for a list of parts; injective. Parts are compared by code unit: neither case nor Unicode form is folded.
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

/** True if a text has no lone surrogates: encoded as bytes, it stays what it is. */
export function isWellFormed(text: string): boolean {
  return (text as unknown as { isWellFormed(): boolean }).isWellFormed();
}
