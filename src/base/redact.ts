/**
 * Takes secrets out of text and values. A server or a program that repeats a secret seldom repeats it as it was sent: it
 * drops the scheme of a header, escapes the text for JSON or HTML, encodes it for a URL, or encodes it as Base64 or
 * hexadecimal. All of these are found, also mixed and repeated, and also where a text was cut in the middle of one.
 */
import { type Decoded, decode, unfinishedEscape } from './decode.js';
import { MIN_SECRET_CHARS, secretParts } from './secret-parts.js';

/** What stands in place of a secret. */
export const WITHHELD = '[withheld]';

/** How many times a text is decoded: JSON in JSON in a URL. */
const MAX_ROUNDS = 4;
/** The rest of a secret that was cut is taken out from this length on. */
const MIN_CUT_CHARS = 4;
/** So few characters of a stream are not held back, though a secret begins like that: many a word ends like that. */
const SHORT_CHARS = 2;

/** Where a text was cut before it was redacted. */
export type Cut = 'start' | 'end';

export interface Redactor {
  /** The text without secrets. A secret that the text's cut end or start is in the middle of is taken out too. */
  text(text: string, cut?: Cut): string;
  /** A copy of plain objects, arrays and texts without secrets in values and names; the same value if there are none. */
  value<T>(value: T): T;
  /** Redacts a text that comes in pieces. What may be the beginning of a secret is held back until the next piece. */
  stream(): RedactedStream;
}

export interface RedactedStream {
  push(piece: string): string;
  /** What was held back. */
  end(): string;
}

/** Takes nothing out. */
export const NO_SECRETS: Redactor = {
  text: (text) => text,
  value: (value) => value,
  stream: () => ({ push: (piece) => piece, end: () => '' }),
};

/** A redactor of these secrets, of the parts of each, and of what each encodes; texts of less than six characters are no secrets. */
export function redactorOf(secrets: readonly string[]): Redactor {
  const forms = new Set(secrets.flatMap(secretParts).flatMap(formsOf));
  return forms.size === 0 ? NO_SECRETS : new SearchedForms([...forms]);
}

/** A stretch of a text. */
interface Range {
  readonly from: number;
  readonly to: number;
}

class SearchedForms implements Redactor {
  private readonly forms: readonly string[];
  /** Whether a number could be a secret. */
  private readonly numbers: boolean;

  constructor(forms: readonly string[]) {
    this.forms = forms;
    this.numbers = forms.some((form) => /^[\d.e+-]+$/i.test(form));
  }

  text(text: string, cut?: Cut): string {
    const found = [...this.found(text)];
    if (cut === 'end') found.push({ from: this.begun(text), to: text.length });
    if (cut === 'start') found.push(...roundsOf(text).map((round) => this.ended(round)));
    return without(
      text,
      found.filter(({ from, to }) => to - from >= MIN_CUT_CHARS),
    );
  }

  value<T>(value: T): T {
    return this.redacted(value) as T;
  }

  stream(): RedactedStream {
    // What was told already, and what is held back.
    let [told, held] = ['', ''];
    return {
      push: (piece) => {
        const text = told + held + piece;
        const found = this.found(text);
        const begun = this.begun(text);
        const at = Math.min(text.length - begun > SHORT_CHARS ? begun : text.length, unfinishedEscape(text));
        const to = Math.max(at, told.length, ...found.filter(({ from }) => from < at).map((range) => range.to));
        const clean = without(text.slice(0, to), found, told.length);
        [told, held] = [text.slice(Math.max(0, to - SHORT_CHARS), to), text.slice(to)];
        return clean;
      },
      end: () => {
        const rest = this.text(held, 'end');
        [told, held] = ['', ''];
        return rest;
      },
    };
  }

  private found(text: string): readonly Range[] {
    return roundsOf(text).flatMap(({ text: decoded, sourceOf }) =>
      this.forms.flatMap((form) => occurrences(decoded, form)).map(sourceOf),
    );
  }

  /** Where the beginning of a secret is that a text ends with; the length of the text if there is none. */
  private begun(text: string): number {
    // The text may end in the middle of an escape, and what it encodes in the middle of another one.
    const starts = roundsOf(text.slice(0, unfinishedEscape(text))).map((round) => {
      const to = unfinishedEscape(round.text);
      const known = round.text.slice(0, to);
      const length = Math.max(...this.forms.map((form) => overlap(known, form)));
      return length === 0 ? text.length : round.sourceOf({ from: to - length, to }).from;
    });
    return Math.min(...starts);
  }

  /** The end of a secret at the start of a text. */
  private ended({ text, sourceOf }: Round): Range {
    const length = Math.max(...this.forms.map((form) => overlap(form, text)));
    return length === 0 ? { from: 0, to: 0 } : { ...sourceOf({ from: 0, to: length }), from: 0 };
  }

  private redacted(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (typeof value === 'number') {
      return this.numbers && this.text(String(value)) !== String(value) ? WITHHELD : value;
    }
    if (Array.isArray(value)) {
      const clean = value.map((item) => this.redacted(item));
      return clean.every((item, index) => item === value[index]) ? value : clean;
    }
    if (!isPlain(value)) return value;
    const entries = Object.entries(value);
    const clean = entries.map(([name, item]) => [this.text(name), this.redacted(item)] as const);
    const same = clean.every(([name, item], index) => name === entries[index]?.[0] && item === entries[index]?.[1]);
    return same ? value : Object.fromEntries(clean);
  }
}

function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** A text as it is, or decoded some times. */
interface Round {
  readonly text: string;
  /** Where a stretch of it stood in the text as it was. */
  sourceOf(range: Range): Range;
}

function roundsOf(source: string): readonly Round[] {
  const rounds: Round[] = [{ text: source, sourceOf: (range) => range }];
  for (let i = 0; i < MAX_ROUNDS; i++) {
    const last = rounds.at(-1) as Round;
    const decoded: Decoded | undefined = decode(last.text);
    if (decoded === undefined) break;
    const sourceOf = ({ from, to }: Range): Range =>
      last.sourceOf({ from: decoded.startOf(from), to: decoded.endOf(to) });
    rounds.push({ text: decoded.text, sourceOf });
  }
  return rounds;
}

function occurrences(text: string, form: string): readonly Range[] {
  const found: Range[] = [];
  for (let at = text.indexOf(form); at !== -1; at = text.indexOf(form, at + form.length)) {
    found.push({ from: at, to: at + form.length });
  }
  return found;
}

/** How many characters at the end of one text are the beginning of another, but not all of it. */
function overlap(text: string, next: string): number {
  for (let length = Math.min(text.length, next.length - 1); length > 0; length--) {
    if (text.endsWith(next.slice(0, length))) return length;
  }
  return 0;
}

/** The text from a place on, with these stretches replaced; those that overlap are one. */
function without(text: string, ranges: readonly Range[], start = 0): string {
  let clean = '';
  let done = start;
  for (const { from, to } of [...ranges].sort((a, b) => a.from - b.from)) {
    if (to <= done || from >= text.length) continue;
    if (from >= done || done === start) clean += `${text.slice(done, Math.max(from, done))}${WITHHELD}`;
    done = to;
  }
  return clean + text.slice(done);
}

/** The texts by which a part of a secret is found. */
function formsOf(part: string): readonly string[] {
  const decoded = roundsOf(part).map(({ text }) => text);
  const hex = Buffer.from(part).toString('hex');
  const texts = [...decoded, part.replaceAll(' ', '+'), hex, hex.toUpperCase(), ...base64Forms(part)];
  return texts.filter(({ length }) => length >= MIN_SECRET_CHARS);
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
