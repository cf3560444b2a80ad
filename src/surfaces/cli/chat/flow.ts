/**
 * Text that comes in pieces, in rows behind a bar. Rows are broken between words and end before the edge: what a terminal
 * broke by itself would begin where only our own words may.
 */
import { take, widthOf } from '../paint.js';

export interface FlowLook {
  /** What every row begins with, as it is drawn. */
  readonly bar: string;
  /** How many columns a row has behind the bar. */
  room(): number;
  style(text: string): string;
}

export class Flow {
  private readonly look: FlowLook;
  /** Columns of the row that is open; undefined between rows. */
  private used: number | undefined;
  /** A word that may still grow. */
  private word = '';

  constructor(look: FlowLook) {
    this.look = look;
  }

  /** What to write for a piece of safe text; the last word comes with what follows it. */
  feed(text: string): string {
    let out = '';
    for (const [token] of text.matchAll(/\n| +|[^ \n]+/g)) {
      if (token === '\n') out += `${this.place()}${this.used === undefined ? this.look.bar.trimEnd() : ''}${this.end()}`;
      else if (token.startsWith(' ')) out += this.place() + this.blank(token);
      else out += this.grow(token);
    }
    return out;
  }

  /** Writes what is held back and ends the row, if there is one. */
  rest(): string {
    const out = this.place();
    return this.used === undefined ? out : out + this.end();
  }

  private grow(token: string): string {
    let out = '';
    this.word += token;
    for (let room = this.look.room(); widthOf(this.word) > room; ) {
      const row = take(this.word, room);
      const rest = this.word.slice(row.length);
      this.word = row;
      out += this.place() + this.end();
      this.word = rest;
    }
    return out;
  }

  private place(): string {
    const { word } = this;
    if (word === '') return '';
    this.word = '';
    const width = widthOf(word);
    const before = (this.used ?? 0) + width > this.look.room() ? this.end() : '';
    return before + this.begin() + this.add(word, width);
  }

  /** Blanks at the end of a row are left out: nobody sees them. */
  private blank(token: string): string {
    const width = token.length;
    if ((this.used ?? 0) + width >= this.look.room()) return this.used === undefined ? '' : this.end();
    return this.begin() + this.add(token, width);
  }

  private begin(): string {
    if (this.used !== undefined) return '';
    this.used = 0;
    return this.look.bar;
  }

  private add(text: string, width: number): string {
    this.used = (this.used ?? 0) + width;
    return this.look.style(text);
  }

  private end(): string {
    this.used = undefined;
    return '\n';
  }
}
