/**
 * Wraps streamed text into rows with a quote bar. Rows are broken between words and end before the edge of the
 * terminal: a row that the terminal wraps itself would have no bar, and could imitate text of Rondo.
 */
import { takeColumns, widthOf } from '../terminal-text.js';

/** Options of `TextWrapper`. */
interface TextWrapperOptions {
  /** The beginning of every row, with colour codes. */
  readonly bar: string;
  /** Returns the number of columns after the bar. */
  maxColumns(): number;
  /** Adds colour codes to text. */
  style(text: string): string;
}

/** Wraps text as it arrives. */
export class TextWrapper {
  private readonly options: TextWrapperOptions;
  /** Used columns of the open row; undefined between rows. */
  private usedColumns: number | undefined;
  /** Spaces that are written together with the next word. */
  private pendingBlanks = '';
  /** A word that may continue in the next piece of text. */
  private pendingWord = '';
  /** Output that is not returned yet. */
  private output = '';
  /** The end of the output, which has no colour codes yet. */
  private unstyled = '';

  constructor(options: TextWrapperOptions) {
    this.options = options;
  }

  /** Returns the output for a piece of sanitised text. The last word is returned with the text that follows it. */
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

  /** Returns the pending output and ends the open row. */
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

  /** Extends the pending word and breaks it if it is too long. Short steps keep the cost of a long word linear. */
  private extendWord(token: string): void {
    for (const [part] of token.matchAll(/.{1,64}/gsu)) {
      this.pendingWord += part;
      for (let columns = this.options.maxColumns(); widthOf(this.pendingWord) > columns; ) this.breakWordAt(columns);
    }
  }

  private breakWordAt(columns: number): void {
    const row = takeColumns(this.pendingWord, columns);
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

  /** Ends the row and drops trailing spaces. */
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
