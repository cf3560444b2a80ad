/**
 * Asks a person about approvals, one after another: shows what would run, takes yes, no or later, and hands the answer
 * to the host together with what was shown, so that it holds for nothing else.
 */
import { setTimeout } from 'node:timers/promises';
import { LoopError } from '../../../base/errors.js';
import type { Host } from '../../../host/host.js';
import type { Approval } from '../../../protocol/approval.js';
import { cardOf, isCut, isExpired } from '../card.js';
import { answersOf } from '../outcome.js';
import type { Paint } from '../paint.js';
import type { Screen } from './screen.js';

export interface AskingParts {
  readonly host: Host;
  readonly screen: Screen;
  readonly sessionId: string;
  /** Who answers. */
  readonly who: string;
  readonly colors: Paint;
  width(): number;
  /** Milliseconds since the epoch. */
  now(): number;
}

/** What a question has to do with the rest of the chat. */
export interface Around {
  /** Whether the turn still runs: then an approval may be on its way into the store. */
  running(): boolean;
  /** Whether there is no use in asking any more. */
  over(): boolean;
  /** Ctrl-C, and Ctrl-D. */
  interrupted(): Promise<void>;
  ended(): void;
  /** The answer was not taken. */
  refused(error: LoopError): Promise<void>;
  failed(thrown: unknown): void;
}

/** How long apart an approval is looked for that is on its way into the store, in milliseconds: at first, and at last. */
const SOON = 25;
const LATE = 2000;

export class Asking {
  private readonly parts: AskingParts;
  private readonly around: Around;
  /** What was asked about: each once. */
  private readonly asked = new Set<string>();
  private chain: Promise<void> = Promise.resolve();
  /** Whether something was answered since it was last looked at, here or elsewhere. */
  private moved = false;

  constructor(parts: AskingParts, around: Around) {
    this.parts = parts;
    this.around = around;
  }

  /** Asks about an approval, after those that came before it. */
  ask(id: string): void {
    if (this.asked.has(id)) return;
    this.asked.add(id);
    this.chain = this.chain.then(() => this.question(id)).catch((thrown) => this.around.failed(thrown));
  }

  /** Lets everything be asked again. */
  again(): void {
    this.asked.clear();
  }

  /** Waits for all answers; whether there was one since the last time. */
  async settled(): Promise<boolean> {
    for (let before: Promise<void> | undefined; before !== this.chain; ) {
      before = this.chain;
      await before;
    }
    const { moved } = this;
    this.moved = false;
    return moved;
  }

  /** What a turn waits for. */
  async waiting(turnId: string): Promise<readonly Approval[]> {
    return (await this.approvals()).filter((approval) => approval.turnId === turnId);
  }

  private approvals(): Promise<readonly Approval[]> {
    const { host, sessionId } = this.parts;
    return host.archive.approvals(sessionId);
  }

  private async find(id: string): Promise<Approval | undefined> {
    for (let pause = SOON; ; pause = Math.min(LATE, pause * 2)) {
      const running = this.around.running();
      const found = (await this.approvals()).find((approval) => approval.id === id);
      if (found !== undefined || !running || this.around.over()) return found;
      await setTimeout(pause);
    }
  }

  private async question(id: string): Promise<void> {
    const { now } = this.parts;
    const approval = await this.find(id);
    if (approval === undefined || this.around.over()) return;
    this.show(approval, false);
    // Nobody can answer it any more: the turn goes on without it.
    if (isExpired(approval, now())) this.moved = true;
    else await this.decide(approval);
  }

  private show(approval: Approval, full: boolean): void {
    const { screen, colors, width, now } = this.parts;
    screen.say(...cardOf(approval, { colors, width: width(), now: now(), full }));
  }

  private async decide(approval: Approval): Promise<void> {
    const { screen } = this.parts;
    const cut = isCut(approval);
    const choices = `[y]es / [n]o / [l]ater${cut ? ' / [a]ll of it' : ''}`;
    for (;;) {
      const said = (await this.read(`Approve? ${choices}`))?.toLowerCase();
      if (said === undefined) return;
      if (said === 'y' || said === 'yes') return this.answer(approval, true);
      if (said === 'n' || said === 'no') return this.deny(approval);
      if (said === 'l' || said === 'later')
        return screen.say('It waits. Here /resume asks again; from elsewhere:', ...answersOf(approval.id));
      if (cut && (said === 'a' || said === 'all')) this.show(approval, true);
      else screen.say(cut ? 'Answer y, n, l or a.' : 'Answer y, n or l.');
    }
  }

  private async deny(approval: Approval): Promise<void> {
    const reason = await this.read('Why not? (Enter: no reason)');
    if (reason !== undefined) await this.answer(approval, false, reason === '' ? {} : { reason });
  }

  /** A line; undefined if somebody would rather stop or leave. */
  private async read(question: string): Promise<string | undefined> {
    const { screen, colors } = this.parts;
    const reading = await screen.read(`${colors.yellow('?')} ${question} ${colors.yellow('›')} `);
    if (typeof reading === 'object') return reading.line.trim();
    // A turn that was stopped has to be gone on with too: to its end.
    this.moved = true;
    if (reading === 'ended') this.around.ended();
    else await this.around.interrupted();
    return undefined;
  }

  private async answer(approval: Approval, approved: boolean, more: { reason?: string } = {}): Promise<void> {
    const { host, who: by } = this.parts;
    const { id, sessionId, callId, tool, argumentsDigest } = approval;
    const answer = { id, approved, by, sessionId, callId, tool, argumentsDigest, ...more };
    this.moved = true;
    try {
      await host.answer(answer);
    } catch (thrown) {
      if (!(thrown instanceof LoopError)) throw thrown;
      await this.around.refused(thrown);
    }
  }
}
