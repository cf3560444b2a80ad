/** The texts of a plan: actions, prompts, conditions, names. */
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import type { PlanSpec } from '../../protocol/plan.js';

/** A text of a plan. */
interface PlanText {
  /** The name of the member that holds it. */
  readonly member: string;
  readonly text: string;
  /** Its path in the definition of the loop. */
  readonly path: string;
}

/** Members with data of the author, which has no texts of a plan. */
const DATA_MEMBERS: ReadonlySet<string> = new Set(['value', 'schema', 'input', 'on_error', 'retry']);

/** Yields the texts in the steps and states of a plan, in order. */
export function* planTexts({ steps = [], states = [] }: PlanSpec): Generator<PlanText> {
  yield* textsIn(steps as unknown as Json, '/composite/plan/steps');
  yield* textsIn(states as unknown as Json, '/composite/plan/states');
}

function* textsIn(value: Json, path: string): Generator<PlanText> {
  if (Array.isArray(value)) for (const [index, item] of value.entries()) yield* textsIn(item, `${path}/${index}`);
  if (!isObject(value)) return;
  for (const [member, inner] of Object.entries(value)) {
    const memberPath = `${path}/${member}`;
    if (typeof inner === 'string') yield { member, text: inner, path: memberPath };
    else if (!DATA_MEMBERS.has(member)) yield* textsIn(inner, memberPath);
  }
}
