/**
 * Asks a person about approvals, one after another: shows what would run, takes yes, no or later, and hands the answer
 * to the host together with what was shown, so that it holds for nothing else.
 */
import { setTimeout } from 'node:timers/promises';
import { LoopError } from '../../../base/errors.js';
import type { Host } from '../../../host/host.js';
import type { Approval } from '../../../protocol/approval.js';
import { answerCommands } from '../outcome.js';
import { isAbbreviated, isExpired, renderApproval } from '../render-approval.js';
import type { Colors } from '../terminal-text.js';
import type { Screen } from './screen.js';

export interface ApprovalPrompterDeps {
  readonly host: Host;
  readonly screen: Screen;
  readonly sessionId: string;
  /** Who answers. */
  readonly userName: string;
  readonly colors: Colors;
  width(): number;
  /** Milliseconds since the epoch. */
  now(): number;
}

/** What a question has to do with the rest of the chat. */
export interface ApprovalPrompterHooks {
  /** Whether the turn still runs: then an approval may be on its way into the store. */
  isRunning(): boolean;
  /** Whether there is no use in asking any more. */
  isOver(): boolean;
  /** Ctrl-C, and Ctrl-D. */
  onInterrupt(): Promise<void>;
  onEnd(): void;
  /** The answer was not taken. */
  onRefused(error: LoopError): Promise<void>;
  onError(thrown: unknown): void;
}

/** How long apart an approval is looked for that is on its way into the store, in milliseconds: at first, and at last. */
const FIRST_POLL_MS = 25;
const MAX_POLL_MS = 2000;

export class ApprovalPrompter {
  private readonly deps: ApprovalPrompterDeps;
  private readonly hooks: ApprovalPrompterHooks;
  /** What was asked about: each once. */
  private readonly askedIds = new Set<string>();
  private queue: Promise<void> = Promise.resolve();
  /** Whether something was answered since it was last looked at, here or elsewhere. */
  private hasChanged = false;

  constructor(parts: ApprovalPrompterDeps, around: ApprovalPrompterHooks) {
    this.deps = parts;
    this.hooks = around;
  }

  /** Asks about an approval, after those that came before it. */
  ask(id: string): void {
    if (this.askedIds.has(id)) return;
    this.askedIds.add(id);
    this.queue = this.queue.then(() => this.askAbout(id)).catch((thrown) => this.hooks.onError(thrown));
  }

  /** Lets everything be asked again. */
  forgetAsked(): void {
    this.askedIds.clear();
  }

  /** Waits for all answers; whether there was one since the last time. */
  async waitForAnswers(): Promise<boolean> {
    for (let before: Promise<void> | undefined; before !== this.queue; ) {
      before = this.queue;
      await before;
    }
    const { hasChanged } = this;
    this.hasChanged = false;
    return hasChanged;
  }

  /** What a turn waits for. */
  async pendingOf(turnId: string): Promise<readonly Approval[]> {
    return (await this.approvals()).filter((approval) => approval.turnId === turnId);
  }

  private approvals(): Promise<readonly Approval[]> {
    const { host, sessionId } = this.deps;
    return host.archive.approvals(sessionId);
  }

  private async findApproval(id: string): Promise<Approval | undefined> {
    for (let pause = FIRST_POLL_MS; ; pause = Math.min(MAX_POLL_MS, pause * 2)) {
      const running = this.hooks.isRunning();
      const found = (await this.approvals()).find((approval) => approval.id === id);
      if (found !== undefined || !running || this.hooks.isOver()) return found;
      await setTimeout(pause);
    }
  }

  private async askAbout(id: string): Promise<void> {
    const { now } = this.deps;
    const approval = await this.findApproval(id);
    if (approval === undefined || this.hooks.isOver()) return;
    this.printApproval(approval, false);
    // Nobody can answer it any more: the turn goes on without it.
    if (isExpired(approval, now())) this.hasChanged = true;
    else await this.promptForAnswer(approval);
  }

  private printApproval(approval: Approval, full: boolean): void {
    const { screen, colors, width, now } = this.deps;
    screen.printLines(...renderApproval(approval, { colors, width: width(), now: now(), full }));
  }

  private async promptForAnswer(approval: Approval): Promise<void> {
    const { screen } = this.deps;
    const cut = isAbbreviated(approval);
    const choices = `[y]es / [n]o / [l]ater${cut ? ' / [a]ll of it' : ''}`;
    for (;;) {
      const said = (await this.readLine(`Approve? ${choices}`))?.toLowerCase();
      if (said === undefined) return;
      if (said === 'y' || said === 'yes') return this.submitAnswer(approval, true);
      if (said === 'n' || said === 'no') return this.deny(approval);
      if (said === 'l' || said === 'later')
        return screen.printLines('It waits. Here /resume asks again; from elsewhere:', ...answerCommands(approval.id));
      if (cut && (said === 'a' || said === 'all')) this.printApproval(approval, true);
      else screen.printLines(cut ? 'Answer y, n, l or a.' : 'Answer y, n or l.');
    }
  }

  private async deny(approval: Approval): Promise<void> {
    const reason = await this.readLine('Why not? (Enter: no reason)');
    if (reason !== undefined) await this.submitAnswer(approval, false, reason === '' ? {} : { reason });
  }

  /** Returns a line, or undefined if the user stops or leaves. */
  private async readLine(question: string): Promise<string | undefined> {
    const { screen, colors } = this.deps;
    const reading = await screen.readLine(`${colors.yellow('?')} ${question} ${colors.yellow('›')} `);
    if (typeof reading === 'object') return reading.line.trim();
    // A turn that was stopped has to be gone on with too: to its end.
    this.hasChanged = true;
    if (reading === 'ended') this.hooks.onEnd();
    else await this.hooks.onInterrupt();
    return undefined;
  }

  private async submitAnswer(approval: Approval, approved: boolean, more: { reason?: string } = {}): Promise<void> {
    const { host, userName: by } = this.deps;
    const { id, sessionId, callId, tool, argumentsDigest } = approval;
    const answer = { id, approved, by, sessionId, callId, tool, argumentsDigest, ...more };
    this.hasChanged = true;
    try {
      await host.answer(answer);
    } catch (thrown) {
      if (!(thrown instanceof LoopError)) throw thrown;
      await this.hooks.onRefused(thrown);
    }
  }
}
