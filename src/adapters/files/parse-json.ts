/**
 * A strict JSON parser that rejects duplicate keys and reports syntax errors with line and column. `findJsonPositions`
 * finds the line and column of JSON Pointers, for errors that validation finds after parsing.
 */
import { DocumentReadError, type TextPosition } from './document-read-error.js';
import { type FindPosition, PositionNode, positionFinder } from './position-tree.js';

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

class JsonParser {
  private offset = 0;
  private readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** Parses the document, and adds its members to `root` if that is given. */
  parseDocument(root?: PositionNode): unknown {
    this.skipWhitespace();
    if (root !== undefined) root.offset = this.offset;
    const value = this.parseValue(0, root);
    if (this.skipWhitespace() !== undefined) this.fail('there is text after the end of the document');
    return value;
  }

  /** Skips whitespace and returns the next character; undefined at the end of the text. */
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

  private parseValue(depth: number, node: PositionNode | undefined): unknown {
    const first = this.skipWhitespace();
    if (first === '"') return this.parseString();
    if (first === '{' || first === '[') {
      if (depth >= MAX_DEPTH) this.fail(`it is nested deeper than ${MAX_DEPTH} levels`);
      this.offset++;
      return first === '{' ? this.parseObject(depth + 1, node) : this.parseArray(depth + 1, node);
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

  private failUnexpected(expected: string): never {
    const codePoint = this.text.codePointAt(this.offset);
    if (codePoint === undefined) this.fail(`expected ${expected}, but the text ends`);
    const character = JSON.stringify(String.fromCodePoint(codePoint));
    return this.fail(`expected ${expected}, but found ${character}`);
  }

  private parseObject(depth: number, node: PositionNode | undefined): unknown {
    const fields = Object.create(null) as { [name: string]: unknown };
    if (this.skipWhitespace() === '}') return this.skipClosing(fields);
    for (;;) {
      if (this.skipWhitespace() !== '"') this.failUnexpected('a key in double quotes');
      const start = this.offset;
      const key = this.parseString();
      if (Object.hasOwn(fields, key)) this.fail(`duplicate key ${JSON.stringify(key.slice(0, 60))}`, start);
      if (this.skipWhitespace() !== ':') this.failUnexpected('":"');
      this.offset++;
      fields[key] = this.parseValue(depth, node?.member(key, start));
      if (this.isEndElseSkipComma('}')) return this.skipClosing(fields);
    }
  }

  private parseArray(depth: number, node: PositionNode | undefined): unknown {
    const list: unknown[] = [];
    if (this.skipWhitespace() === ']') return this.skipClosing(list);
    for (;;) {
      this.skipWhitespace();
      list.push(this.parseValue(depth, node?.addElement(this.offset)));
      if (this.isEndElseSkipComma(']')) return this.skipClosing(list);
    }
  }

  /** Returns true at the closing character, which it does not consume; otherwise consumes a comma. */
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

  private parseString(): string {
    const start = this.offset++;
    let plain = true;
    for (;;) {
      const code = this.text.charCodeAt(this.offset);
      if (Number.isNaN(code)) this.fail('the text ends inside a string', start);
      if (code < 0x20) this.fail('unescaped control character in a string');
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
    const sequence = this.match(ESCAPE);
    if (sequence === undefined) this.fail('invalid escape sequence in a string');
    this.offset += sequence.length;
  }
}

/**
 * Parses a JSON text. Objects are created without a prototype. Throws DocumentReadError, with the position, if the text
 * is invalid, has a duplicate key or is nested too deeply.
 */
export function parseJson(text: string): unknown {
  return new JsonParser(text).parseDocument();
}

/**
 * Reads a valid JSON text, and returns the search for positions in it. The position of a member is that of its key, and
 * of an array element that of its value.
 */
export function findJsonPositions(text: string): FindPosition {
  const root = new PositionNode(0);
  new JsonParser(text).parseDocument(root);
  return positionFinder(text, root);
}
