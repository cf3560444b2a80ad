/** `replay`: runs a turn's bodies over its record, performing nothing. */
import { settingsOf } from '../../compose.js';
import { hostToContinue } from '../host.js';
import { plain } from '../paint.js';
import { findTurn } from '../turn.js';
import { type Act, exit } from '../verb.js';

export const replay: Act = async ({ args, options, asked, terminal, json }) => {
  const settings = await settingsOf(asked);
  const { host, close } = await hostToContinue(settings, terminal);
  try {
    const { turnId } = await findTurn(host, String(args[0]));
    const shown = await host.replay(turnId, options.now === true ? 'now' : 'then');
    if (json) await terminal.json(shown);
    const { matches, calls, stoppedAt, difference } = shown;
    const rest = stoppedAt === undefined ? '' : ` The record ends at ${stoppedAt}.`;
    if (matches)
      terminal.say(`It matches: ${calls === 1 ? 'one call' : `${calls} calls`} ran again and came to the same.${rest}`);
    else terminal.say(`It does not match: ${plain(difference ?? '')}`);
    return matches ? exit.ok : exit.unverified;
  } finally {
    await close();
  }
};
