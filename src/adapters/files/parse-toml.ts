/**
 * Parses TOML and finds positions in it. The parser reports the position of syntax errors only. For errors that
 * validation finds later, `positionInToml` searches the text: tables by their headers, members by the key that starts
 * a line.
 */
import { createRequire } from 'node:module';
import { DocumentReadError, describeError, parseJsonPointer, type TextPosition } from './document-read-error.js';

const MAX_DEPTH = 200;
/** Used to load the TOML parser on first use, because most directories contain no TOML. */
const requireModule = createRequire(import.meta.url);

/** Parses a TOML text. Throws DocumentReadError if it is invalid, with the position of a syntax error. */
export function parseToml(text: string): unknown {
  const { parse, TomlError } = requireModule('smol-toml') as typeof import('smol-toml');
  try {
    return parse(text, { maxDepth: MAX_DEPTH });
  } catch (thrown) {
    if (!(thrown instanceof TomlError)) throw new DocumentReadError(describeError(thrown));
    const reason = thrown.message.split('\n', 1)[0] ?? '';
    throw new DocumentReadError(reason.replace('Invalid TOML document: ', ''), {
      line: thrown.line,
      column: thrown.column,
    });
  }
}

/** One segment of a dotted key, and the character after it. */
const KEY_SEGMENT = /[ \t]*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))[ \t]*([.=\]])/y;
/** The delimiters of a multi-line string. */
const MULTILINE_QUOTES = /"""|'''/;
/**
 * The maximum length of a line that is searched for a key, which bounds the time of the regular expression. Realistic
 * lines that start with a key are shorter.
 */
const MAX_KEY_LINE_CHARS = 2000;

/**
 * Returns the segments of the dotted key that begins at `start` and is followed by `end`; undefined if there is none.
 * Escape sequences are not decoded.
 */
function dottedKeyAt(line: string, start: number, end: string): string[] | undefined {
  const names: string[] = [];
  KEY_SEGMENT.lastIndex = start;
  for (;;) {
    const match = KEY_SEGMENT.exec(line);
    if (match === null) return undefined;
    names.push(match[1] ?? match[2] ?? match[3] ?? '');
    if (match[4] === end) return names;
    if (match[4] !== '.') return undefined;
  }
}

/** A table declared by a header: its subtables and, for an array of tables, the number of elements so far. */
interface TableNode {
  readonly children: Map<string, TableNode>;
  arrayLength: number;
}

/** Tracks the current table while reading a text line by line. Elements of an array of tables get their index. */
class TableHeaders {
  private readonly root: TableNode = { children: new Map(), arrayLength: 0 };
  private currentTable: readonly string[] = [];

  /**
   * Returns the path of the table or member that the line declares; undefined if it declares none. A header changes the
   * current table.
   */
  pathOf(line: string): readonly string[] | undefined {
    const [prefix = '', brackets = ''] = /^[ \t]*(\[{0,2})/.exec(line) ?? [];
    const names = dottedKeyAt(line, prefix.length, brackets === '' ? '=' : ']');
    if (names === undefined) return undefined;
    if (brackets === '') return [...this.currentTable, ...names];
    this.currentTable = this.enterTable(names, brackets === '[[');
    return this.currentTable;
  }

  private enterTable(names: readonly string[], isArrayElement: boolean): string[] {
    const path: string[] = [];
    let parent = this.root;
    for (const [index, name] of names.entries()) {
      const child = parent.children.get(name) ?? { children: new Map<string, TableNode>(), arrayLength: 0 };
      parent.children.set(name, child);
      if (isArrayElement && index === names.length - 1) {
        child.arrayLength++;
        child.children.clear();
      }
      path.push(name);
      if (child.arrayLength > 0) path.push(String(child.arrayLength - 1));
      parent = child;
    }
    return path;
  }
}

const isPrefixOf = (prefix: readonly string[], path: readonly string[]): boolean =>
  prefix.length <= path.length && prefix.every((name, index) => name === path[index]);

/**
 * Yields the lines, including their newlines, with their one-based numbers. Omits lines of a single character, such as
 * empty ones: they declare nothing, and long runs of them cost little time this way.
 */
function* nonEmptyLines(text: string): Generator<readonly [line: string, number: number]> {
  let number = 0;
  for (let start = 0; start < text.length; ) {
    const end = text.indexOf('\n', start);
    const next = end === -1 ? text.length : end + 1;
    number++;
    if (next > start + 1) yield [text.slice(start, next), number];
    start = next;
  }
}

/**
 * Returns the position of the line that declares the member that a JSON Pointer names, or else the innermost table or
 * member around it; undefined if no line does. The column is always 1.
 */
export function positionInToml(text: string, pointer: string): TextPosition | undefined {
  const target = parseJsonPointer(pointer);
  const tables = new TableHeaders();
  let best: { line: number; depth: number } | undefined;
  let inMultilineString = false;
  for (const [line, number] of nonEmptyLines(text)) {
    const path = inMultilineString || line.length > MAX_KEY_LINE_CHARS ? undefined : tables.pathOf(line);
    if (MULTILINE_QUOTES.test(line) && line.split(MULTILINE_QUOTES).length % 2 === 0)
      inMultilineString = !inMultilineString;
    if (path === undefined || path.length <= (best?.depth ?? 0) || !isPrefixOf(path, target)) continue;
    best = { line: number, depth: path.length };
  }
  return best === undefined ? undefined : { line: best.line, column: 1 };
}
