/**
 * Binds a plan to its project when it is registered: the loops that its verbs stand for and the model of its prompts
 * become part of the definition, so that a turn continues with them.
 */
import type { BackendRef } from '../../protocol/loop.js';
import type { PlanSpec } from '../../protocol/plan.js';
import type { DefinitionIssues } from '../definition/shape.js';
import { type CompiledAction, compileAction } from './placeholders.js';
import { unboundVerbError } from './plan-inputs.js';
import { planTexts } from './plan-texts.js';
import { boundLoop, shippedLoop } from './verbs.js';

/** How to choose the model of a plan. */
export const MODEL_ADVICE =
  'pass --model BACKEND:MODEL, set model = "BACKEND:MODEL" in rondo.toml, or name a provider and a model in the llm of the workflow';

/** What a project provides to its plans. */
export interface PlanBindings {
  /** The loops of its verbs. */
  readonly verbs?: { readonly [verb: string]: string } | undefined;
  /** The model of prompts that name none. */
  readonly defaultModel?: BackendRef | undefined;
  /** The model that replaces the one that a workflow names. */
  readonly modelOverride?: BackendRef | undefined;
}

/** Returns a plan with its verbs and its model. Adds an issue for each verb that nothing is bound to. */
export function bindPlan(
  spec: PlanSpec,
  { verbs, defaultModel, modelOverride }: PlanBindings,
  issues: DefinitionIssues,
): PlanSpec {
  const bound: { [verb: string]: string } = {};
  for (const { word, path } of verbsOf(spec)) {
    const loopId = boundLoop(spec.verbs, word) ?? boundLoop(verbs, word) ?? shippedLoop(word);
    if (loopId === undefined) issues.addError(unboundVerbError(word, path));
    else bound[word] = loopId;
  }
  const { llm } = spec;
  const named = llm?.provider === undefined ? undefined : backendOf(llm.provider, llm.model);
  const usesModel = firstPromptIn(spec) !== undefined;
  const backend = modelOverride ?? spec.backend ?? named ?? (usesModel ? defaultModel : undefined);
  return {
    ...spec,
    ...(Object.keys(bound).length > 0 && { verbs: bound }),
    ...(backend !== undefined && usesModel && { backend }),
  };
}

/** True if a plan takes the loop of a verb or its model from its project. */
export function takesBindings(spec: PlanSpec, { verbs, defaultModel, modelOverride }: PlanBindings): boolean {
  const isBound = (word: string): boolean =>
    boundLoop(spec.verbs, word) === undefined && boundLoop(verbs, word) !== undefined;
  if ([...verbsOf(spec)].some(({ word }) => isBound(word))) return true;
  const named = modelOverride ?? spec.backend ?? spec.llm?.provider;
  return defaultModel !== undefined && named === undefined && firstPromptIn(spec) !== undefined;
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

/** Returns the path of the first text for which a plan calls a model itself; undefined if it calls none. */
export function firstPromptIn(spec: PlanSpec): string | undefined {
  for (const { member, text, path } of planTexts(spec))
    if (member === 'prompt' || (member === 'plugin' && text === 'llm-decide')) return path;
  return undefined;
}

const ACTION_MEMBERS: ReadonlySet<string> = new Set(['action', 'on_entry', 'on_exit']);

/** Returns the words of an action; none if it cannot be read, which compiling the plan reports. */
function wordsOf(text: string): CompiledAction['words'] {
  try {
    return compileAction(text).words;
  } catch {
    return [];
  }
}

/** Yields the verb of each action of a plan, with its path. */
function* verbsOf(spec: PlanSpec): Generator<{ readonly word: string; readonly path: string }> {
  for (const { member, text, path } of planTexts(spec)) {
    if (!ACTION_MEMBERS.has(member)) continue;
    const [first] = wordsOf(text);
    if (first !== undefined && first.placeholders.length === 0) yield { word: first.text, path };
  }
}
