/** Which texts must not be told when a secret must not: the secret, its parts, and what it encodes. */

/** Shorter values are no secrets, and taking them out would tear holes into ordinary words. */
export const MIN_SECRET_CHARS = 6;
/** Parts of a value are searched alone only from this length on. */
const MIN_PART_CHARS = 8;
/** A word of letters alone is a part only from this length on: a passphrase is made of ordinary words. */
const MIN_WORD_CHARS = 16;

/** All texts that a secret is known by. */
export function secretParts(secret: string): readonly string[] {
  const whole = secret.trim();
  const credentials = withoutScheme(whole);
  const main = [whole, /* guard: token-without-scheme-redacted */ credentials, ...passwordsIn(whole)].filter(
    ({ length }) => length >= MIN_SECRET_CHARS,
  );
  const parts = [...basicCredentials(whole), ...valuesIn(credentials), ...jwtParts(credentials), ...pemLines(whole)];
  return [...new Set([...main, ...parts.filter(({ length }) => length >= MIN_PART_CHARS)])];
}

/** `Bearer TOKEN` without its first word. */
function withoutScheme(value: string): string {
  return /^[A-Za-z][\w-]*\s+(\S.*)$/s.exec(value)?.[1] ?? value;
}

/** The user and password of `Basic BASE64`, and the password alone. */
function basicCredentials(value: string): readonly string[] {
  const encoded = /^basic\s+([\w+/=-]+)$/i.exec(value)?.[1];
  if (encoded === undefined) return [];
  const decoded = Buffer.from(encoded, 'base64').toString();
  return [decoded, decoded.slice(decoded.indexOf(':') + 1)];
}

/** The password of a URL, as it is written and as it is meant. */
function passwordsIn(value: string): readonly string[] {
  const found = /^[a-z][\w+.-]*:\/\/[^/\s:@]*:([^/\s@]+)@/i.exec(value)?.[1];
  if (found === undefined) return [];
  try {
    return [found, decodeURIComponent(found)];
  } catch {
    return [found];
  }
}

/** The items of a list, and of `name=value` the value, as in cookies and in `Digest`. */
function valuesIn(value: string): readonly string[] {
  return value.split(/[\s,;]+/).flatMap((item) => {
    const named = /^[\w!#$%&'*+.^`|~-]+=(.*)$/.exec(item)?.[1]?.replace(/^"(.*)"$/, '$1');
    if (named !== undefined && /[^=]/.test(named)) return [item, named];
    return /^[A-Za-z]+$/.test(item) && item.length < MIN_WORD_CHARS ? [] : [item];
  });
}

/** Of a JSON Web Token what it says and its signature; its head is the same for all tokens. */
function jwtParts(value: string): readonly string[] {
  return /^[\w-]+\.([\w-]+)\.([\w-]+)$/.exec(value)?.slice(1) ?? [];
}

/** The lines of a key in PEM. */
function pemLines(value: string): readonly string[] {
  return value.includes('\n')
    ? value
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => !line.startsWith('-----'))
    : [];
}

const SECRET_NAME = /key|token|secret|pass|pwd|credential|auth|cookie|session|private|signature|salt|dsn|cert/i;

/** True for a variable that may hold a secret: by its name, or because its value is no path, number, name or address. */
export function mayHoldSecret(name: string, value: string): boolean {
  if (SECRET_NAME.test(name)) return true;
  const isPath = /^(?:~|\.{0,2})\/[^:]*(?::\/[^:]*)*$/.test(value);
  const isAddress = /^[a-z][a-z\d+.-]*:\/\/[^@?#]*$/i.test(value);
  const isWord = /^[\w.-]{0,19}$/.test(value) && !/\d.*[A-Za-z].*\d|[A-Z].*\d.*[a-z]/.test(value);
  const isNumber = /^[\d.,:_ -]+$/.test(value);
  return !(isPath || isAddress || isWord || isNumber);
}
