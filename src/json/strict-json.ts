/**
 * A parser for JSON documents that are signed or that say whom to trust. It refuses everything that two parsers could
 * read differently: duplicate members, half surrogate pairs, numbers that a double does not hold, bytes before or after
 * the document, and invalid UTF-8. Depth and size are bounded.
 */
import { LoopError } from '../base/errors.js';
import type { Json } from '../protocol/json.js';
import { hasLoneSurrogate } from './i-json.js';

/** Limits of a document. */
export interface StrictJsonLimits {
  /** @default 16777216 */
  readonly maxBytes?: number;
  /** @default 32 */
  readonly maxDepth?: number;
}

const DEFAULT_MAX_BYTES = 16 * 1024 * 1024;
const DEFAULT_MAX_DEPTH = 32;
const MAX_NUMBER_CHARS = 100;

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const PLAIN_TEXT = /[ !#-[\]-\uffff]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const SPACE = /[ \t\r\n]*/y;
const LITERALS: readonly (readonly [string, Json])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
];

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Parses a document. Throws VALUE_INVALID, with the position, if it is not strict JSON or exceeds a limit. */
export function parseStrictJson(bytes: Uint8Array, limits: StrictJsonLimits = {}): Json {
  const { maxBytes = DEFAULT_MAX_BYTES, maxDepth = DEFAULT_MAX_DEPTH } = limits;
  if (bytes.length > maxBytes) throw refusal(`it has ${bytes.length} bytes; the limit is ${maxBytes}`);
  return new StrictParser(decodeUtf8(bytes), maxDepth, false).parseDocument('');
}

/**
 * Parses a document in canonical form (RFC 8785), followed by `end`. Throws VALUE_INVALID for every other form. This is
 * faster than writing the parsed value again to compare it.
 */
export function parseCanonicalJson(bytes: Uint8Array, limits: StrictJsonLimits, end = ''): Json {
  const { maxBytes = DEFAULT_MAX_BYTES, maxDepth = DEFAULT_MAX_DEPTH } = limits;
  if (bytes.length > maxBytes) throw refusal(`it has ${bytes.length} bytes; the limit is ${maxBytes}`);
  return new StrictParser(decodeUtf8(bytes), maxDepth, true).parseDocument(end);
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw refusal('it is not valid UTF-8');
  }
}

function refusal(reason: string, offset?: number): LoopError {
  const place = offset === undefined ? '' : ` at character ${offset}`;
  return new LoopError('VALUE_INVALID', `The document is refused${place}: ${reason}.`, {
    reason,
    offset: offset ?? -1,
  });
}

class StrictParser {
  private offset = 0;
  private readonly text: string;
  private readonly maxDepth: number;
  private readonly isCanonical: boolean;

  constructor(text: string, maxDepth: number, isCanonical: boolean) {
    this.text = text;
    this.maxDepth = maxDepth;
    this.isCanonical = isCanonical;
  }

  /** Parses the document, which `end` must follow. White space is skipped before it, except in a canonical document. */
  parseDocument(end: string): Json {
    const value = this.parseValue(0);
    if (!this.isCanonical) this.skipSpace();
    if (this.text.slice(this.offset) !== end) throw this.fail('it is followed by something else than its end');
    return value;
  }

  private fail(reason: string): LoopError {
    return refusal(reason, this.offset);
  }

  private match(pattern: RegExp): string {
    pattern.lastIndex = this.offset;
    const found = pattern.exec(this.text)?.[0] ?? '';
    this.offset += found.length;
    return found;
  }

  /** Skips white space and returns the code of the next character; NaN at the end. */
  private skipSpace(): number {
    const code = this.text.charCodeAt(this.offset);
    // guard: canonical-document-has-no-space
    if (code > 0x20 || this.isCanonical) return code;
    this.match(SPACE);
    return this.text.charCodeAt(this.offset);
  }

  private parseValue(depth: number): Json {
    const code = this.skipSpace();
    if (code === 0x22) return this.parseText();
    if (code === 0x7b || code === 0x5b) {
      if (depth >= this.maxDepth) throw this.fail(`it is nested deeper than ${this.maxDepth}`);
      this.offset += 1;
      return code === 0x7b ? this.parseObject(depth + 1) : this.parseArray(depth + 1);
    }
    if (code === 0x2d || (code >= 0x30 && code <= 0x39)) return this.parseNumber();
    for (const [word, value] of LITERALS)
      if (this.text.startsWith(word, this.offset)) {
        this.offset += word.length;
        return value;
      }
    throw this.fail('a value was expected');
  }

  private parseNumber(): number {
    const text = this.match(NUMBER);
    const value = Number(text);
    if (text.length > MAX_NUMBER_CHARS) throw this.fail(`a number has more than ${MAX_NUMBER_CHARS} characters`);
    // guard: number-round-trips
    if (text === '' || (String(value) !== text && !isSameNumber(text, value)))
      throw this.fail(`the number ${text.slice(0, 40)} does not survive conversion to a double`);
    // guard: canonical-number
    if (this.isCanonical && String(value) !== text) throw this.fail(`the number ${text} is not canonical`);
    return value;
  }

  private parseText(): string {
    const start = this.offset;
    this.offset += 1;
    this.match(PLAIN_TEXT);
    let code = this.text.charCodeAt(this.offset);
    const isPlain = code === 0x22;
    while (code !== 0x22) {
      if (code !== 0x5c || this.match(ESCAPE) === '')
        throw this.fail('a text is not closed or has an invalid character');
      this.match(PLAIN_TEXT);
      code = this.text.charCodeAt(this.offset);
    }
    this.offset += 1;
    const raw = this.text.slice(start, this.offset);
    // A decoded document contains no half surrogate pairs; only escapes can introduce them.
    if (isPlain) return raw.slice(1, -1);
    const text = JSON.parse(raw) as string;
    // guard: lone-surrogate-refused
    if (hasLoneSurrogate(text)) throw this.fail('a text contains half of a surrogate pair');
    // guard: canonical-text
    if (this.isCanonical && JSON.stringify(text) !== raw) throw this.fail('a text is not canonical');
    return text;
  }

  private parseObject(depth: number): Json {
    const fields: { [name: string]: Json } = {};
    if (this.skipSpace() === 0x7d) return this.closed(fields);
    let last: string | undefined;
    for (;;) {
      if (this.skipSpace() !== 0x22) throw this.fail('a name in double quotes was expected');
      const name = this.parseText();
      // guard: canonical-order
      if (this.isCanonical && last !== undefined && name <= last)
        throw this.fail('the members are not in canonical order');
      last = name;
      // guard: duplicate-member-refused
      if (!this.isCanonical && Object.hasOwn(fields, name))
        throw this.fail(`the member ${JSON.stringify(name.slice(0, 60))} occurs twice`);
      // guard: proto-member-refused
      if (name === '__proto__') throw this.fail('the member "__proto__" is forbidden');
      if (this.skipSpace() !== 0x3a) throw this.fail('":" was expected');
      this.offset += 1;
      fields[name] = this.parseValue(depth);
      if (this.isEndElseComma(0x7d)) return this.closed(fields);
    }
  }

  private parseArray(depth: number): Json {
    const items: Json[] = [];
    if (this.skipSpace() === 0x5d) return this.closed(items);
    for (;;) {
      items.push(this.parseValue(depth));
      if (this.isEndElseComma(0x5d)) return this.closed(items);
    }
  }

  private isEndElseComma(end: number): boolean {
    const code = this.skipSpace();
    if (code === end) return true;
    if (code !== 0x2c) throw this.fail('"," or the end of a list was expected');
    this.offset += 1;
    return false;
  }

  private closed<T>(value: T): T {
    this.offset += 1;
    return value;
  }
}

/** True if a number has the same decimal value in its text and in the shortest text of its double. */
function isSameNumber(text: string, value: number): boolean {
  if (!Number.isFinite(value) || Object.is(value, -0)) return false;
  return decimalOf(text) === decimalOf(String(value));
}

/** Returns the sign, the significant digits and the exponent of a number, as one text. */
function decimalOf(text: string): string {
  const [mantissa = '', exponent = '0'] = text.replace(/^-/, '').toLowerCase().split('e');
  const isNegative = text.startsWith('-');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  const significant = digits.replace(/0+$/, '');
  if (significant === '') return '0';
  const scale = Number(exponent) - fraction.length + (digits.length - significant.length);
  return `${isNegative ? '-' : ''}${significant}e${scale}`;
}
