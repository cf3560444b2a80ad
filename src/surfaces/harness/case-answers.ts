/** Gives the answers and signals of a case to its turns, in order, and reports those that were refused or not needed. */
import { LoopError } from '../../base/errors.js';
import type { Host } from '../../host/host.js';
import type { PausedResult } from '../../protocol/trace.js';
import { type Difference, differenceOf } from './differences.js';
import type { CaseSignal, HarnessCase } from './harness-case.js';

const DEFAULT_PRINCIPAL = 'harness';

/** The answers and signals of one case. */
export class CaseAnswers {
  private readonly item: HarnessCase;
  private readonly host: Host;
  private answered = 0;
  private signalled = 0;
  private readonly refused: Difference[] = [];

  constructor(item: HarnessCase, host: Host) {
    this.item = item;
    this.host = host;
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

  /** Gives the next answer or signal if a paused turn waits for it. Returns true if the turn can continue. */
  async answer(paused: PausedResult): Promise<boolean> {
    return (await this.answerApproval(paused)) || this.signalTurn(paused);
  }

  /** Sends the next signal with `send`. Returns false if there is none, or it was refused. */
  async sendNext(send: (signal: CaseSignal, id: string) => Promise<unknown>): Promise<boolean> {
    const next = this.item.signals[this.signalled];
    if (next === undefined) return false;
    const path = `/signals/${this.signalled++}`;
    try {
      await send(next, `harness-${this.signalled}`);
      return true;
    } catch (thrown) {
      return this.refuse(path, 'an accepted signal', thrown);
    }
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
      return this.refuse(path, 'an accepted answer', thrown);
    }
  }

  private async signalTurn({ turnId, pending }: PausedResult): Promise<boolean> {
    const next = this.item.signals[this.signalled];
    if (next === undefined || !pending.some(({ kind, name }) => kind === 'signal' && name === next.name)) return false;
    return this.sendNext(({ name, payload }, id) => this.host.signal({ turnId, name, payload, id }));
  }

  private refuse(path: string, expected: string, thrown: unknown): false {
    if (!(thrown instanceof LoopError)) throw thrown;
    this.refused.push(differenceOf(path, expected, `${thrown.code}: ${thrown.message}`));
    return false;
  }
}

function unused(path: string, expected: string): Difference {
  return differenceOf(path, expected, 'none');
}
