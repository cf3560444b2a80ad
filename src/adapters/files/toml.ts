/**
 * TOML with places. The parser tells the place of what is not TOML; for what is only wrong by its meaning the line is
 * looked up in the text: tables by their headers, members by the key that a line begins with.
 */
import { createRequire } from 'node:module';
import { type Place, reasonOf, segments, Unreadable } from './unreadable.js';

const DEPTH = 200;
/** Loaded with the first TOML: most directories have none. */
const load = createRequire(import.meta.url);

/** The table of a TOML text. */
export function readToml(text: string): unknown {
  const { parse, TomlError } = load('smol-toml') as typeof import('smol-toml');
  try {
    return parse(text, { maxDepth: DEPTH });
  } catch (thrown) {
    if (!(thrown instanceof TomlError)) throw new Unreadable(reasonOf(thrown));
    const reason = thrown.message.split('\n', 1)[0] ?? '';
    throw new Unreadable(reason.replace('Invalid TOML document: ', ''), { line: thrown.line, column: thrown.column });
  }
}

/** One name of a dotted key, and what follows it. */
const NAME = /[ \t]*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))[ \t]*([.=\]])/y;
/** The quotes of a text of several lines. */
const QUOTES = /"""|'''/;
/** No honest line is longer where keys are; longer ones are not looked at. */
const LONGEST = 2000;

/** The names of the dotted key that begins there and ends with `end`. */
function namesAt(line: string, start: number, end: string): string[] | undefined {
  const names: string[] = [];
  NAME.lastIndex = start;
  for (;;) {
    const found = NAME.exec(line);
    if (found === null) return undefined;
    names.push(found[1] ?? found[2] ?? found[3] ?? '');
    if (found[4] === end) return names;
    if (found[4] !== '.') return undefined;
  }
}

/** What headers have said of a table: its parts and, of an array of tables, how many there are. */
interface Told {
  readonly parts: Map<string, Told>;
  count: number;
}

/** Follows the headers of a text; a table of an array of tables gets its index. */
class Tables {
  private readonly root: Told = { parts: new Map(), count: 0 };
  private table: readonly string[] = [];

  /** What a line that begins a table or a member speaks of. */
  pathOf(line: string): readonly string[] | undefined {
    const [before = '', opening = ''] = /^[ \t]*(\[{0,2})/.exec(line) ?? [];
    const names = namesAt(line, before.length, opening === '' ? '=' : ']');
    if (names === undefined) return undefined;
    if (opening === '') return [...this.table, ...names];
    this.table = this.enter(names, opening === '[[');
    return this.table;
  }

  private enter(names: readonly string[], repeated: boolean): string[] {
    const path: string[] = [];
    let told = this.root;
    for (const [index, name] of names.entries()) {
      const part = told.parts.get(name) ?? { parts: new Map<string, Told>(), count: 0 };
      told.parts.set(name, part);
      if (repeated && index === names.length - 1) {
        part.count++;
        part.parts.clear();
      }
      path.push(name);
      if (part.count > 0) path.push(String(part.count - 1));
      told = part;
    }
    return path;
  }
}

const sharesAll = (path: readonly string[], wanted: readonly string[]): boolean =>
  path.length <= wanted.length && path.every((name, index) => name === wanted[index]);

/** The lines that say something, with their numbers; a text of empty lines is passed over quickly. */
function* linesOf(text: string): Generator<readonly [line: string, number: number]> {
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
export function placeInToml(text: string, pointer: string): Place | undefined {
  const wanted = segments(pointer);
  const tables = new Tables();
  let best: { line: number; depth: number } | undefined;
  let inText = false;
  for (const [line, number] of linesOf(text)) {
    const path = inText || line.length > LONGEST ? undefined : tables.pathOf(line);
    if (QUOTES.test(line) && line.split(QUOTES).length % 2 === 0) inText = !inText;
    if (path === undefined || path.length <= (best?.depth ?? 0) || !sharesAll(path, wanted)) continue;
    best = { line: number, depth: path.length };
  }
  return best === undefined ? undefined : { line: best.line, column: 1 };
}
