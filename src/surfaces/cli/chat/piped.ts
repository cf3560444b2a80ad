/**
 * A chat without a terminal: each line of stdin is a message, and the answers go to stdout; or, for programs, every
 * envelope, one a line. Nobody can be asked, so a turn that waits for an approval ends it.
 */

import { createInterface } from 'node:readline';
import type { Writable } from 'node:stream';
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
  const { stdin, stdout, stderr } = terminal.streams;
  const said = json ? new JsonLines(stdout) : new Answers(stdout, stderr);
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
  }
  return worst;
}

/** One envelope a line; one that comes again under its id replaces the earlier. */
class JsonLines {
  private readonly out: Writable;

  constructor(out: Writable) {
    this.out = out;
  }

  envelope(envelope: EventEnvelope): void {
    this.out.write(`${JSON.stringify(envelope)}\n`);
  }

  end(): void {}
}

/** Answers as text on one stream, everything else on the other. */
class Answers {
  private readonly out: Writable;
  private readonly aside: Writable;
  private readonly transcript = new Transcript({ color: false, width: () => 100, silent: () => true });
  private answered = false;

  constructor(out: Writable, aside: Writable) {
    this.out = out;
    this.aside = aside;
  }

  envelope(envelope: EventEnvelope): void {
    if (envelope.type !== 'assistant-message') {
      this.aside.write(this.transcript.envelope(envelope));
      return;
    }
    this.answered = true;
    this.out.write(`${safe(envelope.content.text).trimEnd()}\n`);
  }

  /** A handoff answers for the agent: then only the result holds the answer. */
  end({ status, output }: TurnResult): void {
    const { answered } = this;
    this.answered = false;
    if (status !== 'ok' || answered) return;
    const { text } = (output ?? {}) as { readonly text?: unknown };
    this.out.write(`${safe(typeof text === 'string' ? text : JSON.stringify(output ?? null)).trimEnd()}\n`);
  }
}
