/**
 * The stop conditions of an agent. A stop is BUDGET_EXHAUSTED with a reason: neither success nor a failure of a step.
 */
import { LoopError } from '../../base/errors.js';
import type { StopSpec } from '../../protocol/loop.js';
import type { ModelReply } from '../model.js';

/** The total usage of an agent so far. */
export class UsageTotal {
  rounds = 0;
  inputTokens = 0;
  outputTokens = 0;
  /** The counts that include an estimate. */
  readonly estimated = new Set<TokenCount>();
  /**
   * The counts that some reply neither reports nor estimates, as in journals of earlier versions. A limit of such a
   * count stops the agent.
   */
  readonly unreported = new Set<TokenCount>();
  /** The text of the last reply. */
  lastText = '';

  /** Adds the usage of one reply, which is one round. */
  add({ text, inputTokens, outputTokens, estimatedInputTokens, estimatedOutputTokens }: ModelReply): void {
    this.rounds += 1;
    this.lastText = text;
    this.addTokens('inputTokens', inputTokens, estimatedInputTokens);
    this.addTokens('outputTokens', outputTokens, estimatedOutputTokens);
  }

  private addTokens(name: TokenCount, reported: number | undefined, estimate: number | undefined): void {
    this[name] += Math.max(reported ?? 0, estimate ?? 0);
    if (reported !== undefined) return;
    if (estimate === undefined) this.unreported.add(name);
    else this.estimated.add(name);
  }
}

type TokenCount = 'inputTokens' | 'outputTokens';

interface StopLimits {
  readonly maxRounds: number;
  readonly stop: StopSpec;
  /** In milliseconds, by the same clock as `now`. */
  readonly deadlineAt: number | undefined;
  readonly now: number;
}

/** Throws BUDGET_EXHAUSTED if the agent has reached a limit and must not call its model again. */
export function assertWithinLimits(
  agent: string,
  usage: UsageTotal,
  { maxRounds, stop, deadlineAt, now }: StopLimits,
): void {
  const { inputTokens, outputTokens, deadlineMs } = stop;
  if (usage.rounds >= maxRounds) throw stoppedError(agent, usage, 'rounds', `called its model ${maxRounds} times`);
  if (deadlineAt !== undefined && now >= deadlineAt)
    throw stoppedError(agent, usage, 'deadline', `ran for ${deadlineMs} ms`);
  if (usage.rounds === 0) return;
  for (const [name, limit] of [['inputTokens', inputTokens] as const, ['outputTokens', outputTokens] as const]) {
    if (limit === undefined) continue;
    if (usage.unreported.has(name))
      throw stoppedError(agent, usage, 'tokens-unreported', unreportedTokensMessage(name));
    if (usage[name] < limit) continue;
    const amount = usage.estimated.has(name) ? `up to ${usage[name]} (not reported)` : usage[name];
    throw stoppedError(agent, usage, name, `used ${amount} of ${limit} ${name}`);
  }
}

function unreportedTokensMessage(name: string): string {
  return `has a limit of ${name}, but its model does not report how many it used`;
}

function stoppedError(agent: string, { rounds, lastText }: UsageTotal, reason: string, cause: string): LoopError {
  const message = `"${agent}" stopped: it ${cause}.`;
  return new LoopError('BUDGET_EXHAUSTED', message, { reason, rounds, text: lastText.slice(0, 2000) });
}
