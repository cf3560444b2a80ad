/**
 * Redacts secrets in text and values. A server or a program that echoes a secret often transforms it: it drops `Bearer`
 * from an Authorization header, escapes the text for JSON, HTML or a URL, or encodes it as Base64 or hexadecimal. The
 * redactor finds all of these forms, mixed and nested to a bounded depth, and also secrets that are cut off at the
 * start or end of a text.
 */

import { removeWhitespace } from './binary-text.js';
import { unfinishedEscapeIndex } from './decode-escapes.js';
import { type Decoding, decodingsOf, edgeDecodingsOf, type TextRange, unescapedForms } from './decodings.js';
import { MIN_SECRET_CHARS, secretParts } from './secret-parts.js';

/** The text that replaces each secret. */
export const WITHHELD = '[withheld]';

/** The minimum length of a cut-off secret that is redacted. */
const MIN_CUT_CHARS = 4;
/** A stream emits a possible start of a secret if it is at most this long: most of them are ends of ordinary words. */
const MAX_EMITTED_PREFIX_CHARS = 2;
/**
 * How many emitted characters of a stream are searched again with the next piece. Base64 is recognized only from a
 * minimum length on, so its first characters may have been emitted already.
 */
const LOOKBACK_CHARS = 16;
/** A number that shares this many leading digits with a secret counts as the secret, rounded. */
const MIN_SECRET_DIGITS = 12;
/** Bounds the search for a secret at a cut edge: an encoded secret is at most this many times as long, plus 1,024. */
const MAX_ENCODED_RATIO = 24;

/** The edge at which a text was cut before it was redacted. */
export type CutEdge = 'start' | 'end';

/** Redacts a fixed set of secrets. */
export interface Redactor {
  /**
   * Returns the text without secrets. If the text was cut, a partial secret of at least MIN_CUT_CHARS at the cut edge
   * is redacted too.
   */
  redactText(text: string, cut?: CutEdge): string;
  /**
   * Returns a copy of a value without secrets in strings, numbers and member names; the value itself if it has none.
   * Searches arrays and plain objects; other objects are returned as they are.
   */
  redactValue<T>(value: T): T;
  /**
   * Opens a stream that redacts text in pieces. A possible start of a secret is held back until the text after it shows
   * whether it is one.
   */
  openStream(): RedactingStream;
}

/** Redacts a text that arrives in pieces. */
export interface RedactingStream {
  /** Adds a piece and returns the text that is safe to emit, redacted; possibly empty. */
  push(piece: string): string;
  /** Ends the stream and returns the rest of its text, redacted like a text that was cut at its end. */
  end(): string;
}

/** Redacts nothing. */
export const NO_REDACTION: Redactor = {
  redactText: (text) => text,
  redactValue: (value) => value,
  openStream: () => ({ push: (piece) => piece, end: () => '' }),
};

/**
 * Creates a redactor of these secrets, of their parts, and of the password in a `Basic` header or a URL. Secrets that
 * are too short to be distinguished from ordinary text are ignored (MIN_SECRET_CHARS).
 */
export function redactorOf(secrets: readonly string[]): Redactor {
  const parts = [...new Set(secrets.flatMap(secretParts))];
  return parts.length === 0 ? NO_REDACTION : new FormRedactor(parts);
}

class FormRedactor implements Redactor {
  /** The strings that are searched for: the secrets in all their forms. */
  private readonly forms: readonly string[];
  /** The Base64 and hexadecimal forms of the secrets, which may be broken into lines. */
  private readonly encodedForms: readonly string[];
  /** True if a number can be a secret. */
  private readonly hasNumericSecrets: boolean;
  /** The leading digits of numeric secrets, by which a rounded one is recognized. */
  private readonly numberPrefixes: ReadonlySet<string>;
  /** The assumed maximum length of an encoded secret. It bounds the search at a cut edge. */
  private readonly maxEncodedChars: number;

  constructor(parts: readonly string[]) {
    this.encodedForms = distinctForms(parts.flatMap(encodedFormsOf));
    this.forms = distinctForms([...parts.flatMap(plainForms), ...this.encodedForms]);
    const numbers = this.forms.filter((form) => /^[\d.e+-]+$/i.test(form));
    this.hasNumericSecrets = numbers.length > 0;
    this.numberPrefixes = new Set(numbers.flatMap(firstDigits));
    this.maxEncodedChars = 1024 + MAX_ENCODED_RATIO * Math.max(...this.forms.map(({ length }) => length));
  }

  redactText(text: string, cut?: CutEdge): string {
    const ranges = [...this.findSecrets(text)];
    if (cut === 'end') ranges.push({ from: this.indexOfCutSecret(text), to: text.length });
    if (cut === 'start') ranges.push(...this.findSecretEnds(text));
    return replaceRanges(text, ranges.filter(isLongEnough));
  }

  redactValue<T>(value: T): T {
    return this.redactAny(value) as T;
  }

  openStream(): RedactingStream {
    // The last characters of the emitted text, and the text that is held back.
    let [emittedTail, pending] = ['', ''];
    return {
      push: (piece) => {
        const text = emittedTail + pending + piece;
        const ranges = this.findSecrets(text);
        const cutIndex = this.indexOfCutSecret(text);
        const safeEnd = Math.min(
          text.length - cutIndex > MAX_EMITTED_PREFIX_CHARS ? cutIndex : text.length,
          unfinishedEscapeIndex(text),
        );
        const to = Math.max(
          safeEnd,
          emittedTail.length,
          ...ranges.filter(({ from }) => from < safeEnd).map((range) => range.to),
        );
        const clean = replaceRanges(text.slice(0, to), ranges, emittedTail.length);
        [emittedTail, pending] = [text.slice(Math.max(0, to - LOOKBACK_CHARS), to), text.slice(to)];
        return clean;
      },
      end: () => {
        const text = emittedTail + pending;
        const ranges = [...this.findSecrets(text), { from: this.indexOfCutSecret(text), to: text.length }];
        const rest = replaceRanges(text, ranges.filter(isLongEnough), emittedTail.length);
        [emittedTail, pending] = ['', ''];
        return rest;
      },
    };
  }

  private findSecrets(text: string): readonly TextRange[] {
    return decodingsOf(text).flatMap((decoding) => [
      ...this.forms.flatMap((form) => occurrencesOf(decoding.text, form)).map(decoding.sourceOf),
      // guard: wrapped-base64-redacted
      ...this.findWrappedSecrets(decoding),
    ]);
  }

  /** Finds encoded secrets with white space in them, such as line breaks. */
  private findWrappedSecrets({ text, sourceOf }: Decoding): readonly TextRange[] {
    const compact = removeWhitespace(text);
    if (compact.text.length === text.length) return [];
    const ranges = this.encodedForms.flatMap((form) => occurrencesOf(compact.text, form));
    return ranges.map(({ from, to }) =>
      sourceOf({ from: compact.sourceIndexOf(from), to: compact.sourceIndexOf(to - 1) + 1 }),
    );
  }

  /** Returns the start of a partial secret at the end of a text, or the length of the text if there is none. */
  private indexOfCutSecret(text: string): number {
    const skipped = Math.max(0, text.length - this.maxEncodedChars);
    const starts = edgeDecodingsOf(text.slice(skipped), 'end').flatMap(({ text: decoded, sourceOf }) => {
      const startOf = (from: number): number => skipped + sourceOf({ from, to: decoded.length }).from;
      const length = Math.max(...this.forms.map((form) => overlapLength(decoded, form)));
      const compact = removeWhitespace(decoded);
      const wrappedLength = Math.max(...this.encodedForms.map((form) => overlapLength(compact.text, form)));
      return [
        ...(length === 0 ? [] : [startOf(decoded.length - length)]),
        ...(wrappedLength <= MAX_EMITTED_PREFIX_CHARS
          ? []
          : [startOf(compact.sourceIndexOf(compact.text.length - wrappedLength))]),
      ];
    });
    return Math.min(text.length, ...starts);
  }

  /** Finds the ends of secrets at the start of a text that was cut there. */
  private findSecretEnds(text: string): readonly TextRange[] {
    return edgeDecodingsOf(text.slice(0, this.maxEncodedChars), 'start').flatMap(({ text: decoded, sourceOf }) => {
      const length = Math.max(...this.forms.map((form) => overlapLength(form, decoded)));
      const compact = removeWhitespace(decoded);
      const wrappedLength = Math.max(...this.encodedForms.map((form) => overlapLength(form, compact.text)));
      const ends = [length, wrappedLength === 0 ? 0 : compact.sourceIndexOf(wrappedLength - 1) + 1];
      return ends.filter((to) => to > 0).map((to) => ({ from: 0, to: sourceOf({ from: 0, to }).to }));
    });
  }

  /** True for a number that is a secret, possibly rounded. */
  private isSecretNumber(value: number): boolean {
    if (!this.hasNumericSecrets) return false;
    return (
      this.redactText(String(value)) !== String(value) ||
      firstDigits(String(value)).some((prefix) => this.numberPrefixes.has(prefix))
    );
  }

  private redactAny(value: unknown): unknown {
    if (typeof value === 'string') return this.redactText(value);
    if (typeof value === 'number') return this.isSecretNumber(value) ? WITHHELD : value;
    if (Array.isArray(value)) {
      const clean = value.map((item) => this.redactAny(item));
      return clean.every((item, index) => item === value[index]) ? value : clean;
    }
    if (!isPlainObject(value)) return value;
    const entries = Object.entries(value);
    const clean = entries.map(([name, item]) => [this.redactText(name), this.redactAny(item)] as const);
    const isUnchanged = clean.every(
      ([name, item], index) => name === entries[index]?.[0] && item === entries[index]?.[1],
    );
    return isUnchanged ? value : Object.fromEntries(clean);
  }
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function distinctForms(forms: readonly string[]): readonly string[] {
  return [...new Set(forms)].filter(({ length }) => length >= MIN_SECRET_CHARS);
}

/** Returns the first MIN_SECRET_DIGITS significant digits of a number, or nothing if it has fewer. */
function firstDigits(number: string): readonly string[] {
  const digits = number.replace(/e.*$/i, '').replace(/\D/g, '').replace(/^0+/, '');
  return digits.length < MIN_SECRET_DIGITS ? [] : [digits.slice(0, MIN_SECRET_DIGITS)];
}

function isLongEnough({ from, to }: TextRange): boolean {
  return to - from >= MIN_CUT_CHARS;
}

function occurrencesOf(text: string, form: string): readonly TextRange[] {
  const ranges: TextRange[] = [];
  for (let at = text.indexOf(form); at !== -1; at = text.indexOf(form, at + form.length)) {
    ranges.push({ from: at, to: at + form.length });
  }
  return ranges;
}

/** Returns the length of the longest proper prefix of `other` that `text` ends with; 0 if there is none. */
function overlapLength(text: string, other: string): number {
  for (let length = Math.min(text.length, other.length - 1); length > 0; length--) {
    if (text.endsWith(other.slice(0, length))) return length;
  }
  return 0;
}

/** Returns the text from `start` on, with these ranges replaced by WITHHELD. Overlapping ranges are merged. */
function replaceRanges(text: string, ranges: readonly TextRange[], start = 0): string {
  let clean = '';
  let done = start;
  for (const { from, to } of [...ranges].sort((a, b) => a.from - b.from)) {
    if (to <= done || from >= text.length) continue;
    if (from >= done || done === start) clean += `${text.slice(done, Math.max(from, done))}${WITHHELD}`;
    done = to;
  }
  return clean + text.slice(done);
}

/** Returns the forms in which a part of a secret can appear, without Base64 and hexadecimal. */
function plainForms(part: string): readonly string[] {
  const texts = [...unescapedForms(part), part.replaceAll(' ', '+')];
  // Text may be decoded with the wrong character set twice, by two servers in a row.
  return texts.flatMap((text) => [text, ...misreadForms(text), ...misreadForms(text).flatMap(misreadForms)]);
}

/**
 * Returns the results of decoding a text with the wrong character set: UTF-8 as Latin-1, with and without control
 * characters, because error messages often omit these, and Latin-1 as UTF-8. None for ASCII text.
 */
function misreadForms(text: string): readonly string[] {
  if (!/[^\0-\x7f]/.test(text)) return [];
  const utf8 = Buffer.from(text).toString('latin1');
  const latin1 = /[^\0-\xff]/.test(text) ? [] : [Buffer.from(text, 'latin1').toString()];
  return [utf8, utf8.replace(/\p{Cc}/gu, ''), ...latin1];
}

function encodedFormsOf(part: string): readonly string[] {
  const hex = Buffer.from(part).toString('hex');
  return [hex, hex.toUpperCase(), ...base64Forms(part)];
}

/**
 * Returns a text in Base64: alone, and inside a longer text. Inside, only the characters that do not depend on the
 * adjacent bytes are known, for each of the three alignments.
 */
function base64Forms(text: string): readonly string[] {
  const bytes = Buffer.from(text);
  const cores = [0, 1, 2].map((offset) => {
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
    return encoded.slice(Math.ceil((8 * offset) / 6), Math.floor((8 * (offset + bytes.length)) / 6));
  });
  const alone = bytes.toString('base64');
  const forms = [alone, alone.replace(/=+$/, ''), ...cores];
  return forms.flatMap((form) => [form, form.replaceAll('+', '-').replaceAll('/', '_')]);
}
