/** `resume`: goes on with a turn whose process ended, or with all of them. */

import { Fault, LoopError } from '../../../base/errors.js';
import type { Host } from '../../../host/host.js';
import type { TurnResult, TurnStatus } from '../../../protocol/trace.js';
import { settingsOf } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { drive, printResult } from '../drive.js';
import { hostToContinue } from '../host.js';
import { exitOf, summaryOf, toldOf } from '../outcome.js';
import { plain } from '../paint.js';
import { priceOf } from '../price.js';
import { exitOfCode } from '../report.js';
import type { Terminal } from '../terminal.js';
import { findTurn } from '../turn.js';
import { type Act, exit, textOf } from '../verb.js';

/** How many turns go on side by side. */
const AT_ONCE = 8;

/** A turn that could not even be tried. */
interface Unable {
  readonly turnId: string;
  readonly error: { readonly code: string; readonly message: string };
}

export const resume: Act = async ({ args, options, asked, terminal, json }) => {
  const given = textOf(args[0]);
  if ((given === undefined) === (options.all !== true)) {
    throw new UsageError('Name the turn to go on with, or say --all. See: rondo runs');
  }
  const settings = await settingsOf(asked);
  const { host, close } = await hostToContinue(settings, terminal);
  try {
    if (given === undefined) return await resumeAll(host, terminal, json);
    const { turnId } = await findTurn(host, given);
    const driving = { host, terminal, price: priceOf(settings.config), watch: options.watch === true };
    const result = await drive(driving, (heard) => host.resume(turnId, heard));
    return await printResult(result, terminal, json);
  } finally {
    await close();
  }
};

async function resumeAll(host: Host, terminal: Terminal, json: boolean): Promise<number> {
  const turns = await host.archive.turns();
  const open = turns.filter(({ status }) => status === 'interrupted' || status === 'paused');
  terminal.interrupted = () => 'Interrupted. Go on with: rondo resume --all';
  const ends: (TurnResult | Unable)[] = [];
  const waiting = open.values();
  const worker = async (): Promise<void> => {
    for (const turn of waiting) {
      const end = await attempt(host, turn);
      ends.push(end);
      for (const line of linesOf(end)) terminal.say(line);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  if (json) await terminal.json({ runs: ends });
  if (open.length === 0) terminal.say('There is nothing to go on with.');
  return worst(ends);
}

/** One turn that cannot go on keeps no other from it. */
async function attempt(host: Host, { turnId }: TurnStatus): Promise<TurnResult | Unable> {
  try {
    return await host.resume(turnId);
  } catch (thrown) {
    if (!(thrown instanceof LoopError || thrown instanceof Fault)) throw thrown;
    return { turnId, error: { code: thrown.code, message: thrown.message } };
  }
}

function linesOf(end: TurnResult | Unable): readonly string[] {
  if ('status' in end) return [...toldOf(end), summaryOf(end)];
  return [`${end.error.code}: ${plain(end.error.message)}`, `not resumed, turn ${end.turnId}`];
}

function worst(ends: readonly (TurnResult | Unable)[]): number {
  const codes = ends.map((end) => ('status' in end ? exitOf(end) : exitOfCode(end.error.code)));
  const order = [exit.fault, exit.failed, exit.paused];
  return order.find((code) => codes.includes(code)) ?? exit.ok;
}
