/**
 * JSON with places: a strict reader that refuses a key that is there twice and says in which line and column a text
 * stops being JSON. `placeInJson` finds the line and column of a part again, for flaws that only its meaning shows.
 */
import { type Place, segments, Unreadable } from './unreadable.js';

const DEPTH = 256;
const words = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
]);
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const WORD = /[A-Za-z]{1,20}/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const SPACE = /[ \t\r\n]*/y;

function placeOf(text: string, offset: number): Place {
  const before = text.slice(0, offset);
  const lines = before.split('\n');
  return { line: lines.length, column: (lines.at(-1) ?? '').length + 1 };
}

/** The way that is left to the part that is looked for; undefined when it is not below here. */
type Way = readonly string[] | undefined;

class Reader {
  private at = 0;
  private readonly text: string;
  /** Where the part that is looked for begins, or the innermost part around it. */
  found = 0;

  constructor(text: string) {
    this.text = text;
  }

  document(way: Way): unknown {
    this.skip();
    this.found = this.at;
    const value = this.value(0, way);
    if (this.skip() !== undefined) this.refuse('there is text after the end of the document');
    return value;
  }

  /** Skips white space; the character that comes then. */
  private skip(): string | undefined {
    this.at += this.match(SPACE)?.length ?? 0;
    return this.text[this.at];
  }

  private match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    return pattern.exec(this.text)?.[0];
  }

  private refuse(reason: string, at = this.at): never {
    throw new Unreadable(reason, placeOf(this.text, at));
  }

  private value(depth: number, way: Way): unknown {
    const first = this.skip();
    if (first === '"') return this.string();
    if (first === '{' || first === '[') {
      if (depth >= DEPTH) this.refuse(`it is nested deeper than ${DEPTH}`);
      this.at++;
      return first === '{' ? this.fields(depth + 1, way) : this.list(depth + 1, way);
    }
    const number = this.match(NUMBER);
    if (number !== undefined) {
      this.at += number.length;
      return Number(number);
    }
    return this.word();
  }

  private word(): unknown {
    const word = this.match(WORD);
    if (word !== undefined && words.has(word)) {
      this.at += word.length;
      return words.get(word);
    }
    return this.unexpected('a value');
  }

  private unexpected(wanted: string): never {
    const character = this.text.codePointAt(this.at);
    if (character === undefined) this.refuse(`the text ends where ${wanted} should be`);
    const shown = JSON.stringify(String.fromCodePoint(character));
    return this.refuse(`${shown} stands where ${wanted} should be`);
  }

  private fields(depth: number, way: Way): unknown {
    const fields = Object.create(null) as { [name: string]: unknown };
    if (this.skip() === '}') return this.close(fields);
    for (;;) {
      if (this.skip() !== '"') this.unexpected('a key in double quotes');
      const start = this.at;
      const key = this.string();
      if (Object.hasOwn(fields, key)) this.refuse(`the key ${JSON.stringify(key.slice(0, 60))} is there twice`, start);
      if (this.skip() !== ':') this.unexpected('":"');
      this.at++;
      fields[key] = this.value(depth, this.step(way, key, start));
      if (this.more('}')) return this.close(fields);
    }
  }

  private list(depth: number, way: Way): unknown {
    const list: unknown[] = [];
    if (this.skip() === ']') return this.close(list);
    for (;;) {
      this.skip();
      list.push(this.value(depth, this.step(way, String(list.length), this.at)));
      if (this.more(']')) return this.close(list);
    }
  }

  /** Whether the end has come; otherwise a comma is passed. */
  private more(end: string): boolean {
    const next = this.skip();
    if (next === end) return true;
    if (next !== ',') this.unexpected(`"," or "${end}"`);
    this.at++;
    return false;
  }

  private close<T>(value: T): T {
    this.at++;
    return value;
  }

  private step(way: Way, name: string, start: number): Way {
    if (way === undefined || way[0] !== name) return undefined;
    this.found = start;
    return way.slice(1);
  }

  private string(): string {
    const start = this.at++;
    let plain = true;
    for (;;) {
      const code = this.text.charCodeAt(this.at);
      if (Number.isNaN(code)) this.refuse('the text ends inside a string', start);
      if (code < 0x20) this.refuse('a control character stands in a string; write it as an escape');
      if (code === 0x22) break;
      if (code === 0x5c) {
        plain = false;
        this.escape();
      } else this.at++;
    }
    this.at++;
    return plain ? this.text.slice(start + 1, this.at - 1) : (JSON.parse(this.text.slice(start, this.at)) as string);
  }

  private escape(): void {
    const found = this.match(ESCAPE);
    if (found === undefined) this.refuse('an escape in a string is not one that JSON knows');
    this.at += found.length;
  }
}

/** The value of a JSON text; objects have no prototype. */
export function readJson(text: string): unknown {
  return new Reader(text).document(undefined);
}

/** Where the part begins, or the innermost part around it that is there. */
export function placeInJson(text: string, pointer: string): Place {
  const reader = new Reader(text);
  reader.document(segments(pointer));
  return placeOf(text, reader.found);
}
