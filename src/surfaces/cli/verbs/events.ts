/** `events`: a session as front ends see it, for people or as envelopes for programs. */
import { loadSettings } from '../../compose.js';
import { findTurns } from '../find-turn.js';
import { openHostForReading } from '../open-host.js';
import { exitCodes, type VerbHandler } from '../verb.js';

export const events: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const people = !json && (options.text === true || terminal.streams.stdout.isTTY === true);
  const { host, close } = await openHostForReading(await loadSettings(settingsInput), terminal);
  try {
    const [turn] = await findTurns(host, String(args[0]));
    const envelopes = await host.archive.events(turn?.sessionId ?? '');
    if (!people) await terminal.printJsonLines(envelopes);
    else {
      const { Transcript } = await import('../chat/transcript.js');
      const { color, width } = terminal.displayOf();
      const transcript = new Transcript({ color, width: () => width });
      const told = envelopes.map((envelope) => transcript.renderEnvelope(envelope)).join('');
      await terminal.print(`${told}${transcript.endRow()}`);
    }
    if (envelopes.length === 0) terminal.printToStderr('No agent has spoken in this session.');
    return exitCodes.ok;
  } finally {
    await close();
  }
};
