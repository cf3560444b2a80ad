/** From ECMA-262 patterns (u flag, known to be well formed) to what RE2 calls the same. Groups capture nothing. */

/** The pattern needs something that cannot be matched in linear time, or that RE2 has no word for. */
export class UntranslatableError extends Error {}

const ECMA_SPACES = '\\t-\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}';
const ECMA_NOT_SPACES =
  '\\x00-\\x08\\x0e-\\x1f\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}' +
  '\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}';
const ANY_CODE_POINT = '\\x00-\\x{10ffff}';

/** General categories that RE2 knows under the same short name and fills in the same way. */
const RE2_CATEGORY = /^[LMNPSZ][a-z]?$/;

/** The same pattern for RE2; `dot` is what a dot stands for. */
export function translateToRe2(source: string, dot: string): string {
  const reader = new PatternTranslator(source, dot);
  let out = '';
  while (!reader.isAtEnd) out += reader.next();
  return out;
}

class PatternTranslator {
  readonly #source: string;
  readonly #dot: string;
  #position = 0;
  #inClass = false;

  constructor(source: string, dot: string) {
    this.#source = source;
    this.#dot = dot;
  }

  get isAtEnd(): boolean {
    return this.#position >= this.#source.length;
  }

  next(): string {
    const char = String.fromCodePoint(this.#source.codePointAt(this.#position) ?? 0);
    this.#position += char.length;
    if (char === '\\') return this.#escape();
    if (/^[\ud800-\udfff]$/.test(char)) return escapeCodePoint(char.charCodeAt(0));
    if (this.#inClass) return this.#classCharacter(char);
    if (char === '[') return this.#openClass();
    if (char === '(') return this.#group();
    return char === '.' ? this.#dot : char;
  }

  #classCharacter(char: string): string {
    if (char === ']') this.#inClass = false;
    return char === '[' ? '\\[' : char;
  }

  /** Takes the text if it stands here. */
  #consume(text: string): boolean {
    if (!this.#source.startsWith(text, this.#position)) return false;
    this.#position += text.length;
    return true;
  }

  #openClass(): string {
    if (this.#consume('^]')) return `[${ANY_CODE_POINT}]`;
    if (this.#consume(']')) return `[^${ANY_CODE_POINT}]`;
    this.#inClass = true;
    return this.#consume('^') ? '[^' : '[';
  }

  #group(): string {
    if (this.#consume('?i:')) return '(?i:';
    if (this.#consume('?:')) return '(?:';
    for (const look of ['?=', '?!', '?<=', '?<!']) {
      if (this.#consume(look))
        throw new UntranslatableError(`it looks around with "(${look}", which has no linear-time match`);
    }
    if (this.#consume('?<')) this.#position = this.#source.indexOf('>', this.#position) + 1;
    else if (this.#consume('?')) throw new UntranslatableError('of the modifiers only "(?i:" is known');
    return '(?:';
  }

  #escape(): string {
    const char = this.#source[this.#position] ?? '';
    this.#position += 1;
    if (/[1-9k]/.test(char)) throw new UntranslatableError('it has a backreference, which has no linear-time match');
    switch (char) {
      case 's':
        return this.#inClass ? ECMA_SPACES : `[${ECMA_SPACES}]`;
      case 'S':
        return this.#inClass ? ECMA_NOT_SPACES : `[${ECMA_NOT_SPACES}]`;
      case 'b':
        return this.#inClass ? '\\x08' : '\\b';
      case '0':
        return '\\x00';
      case 'c':
        return escapeCodePoint(this.#source.charCodeAt(this.#position++) % 32);
      case 'x':
        return escapeCodePoint(this.#hex(2));
      case 'u':
        return escapeCodePoint(this.#unicode());
      case 'p':
      case 'P':
        return this.#property(char);
      default:
        return `\\${char}`;
    }
  }

  #hex(digits: number): number {
    this.#position += digits;
    return Number.parseInt(this.#source.slice(this.#position - digits, this.#position), 16);
  }

  #readUntil(end: string): string {
    const from = this.#position + 1;
    this.#position = this.#source.indexOf(end, from) + 1;
    return this.#source.slice(from, this.#position - 1);
  }

  #unicode(): number {
    if (this.#source[this.#position] === '{') return Number.parseInt(this.#readUntil('}'), 16);
    const unit = this.#hex(4);
    const low = /^\\u(d[c-f][0-9a-f]{2})/i.exec(this.#source.slice(this.#position, this.#position + 6))?.[1];
    if (low === undefined || unit < 0xd800 || unit > 0xdbff) return unit;
    this.#position += 6;
    return 0x10000 + ((unit - 0xd800) << 10) + Number.parseInt(low, 16) - 0xdc00;
  }

  #property(letter: 'p' | 'P'): string {
    const name = this.#readUntil('}');
    if (RE2_CATEGORY.test(name)) return `\\${letter}{${name}}`;
    const ranges = propertyRanges(`\\${letter}{${name}}`);
    return this.#inClass ? ranges : `[${ranges}]`;
  }
}

function escapeCodePoint(code: number): string {
  return `\\x{${code.toString(16)}}`;
}

const rangesByProperty = new Map<string, string>();
let allCharacters: readonly string[] = [];

/** The characters of a Unicode property, as ranges: found by asking the engine that knows it about every character. */
function propertyRanges(property: string): string {
  const known = rangesByProperty.get(property);
  if (known !== undefined) return known;
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
