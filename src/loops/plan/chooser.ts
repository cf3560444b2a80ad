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

/** Returns true if a condition holds now. */
export type EvaluateCondition = (run: PlanRun, scope: Scope) => boolean | Promise<boolean>;

/** Compiles a condition. Throws DEFINITION_INVALID if it is invalid. */
export function compileEvaluation(text: PlanCondition, where: string): EvaluateCondition {
  const condition = compileCondition(text, where);
  if (condition.file === undefined) return (run) => condition.evaluate(run.data);
  const file = compileText(condition.file, where);
  return async (run, scope) => {
    const path = file.render(placeholderLookup(run));
    // An effect, because the answer depends on the file system.
    const perform = (): Promise<boolean> => servicesOf(scope).fileExists(path);
    const exists = await scope.effect('file_exists', perform, { safety: 'pure', input: path });
    return condition.evaluate({ ...run.data, [FILE_EXISTS]: exists });
  };
}

/** Compiles a choice between two outcomes. `step` names the step that chooses. */
export function compileChooser(step: string, text: PlanCondition, where: string): Chooser {
  const evaluate = compileEvaluation(text, where);
  return (run, scope, holds, otherwise) => {
    const record = (value: boolean): Promise<boolean> =>
      recordChoice(scope, step, value ? holds : otherwise).then((chosen) => chosen === holds);
    const value = evaluate(run, scope);
    return typeof value === 'boolean' ? record(value) : value.then(record);
  };
}

/** Records a choice, and returns the recorded one. */
export function recordChoice(scope: Scope, step: string, choice: string): Promise<string> {
  return scope.record(PLAN_CHOSE, () => ({ step, choice })).then((chosen) => chosen.choice);
}
