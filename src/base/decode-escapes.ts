/**
 * Undoes what texts are escaped and encoded with on their way, all at once: percent encoding, the escapes of JSON, JavaScript
 * and shells, and those of HTML. It is for finding a text, not for reading one: what is no proper escape stays as it is.
 */

import { lastIndexAtMost } from './binary-search.js';

/** One escape: its place in the encoded text, and in the decoded one. */
interface EscapeSequence {
  readonly sourceStart: number;
  readonly sourceEnd: number;
  readonly decodedStart: number;
  readonly decodedLength: number;
}

const LETTER_ESCAPES: { readonly [letter: string]: string } = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' };
/** The names that HTML has for the characters of a keyboard. */
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

/** The beginning of an escape that a text ends in the middle of. */
const UNFINISHED_ESCAPE_PATTERN =
  /(?:%[0-9a-fA-F]?|(?:%[c-fC-F][0-9a-fA-F](?:%[89abAB][0-9a-fA-F]){0,2}%?[0-9a-fA-F]?)|\\(?:u\{?[0-9a-fA-F]{0,6}|x[0-9a-fA-F]?|[0-3][0-7]?)?|&#?[xX]?\w{0,8})$/;

/** A decoded text that knows where each part of it stood. */
export interface DecodedText {
  readonly text: string;
  /** Where what begins and ends here began and ended in the encoded text. */
  sourceStartOf(index: number): number;
  sourceEndOf(index: number): number;
}

/** The text decoded once; undefined if there is nothing to decode. */
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
  const before = (index: number): EscapeSequence | undefined => escapes[lastIndexAtMost(starts, index)];
  return {
    text: pieces.join(''),
    sourceStartOf: (index) => {
      const last = before(index);
      if (last === undefined) return index;
      return index < last.decodedStart + last.decodedLength
        ? last.sourceStart
        : last.sourceEnd + (index - last.decodedStart - last.decodedLength);
    },
    sourceEndOf: (index) => {
      const last = before(index - 1);
      if (last === undefined) return index;
      return index <= last.decodedStart + last.decodedLength
        ? last.sourceEnd
        : last.sourceEnd + (index - last.decodedStart - last.decodedLength);
    },
  };
}

/** Where the escape begins that a text ends in the middle of; the length of the text if there is none. */
export function unfinishedEscapeIndex(text: string): number {
  const tail = Math.max(0, text.length - 16);
  const found = UNFINISHED_ESCAPE_PATTERN.exec(text.slice(tail));
  return found === null ? text.length : tail + found.index;
}

/** What an escape stands for, and how long it is; percent escapes stand in a row. */
function decodedUnits(written: string): readonly (readonly [string, number])[] {
  if (written.startsWith('%')) return decodePercentEscapes(written);
  return [[decodeEscape(written), written.length]];
}

function decodeEscape(written: string): string {
  const hexadecimal = /^(?:\\u\{?|\\x|&#[xX])([0-9a-fA-F]+)/.exec(written)?.[1];
  if (hexadecimal !== undefined) return codePointText(Number.parseInt(hexadecimal, 16));
  const decimal = /^&#(\d+)/.exec(written)?.[1];
  if (decimal !== undefined) return codePointText(Number(decimal));
  if (written.startsWith('&')) return HTML_ENTITIES.get(written.slice(1, -1)) ?? written;
  if (/^\\\d/.test(written)) return codePointText(Number.parseInt(written.slice(1), 8));
  return LETTER_ESCAPES[written.slice(1)] ?? written.slice(1);
}

function codePointText(code: number): string {
  return code <= 0x10ffff ? String.fromCodePoint(code) : '\ufffd';
}

/** Bytes in UTF-8; those that are not stand for themselves. */
function decodePercentEscapes(written: string): readonly (readonly [string, number])[] {
  const bytes = Array.from({ length: written.length / 3 }, (_, i) =>
    Number.parseInt(written.slice(3 * i + 1, 3 * i + 3), 16),
  );
  const all: (readonly [string, number])[] = [];
  for (let i = 0; i < bytes.length; ) {
    const lead = bytes[i] ?? 0;
    const size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
    const sequence = bytes.slice(i, i + size);
    const proper = sequence.length === size && sequence.slice(1).every((byte) => byte >> 6 === 2) && lead < 0xf5;
    all.push(proper && size > 1 ? [Buffer.from(sequence).toString(), 3 * size] : [String.fromCharCode(lead), 3]);
    i += proper ? size : 1;
  }
  return all;
}
