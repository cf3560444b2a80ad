/**
 * Checks that the body of an append contains the entries that the append declares. Parsing a body creates values that
 * are never used, and takes a tenth of the owner's time for an append of another process. A pattern therefore
 * recognizes the entries that the runtime writes, and only other bodies are parsed.
 */

const STRING_PATTERN = '"[^"\\\\\\u0000-\\u001f]*"';
const NUMBER_PATTERN = '-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?';
/** Number of nesting levels that the pattern matches. */
const MAX_PATTERN_DEPTH = 4;

/**
 * Returns a pattern for a JSON value with at most `depth` levels of nesting, and without white space and escapes. It
 * never backtracks: after a comma only one alternative matches.
 */
function valuePattern(depth: number): string {
  const scalar = `${STRING_PATTERN}|${NUMBER_PATTERN}|true|false|null`;
  if (depth === 0) return `(?:${scalar})`;
  const inner = valuePattern(depth - 1);
  const object = `\\{(?:${STRING_PATTERN}:${inner}(?:,(?=")|(?=\\})))*\\}`;
  const list = `\\[(?:${inner}(?:,(?!\\])|(?=\\])))*\\]`;
  return `(?:${scalar}|${object}|${list})`;
}

/**
 * An entry with its members in the order of the writer. `seq` and `key` must not be repeated: a parser uses the last.
 */
const ENTRY_PATTERN = new RegExp(
  `\\{"seq":${NUMBER_PATTERN},"at":${NUMBER_PATTERN},"type":${STRING_PATTERN},"key":${STRING_PATTERN}(?:,(?!"(?:seq|key)")${STRING_PATTERN}:${valuePattern(MAX_PATTERN_DEPTH)})*\\}`,
  'y',
);

/** Maximum length of a body that is matched against the pattern. Longer bodies are parsed. */
const MAX_PATTERN_CHARS = 4096;

/**
 * True if a body is a JSON array of `count` entries, at least one, that are numbered from `first` and have a key. Other
 * members are not checked.
 */
export function isAppendBody(body: string, first: number, count: number): boolean {
  if (count === 0) return false;
  return (
    (body.length <= MAX_PATTERN_CHARS && matchesEntryPattern(body, first, count)) || parsesAsEntries(body, first, count)
  );
}

function matchesEntryPattern(body: string, first: number, count: number): boolean {
  let at = 0;
  for (let n = 0; n < count; n++) {
    const start = `${n === 0 ? '[' : ','}{"seq":${first + n},`;
    if (!body.startsWith(start, at)) return false;
    ENTRY_PATTERN.lastIndex = at + 1;
    if (!ENTRY_PATTERN.test(body)) return false;
    at = ENTRY_PATTERN.lastIndex;
  }
  return body.length === at + 1 && body.endsWith(']');
}

function parsesAsEntries(body: string, first: number, count: number): boolean {
  try {
    const entries: unknown = JSON.parse(body);
    if (!Array.isArray(entries) || entries.length !== count) return false;
    return entries.every((entry, n) => entry?.seq === first + n && typeof entry.key === 'string');
  } catch {
    return false;
  }
}
