/**
 * Checks the steps of a plan in the order in which they run, and follows what each of them captures. A name that a step
 * captures which may not run is readable; a name that no earlier step captures is not.
 */
import type { JsonSchema } from '../../../protocol/loop.js';
import type { PlanCallStep, PlanStep } from '../../../protocol/plan.js';
import type { DefinitionIssues } from '../../definition/shape.js';
import { compileCondition } from '../condition.js';
import { stepNameOf } from '../plan-inputs.js';
import { unknownStepError } from '../step-error.js';
import { waitStep } from '../wait-step.js';
import type { CallAnalysis } from './call-analysis.js';
import {
  ANY,
  ANY_RESULT,
  elements,
  type ReadableValues,
  resultSchema,
  type SchemaTable,
  tableOf,
} from './readable-values.js';
import type { ReferenceCheck } from './references.js';

type Typed<T extends string> = Extract<PlanStep, { type: T }>;
const INTEGER: JsonSchema = { type: 'integer' };
const NULL: JsonSchema = { type: 'null' };
const LIST_RESULT = resultSchema({ type: 'array' });

/** Checks the steps of one plan. */
export class StepAnalysis {
  private readonly calls: CallAnalysis;
  private readonly check: ReferenceCheck;
  private readonly issues: DefinitionIssues;

  constructor(calls: CallAnalysis, check: ReferenceCheck, issues: DefinitionIssues) {
    this.calls = calls;
    this.check = check;
    this.issues = issues;
  }

  /** Checks steps that run one after another, and returns what can be read after them. */
  steps(steps: readonly PlanStep[], path: string, before: ReadableValues): ReadableValues {
    const targets = gotoTargets(steps);
    this.checkTargets(steps, path);
    let values = targets.size === 0 ? before : before.repeating(capturesOf(steps));
    for (const [index, step] of steps.entries()) {
      // A jump brings the result of the step that failed.
      if (targets.has(stepNameOf(step, index))) values = values.withResult(ANY_RESULT);
      values = this.step(step, `${path}/${index}`, values);
    }
    return before.afterBlock(values);
  }

  private checkTargets(steps: readonly PlanStep[], path: string): void {
    const names = new Set(steps.map(stepNameOf));
    for (const [index, { on_error: onError }] of steps.entries())
      if (typeof onError === 'object' && 'goto' in onError && !names.has(onError.goto))
        this.issues.addError(unknownStepError(onError.goto, [...names], `${path}/${index}`));
  }

  private step(step: PlanStep, path: string, values: ReadableValues): ReadableValues {
    if (step.condition === undefined) return this.unconditional(step, path, values);
    this.check.condition(step.condition as string, `${path}/condition`, values);
    return values.afterOneOf([values, this.unconditional(step, path, values.onCondition())]);
  }

  private unconditional(step: PlanStep, path: string, values: ReadableValues): ReadableValues {
    if (!('type' in step)) return this.calls.call(step as PlanCallStep, path, values);
    const block = step as Typed<string>;
    const after = this.block(block, path, values);
    const { capture, on_error: onError } = block;
    const hasValue = typeof onError === 'object' && 'value' in onError;
    return after.withResult((hasValue ? undefined : after.get('result')) ?? ANY_RESULT, capture);
  }

  private block(step: Extract<PlanStep, { type: string }>, path: string, values: ReadableValues): ReadableValues {
    switch (step.type) {
      case 'sequence':
        return this.steps(step.sequence.steps, `${path}/sequence/steps`, values);
      case 'repeat':
        return this.repeat(step.repeat, `${path}/repeat`, values);
      case 'branch':
        return this.branch(step.branch, `${path}/branch`, values);
      case 'each':
        return this.each(step.each, `${path}/each`, values);
      case 'fanout':
        return this.fanOut(step.fanout, `${path}/fanout`, values);
      case 'scope': {
        const inside = this.steps(step.scope.steps, `${path}/scope/steps`, values);
        return values.withResult(inside.get('result') ?? ANY_RESULT);
      }
      case 'wait':
        this.check.attempt(() => waitStep(step.wait, '', `${path}/wait`));
        return values.withResult(resultSchema(step.wait.signal === undefined ? NULL : (step.wait.schema ?? ANY)));
    }
  }

  private repeat(repeat: Typed<'repeat'>['repeat'], path: string, before: ReadableValues): ReadableValues {
    const { steps, until, while: condition } = repeat;
    this.checkBounds(repeat, path);
    const start = before.repeating(capturesOf(steps)).with({ iteration: INTEGER, result: ANY_RESULT });
    if (condition !== undefined) this.check.condition(condition, `${path}/while`, start);
    const inside = this.steps(steps, `${path}/steps`, start);
    if (until !== undefined) this.check.condition(until, `${path}/until`, inside);
    const after = before.afterBlock(inside, ['iteration']);
    return condition === undefined ? after : before.afterOneOf([before, after]);
  }

  /** Adds an issue for a repetition that its conditions never end or never start, because they read nothing. */
  private checkBounds({ until, while: condition, max }: Typed<'repeat'>['repeat'], path: string): void {
    const holds = constantOf(condition);
    const ends = constantOf(until);
    if (holds === false) this.issues.add(`${path}/while`, 'never holds, so the steps never run');
    if (max !== undefined) return;
    const isEndless = (condition === undefined || holds === true) && (until === undefined || ends === false);
    if (!isEndless) return;
    const key = until === undefined ? 'while' : 'until';
    const reason = key === 'while' ? 'always holds' : 'never holds';
    this.issues.add(
      `${path}/${key}`,
      `${reason}, so nothing ends the repetition; add max, or a condition that changes`,
    );
  }

  private branch(
    { cases, else: otherwise }: Typed<'branch'>['branch'],
    path: string,
    before: ReadableValues,
  ): ReadableValues {
    const inside = before.onCondition();
    const ends = cases.map(({ condition, steps }, index) => {
      this.check.condition(condition, `${path}/cases/${index}/condition`, before);
      return this.steps(steps, `${path}/cases/${index}/steps`, inside);
    });
    return before.afterOneOf([
      ...ends,
      otherwise === undefined ? before : this.steps(otherwise, `${path}/else`, inside),
    ]);
  }

  private each({ items, steps, collect }: Typed<'each'>['each'], path: string, before: ReadableValues): ReadableValues {
    this.check.mapping(items, `${path}/items`, before);
    const item = elements(this.check.schemaOf(items, before));
    const start = before.repeating(capturesOf(steps)).with({ item, index: INTEGER, result: ANY_RESULT });
    const after = before.afterBlock(this.steps(steps, `${path}/steps`, start), ['item', 'index']);
    const merged = before.afterOneOf([before, after]);
    return collect === true ? merged.withResult(LIST_RESULT) : merged;
  }

  private fanOut(fanout: Typed<'fanout'>['fanout'], path: string, before: ReadableValues): ReadableValues {
    const { items, steps = [], branches = [] } = fanout;
    if (items !== undefined) {
      this.check.mapping(items, `${path}/items`, before);
      const item = elements(this.check.schemaOf(items, before));
      this.steps(steps, `${path}/steps`, before.with({ item, index: INTEGER }));
    }
    for (const [index, branch] of branches.entries())
      this.steps(branch.steps, `${path}/branches/${index}/steps`, before.with({ item: ANY, index: INTEGER }));
    return before.withResult(LIST_RESULT);
  }
}

/** Returns the value of a condition that reads nothing; undefined for any other. */
function constantOf(text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined;
  try {
    const condition = compileCondition(text, '');
    return condition.names.length > 0 || condition.file !== undefined ? undefined : condition.evaluate({});
  } catch {
    return undefined;
  }
}

/** Returns the names that are readable after steps, each with any result. */
function capturesOf(steps: readonly PlanStep[]): SchemaTable {
  return tableOf(Object.fromEntries(steps.flatMap(visibleCaptures).map((name) => [name, ANY_RESULT])));
}

function visibleCaptures(step: PlanStep): readonly string[] {
  const own = typeof step.capture === 'string' ? [step.capture] : [];
  const inner = 'type' in step ? innerSteps(step as Extract<PlanStep, { type: string }>) : [];
  return [...own, ...inner.flatMap(visibleCaptures)];
}

/** Returns the steps of a block whose captured names stay readable after it. */
function innerSteps(step: Extract<PlanStep, { type: string }>): readonly PlanStep[] {
  if (step.type === 'sequence') return step.sequence.steps;
  if (step.type === 'repeat') return step.repeat.steps;
  if (step.type === 'each') return step.each.steps;
  if (step.type !== 'branch') return [];
  return [...step.branch.cases.flatMap(({ steps }) => steps), ...(step.branch.else ?? [])];
}

/** Returns the names of the steps that a failed step of the same list jumps to. */
function gotoTargets(steps: readonly PlanStep[]): ReadonlySet<string> {
  const targets = steps.flatMap(({ on_error: onError }) =>
    typeof onError === 'object' && onError !== null && 'goto' in onError ? [String(onError.goto)] : [],
  );
  return new Set(targets);
}
