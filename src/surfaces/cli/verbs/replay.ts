/** `rondo replay`: replays a turn from its journal without performing effects. */
import { loadSettings } from '../../compose.js';
import { findTurn } from '../find-turn.js';
import { openHostForRunning } from '../open-host.js';
import { sanitizeText } from '../terminal-text.js';
import { exitCodes, type VerbHandler } from '../verb.js';

/** Handles `rondo replay`. */
export const replay: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForRunning(settings, terminal);
  try {
    const { turnId } = await findTurn(host, String(args[0]));
    const report = await host.replay(turnId, options.now === true ? 'now' : 'then');
    if (json) await terminal.printJson(report);
    const { matches, calls, stoppedAt, difference } = report;
    const ending = stoppedAt === undefined ? '' : ` The journal ends at ${stoppedAt}.`;
    const count = calls === 1 ? 'one call' : `${calls} calls`;
    if (matches) terminal.printToStderr(`The replay matches: ${count} ran again with the same results.${ending}`);
    else terminal.printToStderr(`The replay does not match: ${sanitizeText(difference ?? '')}`);
    return matches ? exitCodes.ok : exitCodes.unverified;
  } finally {
    await close();
  }
};
