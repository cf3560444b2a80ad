/** From ECMA-262 patterns (u flag, known to be well formed) to what RE2 calls the same. Groups capture nothing. */

/** The pattern needs something that cannot be matched in linear time, or that RE2 has no word for. */
export class Untranslatable extends Error {}

const SPACES = '\\t-\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}';
const NOT_SPACES =
  '\\x00-\\x08\\x0e-\\x1f\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}' +
  '\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}';
const ANYTHING = '\\x00-\\x{10ffff}';

/** General categories that RE2 knows under the same short name and fills in the same way. */
const CATEGORY = /^[LMNPSZ][a-z]?$/;

/** The same pattern for RE2; `dot` is what a dot stands for. */
export function translate(source: string, dot: string): string {
  const reader = new Reader(source, dot);
  let out = '';
  while (!reader.ended) out += reader.next();
  return out;
}

class Reader {
  readonly #source: string;
  readonly #dot: string;
  #at = 0;
  #inClass = false;

  constructor(source: string, dot: string) {
    this.#source = source;
    this.#dot = dot;
  }

  get ended(): boolean {
    return this.#at >= this.#source.length;
  }

  next(): string {
    const char = String.fromCodePoint(this.#source.codePointAt(this.#at) ?? 0);
    this.#at += char.length;
    if (char === '\\') return this.#escape();
    if (/^[\ud800-\udfff]$/.test(char)) return codeOf(char.charCodeAt(0));
    if (this.#inClass) return this.#inside(char);
    if (char === '[') return this.#open();
    if (char === '(') return this.#group();
    return char === '.' ? this.#dot : char;
  }

  #inside(char: string): string {
    if (char === ']') this.#inClass = false;
    return char === '[' ? '\\[' : char;
  }

  /** Takes the text if it stands here. */
  #take(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #open(): string {
    if (this.#take('^]')) return `[${ANYTHING}]`;
    if (this.#take(']')) return `[^${ANYTHING}]`;
    this.#inClass = true;
    return this.#take('^') ? '[^' : '[';
  }

  #group(): string {
    if (this.#take('?i:')) return '(?i:';
    if (this.#take('?:')) return '(?:';
    for (const look of ['?=', '?!', '?<=', '?<!']) {
      if (this.#take(look)) throw new Untranslatable(`it looks around with "(${look}", which has no linear-time match`);
    }
    if (this.#take('?<')) this.#at = this.#source.indexOf('>', this.#at) + 1;
    else if (this.#take('?')) throw new Untranslatable('of the modifiers only "(?i:" is known');
    return '(?:';
  }

  #escape(): string {
    const char = this.#source[this.#at] ?? '';
    this.#at += 1;
    if (/[1-9k]/.test(char)) throw new Untranslatable('it has a backreference, which has no linear-time match');
    switch (char) {
      case 's':
        return this.#inClass ? SPACES : `[${SPACES}]`;
      case 'S':
        return this.#inClass ? NOT_SPACES : `[${NOT_SPACES}]`;
      case 'b':
        return this.#inClass ? '\\x08' : '\\b';
      case '0':
        return '\\x00';
      case 'c':
        return codeOf(this.#source.charCodeAt(this.#at++) % 32);
      case 'x':
        return codeOf(this.#hex(2));
      case 'u':
        return codeOf(this.#unicode());
      case 'p':
      case 'P':
        return this.#property(char);
      default:
        return `\\${char}`;
    }
  }

  #hex(digits: number): number {
    this.#at += digits;
    return Number.parseInt(this.#source.slice(this.#at - digits, this.#at), 16);
  }

  #upTo(end: string): string {
    const from = this.#at + 1;
    this.#at = this.#source.indexOf(end, from) + 1;
    return this.#source.slice(from, this.#at - 1);
  }

  #unicode(): number {
    if (this.#source[this.#at] === '{') return Number.parseInt(this.#upTo('}'), 16);
    const unit = this.#hex(4);
    const low = /^\\u(d[c-f][0-9a-f]{2})/i.exec(this.#source.slice(this.#at, this.#at + 6))?.[1];
    if (low === undefined || unit < 0xd800 || unit > 0xdbff) return unit;
    this.#at += 6;
    return 0x10000 + ((unit - 0xd800) << 10) + Number.parseInt(low, 16) - 0xdc00;
  }

  #property(letter: 'p' | 'P'): string {
    const name = this.#upTo('}');
    if (CATEGORY.test(name)) return `\\${letter}{${name}}`;
    const ranges = rangesOf(`\\${letter}{${name}}`);
    return this.#inClass ? ranges : `[${ranges}]`;
  }
}

function codeOf(code: number): string {
  return `\\x{${code.toString(16)}}`;
}

const spelled = new Map<string, string>();
let halves: readonly string[] = [];

/** The characters of a Unicode property, as ranges: found by asking the engine that knows it about every character. */
function rangesOf(property: string): string {
  const known = spelled.get(property);
  if (known !== undefined) return known;
  if (halves.length === 0) halves = [charactersOf(0, 0xd800), charactersOf(0xe000, 0x110000)];
  let ranges = new RegExp(property, 'u').test('\ud800') ? '\\x{d800}-\\x{dfff}' : '';
  for (const half of halves) {
    for (const [run] of half.matchAll(new RegExp(`${property}+`, 'gu'))) ranges += rangeOf(run);
  }
  spelled.set(property, ranges);
  return ranges;
}

function charactersOf(from: number, to: number): string {
  let characters = '';
  for (let code = from; code < to; code++) characters += String.fromCodePoint(code);
  return characters;
}

function rangeOf(run: string): string {
  const last = /[\udc00-\udfff]$/.test(run.slice(-1)) ? run.slice(-2) : run.slice(-1);
  return `${codeOf(run.codePointAt(0) ?? 0)}-${codeOf(last.codePointAt(0) ?? 0)}`;
}
