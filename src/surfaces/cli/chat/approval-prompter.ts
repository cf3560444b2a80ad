/**
 * Prompts the user for approvals, one at a time: shows the card, reads yes, no or later, and passes the answer to the
 * host together with the shown call and arguments digest, so that the answer applies only to what the user saw.
 */
import { setTimeout } from 'node:timers/promises';
import { LoopError } from '../../../base/errors.js';
import type { Host } from '../../../host/host.js';
import type { Approval } from '../../../protocol/approval.js';
import { answerCommands } from '../outcome.js';
import { isAbbreviated, isExpired, renderApproval } from '../render-approval.js';
import type { Colors } from '../terminal-text.js';
import type { Screen } from './screen.js';

/** Dependencies of `ApprovalPrompter`. */
export interface ApprovalPrompterDeps {
  readonly host: Host;
  readonly screen: Screen;
  readonly sessionId: string;
  /** The name that is recorded with answers. */
  readonly userName: string;
  readonly colors: Colors;
  /** Returns the width of the terminal. */
  width(): number;
  /** Returns the time in milliseconds since the epoch. */
  now(): number;
}

/** Callbacks to the chat. */
interface ApprovalPrompterHooks {
  /** Returns true while the turn runs. An approval may not be in the store yet then. */
  isRunning(): boolean;
  /** Returns true if the turn is being stopped or the user is leaving. No further prompts are shown then. */
  isOver(): boolean;
  /** Called on Ctrl-C. */
  onInterrupt(): Promise<void>;
  /** Called on Ctrl-D. */
  onEnd(): void;
  /** Called if the host refused the answer. */
  onRefused(error: LoopError): Promise<void>;
  onError(thrown: unknown): void;
}

/** The first and the longest interval of polling for an approval that is not in the store yet, in milliseconds. */
const FIRST_POLL_MS = 25;
const MAX_POLL_MS = 2000;

/** Prompts for the approvals of one session. */
export class ApprovalPrompter {
  private readonly deps: ApprovalPrompterDeps;
  private readonly hooks: ApprovalPrompterHooks;
  /** Approvals that were queued for a prompt. Each is queued once until `forgetAsked` is called. */
  private readonly promptedIds = new Set<string>();
  private queue: Promise<void> = Promise.resolve();
  /**
   * True if, since the last `waitForAnswers`, an answer was sent (accepted or refused), an approval expired, or the user
   * pressed Ctrl-C or Ctrl-D.
   */
  private hasChanged = false;

  constructor(deps: ApprovalPrompterDeps, hooks: ApprovalPrompterHooks) {
    this.deps = deps;
    this.hooks = hooks;
  }

  /** Prompts for an approval after those that are queued. An approval that was prompted for before is ignored. */
  ask(id: string): void {
    if (this.promptedIds.has(id)) return;
    this.promptedIds.add(id);
    this.queue = this.queue.then(() => this.promptFor(id)).catch((thrown) => this.hooks.onError(thrown));
  }

  /** Allows all approvals to be prompted for again. */
  forgetAsked(): void {
    this.promptedIds.clear();
  }

  /**
   * Waits for all prompts. Returns true if, since the last call, an answer was sent (accepted or refused), an approval
   * expired, or the user pressed Ctrl-C or Ctrl-D.
   */
  async waitForAnswers(): Promise<boolean> {
    for (let awaited: Promise<void> | undefined; awaited !== this.queue; ) {
      awaited = this.queue;
      await awaited;
    }
    const { hasChanged } = this;
    this.hasChanged = false;
    return hasChanged;
  }

  /** Returns the pending approvals of a turn. */
  async pendingOf(turnId: string): Promise<readonly Approval[]> {
    return (await this.approvals()).filter((approval) => approval.turnId === turnId);
  }

  private approvals(): Promise<readonly Approval[]> {
    const { host, sessionId } = this.deps;
    return host.archive.approvals(sessionId);
  }

  /** Returns a pending approval. While the turn runs, it polls until the approval is in the store. */
  private async findApproval(id: string): Promise<Approval | undefined> {
    for (let delayMs = FIRST_POLL_MS; ; delayMs = Math.min(MAX_POLL_MS, delayMs * 2)) {
      const isRunning = this.hooks.isRunning();
      const approval = (await this.approvals()).find((candidate) => candidate.id === id);
      if (approval !== undefined || !isRunning || this.hooks.isOver()) return approval;
      await setTimeout(delayMs);
    }
  }

  private async promptFor(id: string): Promise<void> {
    const { now } = this.deps;
    const approval = await this.findApproval(id);
    if (approval === undefined || this.hooks.isOver()) return;
    this.printApproval(approval, false);
    // An expired approval cannot be answered; the turn continues with its expiry.
    if (isExpired(approval, now())) this.hasChanged = true;
    else await this.promptForAnswer(approval);
  }

  private printApproval(approval: Approval, full: boolean): void {
    const { screen, colors, width, now } = this.deps;
    screen.printLines(...renderApproval(approval, { colors, width: width(), now: now(), full }));
  }

  private async promptForAnswer(approval: Approval): Promise<void> {
    const { screen } = this.deps;
    const isShortened = isAbbreviated(approval);
    const choices = `[y]es / [n]o / [l]ater${isShortened ? ' / [a]ll of it' : ''}`;
    const laterLines = [
      'The approval stays pending. /resume asks again here; from elsewhere:',
      ...answerCommands(approval.id),
    ];
    for (;;) {
      const reply = (await this.readLine(`Approve? ${choices}`))?.toLowerCase();
      if (reply === undefined) return;
      if (reply === 'y' || reply === 'yes') return this.submitAnswer(approval, true);
      if (reply === 'n' || reply === 'no') return this.deny(approval);
      if (reply === 'l' || reply === 'later') return screen.printLines(...laterLines);
      if (isShortened && (reply === 'a' || reply === 'all')) this.printApproval(approval, true);
      else screen.printLines(isShortened ? 'Answer y, n, l or a.' : 'Answer y, n or l.');
    }
  }

  private async deny(approval: Approval): Promise<void> {
    const reason = await this.readLine('Why not? (Enter: no reason)');
    if (reason !== undefined) await this.submitAnswer(approval, false, reason === '' ? {} : { reason });
  }

  /** Reads a line; undefined after Ctrl-C or Ctrl-D. */
  private async readLine(question: string): Promise<string | undefined> {
    const { screen, colors } = this.deps;
    const result = await screen.readLine(`${colors.yellow('?')} ${question} ${colors.yellow('›')} `);
    if (typeof result === 'object') return result.line.trim();
    // A stopped turn is resumed too: that returns its result, and ends it if it has not ended yet.
    this.hasChanged = true;
    if (result === 'ended') this.hooks.onEnd();
    else await this.hooks.onInterrupt();
    return undefined;
  }

  private async submitAnswer(approval: Approval, approved: boolean, details: { reason?: string } = {}): Promise<void> {
    const { host, userName: by } = this.deps;
    const { id, sessionId, callId, tool, argumentsDigest } = approval;
    const answer = { id, approved, by, sessionId, callId, tool, argumentsDigest, ...details };
    this.hasChanged = true;
    try {
      await host.answer(answer);
    } catch (thrown) {
      if (!(thrown instanceof LoopError)) throw thrown;
      await this.hooks.onRefused(thrown);
    }
  }
}
