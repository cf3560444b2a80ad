/**
 * TOML with places. The parser tells the place of what is not TOML; for what is only wrong by its meaning the line is
 * looked up in the text: tables by their headers, members by the key that a line begins with.
 */
import { createRequire } from 'node:module';
import { DocumentReadError, describeError, parseJsonPointer, type TextPosition } from './document-read-error.js';

const MAX_DEPTH = 200;
/** Loaded with the first TOML: most directories have none. */
const requireModule = createRequire(import.meta.url);

/** The table of a TOML text. */
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

/** One name of a dotted key, and what follows it. */
const KEY_SEGMENT = /[ \t]*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))[ \t]*([.=\]])/y;
/** The quotes of a text of several lines. */
const MULTILINE_QUOTES = /"""|'''/;
/** No honest line is longer where keys are; longer ones are not looked at. */
const MAX_KEY_LINE_CHARS = 2000;

/** The names of the dotted key that begins there and ends with `end`. */
function dottedKeyAt(line: string, start: number, end: string): string[] | undefined {
  const names: string[] = [];
  KEY_SEGMENT.lastIndex = start;
  for (;;) {
    const found = KEY_SEGMENT.exec(line);
    if (found === null) return undefined;
    names.push(found[1] ?? found[2] ?? found[3] ?? '');
    if (found[4] === end) return names;
    if (found[4] !== '.') return undefined;
  }
}

/** What headers have said of a table: its parts and, of an array of tables, how many there are. */
interface TableNode {
  readonly children: Map<string, TableNode>;
  arrayLength: number;
}

/** Follows the headers of a text; a table of an array of tables gets its index. */
class TableHeaders {
  private readonly root: TableNode = { children: new Map(), arrayLength: 0 };
  private currentTable: readonly string[] = [];

  /** What a line that begins a table or a member speaks of. */
  pathOf(line: string): readonly string[] | undefined {
    const [before = '', opening = ''] = /^[ \t]*(\[{0,2})/.exec(line) ?? [];
    const names = dottedKeyAt(line, before.length, opening === '' ? '=' : ']');
    if (names === undefined) return undefined;
    if (opening === '') return [...this.currentTable, ...names];
    this.currentTable = this.enterTable(names, opening === '[[');
    return this.currentTable;
  }

  private enterTable(names: readonly string[], repeated: boolean): string[] {
    const path: string[] = [];
    let told = this.root;
    for (const [index, name] of names.entries()) {
      const part = told.children.get(name) ?? { children: new Map<string, TableNode>(), arrayLength: 0 };
      told.children.set(name, part);
      if (repeated && index === names.length - 1) {
        part.arrayLength++;
        part.children.clear();
      }
      path.push(name);
      if (part.arrayLength > 0) path.push(String(part.arrayLength - 1));
      told = part;
    }
    return path;
  }
}

const isPrefixOf = (path: readonly string[], wanted: readonly string[]): boolean =>
  path.length <= wanted.length && path.every((name, index) => name === wanted[index]);

/** The lines that say something, with their numbers; a text of empty lines is passed over quickly. */
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

/** The line of the part, or of the innermost part around it that has a line of its own. */
export function positionInToml(text: string, pointer: string): TextPosition | undefined {
  const wanted = parseJsonPointer(pointer);
  const tables = new TableHeaders();
  let best: { line: number; depth: number } | undefined;
  let inText = false;
  for (const [line, number] of nonEmptyLines(text)) {
    const path = inText || line.length > MAX_KEY_LINE_CHARS ? undefined : tables.pathOf(line);
    if (MULTILINE_QUOTES.test(line) && line.split(MULTILINE_QUOTES).length % 2 === 0) inText = !inText;
    if (path === undefined || path.length <= (best?.depth ?? 0) || !isPrefixOf(path, wanted)) continue;
    best = { line: number, depth: path.length };
  }
  return best === undefined ? undefined : { line: best.line, column: 1 };
}
