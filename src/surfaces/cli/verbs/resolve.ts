/** `resolve`: says what became of an effect in doubt, then goes on with its turn. */

import type { Decision } from '../../../host/host.js';
import type { Json } from '../../../protocol/json.js';
import type { TurnStatus } from '../../../protocol/trace.js';
import { settingsOf } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { drive, printResult } from '../drive.js';
import { hostToContinue } from '../host.js';
import { readInput } from '../input.js';
import { priceOf } from '../price.js';
import type { Terminal } from '../terminal.js';
import { findTurn } from '../turn.js';
import type { Act, Options } from '../verb.js';
import { whoOf } from '../who.js';

export const resolve: Act = async ({ args, options, asked, terminal, json }) => {
  const { decision, value } = await decisionOf(options, terminal);
  const who = whoOf(options);
  const settings = await settingsOf(asked);
  const { host, close } = await hostToContinue(settings, terminal);
  try {
    const given = String(args[0]);
    const turn = await findTurn(host, given.split('/', 1)[0] ?? '');
    const key = keyOf(given, turn);
    await host.decide(key, decision, who, value);
    const driving = { host, terminal, price: priceOf(settings.config), watch: false };
    const result = await drive(driving, (heard) => host.resume(turn.turnId, heard));
    return await printResult(result, terminal, json);
  } finally {
    await close();
  }
};

async function decisionOf(options: Options, terminal: Terminal): Promise<{ decision: Decision; value?: Json }> {
  const { retry, result, fail } = options;
  if ([retry, result, fail].filter((option) => option !== undefined).length !== 1) {
    throw new UsageError('Say exactly one of --retry, --result JSON and --fail.');
  }
  if (result === undefined) return { decision: retry === true ? 'retry' : 'fail' };
  return { decision: 'supply', value: (await readInput('--result', String(result), terminal)) as Json };
}

/** The key of the effect; a turn with one effect in doubt is enough to name it. */
function keyOf(given: string, { turnId, pending = [] }: TurnStatus): string {
  const slash = given.indexOf('/');
  if (slash !== -1) return turnId + given.slice(slash);
  const doubts = pending.filter(({ kind }) => kind === 'doubt').map(({ key }) => key);
  const [only] = doubts;
  if (only !== undefined && doubts.length === 1) return only;
  const which = doubts.length === 0 ? 'nothing is in doubt' : `several effects are in doubt: ${doubts.join(', ')}`;
  throw new UsageError(`In ${turnId} ${which}.`);
}
