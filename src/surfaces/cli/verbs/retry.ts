/** `rondo retry`: continues a failed turn where it failed. */
import { loadSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { findTurn } from '../find-turn.js';
import { printResult, runWithLiveOutput } from '../live-run.js';
import { openHostForRunning } from '../open-host.js';
import { pricingOf } from '../pricing.js';
import { textOption, type VerbHandler } from '../verb.js';

/** Handles `rondo retry`. */
export const retry: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const reference = textOption(args[0]);
  if (reference === undefined) throw new UsageError('Give the turn to retry. See: rondo runs --status error');
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForRunning(settings, terminal);
  try {
    const { turnId } = await findTurn(host, reference);
    const live = { terminal, price: pricingOf(settings.config), watch: options.watch === true };
    const result = await runWithLiveOutput(live, (turnOptions) => host.retry(turnId, turnOptions));
    return await printResult(result, terminal, json);
  } finally {
    await close();
  }
};
