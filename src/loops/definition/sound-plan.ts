/**
 * Removes from a plan what is wrong with its shape, so that the rest can be analyzed: one mistake must not hide the
 * others. A step that cannot be repaired becomes one that does nothing and keeps its place and its names.
 */
import { isObject } from '../../base/own-property.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import type { PlanSpec } from '../../protocol/plan.js';
import { copyDocument } from './copy-document.js';
import { checkPlan } from './plan.js';
import { DefinitionIssues } from './shape.js';

/** Removing a member may show that its step has nothing left to do, which the next round repairs. */
const MAX_ROUNDS = 4;
/** The lists whose elements are steps or states. */
const STEP_LISTS: ReadonlySet<string> = new Set(['steps', 'else', 'states']);

/** Returns a copy of a plan without the parts whose shape is wrong; undefined if nothing useful is left. */
export function soundPlan(plan: Json): PlanSpec | undefined {
  const draft = copyDocument(plan, new DefinitionIssues());
  if (draft === undefined) return undefined;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const paths = flawedPaths(draft);
    if (paths.length === 0) return draft as unknown as PlanSpec;
    for (const path of paths) {
      const isRepaired = (round === 0 && removeMember(draft, path)) || replaceStep(draft, path, round);
      if (!isRepaired) return undefined;
    }
  }
  return undefined;
}

/** Returns the members that are wrong. The analysis copes with a transition to a state that does not exist. */
function flawedPaths(draft: Json): readonly (readonly string[])[] {
  const issues = new DefinitionIssues();
  checkPlan(draft, '', issues);
  return issues.list
    .filter(({ path }) => !/\/transitions\/\d+\/next$/.test(path))
    .map(({ path }) =>
      path
        .split('/')
        .slice(1)
        .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~')),
    );
}

function removeMember(draft: Json, path: readonly string[]): boolean {
  const key = path.at(-1) ?? '';
  const parent = valueAt(draft, path.slice(0, -1));
  if (!isObject(parent) || !Object.hasOwn(parent, key)) return false;
  // Its step reads names that only an iteration has.
  if (key === 'for_each') return false;
  const members = parent as { [key: string]: Json };
  const value = members[key] as Json;
  // A repetition without an end: its steps can be analyzed.
  if (key === 'repeat' && isObject(value) && value.max === undefined) members[key] = { ...value, max: 1 };
  else delete members[key];
  return true;
}

/** Replaces the innermost step or state around a path. Returns false if there is none. */
function replaceStep(draft: Json, path: readonly string[], round: number): boolean {
  for (let end = path.length; end >= 2; end--) {
    const list = valueAt(draft, path.slice(0, end - 1));
    if (!Array.isArray(list) || !STEP_LISTS.has(path[end - 2] ?? '')) continue;
    const index = Number(path[end - 1]);
    const step = list[index] as Json;
    const { name, capture, transitions } = (isObject(step) ? step : {}) as JsonObject;
    const names = { ...(typeof name === 'string' && { name }), ...(typeof capture === 'string' && { capture }) };
    const isState = path[end - 2] === 'states';
    list[index] = isState
      ? { ...names, ...(round < 2 && Array.isArray(transitions) && { transitions }) }
      : { ...names, plugin: 'capture', value: '' };
    return true;
  }
  return false;
}

function valueAt(document: Json, path: readonly string[]): Json | undefined {
  let value: Json | undefined = document;
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as { readonly [key: string]: Json })[key];
  }
  return value;
}
