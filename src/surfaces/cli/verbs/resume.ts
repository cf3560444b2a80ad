/** `resume`: goes on with a turn whose process ended, or with all of them. */

import { Fault, LoopError } from '../../../base/errors.js';
import type { Host } from '../../../host/host.js';
import type { TurnResult, TurnStatus } from '../../../protocol/trace.js';
import { loadSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { exitCodeOfError } from '../error-report.js';
import { findTurn } from '../find-turn.js';
import { printResult, runWithLiveOutput } from '../live-run.js';
import { openHostForRunning } from '../open-host.js';
import { exitCodeOf, outcomeLines, summaryLineOf } from '../outcome.js';
import { pricingOf } from '../pricing.js';
import type { Terminal } from '../terminal.js';
import { sanitizeText } from '../terminal-text.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';

/** How many turns go on side by side. */
const MAX_CONCURRENT_TURNS = 8;

/** A turn that could not even be tried. */
interface UnresumedTurn {
  readonly turnId: string;
  readonly error: { readonly code: string; readonly message: string };
}

export const resume: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const given = textOption(args[0]);
  if ((given === undefined) === (options.all !== true)) {
    throw new UsageError('Name the turn to go on with, or say --all. See: rondo runs');
  }
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForRunning(settings, terminal);
  try {
    if (given === undefined) return await resumeAll(host, terminal, json);
    const { turnId } = await findTurn(host, given);
    const driving = { host, terminal, price: pricingOf(settings.config), watch: options.watch === true };
    const result = await runWithLiveOutput(driving, (heard) => host.resume(turnId, heard));
    return await printResult(result, terminal, json);
  } finally {
    await close();
  }
};

async function resumeAll(host: Host, terminal: Terminal, json: boolean): Promise<number> {
  const turns = await host.archive.turns();
  const open = turns.filter(({ status }) => status === 'interrupted' || status === 'paused');
  terminal.onInterrupt = () => 'Interrupted. Go on with: rondo resume --all';
  const ends: (TurnResult | UnresumedTurn)[] = [];
  const waiting = open.values();
  const worker = async (): Promise<void> => {
    for (const turn of waiting) {
      const end = await tryResume(host, turn);
      ends.push(end);
      for (const line of resumeLines(end)) terminal.printToStderr(line);
    }
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT_TURNS }, worker));
  if (json) await terminal.printJson({ runs: ends });
  if (open.length === 0) terminal.printToStderr('There is nothing to go on with.');
  return worstExitCode(ends);
}

/** One turn that cannot go on keeps no other from it. */
async function tryResume(host: Host, { turnId }: TurnStatus): Promise<TurnResult | UnresumedTurn> {
  try {
    return await host.resume(turnId);
  } catch (thrown) {
    if (!(thrown instanceof LoopError || thrown instanceof Fault)) throw thrown;
    return { turnId, error: { code: thrown.code, message: thrown.message } };
  }
}

function resumeLines(end: TurnResult | UnresumedTurn): readonly string[] {
  if ('status' in end) return [...outcomeLines(end), summaryLineOf(end)];
  return [`${end.error.code}: ${sanitizeText(end.error.message)}`, `not resumed, turn ${end.turnId}`];
}

function worstExitCode(ends: readonly (TurnResult | UnresumedTurn)[]): number {
  const codes = ends.map((end) => ('status' in end ? exitCodeOf(end) : exitCodeOfError(end.error.code)));
  const order = [exitCodes.fault, exitCodes.failed, exitCodes.paused];
  return order.find((code) => codes.includes(code)) ?? exitCodes.ok;
}
