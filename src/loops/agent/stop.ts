/** Where an agent stops short: a result with a reason, never success and never a failure of anything. */
import { LoopError } from '../../base/errors.js';
import type { StopSpec } from '../../protocol/loop.js';
import type { ModelReply } from '../model.js';

/** What an agent has used so far. */
export class Spent {
  rounds = 0;
  inputTokens = 0;
  outputTokens = 0;
  /** A reply did not tell how much it used: what is left cannot be known. */
  untold: 'inputTokens' | 'outputTokens' | undefined;
  /** What the model said last. */
  text = '';

  add({ text, inputTokens, outputTokens }: ModelReply): void {
    this.rounds += 1;
    this.text = text;
    this.inputTokens += inputTokens ?? 0;
    this.outputTokens += outputTokens ?? 0;
    if (outputTokens === undefined) this.untold = 'outputTokens';
    if (inputTokens === undefined) this.untold = 'inputTokens';
  }
}

interface Limits {
  readonly maxRounds: number;
  readonly stop: StopSpec;
  /** When it has to be done, and what time it is. */
  readonly deadline: number | undefined;
  readonly now: number;
}

/** Throws the stop that was reached, if one was; asked before each round. */
export function assertGoesOn(agent: string, spent: Spent, { maxRounds, stop, deadline, now }: Limits): void {
  const { inputTokens, outputTokens, deadlineMs } = stop;
  if (spent.rounds >= maxRounds) throw stopped(agent, spent, 'rounds', `asked its model ${maxRounds} times`);
  if (deadline !== undefined && now >= deadline) throw stopped(agent, spent, 'deadline', `ran for ${deadlineMs} ms`);
  if (spent.rounds === 0) return;
  for (const [name, limit] of [['inputTokens', inputTokens] as const, ['outputTokens', outputTokens] as const]) {
    if (limit === undefined) continue;
    if (spent.untold !== undefined) throw stopped(agent, spent, 'tokens-untold', untold(name));
    if (spent[name] >= limit) throw stopped(agent, spent, name, `used ${spent[name]} of ${limit} ${name}`);
  }
}

function untold(name: string): string {
  return `has a limit of ${name}, and its model does not tell how many it used`;
}

function stopped(agent: string, { rounds, text }: Spent, reason: string, what: string): LoopError {
  const message = `"${agent}" stopped: it ${what}.`;
  return new LoopError('BUDGET_EXHAUSTED', message, { reason, rounds, text: text.slice(0, 2000) });
}
