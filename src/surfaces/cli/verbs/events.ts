/** `events`: a session as front ends see it, for people or as envelopes for programs. */
import { settingsOf } from '../../compose.js';
import { hostToLook } from '../host.js';
import { findTurns } from '../turn.js';
import { type Act, exit } from '../verb.js';

export const events: Act = async ({ args, options, asked, terminal, json }) => {
  const people = !json && (options.text === true || terminal.streams.stdout.isTTY === true);
  const { host, close } = await hostToLook(await settingsOf(asked), terminal);
  try {
    const [turn] = await findTurns(host, String(args[0]));
    const envelopes = await host.archive.events(turn?.sessionId ?? '');
    if (!people) await terminal.jsonLines(envelopes);
    else {
      const { Transcript } = await import('../chat/transcript.js');
      const { color, width } = terminal.look();
      const transcript = new Transcript({ color, width: () => width });
      const told = envelopes.map((envelope) => transcript.envelope(envelope)).join('');
      await terminal.print(`${told}${transcript.rest()}`);
    }
    if (envelopes.length === 0) terminal.say('No agent has spoken in this session.');
    return exit.ok;
  } finally {
    await close();
  }
};
