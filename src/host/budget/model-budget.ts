/**
 * The budget of model calls: reserves the tokens and the money that a call can use at most, limits its output to what
 * was reserved, and settles what it used: what the provider reports, but at least what was counted here. A call that
 * fails counts with its input, and with all of its reserved output once it has written anything.
 */

import { withContext } from '../../base/effect-context.js';
import { LoopError, NotPerformed } from '../../base/errors.js';
import {
  affordableOutput,
  costMicros,
  MISSING_PRICE,
  type ModelPrice,
  missingPriceText,
  type PriceOf,
} from '../../policy/prices.js';
import { MinTokenCounter, tokensOf } from '../../policy/token-count.js';
import type { Effect, EffectContext, OutputMeter } from '../../protocol/body.js';
import type { Json } from '../../protocol/json.js';
import type { Account, Amounts, ExceededLimit } from '../../views/budget.js';
import type { ChargedEffect, Ledger, Reservation } from './ledger.js';

/** A model call whose worst case is reserved. */
export interface ReservedModelCall {
  readonly reservation: Reservation;
  readonly inputBytes: number;
  readonly minInputTokens: number;
  /** The maximum number of output tokens; undefined if nothing limits them. */
  readonly maxTokens: number | undefined;
  readonly price: ModelPrice | undefined;
}

/** The members of a model's reply that are counted. */
type Reply = Parameters<typeof tokensOf>[0];

/** The budget of the model calls of one turn. */
export class ModelBudget {
  private readonly accounts: readonly Account[];
  private readonly ledger: Ledger;
  private readonly priceOf: PriceOf;
  private readonly now: () => number;
  /** True if the size of requests matters: it is costly to compute. */
  private readonly limitsInput: boolean;

  constructor(accounts: readonly Account[], ledger: Ledger, priceOf: PriceOf, now: () => number) {
    this.accounts = accounts;
    this.ledger = ledger;
    this.priceOf = priceOf;
    this.now = now;
    this.limitsInput = accounts.some(
      ({ limits }) => limits.inputTokens !== undefined || limits.costMicros !== undefined,
    );
  }

  /** Reserves the worst case of a call, or returns the limit that it would exceed. */
  reserve(effect: Effect, input: Json, charged: ChargedEffect): ReservedModelCall | ExceededLimit {
    const bound = effect.tokenBound?.(input);
    const { maxOutputTokens } = bound ?? {};
    const inputBytes = this.limitsInput ? (bound?.inputBytes ?? 0) : 0;
    const minInputTokens = this.limitsInput ? (bound?.minInputTokens ?? 0) : 0;
    const price = this.requiredPrice(effect, input);
    const maxTokens = this.outputLimit(price, inputBytes, maxOutputTokens);
    const outputTokens = maxTokens ?? 0;
    // A call that may write nothing is exhausted; with one token it exceeds the limit that is the reason.
    const reserved = maxTokens === 0 ? 1 : outputTokens;
    const perAttempt: { [counter: string]: number } = { inputTokens: inputBytes, outputTokens: reserved };
    if (price !== undefined) perAttempt.costMicros = costMicros(price, inputBytes, reserved);
    const reservation = this.ledger.reserve(charged, { perEffect: { modelRounds: 1 }, perAttempt });
    if ('counter' in reservation) {
      const needed = perAttempt[reservation.counter];
      return needed === undefined ? reservation : { ...reservation, needed };
    }
    return { reservation, inputBytes, minInputTokens, maxTokens, price };
  }

  /** Performs a call within its reservation and settles it. */
  async perform(
    effect: Effect,
    input: Json,
    context: EffectContext,
    call: ReservedModelCall,
    onOverdrawn: (exceeded: ExceededLimit) => void,
  ): Promise<unknown> {
    const meter = call.maxTokens === undefined ? undefined : new OutputCounter(call.maxTokens);
    let used = amountsOf(call.price, call.inputBytes, 0);
    try {
      const reply = await effect.perform(input, withContext(context, { outputMeter: meter }));
      const { inputTokens, outputTokens } = tokensOf(reply as Reply, call.inputBytes, call.minInputTokens);
      // guard: counted-pieces-charged
      used = amountsOf(call.price, inputTokens, Math.max(outputTokens, meter?.tokens ?? 0));
      return reply;
    } catch (thrown) {
      const { tokens = 1 } = meter ?? {};
      if (tokens > 0) used = amountsOf(call.price, call.inputBytes, Math.max(call.maxTokens ?? 0, meter?.tokens ?? 0));
      if (meter?.isExceeded !== true) throw thrown;
      // guard: stream-aborted-at-limit
      throw new NotPerformed();
    } finally {
      this.ledger.settle(call.reservation, used);
      const exceeded = meter?.isExceeded === true ? this.exhaustedOutput(call) : this.overdrawn();
      if (exceeded !== undefined) onOverdrawn(exceeded);
    }
  }

  /** Gives back what was reserved for a call that was not performed. The call itself stays counted. */
  async release({ reservation, price }: ReservedModelCall): Promise<void> {
    const isReserved = await reservation.durable.catch(() => false);
    if (isReserved) this.ledger.settle(reservation, amountsOf(price, 0, 0));
  }

  private overdrawn(): ExceededLimit | undefined {
    // guard: overrun-stops-turn
    return this.ledger.budget.overdrawn(this.accounts);
  }

  private exhaustedOutput({ maxTokens = 0 }: ReservedModelCall): ExceededLimit {
    return { account: '', counter: 'outputTokens', used: maxTokens, limit: maxTokens };
  }

  /** Returns the price of the model. Throws BUDGET_EXHAUSTED if money is limited and the model has no price. */
  private requiredPrice({ name }: Effect, input: Json): ModelPrice | undefined {
    const { model = '' } = (input ?? {}) as { readonly model?: string };
    const price = this.priceOf(name, model, this.now());
    const isLimited = this.accounts.some(({ limits }) => limits.costMicros !== undefined);
    // guard: unpriced-model-refused
    if (price !== undefined || !isLimited) return price;
    const message = `The grant limits what models cost, and ${missingPriceText(`${name}/${model}`)}.`;
    throw new LoopError('TOOL_NOT_ADMITTED', message, { name, model, missing: MISSING_PRICE });
  }

  /** Returns how many tokens a call may write: what it requests, what is left, and what is affordable. */
  private outputLimit(
    price: ModelPrice | undefined,
    inputBytes: number,
    requested: number | undefined,
  ): number | undefined {
    const { budget } = this.ledger;
    const limits = this.accounts.flatMap(({ id, limits: { outputTokens, costMicros: cost } }) => [
      outputTokens === undefined ? undefined : outputTokens - budget.usedOf(id, 'outputTokens'),
      cost === undefined || price === undefined
        ? undefined
        : affordableOutput(price, cost - budget.usedOf(id, 'costMicros'), inputBytes),
    ]);
    const known = [requested, ...limits].filter((limit) => limit !== undefined);
    const isLimited = limits.some((limit) => limit !== undefined);
    return isLimited ? Math.max(0, Math.min(...known)) : undefined;
  }
}

/** Returns what a recorded reply used. `reserved` counts for the input if the reply does not report it. */
export function usedBy(reply: Reply, price: ModelPrice | undefined, reserved: Amounts): Amounts {
  // guard: unreported-input-stays-charged
  const { inputTokens, outputTokens } = tokensOf(reply, reserved.inputTokens ?? 0, 0);
  return amountsOf(price, inputTokens, outputTokens);
}

function amountsOf(price: ModelPrice | undefined, inputTokens: number, outputTokens: number): Amounts {
  const tokens = { inputTokens, outputTokens };
  if (price === undefined) return tokens;
  return { ...tokens, costMicros: costMicros(price, inputTokens, outputTokens) };
}

/** Counts the tokens of a streamed reply: the minimum of its text, but at least one for each piece. */
class OutputCounter implements OutputMeter {
  readonly maxTokens: number;
  isExceeded = false;
  private pieces = 0;
  private readonly counter = new MinTokenCounter();

  constructor(maxTokens: number) {
    this.maxTokens = maxTokens;
  }

  get tokens(): number {
    return Math.max(this.pieces, this.counter.tokens);
  }

  addPiece(piece: string): void {
    this.pieces += 1;
    this.counter.add(piece);
    if (this.tokens <= this.maxTokens) return;
    this.isExceeded = true;
    throw new LoopError('BUDGET_EXHAUSTED', `The model wrote more than the ${this.maxTokens} tokens that it may.`);
  }
}
