/**
 * The effects whose results a conversation tells: what an agent's model answered, and what a tool did. With layers
 * around it an effect has attempts, and what counts is what the layers settled on, which may be one of the attempts.
 */
import type { Entry } from '../../protocol/entry.js';
import type { Json } from '../../protocol/json.js';
import type { Call } from './call.js';
import { above, type Calls } from './calls.js';

/** The result of a watched effect, and whose it is. */
export interface Told {
  readonly call: Call;
  readonly value: Json | undefined;
}

/** Watches an effect that begins, if its result will be told. */
export function watchEffect(calls: Calls<Call>, { key, kind }: Entry): void {
  const call = calls.get(above(key));
  if (call === undefined || (call.agent === undefined && call.use === undefined)) return;
  // A repetition that somebody decided on is of an effect that is watched already.
  if (kind !== (call.agent === undefined ? 'tool' : 'model') || key.includes('~')) return;
  call.effect = { key, attempts: undefined };
}

/** What a return tells; undefined if it is of an attempt, which is only noted, or of an effect that nobody watches. */
export function returnedEffect(calls: Calls<Call>, { key, value }: Entry): Told | undefined {
  const outer = above(key);
  const call = calls.get(outer);
  if (call !== undefined) {
    if (call.effect?.key !== key) return undefined;
    call.effect = undefined;
    return { call, value };
  }
  const effect = calls.get(above(outer))?.effect;
  if (effect?.key !== outer) return undefined;
  effect.attempts ??= new Map();
  effect.attempts.set(key, value);
  return undefined;
}

/** What the layers settled on, which is nothing if they failed; undefined if nobody watches. */
export function settledEffect(calls: Calls<Call>, { key, from, value }: Entry): Told | undefined {
  const call = calls.get(above(key));
  if (call?.effect?.key !== key) return undefined;
  const { attempts } = call.effect;
  call.effect = undefined;
  return { call, value: from === undefined ? value : attempts?.get(from) };
}
