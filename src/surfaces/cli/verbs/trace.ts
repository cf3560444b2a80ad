/** `trace`: what happened in a turn, as a tree for people or as events for programs. */
import { settingsOf } from '../../compose.js';
import { hostToLook } from '../host.js';
import { priceOf } from '../price.js';
import { findTurn } from '../turn.js';
import { type Act, exit } from '../verb.js';

export const trace: Act = async ({ args, asked, terminal, json }) => {
  const settings = await settingsOf(asked);
  const { host, close } = await hostToLook(settings, terminal);
  try {
    const { turnId } = await findTurn(host, String(args[0]));
    const events = await host.archive.trace(turnId);
    if (json) await terminal.jsonLines(events);
    else {
      const { renderTree } = await import('../tree.js');
      const options = { ...terminal.look(), price: priceOf(settings.config) };
      await terminal.print(`${renderTree(events, options)}\n`);
    }
    return exit.ok;
  } finally {
    await close();
  }
};
