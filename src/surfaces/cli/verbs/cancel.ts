/** `rondo cancel`: cancels a turn. */
import { loadSettings } from '../../compose.js';
import { findTurn } from '../find-turn.js';
import { openHostForRunning } from '../open-host.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';

/** Handles `rondo cancel`. */
export const cancel: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForRunning(settings, terminal);
  try {
    const { turnId } = await findTurn(host, String(args[0]));
    const reason = textOption(options.reason) ?? 'cancelled from the command line';
    const cancelled = await host.cancel(turnId, reason);
    const [status] = await host.archive.status(turnId);
    if (json) await terminal.printJson({ turnId, cancelled, status });
    const problem = status?.endedAt === undefined ? 'was cancelled before' : 'has already ended';
    terminal.printToStderr(cancelled ? `Cancelled ${turnId}.` : `${turnId} ${problem} (${status?.status}).`);
    return cancelled ? exitCodes.ok : exitCodes.failed;
  } finally {
    await close();
  }
};
