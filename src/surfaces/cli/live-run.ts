/** Runs a turn with live terminal output: the call tree or its progress, a hint after an interruption, and the result. */
import type { TurnOptions } from '../../host/host.js';
import type { TraceEvent, TurnResult } from '../../protocol/trace.js';
import type { Pricing } from '../../views/trace-tree.js';
import { exitCodeOf, outcomeLines, summaryLineOf } from './outcome.js';
import type { Terminal } from './terminal.js';
import { TurnProgress } from './turn-progress.js';

/** Options of `runWithLiveOutput`. */
interface LiveRunOptions {
  readonly terminal: Terminal;
  readonly price: Pricing;
  /** True if the call tree is shown while the turn runs. */
  readonly watch: boolean;
}

/** Runs a turn with `work`. Shows on stderr the call tree with `watch`, or else a line of progress after a second. */
export async function runWithLiveOutput(
  { terminal, price, watch }: LiveRunOptions,
  work: (options: TurnOptions) => Promise<TurnResult>,
): Promise<TurnResult> {
  const display = watch ? await createLiveTree(terminal, price) : createProgress(terminal);
  let startedTurnId: string | undefined;
  const onTurn = (turnId: string): void => {
    startedTurnId = turnId;
  };
  const onEvent = (event: TraceEvent): void => display?.apply(event);
  terminal.onInterrupt = () => {
    display?.end();
    return interruptionMessage(startedTurnId);
  };
  try {
    return await work({ onTurn, onEvent });
  } finally {
    terminal.onInterrupt = undefined;
    display?.end();
  }
}

/** Returns the progress display of a terminal; undefined if stderr is no terminal or the output is JSON. */
function createProgress(terminal: Terminal): TurnProgress | undefined {
  const isShown = terminal.isProgressEnabled && terminal.streams.stderr.isTTY === true;
  return isShown ? new TurnProgress((text) => terminal.showProgress(text), Date.now) : undefined;
}

async function createLiveTree(terminal: Terminal, price: Pricing) {
  const { LiveTree } = await import('./live-tree.js');
  const { stderr } = terminal.streams;
  return new LiveTree(stderr, { color: terminal.displayOf(stderr).color, price, now: Date.now });
}

/** Returns the message after an interruption. `turnId` is defined as soon as anything may have been recorded. */
export function interruptionMessage(turnId: string | undefined): string {
  if (turnId === undefined) return 'Interrupted before the turn began: nothing was recorded.';
  return `Interrupted. Continue with: rondo resume ${turnId}`;
}

/**
 * Prints the output of a turn, or with `json` its result, to stdout and an explanation to stderr. Returns the exit
 * code.
 */
export async function printResult(result: TurnResult, terminal: Terminal, json: boolean): Promise<number> {
  if (json) await terminal.printJson(result);
  else if (result.status === 'ok') await terminal.printPrettyJson(result.output);
  for (const line of outcomeLines(result, terminal.streams)) terminal.printToStderr(line);
  terminal.printToStderr(summaryLineOf(result));
  if (!json && result.receipt !== undefined) terminal.printToStderr(`Receipt: ${result.receipt}`);
  return exitCodeOf(result);
}
