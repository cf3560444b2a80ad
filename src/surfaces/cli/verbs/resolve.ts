/** `resolve`: says what became of an effect in doubt, then goes on with its turn. */

import type { Resolution } from '../../../host/host.js';
import type { Json } from '../../../protocol/json.js';
import type { TurnStatus } from '../../../protocol/trace.js';
import { loadSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { findTurn } from '../find-turn.js';
import { readJsonInput } from '../input.js';
import { printResult, runWithLiveOutput } from '../live-run.js';
import { openHostForRunning } from '../open-host.js';
import { pricingOf } from '../pricing.js';
import type { Terminal } from '../terminal.js';
import { userNameOf } from '../user-name.js';
import type { VerbHandler, VerbOptions } from '../verb.js';

export const resolve: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const { decision, value } = await resolutionOf(options, terminal);
  const who = userNameOf(options);
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForRunning(settings, terminal);
  try {
    const given = String(args[0]);
    const turn = await findTurn(host, given.split('/', 1)[0] ?? '');
    const key = effectKeyOf(given, turn);
    await host.resolveEffect(key, decision, who, value);
    const driving = { host, terminal, price: pricingOf(settings.config), watch: false };
    const result = await runWithLiveOutput(driving, (heard) => host.resume(turn.turnId, heard));
    return await printResult(result, terminal, json);
  } finally {
    await close();
  }
};

async function resolutionOf(options: VerbOptions, terminal: Terminal): Promise<{ decision: Resolution; value?: Json }> {
  const { retry, result, fail } = options;
  if ([retry, result, fail].filter((option) => option !== undefined).length !== 1) {
    throw new UsageError('Say exactly one of --retry, --result JSON and --fail.');
  }
  if (result === undefined) return { decision: retry === true ? 'retry' : 'fail' };
  return { decision: 'supply', value: (await readJsonInput('--result', String(result), terminal)) as Json };
}

/** The key of the effect; a turn with one effect in doubt is enough to name it. */
function effectKeyOf(given: string, { turnId, pending = [] }: TurnStatus): string {
  const slash = given.indexOf('/');
  if (slash !== -1) return turnId + given.slice(slash);
  const doubts = pending.filter(({ kind }) => kind === 'doubt').map(({ key }) => key);
  const [only] = doubts;
  if (only !== undefined && doubts.length === 1) return only;
  const which = doubts.length === 0 ? 'nothing is in doubt' : `several effects are in doubt: ${doubts.join(', ')}`;
  throw new UsageError(`In ${turnId} ${which}.`);
}
