/**
 * Tracks the effects whose results a conversation displays: the model calls of agents and the effects of tools. An
 * effect with layers has attempts; its result is the one that the layers settle on, which may be the result of an
 * attempt.
 */
import type { Entry } from '../../protocol/entry.js';
import type { Json } from '../../protocol/json.js';
import type { ConversationCall } from './conversation-call.js';
import { type OpenCalls, parentKeyOf } from './open-calls.js';

/** The result of a tracked effect, and its call. */
export interface EffectResult {
  readonly call: ConversationCall;
  readonly value: Json | undefined;
}

/** Tracks an effect that starts, if its result is displayed. */
export function trackEffect(calls: OpenCalls<ConversationCall>, { key, kind }: Entry): void {
  const call = calls.get(parentKeyOf(key));
  if (call === undefined || (call.agent === undefined && call.toolUse === undefined)) return;
  // A key with `~` is a retry after a doubt; its effect is tracked already.
  if (kind !== (call.agent === undefined ? 'tool' : 'model') || key.includes('~')) return;
  call.trackedEffect = { key, attemptResults: undefined };
}

/**
 * Returns the result of a tracked effect without layers; undefined for an attempt, which is only stored, and for other
 * effects.
 */
export function applyReturned(calls: OpenCalls<ConversationCall>, { key, value }: Entry): EffectResult | undefined {
  const parentKey = parentKeyOf(key);
  const call = calls.get(parentKey);
  if (call !== undefined) {
    if (call.trackedEffect?.key !== key) return undefined;
    call.trackedEffect = undefined;
    return { call, value };
  }
  const effect = calls.get(parentKeyOf(parentKey))?.trackedEffect;
  if (effect?.key !== parentKey) return undefined;
  effect.attemptResults ??= new Map();
  effect.attemptResults.set(key, value);
  return undefined;
}

/**
 * Returns the result that the layers settled on, without a value if they failed; undefined if the effect is not
 * tracked.
 */
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
