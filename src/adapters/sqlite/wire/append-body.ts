/**
 * Whether the body of an append is what the append says. Parsing it makes values that nobody reads, and took a tenth of what the append of
 * another process costs the owner; so the entries that a runtime writes are recognized by a pattern, and only others are parsed.
 */

const STRING_PATTERN = '"[^"\\\\\\u0000-\\u001f]*"';
const NUMBER_PATTERN = '-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?';
/** Levels of nesting that the pattern knows. */
const MAX_PATTERN_DEPTH = 4;

/** A JSON value without white space and escapes. After each comma there is only one way to go on, so it is matched or refused in one pass. */
function valuePattern(depth: number): string {
  const plain = `${STRING_PATTERN}|${NUMBER_PATTERN}|true|false|null`;
  if (depth === 0) return `(?:${plain})`;
  const inner = valuePattern(depth - 1);
  const object = `\\{(?:${STRING_PATTERN}:${inner}(?:,(?=")|(?=\\})))*\\}`;
  const list = `\\[(?:${inner}(?:,(?!\\])|(?=\\])))*\\]`;
  return `(?:${plain}|${object}|${list})`;
}

/** An entry in the order in which the writer makes its members; none of them may come a second time under another value. */
const ENTRY_PATTERN = new RegExp(
  `\\{"seq":${NUMBER_PATTERN},"at":${NUMBER_PATTERN},"type":${STRING_PATTERN},"key":${STRING_PATTERN}(?:,(?!"(?:seq|key)")${STRING_PATTERN}:${valuePattern(MAX_PATTERN_DEPTH)})*\\}`,
  'y',
);

/** Longer bodies are parsed. */
const MAX_PATTERN_CHARS = 4096;

/** False unless a body is what its append says: so many entries as JSON, numbered from `first` on. */
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
    return entries.every((found, n) => found?.seq === first + n && typeof found.key === 'string');
  } catch {
    return false;
  }
}
