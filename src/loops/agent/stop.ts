/** Where an agent stops short: a result with a reason, never success and never a failure of anything. */
import { LoopError } from '../../base/errors.js';
import type { StopSpec } from '../../protocol/loop.js';
import type { ModelReply } from '../model.js';

/** What an agent has used so far. */
export class UsageTotal {
  rounds = 0;
  inputTokens = 0;
  outputTokens = 0;
  /** A reply did not tell how much it used: what is left cannot be known. */
  unreported: 'inputTokens' | 'outputTokens' | undefined;
  /** What the model said last. */
  lastText = '';

  add({ text, inputTokens, outputTokens }: ModelReply): void {
    this.rounds += 1;
    this.lastText = text;
    this.inputTokens += inputTokens ?? 0;
    this.outputTokens += outputTokens ?? 0;
    if (outputTokens === undefined) this.unreported = 'outputTokens';
    if (inputTokens === undefined) this.unreported = 'inputTokens';
  }
}

interface StopLimits {
  readonly maxRounds: number;
  readonly stop: StopSpec;
  /** When it has to be done, and what time it is. */
  readonly deadlineAt: number | undefined;
  readonly now: number;
}

/** Throws the stop that was reached, if one was; asked before each round. */
export function assertWithinLimits(
  agent: string,
  spent: UsageTotal,
  { maxRounds, stop, deadlineAt, now }: StopLimits,
): void {
  const { inputTokens, outputTokens, deadlineMs } = stop;
  if (spent.rounds >= maxRounds) throw stoppedError(agent, spent, 'rounds', `asked its model ${maxRounds} times`);
  if (deadlineAt !== undefined && now >= deadlineAt)
    throw stoppedError(agent, spent, 'deadline', `ran for ${deadlineMs} ms`);
  if (spent.rounds === 0) return;
  for (const [name, limit] of [['inputTokens', inputTokens] as const, ['outputTokens', outputTokens] as const]) {
    if (limit === undefined) continue;
    if (spent.unreported !== undefined)
      throw stoppedError(agent, spent, 'tokens-untold', unreportedTokensMessage(name));
    if (spent[name] >= limit) throw stoppedError(agent, spent, name, `used ${spent[name]} of ${limit} ${name}`);
  }
}

function unreportedTokensMessage(name: string): string {
  return `has a limit of ${name}, and its model does not tell how many it used`;
}

function stoppedError(agent: string, { rounds, lastText }: UsageTotal, reason: string, what: string): LoopError {
  const message = `"${agent}" stopped: it ${what}.`;
  return new LoopError('BUDGET_EXHAUSTED', message, { reason, rounds, text: lastText.slice(0, 2000) });
}
