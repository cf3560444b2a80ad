/**
 * A chat without a terminal: each line of stdin is a message, and the answers go to stdout; or, for programs, every
 * envelope, one a line. Nobody can be asked, so a turn that waits for an approval ends it.
 */

import { createInterface } from 'node:readline';
import type { Host } from '../../../host/host.js';
import type { EventEnvelope } from '../../../protocol/events.js';
import type { TurnResult } from '../../../protocol/trace.js';
import { interruptionMessage } from '../live-run.js';
import { exitCodeOf, outcomeLines, summaryLineOf } from '../outcome.js';
import type { Terminal } from '../terminal.js';
import { escapeMultiline } from '../untrusted-text.js';
import { exitCodes } from '../verb.js';
import type { TurnTemplate } from './chat-controller.js';
import { Transcript } from './transcript.js';

interface PipedChatOptions {
  readonly host: Host;
  readonly terminal: Terminal;
  readonly turnTemplate: TurnTemplate;
  readonly json: boolean;
}

/** Sends every line as a message; the code to end with is that of the turn that went worst, or of the pause. */
export async function runPipedChat({ host, terminal, turnTemplate, json }: PipedChatOptions): Promise<number> {
  const { stdin } = terminal.streams;
  const said = json ? new JsonOutput(terminal) : new TextOutput(terminal);
  let [worst, turn]: [number, string | undefined] = [exitCodes.ok, undefined];
  terminal.onInterrupt = () => interruptionMessage(turn);
  for await (const line of createInterface({ input: stdin, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.trim() === '') continue;
    turn = undefined;
    const hearing = {
      onTurn: (turnId: string) => {
        turn = turnId;
      },
      onEnvelope: (envelope: EventEnvelope) => said.writeEnvelope(envelope),
    };
    const result = await host.run({ ...turnTemplate, input: { prompt: line } }, hearing);
    said.endTurn(result);
    for (const told of outcomeLines(result)) terminal.printToStderr(told);
    terminal.printToStderr(summaryLineOf(result));
    if (result.status === 'paused') return exitCodes.paused;
    worst = Math.max(worst, exitCodeOf(result));
    // Nobody reads the answers any more: no further turn is begun for them.
    if (terminal.isStdoutClosed) break;
  }
  return worst;
}

/** One envelope a line; one that comes again under its id replaces the earlier. */
class JsonOutput {
  private readonly terminal: Terminal;

  constructor(terminal: Terminal) {
    this.terminal = terminal;
  }

  writeEnvelope(envelope: EventEnvelope): void {
    void this.terminal.printJson(envelope);
  }

  endTurn(): void {}
}

/** Answers as text on one stream, everything else on the other. */
class TextOutput {
  private readonly terminal: Terminal;
  private readonly transcript = new Transcript({ color: false, width: () => 100, hidesUserMessage: () => true });
  private hasAnswer = false;

  constructor(terminal: Terminal) {
    this.terminal = terminal;
  }

  writeEnvelope(envelope: EventEnvelope): void {
    if (envelope.type === 'assistant-message') {
      this.hasAnswer = true;
      this.printAnswer(envelope.content.text);
      return;
    }
    const told = this.transcript.renderEnvelope(envelope).replace(/\n$/, '');
    if (told !== '') this.terminal.printToStderr(told);
  }

  /** A handoff answers for the agent: then only the result holds the answer. */
  endTurn({ status, output }: TurnResult): void {
    const { hasAnswer } = this;
    this.hasAnswer = false;
    if (status !== 'ok' || hasAnswer) return;
    const { text } = (output ?? {}) as { readonly text?: unknown };
    this.printAnswer(typeof text === 'string' ? text : JSON.stringify(output ?? null));
  }

  private printAnswer(text: string): void {
    void this.terminal.print(`${escapeMultiline(text).trimEnd()}\n`);
  }
}
