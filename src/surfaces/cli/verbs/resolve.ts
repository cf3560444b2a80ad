/** `rondo resolve`: resolves an effect of which it is unknown whether it was performed, then resumes its turn. */
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

/** Handles `rondo resolve`. */
export const resolve: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const { resolution, value } = await resolutionOf(options, terminal);
  const userName = userNameOf(options);
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForRunning(settings, terminal);
  try {
    const reference = String(args[0]);
    const turn = await findTurn(host, reference.split('/', 1)[0] ?? '');
    const key = effectKeyOf(reference, turn);
    await host.resolveEffect(key, resolution, userName, value);
    const live = { terminal, price: pricingOf(settings.config), watch: false };
    const result = await runWithLiveOutput(live, (turnOptions) => host.resume(turn.turnId, turnOptions));
    return await printResult(result, terminal, json);
  } finally {
    await close();
  }
};

async function resolutionOf(
  options: VerbOptions,
  terminal: Terminal,
): Promise<{ resolution: Resolution; value?: Json }> {
  const { retry, result, fail } = options;
  if ([retry, result, fail].filter((option) => option !== undefined).length !== 1) {
    throw new UsageError('Give exactly one of --retry, --result JSON and --fail.');
  }
  if (result === undefined) return { resolution: retry === true ? 'retry' : 'fail' };
  return { resolution: 'supply', value: (await readJsonInput('--result', String(result), terminal)) as Json };
}

/**
 * Returns the key of an effect. A reference is `<turn>/<path>`, or the turn alone if only one effect is in doubt.
 * Throws a UsageError for a turn with none or several.
 */
function effectKeyOf(reference: string, { turnId, pending = [] }: TurnStatus): string {
  const slash = reference.indexOf('/');
  if (slash !== -1) return turnId + reference.slice(slash);
  const keys = pending.filter(({ kind }) => kind === 'doubt').map(({ key }) => key);
  const [only] = keys;
  if (only !== undefined && keys.length === 1) return only;
  const problem = keys.length === 0 ? 'no effect is in doubt' : `several effects are in doubt: ${keys.join(', ')}`;
  throw new UsageError(`In ${turnId} ${problem}.`);
}
