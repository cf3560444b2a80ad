/** Asks a person whether a plan may go on. The plan pauses until the approval is answered. */

import { LoopError } from '../../base/errors.js';
import { runtimeEffect } from '../../journal/runtime-effects.js';
import type { Effect, Scope } from '../../protocol/body.js';
import type { Json } from '../../protocol/json.js';

/** A question to a person. */
interface GateOptions {
  readonly planId: string;
  /** The name of the step that asks. */
  readonly gate: string;
  readonly question: string;
  /** What the person decides about. */
  readonly evidence?: Json;
}

/** Waits for an approval. Throws `refusal` if it is denied or expires. */
export async function askPerson(
  scope: Scope,
  { planId, gate, question, evidence = null }: GateOptions,
  refusal: LoopError,
): Promise<void> {
  // An effect that does nothing: the approval layer asks before it is performed.
  const effect: Effect = runtimeEffect({
    kind: 'tool',
    name: `${planId}.${gate}`,
    input: { question, evidence },
    safety: 'pure',
    boundary: 'gate',
    policy: { approval: 'ask' },
    definition: planId,
    describe: () => question,
    perform: () => ({ output: null }),
  });
  try {
    await scope.effect(effect);
  } catch (thrown) {
    if (thrown instanceof LoopError && thrown.code === 'APPROVAL_DENIED') throw refusal;
    throw thrown;
  }
}
