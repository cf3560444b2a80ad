/** `cancel`: asks a turn to stop. */
import { loadLoops, settingsOf } from '../../compose.js';
import { Reach } from '../../owner/reach.js';
import { leave } from '../drive.js';
import { findTurn } from '../turn.js';
import { type Act, exit, textOf } from '../verb.js';

export const cancel: Act = async ({ args, options, asked, terminal, json }) => {
  const settings = await settingsOf(asked);
  const reach = new Reach(settings, { definitions: () => loadLoops(settings), make: false, serve: true });
  try {
    const { turnId } = await findTurn(reach, String(args[0]));
    const reason = textOf(options.reason) ?? 'cancelled from the command line';
    const cancelled = await reach.ask((desk) => desk.cancel(turnId, reason));
    const [status] = await reach.ask((desk) => desk.status(turnId));
    if (json) await terminal.json({ turnId, cancelled, status });
    terminal.say(cancelled ? `Cancelled ${turnId}.` : `${turnId} had ended already (${status?.status}).`);
    return cancelled ? exit.ok : exit.failed;
  } finally {
    await leave(reach, terminal);
  }
};
