/** Runs a case with one turn: answers its approvals and sends its signals in order, and compares what happened. */
import { LoopError } from '../../base/errors.js';
import type { Host, TurnOptions } from '../../host/host.js';
import type { Registry } from '../../loops/registry.js';
import type { ReceiptVerdict } from '../../protocol/receipt.js';
import type { PausedResult } from '../../protocol/trace.js';
import { type Difference, differenceOf, turnDifferences } from './differences.js';
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
const DEFAULT_PRINCIPAL = 'harness';

/** Runs a case with one turn. */
export async function runTurnCase(
  item: TurnCase,
  { host, models }: ScratchHost,
  onEvent?: TurnOptions['onEvent'],
): Promise<CaseObservation> {
  const options: TurnOptions = { timers: HELD_TIMER_MS, ...(onEvent !== undefined && { onEvent }) };
  const driver = new TurnDriver(item, host, options);
  const end = await driver.run();
  const observed = await observeTurn(host, end);
  const differences = [
    ...turnDifferences(item.expect, observed),
    // guard: script-used-completely
    ...models.problems(),
    // guard: answers-used-completely
    ...driver.problems(),
  ];
  const { status, reason, receipts, verdict } = observed;
  return { status, reason, differences, receipts: receipts.ids, verdict };
}

/** Runs a turn until it ends, or nothing is left that it waits for. */
class TurnDriver {
  private readonly item: TurnCase;
  private readonly host: Host;
  private readonly options: TurnOptions;
  private answered = 0;
  private signalled = 0;
  private readonly refused: Difference[] = [];

  constructor(item: TurnCase, host: Host, options: TurnOptions) {
    this.item = item;
    this.host = host;
    this.options = options;
  }

  async run(): Promise<TurnEnd> {
    const { loop, input, grant } = this.item;
    const request = { ...referenceOf(loop, this.host.registry), input, ...(grant !== undefined && { grant }) };
    try {
      let result = await this.host.run(request, this.options);
      while (result.status === 'paused' && (await this.answer(result)))
        result = await this.host.resume(result.turnId, this.options);
      return result;
    } catch (thrown) {
      if (thrown instanceof LoopError) return { refusal: thrown };
      throw thrown;
    }
  }

  /** Returns the answers and signals that were refused, or that nothing waited for. */
  problems(): readonly Difference[] {
    const { approvals, signals } = this.item;
    const unusedAnswers = approvals
      .slice(this.answered)
      .map(({ tool }, index) => unused(`/approvals/${this.answered + index}`, `an approval of ${tool}`));
    const unusedSignals = signals
      .slice(this.signalled)
      .map(({ name }, index) => unused(`/signals/${this.signalled + index}`, `a turn that waits for ${name}`));
    return [...this.refused, ...unusedAnswers, ...unusedSignals];
  }

  /** Gives the next answer or signal if the turn waits for it. Returns true if the turn can continue. */
  private async answer(paused: PausedResult): Promise<boolean> {
    return (await this.answerApproval(paused)) || this.sendSignal(paused);
  }

  private async answerApproval({ sessionId }: PausedResult): Promise<boolean> {
    const next = this.item.approvals[this.answered];
    if (next === undefined) return false;
    const pending = await this.host.archive.approvals(sessionId);
    const approval = pending.find(({ tool }) => tool === next.tool);
    if (approval === undefined) return false;
    const { id, callId, argumentsDigest } = approval;
    const { approved, reason, by = DEFAULT_PRINCIPAL } = next;
    const path = `/approvals/${this.answered++}`;
    try {
      await this.host.answer({ id, callId, argumentsDigest, approved, by, ...(reason !== undefined && { reason }) });
      return true;
    } catch (thrown) {
      if (!(thrown instanceof LoopError)) throw thrown;
      this.refused.push(differenceOf(path, 'an accepted answer', `${thrown.code}: ${thrown.message}`));
      return false;
    }
  }

  private async sendSignal({ turnId, pending }: PausedResult): Promise<boolean> {
    const next = this.item.signals[this.signalled];
    if (next === undefined || !pending.some(({ kind, name }) => kind === 'signal' && name === next.name)) return false;
    const path = `/signals/${this.signalled++}`;
    try {
      await this.host.signal({ turnId, name: next.name, payload: next.payload, id: `harness-${this.signalled}` });
      return true;
    } catch (thrown) {
      if (!(thrown instanceof LoopError)) throw thrown;
      this.refused.push(differenceOf(path, 'an accepted signal', `${thrown.code}: ${thrown.message}`));
      return false;
    }
  }
}

function unused(path: string, expected: string): Difference {
  return differenceOf(path, expected, 'none');
}

/** Returns the id and the version of `ID` or `ID@VERSION`. */
function referenceOf(text: string, registry: Registry): { readonly loop: string; readonly version?: string } {
  const at = text.lastIndexOf('@');
  if (at <= 0 || registry.find(text) !== undefined) return { loop: text };
  return { loop: text.slice(0, at), version: text.slice(at + 1) };
}
