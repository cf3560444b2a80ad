/**
 * The terminal of a chat: output above, and an input line below. While the agent works, the input line is hidden until
 * the user types; from then on, output is inserted above it in complete rows.
 */
import { clearScreenDown, createInterface, cursorTo, type Interface, type Key, moveCursor } from 'node:readline';
import type { Output } from '../output.js';
import { sanitizeOutput } from '../terminal-text.js';

/** The result of reading a line: the line, Ctrl-C or Ctrl-D. */
type LineResult = { readonly line: string } | 'interrupted' | 'ended';

/** Receives the input that is typed while the agent works. */
interface InputListener {
  onLine(text: string): void;
  /** Called on Ctrl-C. */
  onInterrupt(): void;
  /** Called on Ctrl-D. */
  onEnd(): void;
}

/** Dependencies of `Screen`. */
interface ScreenDeps {
  readonly input: NodeJS.ReadStream;
  readonly output: Output;
  /** Returns the output that ends the open row. */
  endRow(): string;
  /** True if colour codes are written. */
  readonly color: boolean;
  /** The prompt of a line that is typed while the agent works. */
  readonly sidePrompt: string;
}

/** Reads lines and writes output on one terminal. */
export class Screen {
  private readonly deps: ScreenDeps;
  private readonly readline: Interface;
  /** True if the input line is visible. */
  private isPromptVisible = false;
  /** An incomplete row that is not written yet because the input line is visible. */
  private pendingRow = '';
  private resolveRead: ((result: LineResult) => void) | undefined;
  private listener: InputListener | undefined;
  /** Input that arrived without a reader or a listener. */
  private readonly bufferedResults: LineResult[] = [];
  /** Resolvers of reads that wait until the user has finished the current line. */
  private readonly typingWaiters: (() => void)[] = [];
  private isClosed = false;

  constructor(deps: ScreenDeps) {
    const { input, output } = deps;
    this.deps = deps;
    this.readline = createInterface({ input, output, terminal: true, historySize: 100, removeHistoryDuplicates: true });
    this.readline.on('line', (text) => this.onLine(text));
    this.readline.on('SIGINT', () => this.onInterrupt());
    this.readline.on('close', () => this.onClose());
    // Must run before readline echoes the key, which needs the input line.
    input.prependListener('keypress', (text: string | undefined, key: Key) => this.onKeypress(text, key));
  }

  /** Writes text, above the input line if it is visible. An incomplete row is then written when it is complete. */
  write(text: string): void {
    if (text === '') return;
    const sanitized = sanitizeOutput(text, this.deps.color);
    if (!this.isPromptVisible) {
      this.deps.output.write(sanitized);
      return;
    }
    this.pendingRow += sanitized;
    const end = this.pendingRow.lastIndexOf('\n') + 1;
    if (end === 0) return;
    this.insertAbove(this.pendingRow.slice(0, end));
    this.pendingRow = this.pendingRow.slice(end);
  }

  /** Ends the open row and writes complete lines. */
  printLines(...lines: readonly string[]): void {
    this.write(`${this.deps.endRow()}${lines.map((line) => `${line}\n`).join('')}`);
  }

  /** Returns the next line of the user. A line that was typed earlier is returned first. */
  async nextLine(prompt: string): Promise<LineResult> {
    return this.bufferedResults.shift() ?? this.readLine(prompt);
  }

  /**
   * Prompts for a line. If the user is typing a line, it was meant for something else, so the prompt waits for its end.
   */
  async readLine(prompt: string): Promise<LineResult> {
    while (this.isPromptVisible && this.readline.line !== '')
      await new Promise<void>((resolve) => this.typingWaiters.push(resolve));
    if (this.isClosed) return 'ended';
    this.showPrompt(prompt);
    return new Promise((resolve) => {
      this.resolveRead = resolve;
    });
  }

  /** Sets the listener for input without a prompt, and delivers buffered input to it. */
  setListener(listener: InputListener | undefined): void {
    this.listener = listener;
    if (listener !== undefined) for (const result of this.bufferedResults.splice(0)) this.deliverTo(listener, result);
  }

  private deliverTo(listener: InputListener, result: LineResult): void {
    if (result === 'interrupted') listener.onInterrupt();
    else if (result === 'ended') listener.onEnd();
    else if (result.line.trim() !== '') listener.onLine(result.line);
  }

  /** Delivers input to the pending read, or else to the listener. Without either, the input is buffered. */
  private deliver(result: LineResult): void {
    const { resolveRead, listener } = this;
    this.resolveRead = undefined;
    if (resolveRead !== undefined) resolveRead(result);
    else if (listener !== undefined) this.deliverTo(listener, result);
    else this.bufferedResults.push(result);
    for (const resolve of this.typingWaiters.splice(0)) resolve();
  }

  /** Hides the input line and stops reading. */
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

  /** Inserts text above the input line. */
  private insertAbove(text: string): void {
    const { output } = this.deps;
    const rows = this.erasePrompt();
    // Before it redraws, readline moves up by the number of rows that its line had.
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
    const isPrintable = text !== undefined && text >= ' ' && key.ctrl !== true && key.meta !== true;
    if (!this.isPromptVisible && !this.isClosed && isPrintable) this.showPrompt(this.deps.sidePrompt);
  }

  private onLine(line: string): void {
    this.isPromptVisible = false;
    this.flushPendingRow();
    this.deliver({ line });
  }

  private onInterrupt(): void {
    const isReading = this.resolveRead !== undefined;
    const hasInput = isReading && this.readline.line !== '';
    this.clearTyped();
    if (hasInput) return;
    if (isReading) {
      this.isPromptVisible = false;
      this.deps.output.write('\n');
    }
    this.deliver('interrupted');
  }

  /** Deletes the text on the input line. */
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
