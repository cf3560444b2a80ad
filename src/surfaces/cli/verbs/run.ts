/** `run`: one turn of a loop. */

import type { TurnRequest } from '../../../host/host.js';
import { type Definitions, settingsOf } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { findLoop, missing, type Wanted, warnBad, warnMistakes } from '../definitions.js';
import { drive, printResult } from '../drive.js';
import { openHost } from '../host.js';
import { readInput } from '../input.js';
import { priceOf } from '../price.js';
import type { Terminal } from '../terminal.js';
import { assertSession } from '../turn.js';
import { type Act, listOf, type Options, textOf } from '../verb.js';

export const run: Act = async ({ args, options, asked, terminal, json }) => {
  assertOptions(options);
  const settings = await settingsOf(asked);
  const input = await readInput('--input', textOf(options.input) ?? '{}', terminal);
  const { wanted, definitions } = await findLoop(String(args[0]), textOf(options.version), settings);
  warnBad(definitions.bad, terminal);
  warnMistakes(definitions.warnings, terminal);
  const here = definitions.registry.find(wanted.id, wanted.version) !== undefined;
  const { host, close } = await openHost(settings, { definitions, make: here }, terminal);
  try {
    const request = { loop: wanted.id, input, ...chosen(wanted, options) };
    const driving = { host, terminal, price: priceOf(settings.config), watch: options.watch === true };
    const result = await drive(driving, (heard) => host.run(request, heard));
    if (result.error?.code === 'LOOP_NOT_FOUND' && !here) tellMissing(wanted, definitions, terminal);
    return await printResult(result, terminal, json);
  } finally {
    await close();
  }
};

function assertOptions({ grant, session, key, as, approver }: Options): void {
  if (grant !== undefined)
    throw new UsageError('--grant is not in this version: a turn runs without limits of its own.');
  assertSession(textOf(session));
  if (typeof key === 'string' && (key === '' || key.length > 1000)) {
    throw new UsageError('--key must be text of 1 to 1,000 characters.');
  }
  if ([as, ...listOf(approver)].some((who) => typeof who === 'string' && who.trim() === ''))
    throw new UsageError('--as and --approver must name somebody.');
}

function chosen({ version }: Wanted, options: Options): Omit<TurnRequest, 'loop' | 'input'> {
  const [sessionId, key, principal] = [textOf(options.session), textOf(options.key), textOf(options.as)];
  const approvers = listOf(options.approver);
  return {
    ...(version !== undefined && { version }),
    ...(sessionId !== undefined && { sessionId }),
    ...(key !== undefined && { key }),
    ...(principal !== undefined && { principal }),
    ...(approvers.length > 0 && { approvers }),
  };
}

function tellMissing(wanted: Wanted, definitions: Definitions, terminal: Terminal): void {
  for (const line of missing(wanted, definitions)) terminal.say(line);
}
