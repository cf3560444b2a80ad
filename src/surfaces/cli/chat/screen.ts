/**
 * The terminal of a chat: output above, an input line below. While the agent works, the input line is hidden until the user
 * types; from then on, output appears in complete rows above it.
 */
import { clearScreenDown, createInterface, cursorTo, type Interface, type Key, moveCursor } from 'node:readline';
import type { Output } from '../output.js';
import { sanitizeOutput } from '../terminal-text.js';

/** What came of asking for a line: the line, Ctrl-C, or Ctrl-D. */
export type LineResult = { readonly line: string } | 'interrupted' | 'ended';

/** Who hears what is typed while the agent works. */
export interface InputListener {
  onLine(text: string): void;
  onInterrupt(): void;
  onEnd(): void;
}

export interface ScreenDeps {
  readonly input: NodeJS.ReadStream;
  readonly output: Output;
  /** Ends the row that is being written, so that a line of ours can follow. */
  endRow(): string;
  /** True if our own colours may be written. */
  readonly color: boolean;
  /** What stands before a line that is typed while the agent works. */
  readonly sidePrompt: string;
}

export class Screen {
  private readonly deps: ScreenDeps;
  private readonly readline: Interface;
  /** Whether the line to type on is to be seen. */
  private isPromptVisible = false;
  /** A row that waits to be whole, while there is a line below it. */
  private pendingRow = '';
  private resolveRead: ((reading: LineResult) => void) | undefined;
  private listener: InputListener | undefined;
  /** What came while nobody listened. */
  private readonly bufferedResults: LineResult[] = [];
  /** Callers that wait until the user has finished typing. */
  private readonly typingWaiters: (() => void)[] = [];
  private isClosed = false;

  constructor(parts: ScreenDeps) {
    const { input, output } = parts;
    this.deps = parts;
    this.readline = createInterface({ input, output, terminal: true, historySize: 100, removeHistoryDuplicates: true });
    this.readline.on('line', (text) => this.onLine(text));
    this.readline.on('SIGINT', () => this.onInterrupt());
    this.readline.on('close', () => this.onClose());
    // Before readline shows the key: it needs a line of its own.
    input.prependListener('keypress', (text: string | undefined, key: Key) => this.onKeypress(text, key));
  }

  /** Writes above the line. */
  write(text: string): void {
    if (text === '') return;
    const checked = sanitizeOutput(text, this.deps.color);
    if (!this.isPromptVisible) {
      this.deps.output.write(checked);
      return;
    }
    this.pendingRow += checked;
    const end = this.pendingRow.lastIndexOf('\n') + 1;
    if (end === 0) return;
    this.insertAbove(this.pendingRow.slice(0, end));
    this.pendingRow = this.pendingRow.slice(end);
  }

  /** Writes whole lines of ours. */
  printLines(...lines: readonly string[]): void {
    this.write(`${this.deps.endRow()}${lines.map((line) => `${line}\n`).join('')}`);
  }

  /** Returns the next line that the user enters without being asked; it may have been entered already. */
  async nextLine(prompt: string): Promise<LineResult> {
    return this.bufferedResults.shift() ?? this.readLine(prompt);
  }

  /** Asks for a line. A line that the user is typing already is finished first, because it was meant for something else. */
  async readLine(prompt: string): Promise<LineResult> {
    while (this.isPromptVisible && this.readline.line !== '')
      await new Promise<void>((resolve) => this.typingWaiters.push(resolve));
    if (this.isClosed) return 'ended';
    this.showPrompt(prompt);
    return new Promise((resolve) => {
      this.resolveRead = resolve;
    });
  }

  /** From now on, until told otherwise, what is typed is for this. */
  setListener(working: InputListener | undefined): void {
    this.listener = working;
    if (working !== undefined) for (const reading of this.bufferedResults.splice(0)) this.deliverTo(working, reading);
  }

  private deliverTo(working: InputListener, reading: LineResult): void {
    if (reading === 'interrupted') working.onInterrupt();
    else if (reading === 'ended') working.onEnd();
    else if (reading.line.trim() !== '') working.onLine(reading.line);
  }

  /** Delivers a line to the pending question, or else to the conversation. */
  private deliver(reading: LineResult): void {
    const { resolveRead: asked, listener } = this;
    this.resolveRead = undefined;
    if (asked !== undefined) asked(reading);
    else if (listener !== undefined) this.deliverTo(listener, reading);
    else this.bufferedResults.push(reading);
    for (const resolve of this.typingWaiters.splice(0)) resolve();
  }

  close(): void {
    this.isClosed = true;
    this.hidePrompt();
    this.readline.close();
  }

  private showPrompt(prompt: string): void {
    if (this.isPromptVisible) this.hidePrompt();
    this.deps.output.write(this.deps.endRow());
    this.readline.setPrompt(prompt);
    this.isPromptVisible = true;
    this.readline.prompt(true);
  }

  private hidePrompt(): void {
    if (!this.isPromptVisible) return;
    this.erasePrompt();
    this.isPromptVisible = false;
    this.flushPendingRow();
  }

  /** Puts text above the line that is being typed on. */
  private insertAbove(text: string): void {
    const { output } = this.deps;
    const rows = this.erasePrompt();
    // Readline goes up as many rows as its line had before it draws it again.
    output.write(`${text}${'\n'.repeat(rows)}`);
    this.readline.prompt(true);
  }

  private erasePrompt(): number {
    const { output } = this.deps;
    const { rows } = this.readline.getCursorPos();
    moveCursor(output, 0, -rows);
    cursorTo(output, 0);
    clearScreenDown(output);
    return rows;
  }

  private flushPendingRow(): void {
    const { pendingRow } = this;
    this.pendingRow = '';
    if (pendingRow !== '') this.deps.output.write(pendingRow);
  }

  private onKeypress(text: string | undefined, key: Key): void {
    const types = text !== undefined && text >= ' ' && key.ctrl !== true && key.meta !== true;
    if (!this.isPromptVisible && !this.isClosed && types) this.showPrompt(this.deps.sidePrompt);
  }

  private onLine(line: string): void {
    this.isPromptVisible = false;
    this.flushPendingRow();
    this.deliver({ line });
  }

  private onInterrupt(): void {
    const asked = this.resolveRead !== undefined;
    const typing = asked && this.readline.line !== '';
    this.clearTyped();
    if (typing) return;
    if (asked) {
      this.isPromptVisible = false;
      this.deps.output.write('\n');
    }
    this.deliver('interrupted');
  }

  /** Takes back what was typed and not sent. */
  private clearTyped(): void {
    if (!this.isPromptVisible) return;
    this.readline.write(null, { ctrl: true, name: 'e' });
    this.readline.write(null, { ctrl: true, name: 'u' });
    if (this.resolveRead === undefined) this.hidePrompt();
  }

  private onClose(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.deps.output.write('\n');
    this.isPromptVisible = false;
    this.deliver('ended');
  }
}
