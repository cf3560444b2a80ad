/**
 * Checks the steps of a plan in the order in which they run, and follows what each of them captures. A name that a step
 * captures which may not run is readable; a name that no earlier step captures is not.
 */
import type { JsonSchema } from '../../../protocol/loop.js';
import type { PlanCallStep, PlanStep } from '../../../protocol/plan.js';
import type { DefinitionIssues } from '../../definition/shape.js';
import { compileCondition } from '../condition.js';
import { stepNameOf } from '../plan-inputs.js';
import type { CallAnalysis } from './call-analysis.js';
import {
  ANY,
  ANY_RESULT,
  afterBlock,
  afterCondition,
  elements,
  mergeTypes,
  onCondition,
  type PlanTypes,
  resultSchema,
  type Schemas,
  withResult,
  withValues,
} from './readable-values.js';
import type { ReferenceCheck } from './references.js';

type Typed<T extends string> = Extract<PlanStep, { type: T }>;
const INTEGER: JsonSchema = { type: 'integer' };

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
  steps(steps: readonly PlanStep[], path: string, before: PlanTypes): PlanTypes {
    const targets = gotoTargets(steps);
    let types = targets.size === 0 ? before : repeating(before, steps);
    for (const [index, step] of steps.entries()) {
      // A jump brings the result of the step that failed.
      if (targets.has(stepNameOf(step, index))) types = withResult(types, ANY_RESULT);
      types = this.step(step, `${path}/${index}`, types);
    }
    return { ...types, carried: before.carried };
  }

  private step(step: PlanStep, path: string, types: PlanTypes): PlanTypes {
    if (step.condition === undefined) return this.unconditional(step, path, types);
    this.check.condition(step.condition as string, `${path}/condition`, types);
    return mergeTypes(types, afterCondition(types, this.unconditional(step, path, onCondition(types))));
  }

  private unconditional(step: PlanStep, path: string, types: PlanTypes): PlanTypes {
    if (!('type' in step)) return this.calls.call(step as PlanCallStep, path, types);
    const block = step as Typed<string>;
    const after = this.block(block, path, types);
    const { capture, on_error: onError } = block;
    const hasValue = typeof onError === 'object' && 'value' in onError;
    return withResult(after, (hasValue ? undefined : after.values.result) ?? ANY_RESULT, capture);
  }

  private block(step: Extract<PlanStep, { type: string }>, path: string, types: PlanTypes): PlanTypes {
    switch (step.type) {
      case 'sequence':
        return this.steps(step.sequence.steps, `${path}/sequence/steps`, types);
      case 'repeat':
        return this.repeat(step.repeat, `${path}/repeat`, types);
      case 'branch':
        return this.branch(step.branch, `${path}/branch`, types);
      case 'each':
        return this.each(step.each, `${path}/each`, types);
      case 'fanout':
        return this.fanOut(step.fanout, `${path}/fanout`, types);
      case 'scope': {
        const inside = this.steps(step.scope.steps, `${path}/scope/steps`, types);
        return withResult(types, inside.values.result ?? ANY_RESULT);
      }
      case 'wait':
        return withResult(
          types,
          resultSchema(step.wait.signal === undefined ? { type: 'null' } : (step.wait.schema ?? ANY)),
        );
    }
  }

  private repeat(repeat: Typed<'repeat'>['repeat'], path: string, before: PlanTypes): PlanTypes {
    const { steps, until, while: condition } = repeat;
    this.checkBounds(repeat, path);
    const start = withValues(repeating(before, steps), { iteration: INTEGER, result: ANY_RESULT });
    if (condition !== undefined) this.check.condition(condition, `${path}/while`, start);
    const inside = this.steps(steps, `${path}/steps`, start);
    if (until !== undefined) this.check.condition(until, `${path}/until`, inside);
    const after = afterBlock(before, inside, ['iteration']);
    return condition === undefined ? after : mergeTypes(before, after);
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

  private branch({ cases, else: otherwise }: Typed<'branch'>['branch'], path: string, before: PlanTypes): PlanTypes {
    const inside = onCondition(before);
    const run = (steps: readonly PlanStep[], at: string): PlanTypes =>
      afterCondition(before, this.steps(steps, at, inside));
    const ends = cases.map(({ condition, steps }, index) => {
      this.check.condition(condition, `${path}/cases/${index}/condition`, before);
      return run(steps, `${path}/cases/${index}/steps`);
    });
    return mergeTypes(otherwise === undefined ? before : run(otherwise, `${path}/else`), ...ends);
  }

  private each({ items, steps, collect }: Typed<'each'>['each'], path: string, before: PlanTypes): PlanTypes {
    this.check.mapping(items, `${path}/items`, before);
    const item = elements(this.check.schemaOf(items, before));
    const start = withValues(repeating(before, steps), { item, index: INTEGER, result: ANY_RESULT });
    const after = afterBlock(before, this.steps(steps, `${path}/steps`, start), ['item', 'index']);
    const merged = mergeTypes(before, after);
    return collect === true ? withResult(merged, resultSchema({ type: 'array' })) : merged;
  }

  private fanOut(fanout: Typed<'fanout'>['fanout'], path: string, before: PlanTypes): PlanTypes {
    const { items, steps = [], branches = [] } = fanout;
    if (items !== undefined) {
      this.check.mapping(items, `${path}/items`, before);
      const item = elements(this.check.schemaOf(items, before));
      this.steps(steps, `${path}/steps`, withValues(before, { item, index: INTEGER }));
    }
    for (const [index, branch] of branches.entries())
      this.steps(branch.steps, `${path}/branches/${index}/steps`, withValues(before, { item: ANY, index: INTEGER }));
    return withResult(before, resultSchema({ type: 'array' }));
  }
}

/** Returns the value of a condition that reads nothing; undefined for any other. */
function constantOf(text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined;
  const condition = compileCondition(text, '');
  if (condition.names.length > 0 || condition.file !== undefined) return undefined;
  try {
    return condition.evaluate({});
  } catch {
    return undefined;
  }
}

/** Returns the types of steps that run again: a later repetition can read what they captured in an earlier one. */
function repeating(types: PlanTypes, steps: readonly PlanStep[]): PlanTypes {
  return { ...types, carried: { ...types.carried, ...capturesOf(steps) } };
}

/** Returns the names that are readable after steps, each with any result. */
function capturesOf(steps: readonly PlanStep[]): Schemas {
  return Object.fromEntries(steps.flatMap(visibleCaptures).map((name) => [name, ANY_RESULT]));
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
