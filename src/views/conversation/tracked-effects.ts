/**
 * The effects whose results a conversation tells: what an agent's model answered, and what a tool did. With layers
 * around it an effect has attempts, and what counts is what the layers settled on, which may be one of the attempts.
 */
import type { Entry } from '../../protocol/entry.js';
import type { Json } from '../../protocol/json.js';
import type { ConversationCall } from './conversation-call.js';
import { type OpenCalls, parentKeyOf } from './open-calls.js';

/** The result of a watched effect, and whose it is. */
export interface EffectResult {
  readonly call: ConversationCall;
  readonly value: Json | undefined;
}

/** Watches an effect that begins, if its result will be told. */
export function trackEffect(calls: OpenCalls<ConversationCall>, { key, kind }: Entry): void {
  const call = calls.get(parentKeyOf(key));
  if (call === undefined || (call.agent === undefined && call.toolUse === undefined)) return;
  // A repetition that somebody decided on is of an effect that is watched already.
  if (kind !== (call.agent === undefined ? 'tool' : 'model') || key.includes('~')) return;
  call.trackedEffect = { key, attemptResults: undefined };
}

/** What a return tells; undefined if it is of an attempt, which is only noted, or of an effect that nobody watches. */
export function applyReturned(calls: OpenCalls<ConversationCall>, { key, value }: Entry): EffectResult | undefined {
  const outer = parentKeyOf(key);
  const call = calls.get(outer);
  if (call !== undefined) {
    if (call.trackedEffect?.key !== key) return undefined;
    call.trackedEffect = undefined;
    return { call, value };
  }
  const effect = calls.get(parentKeyOf(outer))?.trackedEffect;
  if (effect?.key !== outer) return undefined;
  effect.attemptResults ??= new Map();
  effect.attemptResults.set(key, value);
  return undefined;
}

/** What the layers settled on, which is nothing if they failed; undefined if nobody watches. */
export function applySettled(
  calls: OpenCalls<ConversationCall>,
  { key, attemptKey, value }: Entry,
): EffectResult | undefined {
  const call = calls.get(parentKeyOf(key));
  if (call?.trackedEffect?.key !== key) return undefined;
  const { attemptResults } = call.trackedEffect;
  call.trackedEffect = undefined;
  return { call, value: attemptKey === undefined ? value : attemptResults?.get(attemptKey) };
}
