/** The context of one attempt at an effect, with signals that follow a lifetime. */
import type { EffectContext } from '../protocol/body.js';
import { createLifetimeSignal, type Lifetime, type LifetimeSignal } from './lifetime.js';

/** The context of one attempt. It creates signals on first use, because most effects use none. */
export class LazyEffectContext implements EffectContext {
  readonly idempotencyKey: string;
  private readonly lifetime: Lifetime;
  private ownSignal: LifetimeSignal | undefined;
  private borrowedSignal: LifetimeSignal | undefined;

  constructor(idempotencyKey: string, lifetime: Lifetime) {
    this.idempotencyKey = idempotencyKey;
    this.lifetime = lifetime;
  }

  get signal(): AbortSignal {
    this.ownSignal ??= createLifetimeSignal(this.lifetime);
    return this.ownSignal.signal;
  }

  get sharedSignal(): AbortSignal {
    // guard: idle-signal-borrowed-once
    this.borrowedSignal ??= this.lifetime.idleSignals.pop() ?? createLifetimeSignal(this.lifetime);
    return this.borrowedSignal.signal;
  }

  /** Ends the use of the signals. A shared signal stays connected for the next effect. */
  // guard: idle-signal-stays-connected
  release(): void {
    this.ownSignal?.release();
    if (this.borrowedSignal !== undefined) this.lifetime.idleSignals.push(this.borrowedSignal);
  }
}

/** Returns a context with further members. */
export function withContext(
  context: EffectContext,
  members: Pick<EffectContext, 'confinement' | 'outputMeter'>,
): EffectContext {
  return Object.assign(Object.create(context) as EffectContext, members);
}

/** Returns a context with another signal. Its type names every member, so that none is lost. */
export function withSignal(
  { idempotencyKey, confinement, outputMeter }: EffectContext,
  signal: AbortSignal,
): EffectContext & Record<keyof EffectContext, unknown> {
  // guard: signal-replaced-alone
  return { idempotencyKey, signal, sharedSignal: signal, confinement, outputMeter };
}
