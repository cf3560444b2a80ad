/**
 * Binds a plan to its project when it is registered: the loops that its verbs stand for and the model of its prompts
 * become part of the definition, so that a turn continues with them.
 */
import type { BackendRef } from '../../protocol/loop.js';
import type { PlanSpec } from '../../protocol/plan.js';
import { compileAction } from './placeholders.js';
import { unboundVerbError } from './plan-inputs.js';
import { planTexts } from './plan-texts.js';
import { boundLoop, shippedLoop } from './verbs.js';

/** What a project provides to its plans. */
export interface PlanBindings {
  /** The loops of its verbs. */
  readonly verbs?: { readonly [verb: string]: string } | undefined;
  /** The model of prompts that name none. */
  readonly defaultModel?: BackendRef | undefined;
  /** The model that replaces the one that a workflow names. */
  readonly modelOverride?: BackendRef | undefined;
}

/** Returns a plan with its verbs and its model. Throws DEFINITION_INVALID for a verb that nothing is bound to. */
export function bindPlan(spec: PlanSpec, { verbs, defaultModel, modelOverride }: PlanBindings): PlanSpec {
  const bound: { [verb: string]: string } = {};
  for (const { word, path } of verbsOf(spec)) {
    const loopId = boundLoop(spec.verbs, word) ?? boundLoop(verbs, word) ?? shippedLoop(word);
    if (loopId === undefined) throw unboundVerbError(word, path);
    bound[word] = loopId;
  }
  const { llm } = spec;
  const named = llm?.provider === undefined ? undefined : backendOf(llm.provider, llm.model);
  const backend = modelOverride ?? spec.backend ?? named ?? (usesModel(spec) ? defaultModel : undefined);
  return {
    ...spec,
    ...(Object.keys(bound).length > 0 && { verbs: bound }),
    ...(backend !== undefined && usesModel(spec) && { backend }),
  };
}

/** True if a plan takes the loop of a verb or its model from its project. */
export function takesBindings(spec: PlanSpec, { verbs, defaultModel, modelOverride }: PlanBindings): boolean {
  const isBound = (word: string): boolean =>
    boundLoop(spec.verbs, word) === undefined && boundLoop(verbs, word) !== undefined;
  if ([...verbsOf(spec)].some(({ word }) => isBound(word))) return true;
  const named = modelOverride ?? spec.backend ?? spec.llm?.provider;
  return defaultModel !== undefined && named === undefined && usesModel(spec);
}

/** Returns the shipped loops that the verbs of a plan stand for. */
export function shippedLoopsOf(spec: PlanSpec, verbs: PlanBindings['verbs']): readonly string[] {
  const words = [...verbsOf(spec)].map(({ word }) => word);
  const unbound = words.filter((word) => (boundLoop(spec.verbs, word) ?? boundLoop(verbs, word)) === undefined);
  return [...new Set(unbound.flatMap((word) => shippedLoop(word) ?? []))];
}

function backendOf(id: string, model: string | undefined): BackendRef {
  return model === undefined ? { id } : { id, model };
}

/** True if a plan calls a model itself. */
function usesModel(spec: PlanSpec): boolean {
  for (const { member, text } of planTexts(spec))
    if (member === 'prompt' || (member === 'plugin' && text === 'llm-decide')) return true;
  return false;
}

const ACTION_MEMBERS: ReadonlySet<string> = new Set(['action', 'on_entry', 'on_exit']);

/** Yields the verb of each action of a plan, with its path. */
function* verbsOf(spec: PlanSpec): Generator<{ readonly word: string; readonly path: string }> {
  for (const { member, text, path } of planTexts(spec)) {
    if (!ACTION_MEMBERS.has(member)) continue;
    const [first] = compileAction(text, path).words;
    if (first !== undefined && first.placeholders.length === 0) yield { word: first.text, path };
  }
}
