/**
 * A chat without a terminal: each line of stdin is a message; answers, or with JSON all envelopes, go to stdout. There
 * is no user to prompt, so a turn that waits for an approval ends the chat.
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

/** Runs a turn for each line. Returns the highest exit code of the turns, or the code of a pause. */
export async function runPipedChat({ host, terminal, turnTemplate, json }: PipedChatOptions): Promise<number> {
  const { stdin } = terminal.streams;
  const output = json ? new JsonOutput(terminal) : new TextOutput(terminal);
  let [worstCode, startedTurnId]: [number, string | undefined] = [exitCodes.ok, undefined];
  terminal.onInterrupt = () => interruptionMessage(startedTurnId);
  for await (const line of createInterface({ input: stdin, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.trim() === '') continue;
    startedTurnId = undefined;
    const turnOptions = {
      onTurn: (turnId: string) => {
        startedTurnId = turnId;
      },
      onEnvelope: (envelope: EventEnvelope) => output.writeEnvelope(envelope),
    };
    const result = await host.run({ ...turnTemplate, input: { prompt: line } }, turnOptions);
    output.endTurn(result);
    for (const outcomeLine of outcomeLines(result, terminal.streams)) terminal.printToStderr(outcomeLine);
    terminal.printToStderr(summaryLineOf(result));
    if (result.status === 'paused') return exitCodes.paused;
    worstCode = Math.max(worstCode, exitCodeOf(result));
    // Answers have no reader, so no further turn is started.
    if (terminal.isStdoutClosed) break;
  }
  return worstCode;
}

/** Prints one envelope per line. An envelope with the id of an earlier one replaces it. */
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

/** Prints answers as text to stdout, and everything else to stderr. */
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
    const text = this.transcript.renderEnvelope(envelope).replace(/\n$/, '');
    if (text !== '') this.terminal.printToStderr(text);
  }

  /** Prints the answer of a turn without an assistant message: after a handoff, only the result has the answer. */
  endTurn(result: TurnResult): void {
    const { hasAnswer } = this;
    this.hasAnswer = false;
    if (result.status !== 'ok' || hasAnswer) return;
    const { text } = (result.output ?? {}) as { readonly text?: unknown };
    this.printAnswer(typeof text === 'string' ? text : JSON.stringify(result.output ?? null));
  }

  private printAnswer(text: string): void {
    void this.terminal.print(`${escapeMultiline(text).trimEnd()}\n`);
  }
}
