/** The texts to redact for a secret: the secret itself, its parts, and the values that it encodes. */

/** Shorter values are not redacted, because that would damage ordinary words. */
export const MIN_SECRET_CHARS = 6;
/** The minimum length of a part that is redacted on its own. */
const MIN_PART_CHARS = 8;
/**
 * The minimum length of a part that has only letters: a passphrase consists of ordinary words, which are not redacted.
 */
const MIN_WORD_CHARS = 16;

/** Returns all texts to redact for a secret; none for a secret that is shorter than MIN_SECRET_CHARS. */
export function secretParts(secret: string): readonly string[] {
  const trimmed = secret.trim();
  const credentials = withoutScheme(trimmed);
  const main = [trimmed, /* guard: token-without-scheme-redacted */ credentials, ...passwordsIn(trimmed)].filter(
    ({ length }) => length >= MIN_SECRET_CHARS,
  );
  const parts = [
    ...basicCredentials(trimmed),
    ...valuesIn(credentials),
    ...jwtParts(credentials),
    ...pemLines(trimmed),
  ];
  return [...new Set([...main, ...parts.filter(({ length }) => length >= MIN_PART_CHARS)])];
}

/**
 * Returns the credentials of an HTTP header value: `Bearer TOKEN` without its scheme. Returns a value without a scheme
 * as it is.
 */
function withoutScheme(value: string): string {
  return /^[A-Za-z][\w-]*\s+(\S.*)$/s.exec(value)?.[1] ?? value;
}

/** Returns `user:password` of a `Basic BASE64` header value, and the password alone. */
function basicCredentials(value: string): readonly string[] {
  const encoded = /^basic\s+([\w+/=-]+)$/i.exec(value)?.[1];
  if (encoded === undefined) return [];
  const decoded = Buffer.from(encoded, 'base64').toString();
  return [decoded, decoded.slice(decoded.indexOf(':') + 1)];
}

/** Returns the password of a URL, percent-encoded and decoded. */
function passwordsIn(value: string): readonly string[] {
  const password = /^[a-z][\w+.-]*:\/\/[^/\s:@]*:([^/\s@]+)@/i.exec(value)?.[1];
  if (password === undefined) return [];
  try {
    return [password, decodeURIComponent(password)];
  } catch {
    return [password];
  }
}

/** Returns the items of a list, and the values of its `name=value` pairs, as in cookies and `Digest` headers. */
function valuesIn(value: string): readonly string[] {
  return value.split(/[\s,;]+/).flatMap((item) => {
    const pairValue = /^[\w!#$%&'*+.^`|~-]+=(.*)$/.exec(item)?.[1]?.replace(/^"(.*)"$/, '$1');
    if (pairValue !== undefined && /[^=]/.test(pairValue)) return [item, pairValue];
    return /^[A-Za-z]+$/.test(item) && item.length < MIN_WORD_CHARS ? [] : [item];
  });
}

/**
 * Returns the payload and the signature of a JSON Web Token, or nothing for another value. The header is not secret.
 */
function jwtParts(value: string): readonly string[] {
  return /^[\w-]+\.([\w-]+)\.([\w-]+)$/.exec(value)?.slice(1) ?? [];
}

/** Returns the lines of a secret of several lines, such as a PEM key, without delimiter lines (`-----BEGIN…`). */
function pemLines(value: string): readonly string[] {
  return value.includes('\n')
    ? value
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => !line.startsWith('-----'))
    : [];
}

const SECRET_NAME = /key|token|secret|pass|pwd|credential|auth|cookie|session|private|signature|salt|dsn|cert/i;

/**
 * True if a variable may hold a secret: by its name, or because its value is not a path, a URL without credentials and
 * query, a short word or a number.
 */
export function mayHoldSecret(name: string, value: string): boolean {
  if (SECRET_NAME.test(name)) return true;
  const isPath = /^(?:~|\.{0,2})\/[^:]*(?::\/[^:]*)*$/.test(value);
  const isUrl = /^[a-z][a-z\d+.-]*:\/\/[^@?#]*$/i.test(value);
  const isWord = /^[\w.-]{0,19}$/.test(value) && !/\d.*[A-Za-z].*\d|[A-Z].*\d.*[a-z]/.test(value);
  const isNumber = /^[\d.,:_ -]+$/.test(value);
  return !(isPath || isUrl || isWord || isNumber);
}
