/** Shows that a turn is running: a line with the elapsed time and the current call, from the first second on. */
import type { TraceEvent } from '../../protocol/trace.js';
import { formatDuration, sanitizeText } from './terminal-text.js';

const DELAY_MS = 1000;
const FRAME_INTERVAL_MS = 100;
const SPINNER = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/** Shows a text in place of the last one; undefined removes it. */
type ShowText = (text: string | undefined) => void;

interface OpenCall {
  readonly loopId: string;
  /** What the call is doing, such as `runs refund`. */
  readonly action?: string | undefined;
}

/** The progress of one turn. Pass its events to `apply`, and call `end` when it has ended. */
export class TurnProgress {
  private readonly show: ShowText;
  private readonly now: () => number;
  private readonly startedAt: number;
  /** The open calls by id, in the order in which they began. */
  private readonly openCalls = new Map<string, OpenCall>();
  private readonly delay: NodeJS.Timeout;
  private frames: NodeJS.Timeout | undefined;

  constructor(show: ShowText, now: () => number) {
    this.show = show;
    this.now = now;
    this.startedAt = now();
    this.delay = setTimeout(() => this.begin(), DELAY_MS);
    this.delay.unref();
  }

  /** Follows the calls of the turn. Nothing is drawn here. */
  apply({ callId, type, payload }: TraceEvent): void {
    const { loopId, model, toolName } = (payload ?? {}) as { loopId?: string; model?: string; toolName?: string };
    if (type === 'call.started' && loopId !== undefined) this.openCalls.set(callId, { loopId });
    else if (type === 'call.completed' || type === 'call.errored') this.openCalls.delete(callId);
    else if (type === 'call.backend.requested') this.describe(callId, `asks ${model ?? 'a model'}`);
    else if (type === 'call.tool.invoked') this.describe(callId, `runs ${toolName ?? 'a tool'}`);
    else if (/^call\.(?:backend\.responded|tool\.returned)$/.test(type)) this.describe(callId);
  }

  /** Removes the line. Nothing is drawn afterwards. */
  end(): void {
    clearTimeout(this.delay);
    clearInterval(this.frames);
    this.show(undefined);
  }

  private describe(callId: string, action?: string): void {
    const call = this.openCalls.get(callId);
    if (call !== undefined) this.openCalls.set(callId, { loopId: call.loopId, action });
  }

  private begin(): void {
    this.draw();
    this.frames = setInterval(() => this.draw(), FRAME_INTERVAL_MS);
    this.frames.unref();
  }

  private draw(): void {
    const elapsedMs = this.now() - this.startedAt;
    const mark = SPINNER[Math.floor(elapsedMs / FRAME_INTERVAL_MS) % SPINNER.length] ?? '';
    const seconds = Math.floor(elapsedMs / 1000);
    const elapsed = seconds < 60 ? `${seconds} s` : formatDuration(seconds * 1000);
    const { loopId, action } = [...this.openCalls.values()].at(-1) ?? {};
    this.show([`${mark} ${elapsed}`, loopId, action].flatMap((part) => (part ? sanitizeText(part) : [])).join('  '));
  }
}
