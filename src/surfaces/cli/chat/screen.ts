/**
 * The terminal of a chat: what is written above, and a line to type on below. While the agent works there is no line
 * until somebody types; from then on, what the agent says comes in whole rows above it.
 */
import { clearScreenDown, createInterface, cursorTo, type Interface, type Key, moveCursor } from 'node:readline';
import type { Output } from '../output.js';
import { printable } from '../paint.js';

/** What came of asking for a line: the line, Ctrl-C, or Ctrl-D. */
export type Reading = { readonly line: string } | 'interrupted' | 'ended';

/** Who hears what is typed while the agent works. */
export interface Working {
  line(text: string): void;
  interrupted(): void;
  ended(): void;
}

export interface ScreenParts {
  readonly input: NodeJS.ReadStream;
  readonly output: Output;
  /** Ends the row that is being written, so that a line of ours can follow. */
  rest(): string;
  /** True if our own colours may be written. */
  readonly color: boolean;
  /** What stands before a line that is typed while the agent works. */
  readonly aside: string;
}

export class Screen {
  private readonly parts: ScreenParts;
  private readonly line: Interface;
  /** Whether the line to type on is to be seen. */
  private visible = false;
  /** A row that waits to be whole, while there is a line below it. */
  private held = '';
  private reading: ((reading: Reading) => void) | undefined;
  private working: Working | undefined;
  /** What came while nobody listened. */
  private readonly early: Reading[] = [];
  /** Who waits for somebody to finish typing. */
  private readonly patient: (() => void)[] = [];
  private closed = false;

  constructor(parts: ScreenParts) {
    const { input, output } = parts;
    this.parts = parts;
    this.line = createInterface({ input, output, terminal: true, historySize: 100, removeHistoryDuplicates: true });
    this.line.on('line', (text) => this.typed(text));
    this.line.on('SIGINT', () => this.interrupted());
    this.line.on('close', () => this.ended());
    // Before readline shows the key: it needs a line of its own.
    input.prependListener('keypress', (text: string | undefined, key: Key) => this.pressed(text, key));
  }

  /** Writes above the line. */
  write(text: string): void {
    if (text === '') return;
    const checked = printable(text, this.parts.color);
    if (!this.visible) {
      this.parts.output.write(checked);
      return;
    }
    this.held += checked;
    const end = this.held.lastIndexOf('\n') + 1;
    if (end === 0) return;
    this.insert(this.held.slice(0, end));
    this.held = this.held.slice(end);
  }

  /** Writes whole lines of ours. */
  say(...lines: readonly string[]): void {
    this.write(`${this.parts.rest()}${lines.map((line) => `${line}\n`).join('')}`);
  }

  /** The next line that somebody types by themselves, be it already there. */
  async next(prompt: string): Promise<Reading> {
    return this.early.shift() ?? this.read(prompt);
  }

  /** Asks for a line. What somebody is in the middle of typing was meant for something else, and is finished first. */
  async read(prompt: string): Promise<Reading> {
    while (this.visible && this.line.line !== '') await new Promise<void>((resolve) => this.patient.push(resolve));
    if (this.closed) return 'ended';
    this.show(prompt);
    return new Promise((resolve) => {
      this.reading = resolve;
    });
  }

  /** From now on, until told otherwise, what is typed is for this. */
  work(working: Working | undefined): void {
    this.working = working;
    if (working !== undefined) for (const reading of this.early.splice(0)) this.hand(working, reading);
  }

  private hand(working: Working, reading: Reading): void {
    if (reading === 'interrupted') working.interrupted();
    else if (reading === 'ended') working.ended();
    else if (reading.line.trim() !== '') working.line(reading.line);
  }

  /** Gives what came to whoever asked for it, or else to the work. */
  private give(reading: Reading): void {
    const { reading: asked, working } = this;
    this.reading = undefined;
    if (asked !== undefined) asked(reading);
    else if (working !== undefined) this.hand(working, reading);
    else this.early.push(reading);
    for (const resolve of this.patient.splice(0)) resolve();
  }

  close(): void {
    this.closed = true;
    this.hide();
    this.line.close();
  }

  private show(prompt: string): void {
    if (this.visible) this.hide();
    this.parts.output.write(this.parts.rest());
    this.line.setPrompt(prompt);
    this.visible = true;
    this.line.prompt(true);
  }

  private hide(): void {
    if (!this.visible) return;
    this.wipe();
    this.visible = false;
    this.release();
  }

  /** Puts text above the line that is being typed on. */
  private insert(text: string): void {
    const { output } = this.parts;
    const rows = this.wipe();
    // Readline goes up as many rows as its line had before it draws it again.
    output.write(`${text}${'\n'.repeat(rows)}`);
    this.line.prompt(true);
  }

  private wipe(): number {
    const { output } = this.parts;
    const { rows } = this.line.getCursorPos();
    moveCursor(output, 0, -rows);
    cursorTo(output, 0);
    clearScreenDown(output);
    return rows;
  }

  private release(): void {
    const { held } = this;
    this.held = '';
    if (held !== '') this.parts.output.write(held);
  }

  private pressed(text: string | undefined, key: Key): void {
    const types = text !== undefined && text >= ' ' && key.ctrl !== true && key.meta !== true;
    if (!this.visible && !this.closed && types) this.show(this.parts.aside);
  }

  private typed(line: string): void {
    this.visible = false;
    this.release();
    this.give({ line });
  }

  private interrupted(): void {
    const asked = this.reading !== undefined;
    const typing = asked && this.line.line !== '';
    this.forget();
    if (typing) return;
    if (asked) {
      this.visible = false;
      this.parts.output.write('\n');
    }
    this.give('interrupted');
  }

  /** Takes back what was typed and not sent. */
  private forget(): void {
    if (!this.visible) return;
    this.line.write(null, { ctrl: true, name: 'e' });
    this.line.write(null, { ctrl: true, name: 'u' });
    if (this.reading === undefined) this.hide();
  }

  private ended(): void {
    if (this.closed) return;
    this.closed = true;
    this.parts.output.write('\n');
    this.visible = false;
    this.give('ended');
  }
}
