/**
 * Controls a chat with an agent in a terminal: runs a turn for each message, prompts for approvals, and sends messages
 * that are typed meanwhile to the running turn. Everything is journaled, so the user can leave at any time without
 * losing data.
 */
import { Fault, LoopError } from '../../../base/errors.js';
import type { TurnOptions, TurnRequest } from '../../../host/host.js';
import type { EventEnvelope } from '../../../protocol/events.js';
import type { TurnResult } from '../../../protocol/trace.js';
import { interruptionMessage } from '../live-run.js';
import { outcomeLines, summaryLineOf } from '../outcome.js';
import { sanitizeText } from '../terminal-text.js';
import { escapeMultiline, renderBlock } from '../untrusted-text.js';
import { exitCodes } from '../verb.js';
import { ApprovalPrompter, type ApprovalPrompterDeps } from './approval-prompter.js';
import type { Transcript } from './transcript.js';

/** The part of a turn request that all messages of a chat share. */
export type TurnTemplate = Omit<TurnRequest, 'input' | 'loop'> & { readonly loop: string; readonly sessionId: string };

/** Dependencies of `ChatController`. */
export interface ChatControllerDeps extends Omit<ApprovalPrompterDeps, 'sessionId'> {
  readonly transcript: Transcript;
  readonly turnTemplate: TurnTemplate;
  /** The working directory, to which locations in code are relative. */
  readonly cwd: string;
}

type TurnRunner = (options: TurnOptions) => Promise<TurnResult>;

/** The maximum length of an error message on the screen. */
const MAX_ERROR_CHARS = 4000;

const HELP_LINES = [
  'Type a message and press Enter. A message that you type while the agent works reaches it at its next step.',
  'Text after a bar (│) was written by the agent or its tools, all other text by Rondo.',
  '  /resume    resume a turn that is paused or interrupted',
  '  /session   show the session, and how to return to it',
  '  /quit      leave (or Ctrl-D)',
  'Ctrl-C stops the running turn; on an empty line, or pressed twice, it leaves.',
];

/** Runs one chat. */
export class ChatController {
  private readonly deps: ChatControllerDeps;
  private readonly approvalPrompter: ApprovalPrompter;
  /** The current turn. */
  private turnId: string | undefined;
  /** True if the current turn has emitted an event. It can be cancelled only then. */
  private hasBegun = false;
  private isRunning = false;
  private isStopping = false;
  /** The exit code; defined when the user leaves. */
  private exitCode: number | undefined;
  private resolveLeaving: () => void = () => {};
  /** Resolves when the user leaves. */
  private readonly leaving: Promise<undefined>;
  /** Messages that were typed here and are visible on the screen. */
  private readonly sentMessages: string[] = [];
  /** Messages that did not reach a running turn. Each starts a turn of its own. */
  private readonly queuedMessages: string[] = [];
  /** True if the failure of the current turn has been shown. */
  private isFailureExplained = false;
  private lastResult: TurnResult | undefined;

  constructor(deps: ChatControllerDeps) {
    this.deps = deps;
    this.leaving = new Promise((resolve) => {
      this.resolveLeaving = () => resolve(undefined);
    });
    this.approvalPrompter = new ApprovalPrompter(
      { ...deps, sessionId: deps.turnTemplate.sessionId },
      {
        isRunning: () => this.isRunning,
        isOver: () => this.isStopping || this.exitCode !== undefined,
        onInterrupt: () => this.stopTurn(),
        onEnd: () => this.onEnd(),
        onRefused: (error) => this.onRefused(error),
        onError: (thrown) => this.onError(thrown),
      },
    );
  }

  /** Returns true if this message was typed here, and removes it from the list of sent messages. */
  takeSentMessage(text: string): boolean {
    const index = this.sentMessages.indexOf(text);
    if (index !== -1) this.sentMessages.splice(index, 1);
    return index !== -1;
  }

  /** Runs the chat until the user leaves. Returns the exit code. */
  async run(): Promise<number> {
    const { screen, colors, turnTemplate } = this.deps;
    await this.resumeOpenTurn(true);
    while (this.exitCode === undefined) {
      const queued = this.queuedMessages.shift();
      const result = queued === undefined ? await screen.nextLine(`${colors.cyan('›')} `) : { line: queued };
      if (typeof result === 'object') await this.handleLine(result.line.trim());
      else this.leave(exitCodes.ok);
    }
    if (this.exitCode !== exitCodes.ok) return this.exitCode;
    const isPaused = this.lastResult?.status === 'paused';
    screen.printLines(
      ...(isPaused && this.lastResult !== undefined ? outcomeLines(this.lastResult, this.deps) : []),
      chatReturnHint(turnTemplate),
    );
    return isPaused ? exitCodes.paused : exitCodes.ok;
  }

  private async handleLine(line: string): Promise<void> {
    const { screen, turnTemplate } = this.deps;
    if (line === '') return;
    if (line === '/quit' || line === '/exit') return this.leave(exitCodes.ok);
    if (line === '/help') return screen.printLines(...HELP_LINES);
    if (line === '/session')
      return screen.printLines(`This is session ${turnTemplate.sessionId}. ${chatReturnHint(turnTemplate)}`);
    if (line === '/resume') return this.resumeOpenTurn(false);
    if (/^\/[a-z]+$/.test(line)) return screen.printLines(`Unknown command ${line}; see /help.`);
    this.sentMessages.push(line);
    await this.runToEnd((options) => this.deps.host.run({ ...turnTemplate, input: { prompt: line } }, options));
  }

  /**
   * Resumes the last turn of the session that is paused or interrupted. At the start of a chat, only if it is paused
   * with pending approvals.
   */
  private async resumeOpenTurn(isStart: boolean): Promise<void> {
    const { host, screen, turnTemplate } = this.deps;
    const turns = await host.archive.turns(turnTemplate.sessionId);
    const openTurn = turns.findLast(({ status }) => status === 'paused' || status === 'interrupted');
    if (openTurn === undefined) return isStart ? undefined : screen.printLines('There is no turn to resume.');
    const { turnId, status } = openTurn;
    if (isStart && status === 'interrupted')
      return screen.printLines('The last turn was interrupted; /resume continues it.');
    this.approvalPrompter.forgetAsked();
    if (!isStart || (await this.approvalPrompter.pendingOf(turnId)).length > 0)
      await this.runToEnd((options) => this.deps.host.resume(turnId, options));
  }

  /** Runs a turn to its end, or until no further pending approval is answered. */
  private async runToEnd(work: TurnRunner): Promise<void> {
    const { screen } = this.deps;
    this.turnId = undefined;
    this.hasBegun = false;
    this.isStopping = false;
    this.isFailureExplained = false;
    screen.setListener({
      onLine: (text) => void this.sendToTurn(text),
      onInterrupt: () => void this.stopTurn(),
      onEnd: () => this.onEnd(),
    });
    let result = await this.runOnce(work);
    while (result?.status === 'paused') {
      const { turnId } = result;
      for (const { id } of await this.approvalPrompter.pendingOf(turnId)) this.approvalPrompter.ask(id);
      if (!(await this.approvalPrompter.waitForAnswers()) || this.exitCode !== undefined) break;
      result = await this.runOnce((options) => this.deps.host.resume(turnId, options));
    }
    screen.setListener(undefined);
    this.lastResult = result;
    if (this.exitCode === undefined && result !== undefined) this.printConclusion(result);
  }

  /** Runs a turn to its end or pause and returns the result; undefined if running it threw or the user left. */
  private async runOnce(work: TurnRunner): Promise<TurnResult | undefined> {
    const { screen, transcript } = this.deps;
    const turnOptions: TurnOptions = {
      onTurn: (turnId) => {
        this.turnId = turnId;
      },
      onEvent: () => this.onFirstEvent(),
      onEnvelope: (envelope) => this.onEnvelope(envelope),
      onDelta: (delta) => screen.write(transcript.renderDelta(delta)),
    };
    this.isRunning = true;
    const turn = work(turnOptions);
    // After the user has left, a rejection has no other handler.
    turn.catch(() => undefined);
    try {
      return await Promise.race([turn, this.leaving]);
    } catch (thrown) {
      this.onError(thrown);
      return undefined;
    } finally {
      this.isRunning = false;
      screen.write(transcript.endRow());
    }
  }

  private onEnvelope(envelope: EventEnvelope): void {
    const { screen, transcript } = this.deps;
    screen.write(transcript.renderEnvelope(envelope));
    if (envelope.type === 'generation-failure') this.isFailureExplained = true;
    const { approvalId, approvalStatus } = envelope.type === 'tool-call' ? envelope.content : {};
    if (approvalId !== undefined && approvalStatus === 'pending_approval') this.approvalPrompter.ask(approvalId);
  }

  /** Sends a message to the running turn. If there is none, the message starts the next turn. */
  private async sendToTurn(text: string): Promise<void> {
    const { host, turnTemplate } = this.deps;
    this.sentMessages.push(text);
    try {
      await host.sendMessage({ sessionId: turnTemplate.sessionId, text });
    } catch (thrown) {
      this.takeSentMessage(text);
      // The turn has not started or has just ended, so the message starts the next turn.
      if (thrown instanceof LoopError && thrown.code === 'TURN_NOT_FOUND') this.queuedMessages.push(text);
      else this.onError(thrown);
    }
  }

  private onFirstEvent(): void {
    if (this.hasBegun) return;
    this.hasBegun = true;
    if (this.isStopping && this.turnId !== undefined) void this.cancelTurn(this.turnId);
  }

  /** Cancels the turn as soon as it has started. A second call leaves without waiting for the turn. */
  private async stopTurn(): Promise<void> {
    const { screen, colors } = this.deps;
    const { turnId, isRunning } = this;
    if (this.isStopping) return this.abandon();
    this.isStopping = true;
    screen.printLines(colors.dim('Stopping … (Ctrl-C again leaves)'));
    if (turnId === undefined || !this.hasBegun) return;
    await this.cancelTurn(turnId);
    if (!isRunning) await this.renderMissedEvents();
  }

  private async cancelTurn(turnId: string): Promise<void> {
    const { host, userName } = this.deps;
    try {
      await host.cancel(turnId, `stopped in the chat by ${userName}`);
    } catch (thrown) {
      this.onError(thrown);
    }
  }

  private onEnd(): void {
    if (this.isRunning) this.abandon();
    else this.leave(exitCodes.ok);
  }

  private abandon(): void {
    const { screen } = this.deps;
    screen.printLines(interruptionMessage(this.turnId));
    this.leave(exitCodes.interrupted);
  }

  private leave(code: number): void {
    this.exitCode ??= code;
    this.resolveLeaving();
  }

  private async onRefused(error: LoopError): Promise<void> {
    this.onError(error);
    await this.renderMissedEvents();
  }

  /** Renders the envelopes of the session that are not on the screen, such as those that another process has added. */
  private async renderMissedEvents(): Promise<void> {
    const { host, screen, transcript, turnTemplate } = this.deps;
    const events = await host.archive.events(turnTemplate.sessionId);
    for (const envelope of events)
      if (!transcript.hasRendered(envelope)) screen.write(transcript.renderEnvelope(envelope));
  }

  private onError(thrown: unknown): void {
    const { code } = thrown instanceof LoopError || thrown instanceof Fault ? thrown : { code: 'INTERNAL' };
    this.explainFailure(code, thrown instanceof Error ? thrown.message : String(thrown));
  }

  /** Prints an error. The message is untrusted, so it gets a quote bar. */
  private explainFailure(code: string, message: string): void {
    const { screen, colors, width } = this.deps;
    screen.printLines(
      colors.red(`✗ ${sanitizeText(code)}`),
      ...renderBlock(escapeMultiline(message, MAX_ERROR_CHARS), { colors, width: width() }),
    );
  }

  private printConclusion(result: TurnResult): void {
    const { screen, colors } = this.deps;
    const { turnId } = result;
    // The transcript shows the cancellation.
    if (result.status === 'cancelled') return void screen.printLines('');
    const error = result.status === 'error' ? result.error : undefined;
    if (error !== undefined && !this.isFailureExplained) this.explainFailure(error.code, error.message);
    const lines = error !== undefined ? [`Next: rondo trace ${turnId}`] : outcomeLines(result, this.deps);
    screen.printLines(...lines, colors.dim(summaryLineOf(result)), '');
  }
}

/** Returns the message with the command that continues a chat. */
export function chatReturnHint({ loop, sessionId }: Pick<TurnTemplate, 'loop' | 'sessionId'>): string {
  return `Come back with: rondo chat ${loop} --session ${sessionId}`;
}
