/** Runs a turn with live terminal output: the tree while it runs, how to continue when it is interrupted, its result. */
import type { TurnOptions } from '../../host/host.js';
import type { TraceEvent, TurnResult } from '../../protocol/trace.js';
import type { Pricing } from '../../views/tree.js';
import { exitOf, summaryOf, toldOf } from './outcome.js';
import type { Terminal } from './terminal.js';

export interface Driving {
  readonly terminal: Terminal;
  readonly price: Pricing;
  readonly watch: boolean;
}

/** Runs a turn with live terminal output. */
export async function drive(
  { terminal, price, watch }: Driving,
  work: (options: TurnOptions) => Promise<TurnResult>,
): Promise<TurnResult> {
  const tree = watch ? await liveTree(terminal, price) : undefined;
  let turn: string | undefined;
  const onTurn = (turnId: string): void => {
    turn = turnId;
  };
  const onEvent = (event: TraceEvent): void => tree?.apply(event);
  terminal.interrupted = () => {
    tree?.end();
    return interruption(turn);
  };
  try {
    return await work({ onTurn, onEvent });
  } finally {
    terminal.interrupted = undefined;
    tree?.end();
  }
}

async function liveTree(terminal: Terminal, price: Pricing) {
  const { LiveTree } = await import('./live-tree.js');
  const { stderr } = terminal.streams;
  return new LiveTree(stderr, { color: terminal.look(stderr).color, price, now: Date.now });
}

/** What to do after an interruption; `turn` is known as soon as anything can have been recorded. */
export function interruption(turn: string | undefined): string {
  if (turn === undefined) return 'Interrupted before the turn began: nothing was recorded.';
  return `Interrupted. Continue with: rondo resume ${turn}`;
}

/** Prints how a turn ended: the output to stdout, the rest to the person. */
export async function printResult(result: TurnResult, terminal: Terminal, json: boolean): Promise<number> {
  if (json) await terminal.json(result);
  else if (result.status === 'ok') await terminal.pretty(result.output);
  for (const line of toldOf(result)) terminal.say(line);
  terminal.say(summaryOf(result));
  return exitOf(result);
}
