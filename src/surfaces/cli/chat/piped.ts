/**
 * A chat without a terminal: each line of stdin is a message, and the answers go to stdout; or, for programs, every
 * envelope, one a line. Nobody can be asked, so a turn that waits for an approval ends it.
 */

import { createInterface } from 'node:readline';
import type { Host } from '../../../host/host.js';
import type { EventEnvelope } from '../../../protocol/events.js';
import type { TurnResult } from '../../../protocol/trace.js';
import { interruption } from '../drive.js';
import { exitOf, summaryOf, toldOf } from '../outcome.js';
import type { Terminal } from '../terminal.js';
import { safe } from '../untrusted.js';
import { exit } from '../verb.js';
import type { Opening } from './talk.js';
import { Transcript } from './transcript.js';

interface Piped {
  readonly host: Host;
  readonly terminal: Terminal;
  readonly opening: Opening;
  readonly json: boolean;
}

/** Sends every line as a message; the code to end with is that of the turn that went worst, or of the pause. */
export async function pipe({ host, terminal, opening, json }: Piped): Promise<number> {
  const { stdin } = terminal.streams;
  const said = json ? new JsonLines(terminal) : new Answers(terminal);
  let [worst, turn]: [number, string | undefined] = [exit.ok, undefined];
  terminal.interrupted = () => interruption(turn);
  for await (const line of createInterface({ input: stdin, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.trim() === '') continue;
    turn = undefined;
    const hearing = {
      onTurn: (turnId: string) => {
        turn = turnId;
      },
      onEnvelope: (envelope: EventEnvelope) => said.envelope(envelope),
    };
    const result = await host.run({ ...opening, input: { prompt: line } }, hearing);
    said.end(result);
    for (const told of toldOf(result)) terminal.say(told);
    terminal.say(summaryOf(result));
    if (result.status === 'paused') return exit.paused;
    worst = Math.max(worst, exitOf(result));
    // Nobody reads the answers any more: no further turn is begun for them.
    if (terminal.isCut) break;
  }
  return worst;
}

/** One envelope a line; one that comes again under its id replaces the earlier. */
class JsonLines {
  private readonly terminal: Terminal;

  constructor(terminal: Terminal) {
    this.terminal = terminal;
  }

  envelope(envelope: EventEnvelope): void {
    void this.terminal.json(envelope);
  }

  end(): void {}
}

/** Answers as text on one stream, everything else on the other. */
class Answers {
  private readonly terminal: Terminal;
  private readonly transcript = new Transcript({ color: false, width: () => 100, silent: () => true });
  private answered = false;

  constructor(terminal: Terminal) {
    this.terminal = terminal;
  }

  envelope(envelope: EventEnvelope): void {
    if (envelope.type === 'assistant-message') {
      this.answered = true;
      this.answer(envelope.content.text);
      return;
    }
    const told = this.transcript.envelope(envelope).replace(/\n$/, '');
    if (told !== '') this.terminal.say(told);
  }

  /** A handoff answers for the agent: then only the result holds the answer. */
  end({ status, output }: TurnResult): void {
    const { answered } = this;
    this.answered = false;
    if (status !== 'ok' || answered) return;
    const { text } = (output ?? {}) as { readonly text?: unknown };
    this.answer(typeof text === 'string' ? text : JSON.stringify(output ?? null));
  }

  private answer(text: string): void {
    void this.terminal.print(`${safe(text).trimEnd()}\n`);
  }
}
