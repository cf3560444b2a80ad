/** `rondo fork`: copies a turn up to an entry into a new session. */
import { loadSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { findTurn } from '../find-turn.js';
import { openHostForReading } from '../open-host.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';

/** Handles `rondo fork`. */
export const fork: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const at = entryNumber(textOption(options.at));
  // Without loops: a fork runs nothing.
  const { host, close } = await openHostForReading(await loadSettings(settingsInput), terminal);
  try {
    const { turnId } = await findTurn(host, String(args[0]));
    const forked = await host.fork(turnId, { at });
    if (json) await terminal.printJson(forked);
    else await terminal.print(`${forked.turnId}\n`);
    terminal.printToStderr(`Forked ${turnId} at entry ${at}. Continue it with: rondo resume ${forked.turnId}`);
    return exitCodes.ok;
  } finally {
    await close();
  }
};

function entryNumber(text: string | undefined): number {
  if (text !== undefined && /^\d{1,15}$/.test(text)) return Number(text);
  throw new UsageError(
    '--at needs the number of an entry. The id of an event begins with the number of its entry: rondo events SESSION --json',
  );
}
