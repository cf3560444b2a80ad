/**
 * Runs a case with a hosted loop: starts it, does what is due, answers its approvals, sends its signals when nothing is
 * due, and then puts the clock forward to the next due time, until the loop stops or nothing is left to do.
 */
import { LoopError } from '../../base/errors.js';
import type { TurnOptions } from '../../host/host.js';
import { copyAsJson } from '../../json/value.js';
import type { HostedLoopDocument, HostedLoopStatus, StopPolicy } from '../../protocol/hosted-loop.js';
import type { Json } from '../../protocol/json.js';
import type { TurnResult } from '../../protocol/trace.js';
import type { HostedTurnListing } from '../../views/hosted-turns.js';
import { readHostedLoopFile } from '../compose.js';
import { CaseAnswers } from './case-answers.js';
import { contained, type Difference, same, verdictDifferences } from './differences.js';
import type { HostedCase, HostedExpectation } from './harness-case.js';
import { observeReceipts, receiptsOf, toolCallsOf, verdictOf } from './observe.js';
import type { CaseObservation } from './run-turn-case.js';
import type { ScratchHost } from './scratch-host.js';

const STARTER = { by: 'harness' };
/** How many steps a turn may take: its request, its pauses, and due times that are dropped. */
const STEPS_PER_TURN = 100;
/** How many steps a case may take, however many turns its loop may have. */
const MAX_STEPS = 10_000;
/** How many steps without a change are made while something is due. */
const MAX_IDLE_STEPS = 3;

/** How a hosted loop ended: its status and its turns, or the error with which it was refused. */
type HostedEnd =
  | { readonly status: HostedLoopStatus; readonly turns: readonly HostedTurnListing[]; readonly problem?: LoopError }
  | { readonly problem: LoopError };

/** Runs a case with a hosted loop, and compares what happened. */
export async function runHostedCase(
  item: HostedCase,
  scratch: ScratchHost,
  onEvent?: TurnOptions['onEvent'],
): Promise<CaseObservation> {
  const { host, models } = scratch;
  const driver = new HostedCaseDriver(item, scratch, onEvent);
  const end = await driver.run();
  const receipts = await observeReceipts(receiptsOf(host));
  const verdict = await verdictOf(host);
  const { reason, message } = endingOf(end);
  const differences = [
    // guard: hosted-case-needs-its-stop
    ...same('/expect/reason', item.expect.reason, reason),
    ...(await turnDifferences(item.expect, scratch, 'turns' in end ? end.turns : [])),
    ...(item.expect.chain === undefined ? [] : same('/expect/chain', item.expect.chain, receipts.ids.length)),
    ...verdictDifferences(item.expect.verdict, verdict),
    // guard: hosted-script-used-completely
    ...models.problems(),
    // guard: hosted-answers-used-completely
    ...driver.answers.problems(),
  ];
  const status = 'status' in end ? end.status.status : 'error';
  return { status, reason: message, differences, receipts: receipts.ids, verdict };
}

/** Returns the reason of a stop. What a loop waits for has names of its own, so that it is never taken for one. */
function endingOf(end: HostedEnd): { readonly reason: string; readonly message: string } {
  const { problem } = end;
  if (problem !== undefined) return { reason: problem.code, message: `${problem.code}: ${problem.message}` };
  const { status, reason = '', message = '' } = (end as Extract<HostedEnd, { readonly status: unknown }>).status;
  if (status === 'stopped') return { reason, message: `${reason}: ${message}` };
  return { reason: `${status} (${reason})`, message: `${status} (${reason})` };
}

async function turnDifferences(
  { turns: count, output, outputContains, toolCalls }: HostedExpectation,
  { host }: ScratchHost,
  turns: readonly HostedTurnListing[],
): Promise<readonly Difference[]> {
  const actual = await outputOf(turns.at(-1), host);
  const called: string[] = [];
  for (const { turnId } of turns) called.push(...(await toolCallsOf(host, turnId)));
  return [
    ...(count === undefined ? [] : same('/expect/turns', count, turns.length)),
    ...(output === undefined ? [] : same('/expect/output', output, actual)),
    ...(outputContains === undefined ? [] : contained('/expect/outputContains', outputContains, actual)),
    ...(toolCalls === undefined ? [] : same('/expect/toolCalls', [...toolCalls], called)),
  ];
}

async function outputOf(
  last: HostedTurnListing | undefined,
  { archive }: ScratchHost['host'],
): Promise<Json | undefined> {
  if (last === undefined || !(await archive.has(last.turnId))) return undefined;
  const result = await archive.result(last.turnId);
  return result?.status === 'ok' ? copyAsJson(result.output, 'the output') : undefined;
}

/** Returns how many steps a case may take. */
export function maxStepsOf(
  { maxTurns }: Pick<StopPolicy, 'maxTurns'>,
  item: Pick<HostedCase, 'signals' | 'approvals'>,
) {
  const steps = STEPS_PER_TURN * (maxTurns + item.signals.length + item.approvals.length + 1);
  // guard: steps-of-case-bounded
  return Math.min(steps, MAX_STEPS);
}

/** Runs the turns of a hosted loop. */
class HostedCaseDriver {
  readonly answers: CaseAnswers;
  private readonly item: HostedCase;
  private readonly scratch: ScratchHost;
  private readonly options: TurnOptions;

  constructor(item: HostedCase, scratch: ScratchHost, onEvent: TurnOptions['onEvent']) {
    this.item = item;
    this.scratch = scratch;
    this.answers = new CaseAnswers(item, scratch.host);
    // A turn does not wait for its timers: the clock is put forward to them.
    this.options = { timers: 0, ...(onEvent !== undefined && { onEvent }) };
  }

  async run(): Promise<HostedEnd> {
    const { hosted } = this.scratch.host;
    let loop: string | undefined;
    try {
      const { document } = await readHostedLoopFile(this.item.file);
      await hosted.start(document, STARTER);
      loop = document.id;
      await this.runTurns(document);
      return { status: await hosted.status(loop), turns: await hosted.turns(loop) };
    } catch (thrown) {
      if (!(thrown instanceof LoopError)) throw thrown;
      if (loop === undefined) return { problem: thrown };
      return { status: await hosted.status(loop), turns: await hosted.turns(loop), problem: thrown };
    }
  }

  /** Does one step after another, at most as many as the case may take. */
  private async runTurns({ id, stop }: HostedLoopDocument): Promise<void> {
    const { hosted } = this.scratch.host;
    const maxSteps = maxStepsOf(stop, this.item);
    let idleSteps = 0;
    for (let step = 0; step < maxSteps && idleSteps < MAX_IDLE_STEPS; step++) {
      const result = await hosted.driveIfFree(id, this.options);
      const { status, turnId } = await hosted.status(id);
      if (status === 'stopped') return;
      // It is unchanged, and cannot continue here.
      if (result?.status === 'error' && result.turnId === turnId) return;
      idleSteps = result === undefined && (await this.isDue()) ? idleSteps + 1 : 0;
      if (!(await this.isDue()) && !(await this.goOn(id, result, turnId))) return;
    }
    if (idleSteps === 0) throw new LoopError('TIMEOUT', `The hosted loop did not stop within ${maxSteps} steps.`);
  }

  /** Makes something due: an answer, a signal, or the next due time. Returns false if there is nothing. */
  private async goOn(loop: string, result: TurnResult | undefined, open: string | undefined): Promise<boolean> {
    const { host, clock, nextDueAt } = this.scratch;
    if (result?.status === 'paused' && (await this.answers.answer(result))) return true;
    const send = (signal: { readonly name: string; readonly payload?: Json }, id: string) =>
      host.hosted.signal({ loop, id, ...signal });
    if (open === undefined && (await this.answers.sendNext(send))) return true;
    const dueAt = await nextDueAt(clock.now());
    if (dueAt === undefined) return false;
    clock.skipTo(dueAt);
    return true;
  }

  private async isDue(): Promise<boolean> {
    const { clock, nextDueAt } = this.scratch;
    const first = await nextDueAt(-1);
    return first !== undefined && first <= clock.now();
  }
}
