/** Builds the effect that the arguments of `scope.effect` describe. */
import { LoopError } from '../base/errors.js';
import { assertKnownKeys, optionKeys } from '../base/option-keys.js';
import type { Effect, EffectArguments, EffectOptions, EffectPolicy } from '../protocol/body.js';

const OPTION_KEYS = optionKeys<EffectOptions>({ safety: true, policy: true, input: true });
const POLICY_KEYS = optionKeys<EffectPolicy>({ retry: true, rateLimit: true, timeoutMs: true });

/**
 * Returns the effect itself, or the one that a name, a function and options describe. Throws VALUE_INVALID if the
 * function is missing, and a TypeError for an unknown option.
 */
export function toEffect<O>([effect, perform, options = {}]: EffectArguments<O>): Effect<O> {
  if (typeof effect !== 'string') return effect;
  if (typeof perform !== 'function') {
    const message = `The effect "${effect}" needs a function: scope.effect("${effect}", () => …).`;
    throw new LoopError('VALUE_INVALID', message, { name: effect });
  }
  assertKnownKeys(options, OPTION_KEYS, 'An effect has no option');
  const { safety = 'once', policy, input = null } = options;
  if (policy !== undefined) assertKnownKeys(policy, POLICY_KEYS, 'The policy of an effect has no');
  return { kind: 'code', name: effect, input, safety, policy, perform: (_input, context) => perform(context) };
}
