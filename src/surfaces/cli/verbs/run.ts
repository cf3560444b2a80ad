/** `run`: one turn of a loop. */
import { type Definitions, settingsOf } from '../../compose.js';
import type { DeskRequest } from '../../owner/desk.js';
import { Reach } from '../../owner/reach.js';
import { UsageError } from '../../settings.js';
import { findLoop, missing, type Wanted, warnBad } from '../definitions.js';
import { drive, leave, printResult } from '../drive.js';
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
  const here = definitions.registry.find(wanted.id, wanted.version) !== undefined;
  const reach = new Reach(settings, { definitions: async () => definitions, make: here, serve: true });
  try {
    const request = { loop: wanted.id, input, ...chosen(wanted, options) };
    const driving = { reach, terminal, price: priceOf(settings.config), watch: options.watch === true };
    const result = await drive(driving, (desk, heard) => desk.run(request, heard));
    tellOwner(reach.owner, result.error?.code === 'LOOP_NOT_FOUND' && here, terminal);
    if (result.error?.code === 'LOOP_NOT_FOUND' && !here) tellMissing(wanted, definitions, terminal);
    return await printResult(result, terminal, json);
  } finally {
    await leave(reach, terminal);
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

function chosen({ version }: Wanted, options: Options): Omit<DeskRequest, 'loop' | 'input'> {
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

function tellOwner(owner: number | undefined, unknown: boolean, terminal: Terminal): void {
  if (owner === undefined) return;
  const where = `The store belongs to process ${owner}, which runs this with the definitions it began with`;
  terminal.say(unknown ? `${where}; this loop is not among them. Try again when it has ended.` : `${where}.`);
}

function tellMissing(wanted: Wanted, definitions: Definitions, terminal: Terminal): void {
  for (const line of missing(wanted, definitions)) terminal.say(line);
}
