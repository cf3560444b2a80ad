/** `trace`: what happened in a turn, as a tree for people or as events for programs. */
import { noDefinitions, settingsOf } from '../../compose.js';
import { Reach } from '../../owner/reach.js';
import { priceOf } from '../price.js';
import { findTurn } from '../turn.js';
import { type Act, exit } from '../verb.js';

export const trace: Act = async ({ args, asked, terminal, json }) => {
  const settings = await settingsOf(asked);
  const reach = new Reach(settings, { definitions: noDefinitions, make: false });
  try {
    const { turnId } = await findTurn(reach, String(args[0]));
    const events = await reach.ask((desk) => desk.trace(turnId));
    if (json) await terminal.print(events.map((event) => `${JSON.stringify(event)}\n`).join(''));
    else {
      const { renderTree } = await import('../tree.js');
      const options = { ...terminal.look(), price: priceOf(settings.config) };
      await terminal.print(`${renderTree(events, options)}\n`);
    }
    return exit.ok;
  } finally {
    await reach.close();
  }
};
