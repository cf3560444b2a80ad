/**
 * What has changed in the code of a turn since it started: compares the definitions that are pinned with the turn with
 * those of the loops that would run now. The message of a replay mismatch and `Host.inFlightTurns` name the changes.
 */

import { digestOfText } from '../journal/record.js';
import { jsonEquals } from '../json/value.js';
import type { RegisteredLoop } from '../loops/registry.js';
import type { Json } from '../protocol/json.js';
import { isPinnedCode, type PinnedDefinition, parsePin } from './pin.js';

/** A loop in code that has changed, or is no longer registered, since the turn started. */
export interface CodeChange {
  /** The loop as `id@version`. */
  readonly loop: string;
  readonly now: 'missing' | 'changed';
  /**
   * The options that changed, such as `instructions`, `input` or `tools`; `source` if only the source text of the
   * function did. Empty for a missing loop.
   */
  readonly parts: readonly string[];
}

/** A change of the operator's build id between the host that started a turn and this one. */
export interface BuildChange {
  /** Absent if the host that started the turn had none. */
  readonly recorded?: string;
  readonly now: string;
}

type FindLoop = (id: string, version: string) => RegisteredLoop | undefined;

/** Returns the loops in code of a pin that have changed or that `find` does not know. */
export function codeChangesSince(pinText: string, find: FindLoop): readonly CodeChange[] {
  return parsePin(pinText).definitions.flatMap((pinned): readonly CodeChange[] => {
    if (!isPinnedCode(pinned)) return [];
    const loop = `${pinned.id}@${pinned.version}`;
    const current = find(pinned.id, pinned.version);
    if (current === undefined) return [{ loop, now: 'missing', parts: [] }];
    const parts = changedParts(pinned, current);
    return parts.length === 0 ? [] : [{ loop, now: 'changed', parts }];
  });
}

/** Returns the change of the build; undefined if this host has no build, or the one that the turn started with. */
export function buildChangeSince(pinText: string, build: string | undefined): BuildChange | undefined {
  const { build: recorded } = parsePin(pinText);
  if (build === undefined || recorded === build) return undefined;
  return recorded === undefined ? { now: build } : { recorded, now: build };
}

/** Returns the sentence that begins the message of a replay mismatch; empty if no definition has changed. */
export function describeChanges(changes: readonly CodeChange[]): string {
  const named = changes.filter(({ now, parts }) => now === 'changed' && !isSourceOnly(parts));
  if (named.length === 0) return '';
  const list = named.map(({ loop, parts }) => `${loop.replace(/@(?=[^@]*$)/, ' ')}: ${parts.join(', ')} changed`);
  return `${list.join('; ')}.`;
}

/** True if nothing but the source text of a function has changed, which says nothing about its behaviour. */
export function isSourceOnly(parts: readonly string[]): boolean {
  return parts.length === 1 && parts[0] === 'source';
}

/** Returns the changed options of a loop. A pin of an earlier version has nothing to compare. */
function changedParts({ definition, digest, source }: PinnedDefinition, current: RegisteredLoop): readonly string[] {
  if (definition === undefined) return [];
  if (digest !== current.digest) {
    const [before, after] = [optionsOf(definition), optionsOf(current.definition as unknown as Json)];
    const names = [...new Set([...before.keys(), ...after.keys()])];
    return names.filter((name) => !jsonEquals(before.get(name), after.get(name)));
  }
  return source === digestOfText(current.definedLoop?.source ?? '') ? [] : ['source'];
}

/** The members of a definition whose option in code has another name. */
const OPTION_NAMES = new Map([
  ['inputSchema', 'input'],
  ['outputSchema', 'output'],
  ['backend', 'model'],
]);

/** Returns the options of `defineLoop` and `defineAgent` that a definition stands for, by name. */
function optionsOf(definition: Json): ReadonlyMap<string, Json> {
  const { composite, tool, ...members } = definition as { readonly [name: string]: { readonly [name: string]: Json } };
  const { agent, ...steps } = composite ?? {};
  const options = { ...members, ...steps, ...tool, ...(agent as typeof steps) };
  return new Map(Object.entries(options).map(([name, value]) => [OPTION_NAMES.get(name) ?? name, value as Json]));
}
