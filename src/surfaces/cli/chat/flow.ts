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
  /** Blanks that are written with the word behind them, and a word that may still grow. */
  private gap = '';
  private word = '';
  /** What is to be written: all of it, but for the end that has no look yet. */
  private out = '';
  private plain = '';

  constructor(look: FlowLook) {
    this.look = look;
  }

  /** What to write for a piece of safe text; the last word comes with what follows it. */
  feed(text: string): string {
    for (const [token] of text.matchAll(/\n| +|[^ \n]+/g)) {
      if (token === '\n') this.line();
      else if (token.startsWith(' ')) {
        this.place();
        this.gap += token;
      } else this.grow(token);
    }
    return this.taken();
  }

  /** Writes what is held back and ends the row, if there is one. */
  rest(): string {
    this.place();
    if (this.used !== undefined) this.end();
    return this.taken();
  }

  private line(): void {
    this.place();
    this.begin();
    this.end();
  }

  /** A word without end is broken as it comes, a few characters at a time: none is looked at more than a few times. */
  private grow(token: string): void {
    for (const [few] of token.matchAll(/.{1,64}/gsu)) {
      this.word += few;
      for (let room = this.look.room(); widthOf(this.word) > room; ) this.breakAt(room);
    }
  }

  private breakAt(room: number): void {
    const row = take(this.word, room);
    const rest = this.word.slice(row.length);
    this.word = row;
    this.place();
    this.end();
    this.word = rest;
  }

  private place(): void {
    const { word, gap } = this;
    if (word === '') return;
    this.word = '';
    this.gap = '';
    const width = widthOf(word);
    const fits = (this.used ?? 0) + gap.length + width <= this.look.room();
    if (!fits && this.used !== undefined) this.end();
    this.begin();
    this.plain += fits ? gap + word : word;
    this.used = (this.used ?? 0) + width + (fits ? gap.length : 0);
  }

  private begin(): void {
    if (this.used !== undefined) return;
    this.used = 0;
    this.out += this.look.bar;
  }

  /** Blanks at the end of a row are left out: nobody sees them. */
  private end(): void {
    this.dress();
    this.out += '\n';
    this.used = undefined;
    this.gap = '';
  }

  private dress(): void {
    this.out += this.look.style(this.plain);
    this.plain = '';
  }

  private taken(): string {
    this.dress();
    const { out } = this;
    this.out = '';
    return out;
  }
}
