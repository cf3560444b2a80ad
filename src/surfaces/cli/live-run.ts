/** Runs a turn with live terminal output: the tree while it runs, how to continue when it is interrupted, its result. */
import type { TurnOptions } from '../../host/host.js';
import type { TraceEvent, TurnResult } from '../../protocol/trace.js';
import type { Pricing } from '../../views/trace-tree.js';
import { exitCodeOf, outcomeLines, summaryLineOf } from './outcome.js';
import type { Terminal } from './terminal.js';

export interface LiveRunOptions {
  readonly terminal: Terminal;
  readonly price: Pricing;
  readonly watch: boolean;
}

/** Runs a turn with live terminal output. */
export async function runWithLiveOutput(
  { terminal, price, watch }: LiveRunOptions,
  work: (options: TurnOptions) => Promise<TurnResult>,
): Promise<TurnResult> {
  const tree = watch ? await createLiveTree(terminal, price) : undefined;
  let turn: string | undefined;
  const onTurn = (turnId: string): void => {
    turn = turnId;
  };
  const onEvent = (event: TraceEvent): void => tree?.apply(event);
  terminal.onInterrupt = () => {
    tree?.end();
    return interruptionMessage(turn);
  };
  try {
    return await work({ onTurn, onEvent });
  } finally {
    terminal.onInterrupt = undefined;
    tree?.end();
  }
}

async function createLiveTree(terminal: Terminal, price: Pricing) {
  const { LiveTree } = await import('./live-tree.js');
  const { stderr } = terminal.streams;
  return new LiveTree(stderr, { color: terminal.displayOf(stderr).color, price, now: Date.now });
}

/** What to do after an interruption; `turn` is known as soon as anything can have been recorded. */
export function interruptionMessage(turn: string | undefined): string {
  if (turn === undefined) return 'Interrupted before the turn began: nothing was recorded.';
  return `Interrupted. Continue with: rondo resume ${turn}`;
}

/** Prints how a turn ended: the output to stdout, the rest to the person. */
export async function printResult(result: TurnResult, terminal: Terminal, json: boolean): Promise<number> {
  if (json) await terminal.printJson(result);
  else if (result.status === 'ok') await terminal.printPrettyJson(result.output);
  for (const line of outcomeLines(result)) terminal.printToStderr(line);
  terminal.printToStderr(summaryLineOf(result));
  return exitCodeOf(result);
}
