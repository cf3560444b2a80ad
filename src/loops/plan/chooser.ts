/**
 * Choices of a plan. A choice is recorded as `rondo.plan.chose`, so a replay takes the recorded one, whatever the
 * condition would say now.
 */
import type { Scope } from '../../protocol/body.js';
import type { PlanCondition } from '../../protocol/plan.js';
import { servicesOf } from '../services.js';
import { compileCondition, FILE_EXISTS } from './condition.js';
import { compileText } from './placeholders.js';
import { placeholderLookup } from './plan-inputs.js';
import type { PlanRun } from './plan-run.js';

/** The entry type of a choice. */
export const PLAN_CHOSE = 'rondo.plan.chose';

/** Evaluates a condition, records which of two choices it makes, and returns true for the first one. */
export type Chooser = (run: PlanRun, scope: Scope, holds: string, otherwise: string) => Promise<boolean>;

/** A compiled condition. */
export interface Evaluation {
  /** True if it reads only the data of the plan, so that `holds` returns no promise. */
  readonly isImmediate: boolean;
  /** Returns true if the condition holds now. */
  holds(run: PlanRun, scope: Scope): boolean | Promise<boolean>;
}

/** Compiles a condition. Throws DEFINITION_INVALID if it is invalid. */
export function compileEvaluation(text: PlanCondition, where: string): Evaluation {
  const condition = compileCondition(text, where);
  if (condition.file === undefined) return { isImmediate: true, holds: (run) => condition.evaluate(run.data) };
  const file = compileText(condition.file, where);
  const holds = async (run: PlanRun, scope: Scope): Promise<boolean> => {
    const path = file.render(placeholderLookup(run));
    // An effect, because the answer depends on the file system.
    const perform = (): Promise<boolean> => servicesOf(scope).fileExists(path);
    const exists = await scope.effect('file_exists', perform, { safety: 'pure', input: path });
    return condition.evaluate({ ...run.data, [FILE_EXISTS]: exists });
  };
  return { isImmediate: false, holds };
}

/** Compiles a choice between two outcomes. `step` names the step that chooses. */
export function compileChooser(step: string, text: PlanCondition, where: string): Chooser {
  const { isImmediate, holds } = compileEvaluation(text, where);
  return async (run, scope, first, second) => {
    const known = isImmediate ? undefined : await holds(run, scope);
    const choose = (): string => ((known ?? holds(run, scope)) === true ? first : second);
    return (await recordChoice(scope, step, choose)) === first;
  };
}

/** Records a choice, and returns the recorded one. `choose` is not called if there is one. */
export function recordChoice(scope: Scope, step: string, choose: () => string): Promise<string> {
  return scope.record(PLAN_CHOSE, () => ({ step, choice: choose() })).then(({ choice }) => choice);
}
