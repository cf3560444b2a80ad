/** `rondo resume`: resumes a turn that is paused or interrupted, or all such turns. */
import { Fault, LoopError } from '../../../base/errors.js';
import type { Host } from '../../../host/host.js';
import type { TurnResult, TurnStatus } from '../../../protocol/trace.js';
import { loadSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { exitCodeOfError } from '../error-report.js';
import { findTurn } from '../find-turn.js';
import { readGrant } from '../grant-file.js';
import { printResult, runWithLiveOutput } from '../live-run.js';
import { openHostForRunning } from '../open-host.js';
import { exitCodeOf, outcomeLines, summaryLineOf } from '../outcome.js';
import { pricingOf } from '../pricing.js';
import type { Terminal } from '../terminal.js';
import { sanitizeText } from '../terminal-text.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';

/** The maximum number of turns that `--all` resumes concurrently. */
const MAX_CONCURRENT_TURNS = 8;

/** A turn that could not be resumed. */
interface UnresumedTurn {
  readonly turnId: string;
  readonly error: { readonly code: string; readonly message: string };
}

/** Handles `rondo resume`. */
export const resume: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const reference = textOption(args[0]);
  if ((reference === undefined) === (options.all !== true)) {
    throw new UsageError('Give either the turn to resume or --all. See: rondo runs');
  }
  if (options.grant !== undefined && options.all === true)
    throw new UsageError('--grant continues one turn: name it, without --all.');
  const grant = await readGrant(options, settingsInput);
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForRunning(settings, terminal);
  try {
    if (reference === undefined) return await resumeAll(host, terminal, json);
    const { turnId } = await findTurn(host, reference);
    const live = { terminal, price: pricingOf(settings.config), watch: options.watch === true };
    const result = await runWithLiveOutput(live, (turnOptions) => host.resume(turnId, { ...turnOptions, ...grant }));
    return await printResult(result, terminal, json);
  } finally {
    await close();
  }
};

async function resumeAll(host: Host, terminal: Terminal, json: boolean): Promise<number> {
  const turns = await host.archive.turns();
  const openTurns = turns.filter(({ status }) => status === 'interrupted' || status === 'paused');
  terminal.onInterrupt = () => 'Interrupted. Continue with: rondo resume --all';
  const results: (TurnResult | UnresumedTurn)[] = [];
  // The workers share one iterator, so each turn is resumed once.
  const queue = openTurns.values();
  const worker = async (): Promise<void> => {
    for (const turn of queue) {
      const result = await tryResume(host, turn);
      results.push(result);
      for (const line of resumeLines(result, terminal)) terminal.printToStderr(line);
    }
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT_TURNS }, worker));
  if (json) await terminal.printJson({ runs: results });
  if (openTurns.length === 0) terminal.printToStderr('There are no turns to resume.');
  return worstExitCode(results);
}

/** Resumes a turn. A turn that cannot be resumed does not stop the others. */
async function tryResume(host: Host, { turnId }: TurnStatus): Promise<TurnResult | UnresumedTurn> {
  try {
    return await host.resume(turnId);
  } catch (thrown) {
    if (!(thrown instanceof LoopError || thrown instanceof Fault)) throw thrown;
    return { turnId, error: { code: thrown.code, message: thrown.message } };
  }
}

function resumeLines(result: TurnResult | UnresumedTurn, { streams }: Terminal): readonly string[] {
  if ('status' in result) return [...outcomeLines(result, streams), summaryLineOf(result)];
  return [`${result.error.code}: ${sanitizeText(result.error.message)}`, `not resumed, turn ${result.turnId}`];
}

/** Returns the exit code of the worst result: a fault, then a failure, then a pause. */
function worstExitCode(results: readonly (TurnResult | UnresumedTurn)[]): number {
  const codes = results.map((result) => ('status' in result ? exitCodeOf(result) : exitCodeOfError(result.error.code)));
  const order = [exitCodes.fault, exitCodes.failed, exitCodes.paused];
  return order.find((code) => codes.includes(code)) ?? exitCodes.ok;
}
