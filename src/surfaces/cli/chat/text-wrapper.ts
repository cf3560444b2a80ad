/**
 * Text that comes in pieces, in rows behind a bar. Rows are broken between words and end before the edge: what a terminal
 * broke by itself would begin where only our own words may.
 */
import { takeColumns, widthOf } from '../terminal-text.js';

export interface TextWrapperOptions {
  /** What every row begins with, as it is drawn. */
  readonly bar: string;
  /** How many columns a row has behind the bar. */
  maxColumns(): number;
  style(text: string): string;
}

export class TextWrapper {
  private readonly options: TextWrapperOptions;
  /** Columns of the row that is open; undefined between rows. */
  private usedColumns: number | undefined;
  /** Blanks that are written with the word behind them, and a word that may still grow. */
  private pendingBlanks = '';
  private pendingWord = '';
  /** What is to be written: all of it, but for the end that has no look yet. */
  private output = '';
  private unstyled = '';

  constructor(look: TextWrapperOptions) {
    this.options = look;
  }

  /** What to write for a piece of safe text; the last word comes with what follows it. */
  feed(text: string): string {
    for (const [token] of text.matchAll(/\n| +|[^ \n]+/g)) {
      if (token === '\n') this.addLineEnd();
      else if (token.startsWith(' ')) {
        this.placeWord();
        this.pendingBlanks += token;
      } else this.extendWord(token);
    }
    return this.takeOutput();
  }

  /** Writes what is held back and ends the row, if there is one. */
  endRow(): string {
    this.placeWord();
    if (this.usedColumns !== undefined) this.finishRow();
    return this.takeOutput();
  }

  private addLineEnd(): void {
    this.placeWord();
    this.beginRow();
    this.finishRow();
  }

  /** A word without end is broken as it comes, a few characters at a time: none is looked at more than a few times. */
  private extendWord(token: string): void {
    for (const [few] of token.matchAll(/.{1,64}/gsu)) {
      this.pendingWord += few;
      for (let room = this.options.maxColumns(); widthOf(this.pendingWord) > room; ) this.breakWordAt(room);
    }
  }

  private breakWordAt(room: number): void {
    const row = takeColumns(this.pendingWord, room);
    const rest = this.pendingWord.slice(row.length);
    this.pendingWord = row;
    this.placeWord();
    this.finishRow();
    this.pendingWord = rest;
  }

  private placeWord(): void {
    const { pendingWord, pendingBlanks } = this;
    if (pendingWord === '') return;
    this.pendingWord = '';
    this.pendingBlanks = '';
    const width = widthOf(pendingWord);
    const fits = (this.usedColumns ?? 0) + pendingBlanks.length + width <= this.options.maxColumns();
    if (!fits && this.usedColumns !== undefined) this.finishRow();
    this.beginRow();
    this.unstyled += fits ? pendingBlanks + pendingWord : pendingWord;
    this.usedColumns = (this.usedColumns ?? 0) + width + (fits ? pendingBlanks.length : 0);
  }

  private beginRow(): void {
    if (this.usedColumns !== undefined) return;
    this.usedColumns = 0;
    this.output += this.options.bar;
  }

  /** Blanks at the end of a row are left out: nobody sees them. */
  private finishRow(): void {
    this.flushUnstyled();
    this.output += '\n';
    this.usedColumns = undefined;
    this.pendingBlanks = '';
  }

  private flushUnstyled(): void {
    this.output += this.options.style(this.unstyled);
    this.unstyled = '';
  }

  private takeOutput(): string {
    this.flushUnstyled();
    const { output } = this;
    this.output = '';
    return output;
  }
}
