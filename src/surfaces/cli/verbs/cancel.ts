/** `cancel`: asks a turn to stop. */
import { settingsOf } from '../../compose.js';
import { hostToContinue } from '../host.js';
import { findTurn } from '../turn.js';
import { type Act, exit, textOf } from '../verb.js';

export const cancel: Act = async ({ args, options, asked, terminal, json }) => {
  const settings = await settingsOf(asked);
  const { host, close } = await hostToContinue(settings, terminal);
  try {
    const { turnId } = await findTurn(host, String(args[0]));
    const reason = textOf(options.reason) ?? 'cancelled from the command line';
    const cancelled = await host.cancel(turnId, reason);
    const [status] = await host.archive.status(turnId);
    if (json) await terminal.json({ turnId, cancelled, status });
    terminal.say(cancelled ? `Cancelled ${turnId}.` : `${turnId} had ended already (${status?.status}).`);
    return cancelled ? exit.ok : exit.failed;
  } finally {
    await close();
  }
};
