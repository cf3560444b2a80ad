/**
 * Decodes all common escapes of a text in one pass: percent encoding, the escapes of JSON, JavaScript and shells, and
 * HTML character references. The result is meant to be searched, not read. Text that is not a complete escape is left
 * as it is.
 */

import { lastIndexAtMost } from './binary-search.js';

/** One escaped character: its range in the encoded text, and in the decoded text. */
interface EscapeSequence {
  readonly sourceStart: number;
  readonly sourceEnd: number;
  readonly decodedStart: number;
  readonly decodedLength: number;
}

const LETTER_ESCAPES: { readonly [letter: string]: string } = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' };
/** The HTML entity names of keyboard characters. */
const HTML_ENTITIES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...{ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', Tab: '\t', NewLine: '\n' },
    ...{ sol: '/', bsol: '\\', plus: '+', equals: '=', colon: ':', semi: ';', comma: ',', period: '.', excl: '!' },
    ...{ quest: '?', num: '#', dollar: '$', percnt: '%', ast: '*', midast: '*', commat: '@', Hat: '^', grave: '`' },
    ...{ lowbar: '_', UnderBar: '_', hyphen: '-', dash: '-', lpar: '(', rpar: ')', lsqb: '[', rsqb: ']' },
    ...{ lbrack: '[', rbrack: ']', lcub: '{', rcub: '}', lbrace: '{', rbrace: '}', verbar: '|', vert: '|' },
  }),
);

const ESCAPE_PATTERN = new RegExp(
  [
    '(?:%[0-9a-fA-F]{2})+',
    '\\\\u\\{[0-9a-fA-F]{1,6}\\}|\\\\u[0-9a-fA-F]{4}|\\\\x[0-9a-fA-F]{2}|\\\\[0-3][0-7]{2}|\\\\[^0-9A-Za-z]|\\\\[nrtbf]',
    `&#\\d{1,7};?|&#[xX][0-9a-fA-F]{1,6};?|&(?:${[...HTML_ENTITIES.keys()].join('|')});`,
  ].join('|'),
  'g',
);

/** Text at the end that may be the start of an escape or of a multi-byte percent sequence. */
const UNFINISHED_ESCAPE_PATTERN =
  /(?:%[0-9a-fA-F]?|(?:%[c-fC-F][0-9a-fA-F](?:%[89abAB][0-9a-fA-F]){0,2}%?[0-9a-fA-F]?)|\\(?:u\{?[0-9a-fA-F]{0,6}|x[0-9a-fA-F]?|[0-3][0-7]?)?|&#?[xX]?\w{0,8})$/;

/** A decoded text with a mapping of positions to the encoded text. */
export interface DecodedText {
  readonly text: string;
  /** Maps the start of a range in `text` to its start in the encoded text. */
  sourceStartOf(index: number): number;
  /** Maps the exclusive end of a range in `text` to its end in the encoded text. */
  sourceEndOf(index: number): number;
}

/** Decodes the escapes of a text once. Returns undefined if it has none. */
export function decodeEscapes(text: string): DecodedText | undefined {
  const escapes: EscapeSequence[] = [];
  const starts: number[] = [];
  const pieces: string[] = [];
  let from = 0;
  let length = 0;
  for (const match of text.matchAll(ESCAPE_PATTERN)) {
    pieces.push(text.slice(from, match.index));
    length += match.index - from;
    from = match.index;
    for (const [point, size] of decodedUnits(match[0])) {
      escapes.push({ sourceStart: from, sourceEnd: from + size, decodedStart: length, decodedLength: point.length });
      starts.push(length);
      pieces.push(point);
      from += size;
      length += point.length;
    }
  }
  if (escapes.length === 0) return undefined;
  pieces.push(text.slice(from));
  const lastEscapeAt = (index: number): EscapeSequence | undefined => escapes[lastIndexAtMost(starts, index)];
  return {
    text: pieces.join(''),
    sourceStartOf: (index) => {
      const last = lastEscapeAt(index);
      if (last === undefined) return index;
      return index < last.decodedStart + last.decodedLength
        ? last.sourceStart
        : last.sourceEnd + (index - last.decodedStart - last.decodedLength);
    },
    sourceEndOf: (index) => {
      const last = lastEscapeAt(index - 1);
      if (last === undefined) return index;
      return index <= last.decodedStart + last.decodedLength
        ? last.sourceEnd
        : last.sourceEnd + (index - last.decodedStart - last.decodedLength);
    },
  };
}

/**
 * Returns the start of a possibly incomplete escape at the end of a text, or the length of the text if there is none.
 */
export function unfinishedEscapeIndex(text: string): number {
  const tail = Math.max(0, text.length - 16);
  const match = UNFINISHED_ESCAPE_PATTERN.exec(text.slice(tail));
  return match === null ? text.length : tail + match.index;
}

/**
 * Returns the decoded characters of an escape with the length of each in the source. Adjacent percent escapes are one
 * match.
 */
function decodedUnits(escaped: string): readonly (readonly [string, number])[] {
  if (escaped.startsWith('%')) return decodePercentEscapes(escaped);
  return [[decodeEscape(escaped), escaped.length]];
}

function decodeEscape(escaped: string): string {
  const hexadecimal = /^(?:\\u\{?|\\x|&#[xX])([0-9a-fA-F]+)/.exec(escaped)?.[1];
  if (hexadecimal !== undefined) return codePointText(Number.parseInt(hexadecimal, 16));
  const decimal = /^&#(\d+)/.exec(escaped)?.[1];
  if (decimal !== undefined) return codePointText(Number(decimal));
  if (escaped.startsWith('&')) return HTML_ENTITIES.get(escaped.slice(1, -1)) ?? escaped;
  if (/^\\\d/.test(escaped)) return codePointText(Number.parseInt(escaped.slice(1), 8));
  return LETTER_ESCAPES[escaped.slice(1)] ?? escaped.slice(1);
}

/** Returns the character of a code point; the replacement character for a number that is none. */
function codePointText(code: number): string {
  return code <= 0x10ffff ? String.fromCodePoint(code) : '\ufffd';
}

/** Decodes percent escapes as UTF-8. A byte that is not valid UTF-8 becomes the Latin-1 character of its value. */
function decodePercentEscapes(escaped: string): readonly (readonly [string, number])[] {
  const bytes = Array.from({ length: escaped.length / 3 }, (_, i) =>
    Number.parseInt(escaped.slice(3 * i + 1, 3 * i + 3), 16),
  );
  const units: (readonly [string, number])[] = [];
  for (let i = 0; i < bytes.length; ) {
    const lead = bytes[i] ?? 0;
    const size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
    const sequence = bytes.slice(i, i + size);
    const isValid = sequence.length === size && sequence.slice(1).every((byte) => byte >> 6 === 2) && lead < 0xf5;
    units.push(isValid && size > 1 ? [Buffer.from(sequence).toString(), 3 * size] : [String.fromCharCode(lead), 3]);
    i += isValid ? size : 1;
  }
  return units;
}
