/**
 * JSON with places: a strict reader that refuses a key that is there twice and says in which line and column a text
 * stops being JSON. `placeInJson` finds the line and column of a part again, for flaws that only its meaning shows.
 */
import { DocumentReadError, parseJsonPointer, type TextPosition } from './document-read-error.js';

const MAX_DEPTH = 256;
const literals = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
]);
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const LITERAL = /[A-Za-z]{1,20}/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const WHITESPACE = /[ \t\r\n]*/y;

function positionAt(text: string, offset: number): TextPosition {
  const before = text.slice(0, offset);
  const lines = before.split('\n');
  return { line: lines.length, column: (lines.at(-1) ?? '').length + 1 };
}

/** The way that is left to the part that is looked for; undefined when it is not below here. */
type RemainingPath = readonly string[] | undefined;

class JsonParser {
  private offset = 0;
  private readonly text: string;
  /** Where the part that is looked for begins, or the innermost part around it. */
  foundOffset = 0;

  constructor(text: string) {
    this.text = text;
  }

  parseDocument(way: RemainingPath): unknown {
    this.skipWhitespace();
    this.foundOffset = this.offset;
    const value = this.parseValue(0, way);
    if (this.skipWhitespace() !== undefined) this.fail('there is text after the end of the document');
    return value;
  }

  /** Skips white space; the character that comes then. */
  private skipWhitespace(): string | undefined {
    this.offset += this.match(WHITESPACE)?.length ?? 0;
    return this.text[this.offset];
  }

  private match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.offset;
    return pattern.exec(this.text)?.[0];
  }

  private fail(reason: string, at = this.offset): never {
    throw new DocumentReadError(reason, positionAt(this.text, at));
  }

  private parseValue(depth: number, way: RemainingPath): unknown {
    const first = this.skipWhitespace();
    if (first === '"') return this.parseString();
    if (first === '{' || first === '[') {
      if (depth >= MAX_DEPTH) this.fail(`it is nested deeper than ${MAX_DEPTH}`);
      this.offset++;
      return first === '{' ? this.parseObject(depth + 1, way) : this.parseArray(depth + 1, way);
    }
    const number = this.match(NUMBER);
    if (number !== undefined) {
      this.offset += number.length;
      return Number(number);
    }
    return this.parseLiteral();
  }

  private parseLiteral(): unknown {
    const word = this.match(LITERAL);
    if (word !== undefined && literals.has(word)) {
      this.offset += word.length;
      return literals.get(word);
    }
    return this.failUnexpected('a value');
  }

  private failUnexpected(wanted: string): never {
    const character = this.text.codePointAt(this.offset);
    if (character === undefined) this.fail(`the text ends where ${wanted} should be`);
    const shown = JSON.stringify(String.fromCodePoint(character));
    return this.fail(`${shown} stands where ${wanted} should be`);
  }

  private parseObject(depth: number, way: RemainingPath): unknown {
    const fields = Object.create(null) as { [name: string]: unknown };
    if (this.skipWhitespace() === '}') return this.skipClosing(fields);
    for (;;) {
      if (this.skipWhitespace() !== '"') this.failUnexpected('a key in double quotes');
      const start = this.offset;
      const key = this.parseString();
      if (Object.hasOwn(fields, key)) this.fail(`the key ${JSON.stringify(key.slice(0, 60))} is there twice`, start);
      if (this.skipWhitespace() !== ':') this.failUnexpected('":"');
      this.offset++;
      fields[key] = this.parseValue(depth, this.descendTo(way, key, start));
      if (this.isEndElseSkipComma('}')) return this.skipClosing(fields);
    }
  }

  private parseArray(depth: number, way: RemainingPath): unknown {
    const list: unknown[] = [];
    if (this.skipWhitespace() === ']') return this.skipClosing(list);
    for (;;) {
      this.skipWhitespace();
      list.push(this.parseValue(depth, this.descendTo(way, String(list.length), this.offset)));
      if (this.isEndElseSkipComma(']')) return this.skipClosing(list);
    }
  }

  /** Whether the end has come; otherwise a comma is passed. */
  private isEndElseSkipComma(end: string): boolean {
    const next = this.skipWhitespace();
    if (next === end) return true;
    if (next !== ',') this.failUnexpected(`"," or "${end}"`);
    this.offset++;
    return false;
  }

  private skipClosing<T>(value: T): T {
    this.offset++;
    return value;
  }

  private descendTo(way: RemainingPath, name: string, start: number): RemainingPath {
    if (way === undefined || way[0] !== name) return undefined;
    this.foundOffset = start;
    return way.slice(1);
  }

  private parseString(): string {
    const start = this.offset++;
    let plain = true;
    for (;;) {
      const code = this.text.charCodeAt(this.offset);
      if (Number.isNaN(code)) this.fail('the text ends inside a string', start);
      if (code < 0x20) this.fail('a control character stands in a string; write it as an escape');
      if (code === 0x22) break;
      if (code === 0x5c) {
        plain = false;
        this.skipEscape();
      } else this.offset++;
    }
    this.offset++;
    return plain
      ? this.text.slice(start + 1, this.offset - 1)
      : (JSON.parse(this.text.slice(start, this.offset)) as string);
  }

  private skipEscape(): void {
    const found = this.match(ESCAPE);
    if (found === undefined) this.fail('an escape in a string is not one that JSON knows');
    this.offset += found.length;
  }
}

/** The value of a JSON text; objects have no prototype. */
export function parseJson(text: string): unknown {
  return new JsonParser(text).parseDocument(undefined);
}

/** Where the part begins, or the innermost part around it that is there. */
export function positionInJson(text: string, pointer: string): TextPosition {
  const reader = new JsonParser(text);
  reader.parseDocument(parseJsonPointer(pointer));
  return positionAt(text, reader.foundOffset);
}
