/** `rondo events`: shows the conversation of a session as text, or as one envelope per line. */
import type { Host } from '../../../host/host.js';
import type { EventEnvelope } from '../../../protocol/events.js';
import { usageOf } from '../../../views/call-details.js';
import { loadSettings } from '../../compose.js';
import { findTurns } from '../find-turn.js';
import { followConversation } from '../follow.js';
import { openHostForReading } from '../open-host.js';
import { usageText } from '../render-details.js';
import type { Terminal } from '../terminal.js';
import { sanitizeText } from '../terminal-text.js';
import { exitCodes, type VerbHandler, type VerbOptions } from '../verb.js';
import { inspectTurn } from './status.js';

/** Handles `rondo events`. */
export const events: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const { host, close } = await openHostForReading(await loadSettings(settingsInput), terminal);
  try {
    const turns = await findTurns(host, String(args[0]));
    const sessionId = turns[0]?.sessionId ?? '';
    const isText = !json && (options.text === true || terminal.streams.stdout.isTTY === true);
    const printer = isText ? await textPrinter(terminal, options) : jsonPrinter(terminal);
    if (options.follow === true) {
      terminal.onInterrupt = () => 'Interrupted. The turns of the session continue.';
      await followConversation(host, sessionId, terminal, printer.print);
    } else await printer.print(await host.archive.events(sessionId));
    await printer.end();
    if (isText) await printUsage(host, sessionId, terminal);
    return exitCodes.ok;
  } finally {
    await close();
  }
};

/** Prints envelopes as they arrive. */
interface EnvelopePrinter {
  print(envelopes: readonly EventEnvelope[]): Promise<void>;
  /** Ends the last line. */
  end(): Promise<void>;
}

function jsonPrinter(terminal: Terminal): EnvelopePrinter {
  return { print: (envelopes) => terminal.printJsonLines(envelopes), end: async () => undefined };
}

async function textPrinter(terminal: Terminal, { full }: VerbOptions): Promise<EnvelopePrinter> {
  const { Transcript } = await import('../chat/transcript.js');
  const { color, width } = terminal.displayOf();
  const transcript = new Transcript({ color, width: () => width, isFull: full === true });
  return {
    print: (envelopes) => terminal.print(envelopes.map((envelope) => transcript.renderEnvelope(envelope)).join('')),
    end: () => terminal.print(transcript.endRow()),
  };
}

/** Prints the status and the usage of each turn to stderr. */
async function printUsage(host: Host, sessionId: string, terminal: Terminal): Promise<void> {
  for (const turn of await host.archive.turns(sessionId)) {
    const { calls } = await inspectTurn(host, turn);
    const usage = usageOf(calls);
    const text = usage === undefined ? '' : `, ${usageText(usage)}`;
    terminal.printToStderr(`${sanitizeText(turn.turnId)}: ${turn.status}${text}`);
  }
}
