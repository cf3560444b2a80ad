/**
 * Finds the positions of all members of a TOML text. The text was accepted by the parser, so the scanner only follows
 * its structure: it skips values, and validates nothing. It reads each character once. It ends for every text.
 */
import { type FindPosition, PositionNode, positionFinder } from './position-tree.js';

/** Deeper values are not scanned; the parser refuses them. */
const MAX_DEPTH = 200;

const BARE_KEY = /[A-Za-z0-9_-]+/y;
const WHITESPACE = /[ \t\r\n]*/y;
const BLANKS = /[ \t]*/y;
const SCALAR = /[^,\]}#\r\n]*/y;
const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|(.))/gs;
const escapedCharacters = new Map(Object.entries({ b: '\b', t: '\t', n: '\n', f: '\f', r: '\r', e: '\u001b' }));

function decodeEscapes(text: string): string {
  return text.replace(ESCAPE, (_, short?: string, long?: string, byte?: string, character = '') => {
    const code = short ?? long ?? byte;
    if (code === undefined) return escapedCharacters.get(character) ?? character;
    const codePoint = Number.parseInt(code, 16);
    return codePoint > 0x10ffff ? '' : String.fromCodePoint(codePoint);
  });
}

class TomlScanner {
  private offset = 0;
  private readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  scanDocument(): PositionNode {
    const root = new PositionNode(0);
    if (this.text.startsWith('\ufeff')) this.offset++;
    let table = root;
    for (;;) {
      const start = this.skipSpace();
      if (start >= this.text.length) return root;
      if (this.text[start] === '[') table = this.scanHeader(root);
      else this.scanMember(table, 0);
      // Only an invalid text has a character here that is neither a header nor a key.
      if (this.offset === start) this.offset++;
    }
  }

  private scanHeader(root: PositionNode): PositionNode {
    const isElement = this.text.startsWith('[[', this.offset);
    this.offset += isElement ? 2 : 1;
    const key = this.readKey();
    let table = root;
    for (const [index, { name, start }] of key.entries()) {
      const member = table.member(name, start);
      const isLast = index === key.length - 1;
      if (isLast && isElement) table = member.addElement(start);
      else {
        // A table may be mentioned in the header of a subtable before its own header.
        if (isLast) member.offset = start;
        table = member.current;
      }
    }
    while (this.text[this.offset] === ']') this.offset++;
    return table;
  }

  /** Scans a key, which may be dotted, and its value. */
  private scanMember(table: PositionNode, depth: number): void {
    let member = table;
    for (const { name, start } of this.readKey()) member = member.current.member(name, start);
    if (this.text[this.offset] !== '=') return;
    this.offset++;
    this.skip(BLANKS);
    this.scanValue(member, depth);
  }

  private readKey(): { name: string; start: number }[] {
    const key: { name: string; start: number }[] = [];
    for (;;) {
      this.skip(BLANKS);
      const start = this.offset;
      key.push({ name: this.readKeySegment(), start });
      this.skip(BLANKS);
      if (this.text[this.offset] !== '.') return key;
      this.offset++;
    }
  }

  private readKeySegment(): string {
    const start = this.offset;
    const quote = this.text[start];
    if (quote !== '"' && quote !== "'") return this.skip(BARE_KEY);
    this.skipQuoted(quote);
    const content = this.text.slice(start + 1, this.offset - 1);
    return quote === '"' ? decodeEscapes(content) : content;
  }

  private scanValue(node: PositionNode, depth: number): void {
    const first = this.text[this.offset];
    if (first === '"' || first === "'") this.skipString(first);
    else if (first === '[' && depth < MAX_DEPTH) this.scanArray(node, depth + 1);
    else if (first === '{' && depth < MAX_DEPTH) this.scanInlineTable(node, depth + 1);
    else this.skip(SCALAR);
  }

  private scanArray(array: PositionNode, depth: number): void {
    while (this.enterItem(']')) this.scanValue(array.addElement(this.offset), depth);
  }

  private scanInlineTable(table: PositionNode, depth: number): void {
    while (this.enterItem('}')) this.scanMember(table, depth);
  }

  /**
   * Skips the opening bracket or the comma before the next item. Returns false at the end of the list, which is
   * skipped too.
   */
  private enterItem(end: string): boolean {
    let next = this.text[this.skipSpace()];
    if (next !== end) {
      this.offset++;
      next = this.text[this.skipSpace()];
    }
    if (next !== end) return next !== undefined;
    this.offset++;
    return false;
  }

  private skipString(quote: string): void {
    const isMultiline = this.text.startsWith(quote.repeat(3), this.offset);
    this.skipQuoted(quote, isMultiline ? 3 : 1);
    // The content of a multi-line string may end in one or two quotes, directly before the delimiter.
    for (let extra = 0; isMultiline && extra < 2 && this.text[this.offset] === quote; extra++) this.offset++;
  }

  private skipQuoted(quote: string, delimiterChars = 1): void {
    const delimiter = quote.repeat(delimiterChars);
    this.offset += delimiterChars;
    for (; this.offset < this.text.length; this.offset++) {
      if (quote === '"' && this.text[this.offset] === '\\') this.offset++;
      else if (this.text.startsWith(delimiter, this.offset)) break;
    }
    this.offset += delimiterChars;
  }

  /** Skips whitespace, line ends and comments, and returns the new offset. */
  private skipSpace(): number {
    for (;;) {
      this.skip(WHITESPACE);
      if (this.text[this.offset] !== '#') return this.offset;
      const end = this.text.indexOf('\n', this.offset);
      this.offset = end === -1 ? this.text.length : end;
    }
  }

  private skip(pattern: RegExp): string {
    pattern.lastIndex = this.offset;
    const match = pattern.exec(this.text)?.[0] ?? '';
    this.offset += match.length;
    return match;
  }
}

/**
 * Reads a TOML text that the parser accepted, and returns the search for positions in it. The position of a member is
 * that of its own key, of an element of an array of tables that of the last key in its header, and of an element of an
 * inline array that of its value.
 */
export function findTomlPositions(text: string): FindPosition {
  return positionFinder(text, new TomlScanner(text).scanDocument());
}
