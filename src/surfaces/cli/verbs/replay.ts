/** `replay`: runs a turn's bodies over its record, performing nothing. */
import { loadSettings } from '../../compose.js';
import { findTurn } from '../find-turn.js';
import { openHostForRunning } from '../open-host.js';
import { sanitizeText } from '../terminal-text.js';
import { exitCodes, type VerbHandler } from '../verb.js';

export const replay: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForRunning(settings, terminal);
  try {
    const { turnId } = await findTurn(host, String(args[0]));
    const shown = await host.replay(turnId, options.now === true ? 'now' : 'then');
    if (json) await terminal.printJson(shown);
    const { matches, calls, stoppedAt, difference } = shown;
    const rest = stoppedAt === undefined ? '' : ` The record ends at ${stoppedAt}.`;
    if (matches)
      terminal.printToStderr(
        `It matches: ${calls === 1 ? 'one call' : `${calls} calls`} ran again and came to the same.${rest}`,
      );
    else terminal.printToStderr(`It does not match: ${sanitizeText(difference ?? '')}`);
    return matches ? exitCodes.ok : exitCodes.unverified;
  } finally {
    await close();
  }
};
