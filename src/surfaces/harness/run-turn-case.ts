/** Runs a case with one turn: answers its approvals and sends its signals in order, and compares what happened. */
import { LoopError } from '../../base/errors.js';
import type { Host, TurnOptions } from '../../host/host.js';
import type { Registry } from '../../loops/registry.js';
import type { ReceiptVerdict } from '../../protocol/receipt.js';
import { CaseAnswers } from './case-answers.js';
import { type Difference, turnDifferences } from './differences.js';
import type { TurnCase } from './harness-case.js';
import { observeTurn, type TurnEnd } from './observe.js';
import type { ScratchHost } from './scratch-host.js';

/** What a case found. */
export interface CaseObservation {
  readonly status: string;
  /** Why it stopped, or the message of its error. */
  readonly reason?: string | undefined;
  readonly differences: readonly Difference[];
  /** The ids of the receipts of its turns. */
  readonly receipts: readonly string[];
  readonly verdict: ReceiptVerdict | undefined;
}

/** A timer that fires within this many ms is waited for; a longer one pauses the turn. */
const HELD_TIMER_MS = 1000;

/** Runs a case with one turn. */
export async function runTurnCase(
  item: TurnCase,
  { host, models, hostedFiles }: ScratchHost,
  onEvent?: TurnOptions['onEvent'],
): Promise<CaseObservation> {
  const options: TurnOptions = { timers: HELD_TIMER_MS, ...(onEvent !== undefined && { onEvent }) };
  const answers = new CaseAnswers(item, host);
  const ended = await runTurn(item, host, answers, options);
  const isHosted = hostedFiles.some(({ document }) => document?.id === item.loop);
  const end = isHosted && 'refusal' in ended ? { refusal: withHostedHint(ended.refusal, item.loop) } : ended;
  const observed = await observeTurn(host, end);
  const differences = [
    ...turnDifferences(item.expect, observed),
    // guard: script-used-completely
    ...models.problems(),
    // guard: answers-used-completely
    ...answers.problems(),
  ];
  const { status, reason, receipts, verdict } = observed;
  return { status, reason, differences, receipts: receipts.ids, verdict };
}

/** Runs a turn until it ends, or nothing is left that it waits for. */
async function runTurn(
  { loop, input, grant }: TurnCase,
  host: Host,
  answers: CaseAnswers,
  options: TurnOptions,
): Promise<TurnEnd> {
  const request = { ...referenceOf(loop, host.registry), input, ...(grant !== undefined && { grant }) };
  try {
    let result = await host.run(request, options);
    while (result.status === 'paused' && (await answers.answer(result)))
      result = await host.resume(result.turnId, options);
    return result;
  } catch (thrown) {
    if (thrown instanceof LoopError) return { refusal: thrown };
    throw thrown;
  }
}

function withHostedHint({ code, message, data }: LoopError, loop: string): LoopError {
  return new LoopError(code, `${message} "${loop}" is a hosted loop: name its file with host, in place of loop.`, data);
}

/** Returns the id and the version of `ID` or `ID@VERSION`. */
function referenceOf(text: string, registry: Registry): { readonly loop: string; readonly version?: string } {
  const at = text.lastIndexOf('@');
  if (at <= 0 || registry.find(text) !== undefined) return { loop: text };
  return { loop: text.slice(0, at), version: text.slice(at + 1) };
}
