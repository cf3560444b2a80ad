/**
 * Takes secrets out of text and values. A server or a program that repeats a secret seldom repeats it as it was sent: it
 * drops the scheme of a header, escapes the text for JSON or HTML, encodes it for a URL, or encodes it as Base64 or
 * hexadecimal. All of these are found, also mixed and repeated, and also where a text was cut in the middle of one.
 */

import { removeWhitespace } from './binary-text.js';
import { unfinishedEscapeIndex } from './decode-escapes.js';
import { type Decoding, decodingsOf, edgeDecodingsOf, type TextRange, unescapedForms } from './decodings.js';
import { MIN_SECRET_CHARS, secretParts } from './secret-parts.js';

/** What stands in place of a secret. */
export const WITHHELD = '[withheld]';

/** The rest of a secret that was cut is taken out from this length on. */
const MIN_CUT_CHARS = 4;
/** So few characters of a stream are not held back, though a secret begins like that: many a word ends like that. */
const MAX_UNHELD_CHARS = 2;
/** So many characters of a stream are looked at again with what follows them: a run of Base64 is known from some length on. */
const LOOKBACK_CHARS = 16;
/** A number that begins with so many digits of a secret is the secret, rounded. */
const MIN_SECRET_DIGITS = 12;
/** The beginning of a secret is searched in the last characters of a text, so many times as many as the secret has. */
const MAX_ENCODED_RATIO = 24;

/** Where a text was cut before it was redacted. */
export type CutEdge = 'start' | 'end';

export interface Redactor {
  /** The text without secrets. A secret that the text's cut end or start is in the middle of is taken out too. */
  redactText(text: string, cut?: CutEdge): string;
  /** A copy of plain objects, arrays and texts without secrets in values and names; the same value if there are none. */
  redactValue<T>(value: T): T;
  /** Redacts a text that comes in pieces. What may be the beginning of a secret is held back until the next piece. */
  openStream(): RedactingStream;
}

export interface RedactingStream {
  push(piece: string): string;
  /** What was held back. */
  end(): string;
}

/** Takes nothing out. */
export const NO_REDACTION: Redactor = {
  redactText: (text) => text,
  redactValue: (value) => value,
  openStream: () => ({ push: (piece) => piece, end: () => '' }),
};

/** A redactor of these secrets, of the parts of each, and of what each encodes; texts of less than six characters are no secrets. */
export function redactorOf(secrets: readonly string[]): Redactor {
  const parts = [...new Set(secrets.flatMap(secretParts))];
  return parts.length === 0 ? NO_REDACTION : new FormRedactor(parts);
}

class FormRedactor implements Redactor {
  private readonly forms: readonly string[];
  /** Those of them that may be wrapped in lines. */
  private readonly encodedForms: readonly string[];
  /** Whether a number could be a secret, and how it would begin if it was rounded. */
  private readonly hasNumericSecrets: boolean;
  private readonly numberPrefixes: ReadonlySet<string>;
  /** How many characters may be an encoded secret. */
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
    const found = [...this.findSecrets(text)];
    if (cut === 'end') found.push({ from: this.indexOfCutSecret(text), to: text.length });
    if (cut === 'start') found.push(...this.findSecretEnds(text));
    return replaceRanges(text, found.filter(isLongEnough));
  }

  redactValue<T>(value: T): T {
    return this.redactAny(value) as T;
  }

  openStream(): RedactingStream {
    // What was told already, and what is held back.
    let [told, held] = ['', ''];
    return {
      push: (piece) => {
        const text = told + held + piece;
        const found = this.findSecrets(text);
        const begun = this.indexOfCutSecret(text);
        const at = Math.min(text.length - begun > MAX_UNHELD_CHARS ? begun : text.length, unfinishedEscapeIndex(text));
        const to = Math.max(at, told.length, ...found.filter(({ from }) => from < at).map((range) => range.to));
        const clean = replaceRanges(text.slice(0, to), found, told.length);
        [told, held] = [text.slice(Math.max(0, to - LOOKBACK_CHARS), to), text.slice(to)];
        return clean;
      },
      end: () => {
        const text = told + held;
        const found = [...this.findSecrets(text), { from: this.indexOfCutSecret(text), to: text.length }];
        const rest = replaceRanges(text, found.filter(isLongEnough), told.length);
        [told, held] = ['', ''];
        return rest;
      },
    };
  }

  private findSecrets(text: string): readonly TextRange[] {
    return decodingsOf(text).flatMap((round) => [
      ...this.forms.flatMap((form) => occurrencesOf(round.text, form)).map(round.sourceOf),
      // guard: wrapped-base64-redacted
      ...this.findWrappedSecrets(round),
    ]);
  }

  /** What is encoded and wrapped in lines, or has white space in it otherwise. */
  private findWrappedSecrets({ text, sourceOf }: Decoding): readonly TextRange[] {
    const squeezed = removeWhitespace(text);
    if (squeezed.text.length === text.length) return [];
    const found = this.encodedForms.flatMap((form) => occurrencesOf(squeezed.text, form));
    return found.map(({ from, to }) =>
      sourceOf({ from: squeezed.sourceIndexOf(from), to: squeezed.sourceIndexOf(to - 1) + 1 }),
    );
  }

  /** Where the beginning of a secret is that a text ends with; the length of the text if there is none. */
  private indexOfCutSecret(text: string): number {
    const skipped = Math.max(0, text.length - this.maxEncodedChars);
    const starts = edgeDecodingsOf(text.slice(skipped), 'end').flatMap(({ text: known, sourceOf }) => {
      const startOf = (from: number): number => skipped + sourceOf({ from, to: known.length }).from;
      const length = Math.max(...this.forms.map((form) => overlapLength(known, form)));
      const squeezed = removeWhitespace(known);
      const inLines = Math.max(...this.encodedForms.map((form) => overlapLength(squeezed.text, form)));
      return [
        ...(length === 0 ? [] : [startOf(known.length - length)]),
        ...(inLines <= MAX_UNHELD_CHARS ? [] : [startOf(squeezed.sourceIndexOf(squeezed.text.length - inLines))]),
      ];
    });
    return Math.min(text.length, ...starts);
  }

  /** The ends of secrets at the start of a text. */
  private findSecretEnds(text: string): readonly TextRange[] {
    return edgeDecodingsOf(text.slice(0, this.maxEncodedChars), 'start').flatMap(({ text: known, sourceOf }) => {
      const length = Math.max(...this.forms.map((form) => overlapLength(form, known)));
      const squeezed = removeWhitespace(known);
      const inLines = Math.max(...this.encodedForms.map((form) => overlapLength(form, squeezed.text)));
      const ends = [length, inLines === 0 ? 0 : squeezed.sourceIndexOf(inLines - 1) + 1];
      return ends.filter((to) => to > 0).map((to) => ({ from: 0, to: sourceOf({ from: 0, to }).to }));
    });
  }

  /** True for a number that is a secret, or one that was rounded. */
  private isSecretNumber(value: number): boolean {
    if (!this.hasNumericSecrets) return false;
    return (
      this.redactText(String(value)) !== String(value) ||
      firstDigits(String(value)).some((it) => this.numberPrefixes.has(it))
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
    const same = clean.every(([name, item], index) => name === entries[index]?.[0] && item === entries[index]?.[1]);
    return same ? value : Object.fromEntries(clean);
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

/** The first digits of a number, if there are so many that no other number is likely to have them. */
function firstDigits(number: string): readonly string[] {
  const digits = number.replace(/e.*$/i, '').replace(/\D/g, '').replace(/^0+/, '');
  return digits.length < MIN_SECRET_DIGITS ? [] : [digits.slice(0, MIN_SECRET_DIGITS)];
}

function isLongEnough({ from, to }: TextRange): boolean {
  return to - from >= MIN_CUT_CHARS;
}

function occurrencesOf(text: string, form: string): readonly TextRange[] {
  const found: TextRange[] = [];
  for (let at = text.indexOf(form); at !== -1; at = text.indexOf(form, at + form.length)) {
    found.push({ from: at, to: at + form.length });
  }
  return found;
}

/** How many characters at the end of one text are the beginning of another, but not all of it. */
function overlapLength(text: string, next: string): number {
  for (let length = Math.min(text.length, next.length - 1); length > 0; length--) {
    if (text.endsWith(next.slice(0, length))) return length;
  }
  return 0;
}

/** The text from a place on, with these stretches replaced; those that overlap are one. */
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

/** The texts by which a part of a secret is found, but for Base64 and hexadecimal. */
function plainForms(part: string): readonly string[] {
  const texts = [...unescapedForms(part), part.replaceAll(' ', '+')];
  // One server may misread what another one misread before.
  return texts.flatMap((text) => [text, ...misreadForms(text), ...misreadForms(text).flatMap(misreadForms)]);
}

/** A text whose bytes were read in the wrong encoding; messages show it without control characters. */
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
 * A text in Base64: alone, and within another text, as the part that does not depend on what stands around it, for each
 * of the three ways in which it can be aligned.
 */
function base64Forms(text: string): readonly string[] {
  const bytes = Buffer.from(text);
  const cores = [0, 1, 2].map((offset) => {
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
    return encoded.slice(Math.ceil((8 * offset) / 6), Math.floor((8 * (offset + bytes.length)) / 6));
  });
  const alone = bytes.toString('base64');
  const all = [alone, alone.replace(/=+$/, ''), ...cores];
  return all.flatMap((form) => [form, form.replaceAll('+', '-').replaceAll('/', '_')]);
}
