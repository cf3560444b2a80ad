/**
 * Loads the context of one call of a prompt or an agent. The texts are read once, by an effect whose result has them, and
 * their names, digests and sizes are recorded as `rondo.context.loaded`. A replay gets the recorded texts, so a model gets
 * the same context however often its process crashes, and no file is needed to replay a turn. The host compares the files
 * with the record before it continues a turn.
 */

import { digestOfText } from '../../journal/record.js';
import { runtimeEffect } from '../../journal/runtime-effects.js';
import type { Effect, Scope } from '../../protocol/body.js';
import type { Json } from '../../protocol/json.js';
import type { ModelMessage } from '../../protocol/model.js';
import { CONTEXT_LOADED } from '../../views/loaded-context.js';
import type { DefinitionOrigin } from '../origin.js';
import { servicesOf, turnIdOf } from '../services.js';
import { contextMessageOf } from './context-message.js';
import { type ContextText, readContext } from './read-context.js';

/** The context of a call, ready for its model. */
export interface LoadedContext {
  /** The user message with all texts. */
  readonly message: ModelMessage;
  /** A digest of the names and the digests of the texts. */
  readonly digest: string;
  /** The length of the message in characters. */
  readonly chars: number;
}

/**
 * Loads the context of the call that `scope` belongs to; undefined without references. Throws CONTEXT_REFUSED if a
 * reference cannot be used.
 */
export async function loadContext(
  scope: Scope,
  references: readonly string[] | undefined,
  origin: DefinitionOrigin,
): Promise<LoadedContext | undefined> {
  if (references === undefined || references.length === 0) return undefined;
  const { texts } = (await scope.effect(readEffect(scope, references, origin))) as { readonly texts: ContextText[] };
  const items = texts.map(({ name, sha256, bytes }) => ({ name, sha256, bytes }));
  await scope.record(CONTEXT_LOADED, () => ({ items }));
  const message = contextMessageOf(texts);
  return { message, chars: charsOf(message), digest: digestOfText(JSON.stringify(items)) };
}

/** Returns the references of a call: those of its loop, and those that its turn adds; undefined if there are none. */
export function contextReferencesOf(
  scope: Scope,
  ofLoop: readonly string[] | undefined,
): readonly string[] | undefined {
  const added = servicesOf(scope).turnContext(turnIdOf(scope)).addedContext(scope.key);
  return added.length === 0 ? ofLoop : [...new Set([...(ofLoop ?? []), ...added])];
}

/** Returns the effect that reads the texts. It changes nothing, and its result is recorded like that of any effect. */
function readEffect(scope: Scope, references: readonly string[], origin: DefinitionOrigin): Effect {
  const perform = async (): Promise<Json> => {
    const texts = await readContext(references, origin, servicesOf(scope).contextSources);
    return { texts: texts.map((text) => ({ ...text })) };
  };
  const input = { references: [...references] };
  return runtimeEffect({ kind: 'context', name: 'context', input, safety: 'pure', perform });
}

function charsOf({ content }: ModelMessage): number {
  if (typeof content === 'string') return content.length;
  return content.reduce((sum, part) => sum + ('text' in part ? part.text.length : 0), 0);
}
