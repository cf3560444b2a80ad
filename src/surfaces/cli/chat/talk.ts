/**
 * A chat with an agent in a terminal: one turn for each message, approvals asked for when they arise, and what is typed
 * meanwhile handed to the turn that runs. Everything is in the journal, so leaving at any moment loses nothing.
 */

import { Fault, LoopError } from '../../../base/errors.js';
import type { TurnOptions, TurnRequest } from '../../../host/host.js';
import type { EventEnvelope } from '../../../protocol/events.js';
import type { TurnResult } from '../../../protocol/trace.js';
import { interruption } from '../drive.js';
import { summaryOf, toldOf } from '../outcome.js';
import { plain } from '../paint.js';
import { block, safe } from '../untrusted.js';
import { exit } from '../verb.js';
import { Asking, type AskingParts } from './asking.js';
import type { Transcript } from './transcript.js';

/** What every message of a chat has in common. */
export type Opening = Omit<TurnRequest, 'input' | 'loop'> & { readonly loop: string; readonly sessionId: string };

export interface TalkParts extends Omit<AskingParts, 'sessionId'> {
  readonly transcript: Transcript;
  readonly opening: Opening;
}

type Work = (options: TurnOptions) => Promise<TurnResult>;

/** The most characters of a reason. */
const LONGEST = 4000;

const HELP = [
  'Type a message and press Enter. What you type while the agent works is heard at its next step.',
  'What stands behind a bar (│) was written by the agent or its tools; everything else by Rondo.',
  '  /resume    go on with what waits or was interrupted',
  '  /session   which session this is, and how to come back',
  '  /quit      leave (or Ctrl-D)',
  'Ctrl-C stops the turn that runs; on an empty line, or twice, it leaves.',
];

export class Talk {
  private readonly parts: TalkParts;
  private readonly asking: Asking;
  /** The turn that is driven, whether anything of it was heard, whether it runs at the moment, and whether it was asked to stop. */
  private turn: string | undefined;
  private begun = false;
  private running = false;
  private stopping = false;
  /** With which code to end, once it is time to go. */
  private leaving: number | undefined;
  private go: () => void = () => {};
  private readonly gone: Promise<undefined>;
  /** Messages that were typed here and need not be told again, and those that came too early for the turn. */
  private readonly sent: string[] = [];
  private readonly queue: string[] = [];
  /** Whether why it failed has been told. */
  private explained = false;
  private last: TurnResult | undefined;

  constructor(parts: TalkParts) {
    this.parts = parts;
    this.gone = new Promise((resolve) => {
      this.go = () => resolve(undefined);
    });
    this.asking = new Asking(
      { ...parts, sessionId: parts.opening.sessionId },
      {
        running: () => this.running,
        over: () => this.stopping || this.leaving !== undefined,
        interrupted: () => this.stop(),
        ended: () => this.ended(),
        refused: (error) => this.refused(error),
        failed: (thrown) => this.failed(thrown),
      },
    );
  }

  /** Whether this message was typed here; each is asked about once. */
  typed(text: string): boolean {
    const place = this.sent.indexOf(text);
    if (place !== -1) this.sent.splice(place, 1);
    return place !== -1;
  }

  /** Talks until somebody leaves; the code to end with. */
  async converse(): Promise<number> {
    const { screen, colors, opening } = this.parts;
    await this.pickUp(true);
    while (this.leaving === undefined) {
      const next = this.queue.shift();
      const reading = next === undefined ? await screen.next(`${colors.cyan('›')} `) : { line: next };
      if (typeof reading === 'object') await this.heard(reading.line.trim());
      else this.leave(exit.ok);
    }
    if (this.leaving !== exit.ok) return this.leaving;
    const paused = this.last?.status === 'paused';
    screen.say(...(paused && this.last !== undefined ? toldOf(this.last) : []), wayBack(opening));
    return paused ? exit.paused : exit.ok;
  }

  private async heard(line: string): Promise<void> {
    const { screen, opening } = this.parts;
    if (line === '') return;
    if (line === '/quit' || line === '/exit') return this.leave(exit.ok);
    if (line === '/help') return screen.say(...HELP);
    if (line === '/session') return screen.say(`This is session ${opening.sessionId}. ${wayBack(opening)}`);
    if (line === '/resume') return this.pickUp(false);
    if (/^\/[a-z]+$/.test(line)) return screen.say(`There is no ${line}; see /help.`);
    this.sent.push(line);
    await this.drive((options) => this.parts.host.run({ ...opening, input: { prompt: line } }, options));
  }

  /** Goes on with the last turn of the session that has not ended; at the start, only if a person has to answer. */
  private async pickUp(atStart: boolean): Promise<void> {
    const { host, screen, opening } = this.parts;
    const turns = await host.archive.turns(opening.sessionId);
    const open = turns.findLast(({ status }) => status === 'paused' || status === 'interrupted');
    if (open === undefined) return atStart ? undefined : screen.say('There is nothing to go on with.');
    const { turnId, status } = open;
    if (atStart && status === 'interrupted')
      return screen.say('The last turn was interrupted; /resume goes on with it.');
    this.asking.again();
    if (!atStart || (await this.asking.waiting(turnId)).length > 0)
      await this.drive((options) => this.parts.host.resume(turnId, options));
  }

  /** Drives a turn to its end, or until nobody wants to answer what it waits for. */
  private async drive(work: Work): Promise<void> {
    const { screen } = this.parts;
    this.turn = undefined;
    this.begun = false;
    this.stopping = false;
    this.explained = false;
    screen.work({
      line: (text) => void this.steer(text),
      interrupted: () => void this.stop(),
      ended: () => this.ended(),
    });
    let result = await this.attempt(work);
    while (result?.status === 'paused') {
      const { turnId } = result;
      for (const { id } of await this.asking.waiting(turnId)) this.asking.ask(id);
      if (!(await this.asking.settled()) || this.leaving !== undefined) break;
      result = await this.attempt((options) => this.parts.host.resume(turnId, options));
    }
    screen.work(undefined);
    this.last = result;
    if (this.leaving === undefined && result !== undefined) this.conclude(result);
  }

  /** One go at a turn; undefined if it could not be seen to its end. */
  private async attempt(work: Work): Promise<TurnResult | undefined> {
    const { screen, transcript } = this.parts;
    const hearing: TurnOptions = {
      onTurn: (turnId) => {
        this.turn = turnId;
      },
      onEvent: () => this.begin(),
      onEnvelope: (envelope) => this.envelope(envelope),
      onDelta: (delta) => screen.write(transcript.delta(delta)),
    };
    this.running = true;
    const done = work(hearing);
    // Who has left does not hear how it ends.
    done.catch(() => undefined);
    try {
      return await Promise.race([done, this.gone]);
    } catch (thrown) {
      this.failed(thrown);
      return undefined;
    } finally {
      this.running = false;
      screen.write(transcript.rest());
    }
  }

  private envelope(envelope: EventEnvelope): void {
    const { screen, transcript } = this.parts;
    screen.write(transcript.envelope(envelope));
    if (envelope.type === 'generation-failure') this.explained = true;
    const { approvalId, approvalStatus } = envelope.type === 'tool-call' ? envelope.content : {};
    if (approvalId !== undefined && approvalStatus === 'pending_approval') this.asking.ask(approvalId);
  }

  private async steer(text: string): Promise<void> {
    const { host, opening } = this.parts;
    this.sent.push(text);
    try {
      await host.say({ sessionId: opening.sessionId, text });
    } catch (thrown) {
      this.typed(text);
      // The turn has not begun, or has just ended: then it is a message of its own.
      if (thrown instanceof LoopError && thrown.code === 'TURN_NOT_FOUND') this.queue.push(text);
      else this.failed(thrown);
    }
  }

  private begin(): void {
    if (this.begun) return;
    this.begun = true;
    if (this.stopping && this.turn !== undefined) void this.cancel(this.turn);
  }

  /** Stops the turn, once it has begun; asked a second time, leaves without waiting for it. */
  private async stop(): Promise<void> {
    const { screen, colors } = this.parts;
    const { turn, running } = this;
    if (this.stopping) return this.abandon();
    this.stopping = true;
    screen.say(colors.dim('Stopping … (Ctrl-C again leaves)'));
    if (turn === undefined || !this.begun) return;
    await this.cancel(turn);
    if (!running) await this.catchUp();
  }

  private async cancel(turnId: string): Promise<void> {
    const { host, who } = this.parts;
    try {
      await host.cancel(turnId, `stopped in the chat by ${who}`);
    } catch (thrown) {
      this.failed(thrown);
    }
  }

  private ended(): void {
    if (this.running) this.abandon();
    else this.leave(exit.ok);
  }

  private abandon(): void {
    const { screen } = this.parts;
    screen.say(interruption(this.turn));
    this.leave(exit.interrupted);
  }

  private leave(code: number): void {
    this.leaving ??= code;
    this.go();
  }

  private async refused(error: LoopError): Promise<void> {
    this.failed(error);
    await this.catchUp();
  }

  /** Somebody else has gone on with the session: tells what happened there. */
  private async catchUp(): Promise<void> {
    const { host, screen, transcript, opening } = this.parts;
    const events = await host.archive.events(opening.sessionId);
    for (const envelope of events) if (!transcript.knows(envelope)) screen.write(transcript.envelope(envelope));
  }

  private failed(thrown: unknown): void {
    const { code } = thrown instanceof LoopError || thrown instanceof Fault ? thrown : { code: 'INTERNAL' };
    this.explain(code, thrown instanceof Error ? thrown.message : String(thrown));
  }

  /** Says why something went wrong; the reason may hold anybody's words. */
  private explain(code: string, message: string): void {
    const { screen, colors, width } = this.parts;
    screen.say(colors.red(`✗ ${plain(code)}`), ...block(safe(message, LONGEST), { colors, width: width() }));
  }

  private conclude(result: TurnResult): void {
    const { screen, colors } = this.parts;
    const { status, error, turnId } = result;
    // That it was stopped has been told.
    if (error?.code === 'CANCELLED') return void screen.say('');
    if (error !== undefined && !this.explained) this.explain(error.code, error.message);
    const told = status === 'error' ? [`Next: rondo trace ${turnId}`] : toldOf(result);
    screen.say(...told, colors.dim(summaryOf(result)), '');
  }
}

export function wayBack({ loop, sessionId }: Pick<Opening, 'loop' | 'sessionId'>): string {
  return `Come back with: rondo chat ${loop} --session ${sessionId}`;
}
