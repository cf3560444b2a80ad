/** `rondo events`: shows the conversation of a session as text, or as one envelope per line. */
import { loadSettings } from '../../compose.js';
import { findTurns } from '../find-turn.js';
import { openHostForReading } from '../open-host.js';
import { exitCodes, type VerbHandler } from '../verb.js';

/** Handles `rondo events`. */
export const events: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const isText = !json && (options.text === true || terminal.streams.stdout.isTTY === true);
  const { host, close } = await openHostForReading(await loadSettings(settingsInput), terminal);
  try {
    const [turn] = await findTurns(host, String(args[0]));
    const envelopes = await host.archive.events(turn?.sessionId ?? '');
    if (!isText) await terminal.printJsonLines(envelopes);
    else {
      const { Transcript } = await import('../chat/transcript.js');
      const { color, width } = terminal.displayOf();
      const transcript = new Transcript({ color, width: () => width });
      const text = envelopes.map((envelope) => transcript.renderEnvelope(envelope)).join('');
      await terminal.print(`${text}${transcript.endRow()}`);
    }
    if (envelopes.length === 0) terminal.printToStderr('This session has no conversation.');
    return exitCodes.ok;
  } finally {
    await close();
  }
};
