/** `rondo trace`: shows the trace of a turn as a tree, or with `--json` as one JSON event per line. */
import { loadSettings } from '../../compose.js';
import { findTurn } from '../find-turn.js';
import { openHostForReading } from '../open-host.js';
import { pricingOf } from '../pricing.js';
import { exitCodes, type VerbHandler } from '../verb.js';

/** Handles `rondo trace`. */
export const trace: VerbHandler = async ({ args, settingsInput, terminal, json }) => {
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForReading(settings, terminal);
  try {
    const { turnId } = await findTurn(host, String(args[0]));
    const events = await host.archive.trace(turnId);
    if (json) await terminal.printJsonLines(events);
    else {
      const { renderTree } = await import('../render-tree.js');
      const options = { ...terminal.displayOf(), price: pricingOf(settings.config) };
      await terminal.print(`${renderTree(events, options)}\n`);
    }
    return exitCodes.ok;
  } finally {
    await close();
  }
};
