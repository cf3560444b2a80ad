/** Driving a turn before somebody's eyes: the tree while it runs, how to go on when it is interrupted, its result. */
import type { TurnOptions } from '../../host/host.js';
import type { TraceEvent, TurnResult } from '../../protocol/trace.js';
import type { Pricing } from '../../views/tree.js';
import type { Desk } from '../owner/desk.js';
import type { Reach } from '../owner/reach.js';
import { exitOf, summaryOf, toldOf } from './outcome.js';
import type { Terminal } from './terminal.js';

export interface Driving {
  readonly reach: Reach;
  readonly terminal: Terminal;
  readonly price: Pricing;
  readonly watch: boolean;
}

/** Asks for a turn to be run, and tells what happens meanwhile. */
export async function drive(
  { reach, terminal, price, watch }: Driving,
  work: (desk: Desk, options: TurnOptions) => Promise<TurnResult>,
): Promise<TurnResult> {
  const tree = watch ? await liveTree(terminal, price) : undefined;
  let turn: string | undefined;
  const onEvent = (event: TraceEvent): void => {
    turn ??= event.callId;
    tree?.apply(event);
  };
  terminal.interrupted = () => {
    tree?.end();
    return interruption(turn, reach.owner);
  };
  try {
    return await reach.ask((desk) => work(desk, { onEvent }));
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

/** What somebody who goes away while a turn runs is told. */
export function interruption(turn: string | undefined, owner: number | undefined): string {
  if (turn === undefined) return 'Interrupted before anything was recorded.';
  if (owner === undefined) return `Interrupted. Go on with: rondo resume ${turn}`;
  return `No longer watching; the turn goes on in process ${owner}. Look at it with: rondo status ${turn}`;
}

/** Prints how a turn ended: the output to stdout, the rest to the person. */
export async function printResult(result: TurnResult, terminal: Terminal, json: boolean): Promise<number> {
  if (json) await terminal.json(result);
  else if (result.status === 'ok') await terminal.print(`${JSON.stringify(result.output, null, 2)}\n`);
  for (const line of toldOf(result)) terminal.say(line);
  terminal.say(summaryOf(result));
  return exitOf(result);
}

/** Ends the work with the store; what others have running here is waited for. */
export async function leave(reach: Reach, terminal: Terminal): Promise<void> {
  if (await reach.busy()) {
    terminal.say('Other commands still have work running in this process; it ends with theirs.');
    terminal.interrupted = () => 'Interrupted, and with it what other commands had running here. See: rondo runs';
  }
  await reach.close();
}
