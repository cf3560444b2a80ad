/**
 * A chat with an agent in a terminal: one turn for each message, approvals asked for when they arise, and what is typed
 * meanwhile handed to the turn that runs. Everything is in the journal, so leaving at any moment loses nothing.
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

/** What every message of a chat has in common. */
export type TurnTemplate = Omit<TurnRequest, 'input' | 'loop'> & { readonly loop: string; readonly sessionId: string };

export interface ChatControllerDeps extends Omit<ApprovalPrompterDeps, 'sessionId'> {
  readonly transcript: Transcript;
  readonly turnTemplate: TurnTemplate;
}

type TurnRunner = (options: TurnOptions) => Promise<TurnResult>;

/** The most characters of a reason. */
const MAX_REASON_CHARS = 4000;

const HELP_LINES = [
  'Type a message and press Enter. What you type while the agent works is heard at its next step.',
  'What stands behind a bar (│) was written by the agent or its tools; everything else by Rondo.',
  '  /resume    go on with what waits or was interrupted',
  '  /session   which session this is, and how to come back',
  '  /quit      leave (or Ctrl-D)',
  'Ctrl-C stops the turn that runs; on an empty line, or twice, it leaves.',
];

export class ChatController {
  private readonly deps: ChatControllerDeps;
  private readonly approvalPrompter: ApprovalPrompter;
  /** The turn that is driven, whether anything of it was heard, whether it runs at the moment, and whether it was asked to stop. */
  private turnId: string | undefined;
  private hasBegun = false;
  private isRunning = false;
  private isStopping = false;
  /** With which code to end, once it is time to go. */
  private exitCode: number | undefined;
  private resolveLeft: () => void = () => {};
  private readonly left: Promise<undefined>;
  /** Messages that were typed here and need not be told again, and those that came too early for the turn. */
  private readonly sentMessages: string[] = [];
  private readonly queuedMessages: string[] = [];
  /** Whether why it failed has been told. */
  private isFailureExplained = false;
  private lastResult: TurnResult | undefined;

  constructor(parts: ChatControllerDeps) {
    this.deps = parts;
    this.left = new Promise((resolve) => {
      this.resolveLeft = () => resolve(undefined);
    });
    this.approvalPrompter = new ApprovalPrompter(
      { ...parts, sessionId: parts.turnTemplate.sessionId },
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

  /** Whether this message was typed here; each is asked about once. */
  takeSentMessage(text: string): boolean {
    const place = this.sentMessages.indexOf(text);
    if (place !== -1) this.sentMessages.splice(place, 1);
    return place !== -1;
  }

  /** Runs the conversation until the user leaves, and returns the exit code. */
  async run(): Promise<number> {
    const { screen, colors, turnTemplate } = this.deps;
    await this.resumeOpenTurn(true);
    while (this.exitCode === undefined) {
      const next = this.queuedMessages.shift();
      const reading = next === undefined ? await screen.nextLine(`${colors.cyan('›')} `) : { line: next };
      if (typeof reading === 'object') await this.handleLine(reading.line.trim());
      else this.leave(exitCodes.ok);
    }
    if (this.exitCode !== exitCodes.ok) return this.exitCode;
    const paused = this.lastResult?.status === 'paused';
    screen.printLines(
      ...(paused && this.lastResult !== undefined ? outcomeLines(this.lastResult) : []),
      chatReturnHint(turnTemplate),
    );
    return paused ? exitCodes.paused : exitCodes.ok;
  }

  private async handleLine(line: string): Promise<void> {
    const { screen, turnTemplate } = this.deps;
    if (line === '') return;
    if (line === '/quit' || line === '/exit') return this.leave(exitCodes.ok);
    if (line === '/help') return screen.printLines(...HELP_LINES);
    if (line === '/session')
      return screen.printLines(`This is session ${turnTemplate.sessionId}. ${chatReturnHint(turnTemplate)}`);
    if (line === '/resume') return this.resumeOpenTurn(false);
    if (/^\/[a-z]+$/.test(line)) return screen.printLines(`There is no ${line}; see /help.`);
    this.sentMessages.push(line);
    await this.runToEnd((options) => this.deps.host.run({ ...turnTemplate, input: { prompt: line } }, options));
  }

  /** Goes on with the last turn of the session that has not ended; at the start, only if a person has to answer. */
  private async resumeOpenTurn(atStart: boolean): Promise<void> {
    const { host, screen, turnTemplate } = this.deps;
    const turns = await host.archive.turns(turnTemplate.sessionId);
    const open = turns.findLast(({ status }) => status === 'paused' || status === 'interrupted');
    if (open === undefined) return atStart ? undefined : screen.printLines('There is nothing to go on with.');
    const { turnId, status } = open;
    if (atStart && status === 'interrupted')
      return screen.printLines('The last turn was interrupted; /resume goes on with it.');
    this.approvalPrompter.forgetAsked();
    if (!atStart || (await this.approvalPrompter.pendingOf(turnId)).length > 0)
      await this.runToEnd((options) => this.deps.host.resume(turnId, options));
  }

  /** Drives a turn to its end, or until nobody wants to answer what it waits for. */
  private async runToEnd(work: TurnRunner): Promise<void> {
    const { screen } = this.deps;
    this.turnId = undefined;
    this.hasBegun = false;
    this.isStopping = false;
    this.isFailureExplained = false;
    screen.setListener({
      onLine: (text) => void this.steer(text),
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

  /** One go at a turn; undefined if it could not be seen to its end. */
  private async runOnce(work: TurnRunner): Promise<TurnResult | undefined> {
    const { screen, transcript } = this.deps;
    const hearing: TurnOptions = {
      onTurn: (turnId) => {
        this.turnId = turnId;
      },
      onEvent: () => this.onFirstEvent(),
      onEnvelope: (envelope) => this.onEnvelope(envelope),
      onDelta: (delta) => screen.write(transcript.renderDelta(delta)),
    };
    this.isRunning = true;
    const done = work(hearing);
    // Who has left does not hear how it ends.
    done.catch(() => undefined);
    try {
      return await Promise.race([done, this.left]);
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

  private async steer(text: string): Promise<void> {
    const { host, turnTemplate } = this.deps;
    this.sentMessages.push(text);
    try {
      await host.sendMessage({ sessionId: turnTemplate.sessionId, text });
    } catch (thrown) {
      this.takeSentMessage(text);
      // The turn has not begun, or has just ended: then it is a message of its own.
      if (thrown instanceof LoopError && thrown.code === 'TURN_NOT_FOUND') this.queuedMessages.push(text);
      else this.onError(thrown);
    }
  }

  private onFirstEvent(): void {
    if (this.hasBegun) return;
    this.hasBegun = true;
    if (this.isStopping && this.turnId !== undefined) void this.cancelTurn(this.turnId);
  }

  /** Stops the turn, once it has begun; asked a second time, leaves without waiting for it. */
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
    this.resolveLeft();
  }

  private async onRefused(error: LoopError): Promise<void> {
    this.onError(error);
    await this.renderMissedEvents();
  }

  /** Another process has continued the session: prints what happened there. */
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

  /** Says why something went wrong; the reason may hold anybody's words. */
  private explainFailure(code: string, message: string): void {
    const { screen, colors, width } = this.deps;
    screen.printLines(
      colors.red(`✗ ${sanitizeText(code)}`),
      ...renderBlock(escapeMultiline(message, MAX_REASON_CHARS), { colors, width: width() }),
    );
  }

  private printConclusion(result: TurnResult): void {
    const { screen, colors } = this.deps;
    const { status, error, turnId } = result;
    // That it was stopped has been told.
    if (error?.code === 'CANCELLED') return void screen.printLines('');
    if (error !== undefined && !this.isFailureExplained) this.explainFailure(error.code, error.message);
    const told = status === 'error' ? [`Next: rondo trace ${turnId}`] : outcomeLines(result);
    screen.printLines(...told, colors.dim(summaryLineOf(result)), '');
  }
}

export function chatReturnHint({ loop, sessionId }: Pick<TurnTemplate, 'loop' | 'sessionId'>): string {
  return `Come back with: rondo chat ${loop} --session ${sessionId}`;
}
