/** `rondo close`: closes a session with its terminal receipt. */
import { loadSettings } from '../../compose.js';
import { openHostForReading } from '../open-host.js';
import { receiptsOf } from '../receipt-access.js';
import { exitCodes, type VerbHandler } from '../verb.js';

/** Handles `rondo close`. */
export const closeSession: VerbHandler = async ({ args, settingsInput, terminal, json }) => {
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForReading(settings, terminal);
  try {
    const sessionId = String(args[0]);
    const receipt = await receiptsOf(host).close(sessionId);
    if (json) await terminal.printJson({ sessionId, receipt });
    terminal.printToStderr(`Closed session ${sessionId}. From now on, a missing receipt is known to be missing.`);
    return exitCodes.ok;
  } finally {
    await close();
  }
};
