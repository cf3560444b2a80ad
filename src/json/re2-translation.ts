/** Translates well-formed ECMA-262 patterns (u flag) to RE2 syntax. Capturing groups become non-capturing. */

/** Thrown for a pattern that cannot be matched in linear time or expressed in RE2 syntax. */
export class UntranslatableError extends Error {}

const ECMA_SPACES = '\\t-\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}';
const ECMA_NOT_SPACES =
  '\\x00-\\x08\\x0e-\\x1f\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}' +
  '\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}';
const ANY_CODE_POINT = '\\x00-\\x{10ffff}';

/** General categories with the same short name and the same characters in RE2. */
const RE2_CATEGORY = /^[LMNPSZ][a-z]?$/;

/** Translates a pattern. `dot` is the RE2 class that replaces a dot. Throws UntranslatableError. */
export function translateToRe2(source: string, dot: string): string {
  const translator = new PatternTranslator(source, dot);
  let translated = '';
  while (!translator.isAtEnd) translated += translator.next();
  return translated;
}

class PatternTranslator {
  private readonly source: string;
  private readonly dot: string;
  private position = 0;
  private inClass = false;

  constructor(source: string, dot: string) {
    this.source = source;
    this.dot = dot;
  }

  get isAtEnd(): boolean {
    return this.position >= this.source.length;
  }

  /** Translates the next character, escape or group start. */
  next(): string {
    const char = String.fromCodePoint(this.source.codePointAt(this.position) ?? 0);
    this.position += char.length;
    if (char === '\\') return this.escape();
    if (/^[\ud800-\udfff]$/.test(char)) return escapeCodePoint(char.charCodeAt(0));
    if (this.inClass) return this.classCharacter(char);
    if (char === '[') return this.openClass();
    if (char === '(') return this.group();
    return char === '.' ? this.dot : char;
  }

  private classCharacter(char: string): string {
    if (char === ']') this.inClass = false;
    return char === '[' ? '\\[' : char;
  }

  /** Skips the text if it is at the current position; returns true if so. */
  private consume(text: string): boolean {
    if (!this.source.startsWith(text, this.position)) return false;
    this.position += text.length;
    return true;
  }

  private openClass(): string {
    if (this.consume('^]')) return `[${ANY_CODE_POINT}]`;
    if (this.consume(']')) return `[^${ANY_CODE_POINT}]`;
    this.inClass = true;
    return this.consume('^') ? '[^' : '[';
  }

  private group(): string {
    if (this.consume('?i:')) return '(?i:';
    if (this.consume('?:')) return '(?:';
    for (const look of ['?=', '?!', '?<=', '?<!']) {
      if (this.consume(look))
        throw new UntranslatableError(`it has a lookaround "(${look}", which has no linear-time match`);
    }
    if (this.consume('?<')) this.position = this.source.indexOf('>', this.position) + 1;
    else if (this.consume('?'))
      throw new UntranslatableError('it has a modifier other than "(?i:", the only supported one');
    return '(?:';
  }

  private escape(): string {
    const char = this.source[this.position] ?? '';
    this.position += 1;
    if (/[1-9k]/.test(char)) throw new UntranslatableError('it has a backreference, which has no linear-time match');
    switch (char) {
      case 's':
        return this.inClass ? ECMA_SPACES : `[${ECMA_SPACES}]`;
      case 'S':
        return this.inClass ? ECMA_NOT_SPACES : `[${ECMA_NOT_SPACES}]`;
      case 'b':
        return this.inClass ? '\\x08' : '\\b';
      case '0':
        return '\\x00';
      case 'c':
        return escapeCodePoint(this.source.charCodeAt(this.position++) % 32);
      case 'x':
        return escapeCodePoint(this.hex(2));
      case 'u':
        return escapeCodePoint(this.unicode());
      case 'p':
      case 'P':
        return this.property(char);
      default:
        return `\\${char}`;
    }
  }

  private hex(digits: number): number {
    this.position += digits;
    return Number.parseInt(this.source.slice(this.position - digits, this.position), 16);
  }

  private readUntil(end: string): string {
    const from = this.position + 1;
    this.position = this.source.indexOf(end, from) + 1;
    return this.source.slice(from, this.position - 1);
  }

  private unicode(): number {
    if (this.source[this.position] === '{') return Number.parseInt(this.readUntil('}'), 16);
    const unit = this.hex(4);
    const low = /^\\u(d[c-f][0-9a-f]{2})/i.exec(this.source.slice(this.position, this.position + 6))?.[1];
    if (low === undefined || unit < 0xd800 || unit > 0xdbff) return unit;
    this.position += 6;
    return 0x10000 + ((unit - 0xd800) << 10) + Number.parseInt(low, 16) - 0xdc00;
  }

  private property(letter: 'p' | 'P'): string {
    const name = this.readUntil('}');
    if (RE2_CATEGORY.test(name)) return `\\${letter}{${name}}`;
    const ranges = propertyRanges(`\\${letter}{${name}}`);
    return this.inClass ? ranges : `[${ranges}]`;
  }
}

function escapeCodePoint(code: number): string {
  return `\\x{${code.toString(16)}}`;
}

const rangesByProperty = new Map<string, string>();
let allCharacters: readonly string[] = [];

/** Returns the characters of a Unicode property as ranges, by testing every code point with the native engine. */
function propertyRanges(property: string): string {
  const cached = rangesByProperty.get(property);
  if (cached !== undefined) return cached;
  if (allCharacters.length === 0) allCharacters = [charactersBetween(0, 0xd800), charactersBetween(0xe000, 0x110000)];
  let ranges = new RegExp(property, 'u').test('\ud800') ? '\\x{d800}-\\x{dfff}' : '';
  for (const half of allCharacters) {
    for (const [run] of half.matchAll(new RegExp(`${property}+`, 'gu'))) ranges += rangeOfRun(run);
  }
  rangesByProperty.set(property, ranges);
  return ranges;
}

function charactersBetween(from: number, to: number): string {
  let characters = '';
  for (let code = from; code < to; code++) characters += String.fromCodePoint(code);
  return characters;
}

function rangeOfRun(run: string): string {
  const last = /[\udc00-\udfff]$/.test(run.slice(-1)) ? run.slice(-2) : run.slice(-1);
  return `${escapeCodePoint(run.codePointAt(0) ?? 0)}-${escapeCodePoint(last.codePointAt(0) ?? 0)}`;
}
