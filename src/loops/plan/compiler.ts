/**
 * Compiles a plan into a flat program. Blocks (sequence, repeat, branch, each, scope) and states become jumps; only the
 * branches of a fan-out are programs of their own. Jumps go to labels, whose index is known once the block is compiled.
 */
import { LoopError } from '../../base/errors.js';
import type { Loop, Scope } from '../../protocol/body.js';
import type { Json } from '../../protocol/json.js';
import type { JsonSchema } from '../../protocol/loop.js';
import type { PlanCallBase, PlanCallStep, PlanCondition, PlanRetry, PlanSpec, PlanStep } from '../../protocol/plan.js';
import { compileMapping } from '../mapping.js';
import { type Chooser, compileChooser } from './chooser.js';
import type { NextIndex, Program } from './driver.js';
import { fanOutStep } from './fan-out.js';
import { type CompiledFallback, endsPlan, type Label, newCallee, type PlanCallee, planCall } from './plan-call.js';
import { type BuildInput, type CallKind, callKindOf, type SingleCallKind, stepNameOf } from './plan-inputs.js';
import { failed, type PlanRun, type PlanRunOptions, succeeded } from './plan-run.js';
import { type PlanInstruction, withRecovery } from './recovery.js';
import { unknownStepError } from './step-error.js';
import { waitStep } from './wait-step.js';

/** A prompt of a plan, which becomes a loop of its own. */
export interface PlanPrompt {
  /** The name of the step. */
  readonly name: string;
  readonly system: string | undefined;
  readonly schema: JsonSchema | undefined;
}

/** What the compiler needs from the linker. */
export interface CompilerOptions {
  readonly id: string;
  /** Creates the loop of a prompt; its input is `{ prompt }`. */
  createPrompt(prompt: PlanPrompt): Loop;
}

/** A compiled plan. Its callees must be linked before it runs. */
export interface CompiledPlan {
  readonly program: Program<PlanRun>;
  readonly callees: readonly PlanCallee[];
  readonly runOptions: PlanRunOptions;
}

/** The default concurrency of a fan-out. */
const DEFAULT_FAN_OUT_LIMIT = 8;

/** State that the compilers of a plan and of its fan-outs share. */
interface SharedState {
  readonly options: CompilerOptions;
  readonly spec: PlanSpec;
  readonly callees: PlanCallee[];
  usesContext: boolean;
}

/** Compiles the steps of a plan. Throws DEFINITION_INVALID for an invalid path, text or condition. */
export function compileStepList(
  options: CompilerOptions,
  spec: PlanSpec,
  build: (compiler: PlanCompiler) => void,
): CompiledPlan {
  const shared: SharedState = { options, spec, callees: [], usesContext: false };
  const compiler = new PlanCompiler(shared, spec.retry);
  build(compiler);
  const runOptions = { id: options.id, limits: spec.limits ?? {}, usesContext: shared.usesContext };
  return { program: compiler.program, callees: shared.callees, runOptions };
}

/** Emits the instructions of one program. */
export class PlanCompiler {
  readonly program: PlanInstruction[] = [];
  private readonly shared: SharedState;
  /** The retries of the enclosing scope. */
  private retry: PlanRetry | undefined;
  /** The number of open blocks. */
  private depth = 0;

  constructor(shared: SharedState, retry: PlanRetry | undefined) {
    this.shared = shared;
    this.retry = retry;
  }

  /** Compiles steps that run one after another. */
  steps(steps: readonly PlanStep[], path: string): void {
    const labels = new Map(steps.map((step, index) => [stepNameOf(step, index), { index: -1 } as Label]));
    if (labels.size < steps.length) throw duplicateNameError(steps, `${this.shared.options.id}: ${path}`);
    for (const [index, step] of steps.entries()) {
      const name = stepNameOf(step, index);
      this.place(labels.get(name) as Label);
      this.step(step, `${path}/${index}`, name, labels);
    }
  }

  /** Adds an instruction. `run` returns the index of the next one; `next` is the one that follows. */
  emit(run: (state: PlanRun, scope: Scope, next: number) => NextIndex): void {
    const next = this.program.length + 1;
    this.program.push({ kind: 'step', run: (state, scope) => run(state, scope, next) });
  }

  /** Adds an instruction that only changes the state of the run. */
  update(change: (state: PlanRun) => void): void {
    this.emit((state, _scope, next) => {
      change(state);
      return next;
    });
  }

  /** Sets a label to the instruction that follows. */
  place(label: Label): void {
    label.index = this.program.length;
  }

  /** Compiles a condition and the possible outcomes of a choice. */
  chooser(step: string, condition: PlanCondition, path: string): Chooser {
    return compileChooser(step, condition, `${this.shared.options.id}: ${path}`);
  }

  private step(step: PlanStep, path: string, name: string, labels: ReadonlyMap<string, Label>): void {
    const end: Label = { index: -1 };
    if (step.condition !== undefined) {
      const choose = this.chooser(name, step.condition, `${path}/condition`);
      this.emit((run, scope, next) => choose(run, scope, 'run', 'skip').then((holds) => (holds ? next : end.index)));
    }
    if ('type' in step) this.block(step as Extract<PlanStep, { type: string }>, path, name, labels);
    else this.call(step as PlanCallStep, path, name, labels);
    this.place(end);
  }

  /** Compiles a step that is one call. For a state, `onError` is `continue`. */
  call(
    step: PlanCallStep,
    path: string,
    name: string,
    labels: ReadonlyMap<string, Label>,
    defaultOnError: 'fail' | 'continue' = 'fail',
  ): void {
    const { id } = this.shared.options;
    const kind = callKindOf(step, `${id}: ${path}`, this.shared.spec);
    if ('each' in kind) this.eachPlugin(kind, step, path, name, labels);
    else if ('test' in kind) this.conditionPlugin(kind.test, step, path, name);
    else this.singleCall(kind, step, path, name, labels, defaultOnError);
  }

  private singleCall(
    kind: SingleCallKind,
    step: PlanCallStep,
    path: string,
    name: string,
    labels: ReadonlyMap<string, Label>,
    defaultOnError: 'fail' | 'continue',
  ): void {
    const { id } = this.shared.options;
    this.shared.usesContext ||= kind.usesContext;
    const { on_error: onError = defaultOnError, timeout_ms: timeoutMs, capture } = step as PlanCallBase;
    const retry = (step as PlanCallBase).retry ?? this.retry;
    this.program.push(
      planCall({
        planId: id,
        stepName: name,
        callee: this.callee(kind, name, path, retry),
        buildInput: kind.buildInput,
        capture,
        retry: retry && { ...retry, compiledFallback: this.fallback(retry, path) },
        timeoutMs,
        onError:
          typeof onError === 'object' && 'goto' in onError ? { label: labelOf(labels, onError.goto, path) } : onError,
        depth: this.depth,
        count: kind.count,
        next: this.program.length + 1,
      }),
    );
  }

  /** `condition`: its output is `{ ok }`, which `success` and `has_errors` read. */
  private conditionPlugin(test: PlanCondition, step: PlanCallStep, path: string, name: string): void {
    const choose = this.chooser(name, test, `${path}/test`);
    this.emit((run, scope, next) =>
      choose(run, scope, 'true', 'false').then((ok) => {
        run.setResult(succeeded({ ok }), name, step.capture as string | undefined);
        return next;
      }),
    );
  }

  private callee({ target }: SingleCallKind, name: string, path: string, retry?: PlanRetry): PlanCallee {
    const { callees, options } = this.shared;
    const where = `${options.id}: ${path}`;
    if ('loopId' in target) {
      const callee = newCallee(target, where, retry);
      callees.push(callee);
      return callee;
    }
    const loop = 'loop' in target ? target.loop : options.createPrompt({ name, ...target });
    return { ...newCallee({ loopId: loop.name, version: loop.version }, where, retry), loop };
  }

  private fallback({ fallback }: PlanRetry, path: string): CompiledFallback | undefined {
    if (fallback === undefined || typeof fallback === 'string' || 'value' in fallback) return fallback;
    const where = `${this.shared.options.id}: ${path}/retry/fallback`;
    const callee = newCallee({ loopId: fallback.loop }, where);
    this.shared.callees.push(callee);
    const { input = '$.input' } = fallback;
    const mapping = compileMapping(input, `${where}/input`);
    const buildInput: BuildInput = (run) => mapping(run.data);
    return { call: { callee, buildInput } };
  }

  /** `for-each` and `fanout`: a call for the list, and then one call for each item. */
  private eachPlugin(
    { each }: Extract<CallKind, { each: unknown }>,
    step: PlanCallStep,
    path: string,
    name: string,
    labels: ReadonlyMap<string, Label>,
  ): void {
    const { source, body, isConcurrent, limit } = each;
    const base = step as PlanCallBase;
    const inner = {
      ...body,
      ...(base.retry && { retry: base.retry }),
      ...(base.timeout_ms && { timeout_ms: base.timeout_ms }),
    };
    if (source !== undefined) this.call({ loop: source, input: '$.input' }, `${path}/source`, `${name}.source`, labels);
    const items = each.items ?? '$.result.output';
    const common = {
      name,
      ...(base.capture && { capture: base.capture }),
      ...(base.on_error && { on_error: base.on_error }),
    };
    const block: PlanStep = isConcurrent
      ? { ...common, type: 'fanout', fanout: { items, steps: [inner], ...(limit !== undefined && { limit }) } }
      : { ...common, type: 'each', each: { items, steps: [inner], collect: true } };
    this.block(block as Extract<PlanStep, { type: string }>, path, name, labels);
  }

  private block(
    step: Extract<PlanStep, { type: string }>,
    path: string,
    name: string,
    labels: ReadonlyMap<string, Label>,
  ): void {
    const from = this.program.length;
    const { on_error: onError = 'fail' } = step;
    const { depth } = this;
    const after: Label = { index: -1 };
    this.blockBody(step, path, name);
    const to = this.program.length;
    const { capture } = step;
    if (capture !== undefined) this.update((run) => run.setResult(run.result, name, capture));
    this.place(after);
    if (onError === 'fail') return;
    const target = typeof onError === 'object' && 'goto' in onError ? labelOf(labels, onError.goto, path) : after;
    const recover = (run: PlanRun, scope: Scope, thrown: unknown): number => {
      if (endsPlan(scope, thrown)) throw thrown;
      run.unwindTo(depth);
      const hasValue = typeof onError === 'object' && 'value' in onError;
      run.setResult(hasValue ? succeeded(onError.value) : failed(thrown), name, capture);
      if (target !== after) run.countTransition();
      return target.index;
    };
    for (let index = from; index < to; index++)
      this.program[index] = withRecovery(this.program[index] as PlanInstruction, recover);
  }

  private blockBody(step: Extract<PlanStep, { type: string }>, path: string, name: string): void {
    if (step.type === 'sequence') this.steps(step.sequence.steps, `${path}/sequence/steps`);
    else if (step.type === 'repeat') this.repeat(step.repeat, `${path}/repeat`, name);
    else if (step.type === 'branch') this.branch(step.branch, `${path}/branch`, name);
    else if (step.type === 'each') this.each(step.each, `${path}/each`, name);
    else if (step.type === 'fanout') this.fanOut(step.fanout, `${path}/fanout`, name);
    else if (step.type === 'wait') {
      const run = waitStep(step.wait, name, `${this.shared.options.id}: ${path}/wait`);
      this.emit((state, scope, next) => run(state, scope).then(() => next));
    } else this.scope(step, `${path}/scope`);
  }

  private scope(step: Extract<PlanStep, { type: 'scope' }>, path: string): void {
    const outer = this.retry;
    this.retry = step.retry ?? outer;
    this.open(false);
    this.steps(step.scope.steps, `${path}/steps`);
    this.close();
    this.retry = outer;
  }

  private repeat(repeat: Extract<PlanStep, { type: 'repeat' }>['repeat'], path: string, name: string): void {
    const { steps, until, max } = repeat;
    const end: Label = { index: -1 };
    this.open(true);
    const start: Label = { index: this.program.length };
    this.emit((run, _scope, next) => {
      const iteration = run.nextIteration();
      if (max !== undefined && iteration >= max) return end.index;
      // A repetition with a maximum of its own is bounded by it.
      if (iteration > 0 && max === undefined) run.countTransition();
      return next;
    });
    if (repeat.while !== undefined) {
      const choose = this.chooser(name, repeat.while, `${path}/while`);
      this.emit((run, scope, next) => choose(run, scope, 'repeat', 'end').then((holds) => (holds ? next : end.index)));
    }
    this.steps(steps, `${path}/steps`);
    if (until === undefined) this.emit(() => start.index);
    else {
      const choose = this.chooser(name, until, `${path}/until`);
      this.emit((run, scope) => choose(run, scope, 'end', 'repeat').then((holds) => (holds ? end.index : start.index)));
    }
    this.place(end);
    this.close();
  }

  private branch(branch: Extract<PlanStep, { type: 'branch' }>['branch'], path: string, name: string): void {
    const end: Label = { index: -1 };
    for (const [index, { condition, steps }] of branch.cases.entries()) {
      const other: Label = { index: -1 };
      const choose = this.chooser(name, condition, `${path}/cases/${index}/condition`);
      this.emit((run, scope, next) =>
        choose(run, scope, `case ${index}`, 'next').then((holds) => (holds ? next : other.index)),
      );
      this.steps(steps, `${path}/cases/${index}/steps`);
      this.emit(() => end.index);
      this.place(other);
    }
    this.steps(branch.else ?? [], `${path}/else`);
    this.place(end);
  }

  private each(each: Extract<PlanStep, { type: 'each' }>['each'], path: string, name: string): void {
    const listOf = this.listMapping(each.items, `${path}/items`);
    const end: Label = { index: -1 };
    this.update((run) => run.enter(true, listOf(run), each.collect === true));
    this.depth += 1;
    const start: Label = { index: this.program.length };
    this.emit((run, _scope, next) => (run.nextItem() ? next : end.index));
    this.steps(each.steps, `${path}/steps`);
    this.emit(() => start.index);
    this.place(end);
    this.update((run) => {
      const outputs = run.collectedOutputs;
      run.leave();
      if (outputs !== undefined) run.setResult(succeeded(outputs), name, undefined);
    });
    this.depth -= 1;
  }

  private fanOut(fanout: Extract<PlanStep, { type: 'fanout' }>['fanout'], path: string, name: string): void {
    const { items, steps = [], branches = [], limit = DEFAULT_FAN_OUT_LIMIT, join = 'all', gates = [] } = fanout;
    const { id } = this.shared.options;
    const programs =
      items === undefined
        ? branches.map((branch, index) => this.subProgram(branch.steps, `${path}/branches/${index}/steps`))
        : [this.subProgram(steps, `${path}/steps`)];
    const listOf = items === undefined ? undefined : this.listMapping(items, `${path}/items`);
    const names = branches.map((branch, index) => branch.name ?? String(index));
    const run = fanOutStep({ planId: id, stepName: name, programs, names, listOf, limit, join, gates });
    this.emit((state, scope, next) => run(state, scope).then(() => next));
  }

  /** Compiles steps into a program of their own. */
  subProgram(steps: readonly PlanStep[], path: string): Program<PlanRun> {
    const inner = new PlanCompiler(this.shared, this.retry);
    inner.steps(steps, path);
    return inner.program;
  }

  private listMapping(items: string, path: string): (run: PlanRun) => readonly Json[] {
    const where = `${this.shared.options.id}: ${path}`;
    const mapping = compileMapping(items, where);
    return (run) => {
      const list = mapping(run.data);
      if (Array.isArray(list)) return list;
      throw new LoopError('MAPPING_FAILED', `${where}: ${items} is not a list.`, { path: items, where });
    };
  }

  private open(keepsNames: boolean): void {
    this.update((run) => run.enter(keepsNames));
    this.depth += 1;
  }

  private close(): void {
    this.update((run) => run.leave());
    this.depth -= 1;
  }
}

/** Returns the error for two steps of one list with the same name: `goto` would be ambiguous. */
function duplicateNameError(steps: readonly PlanStep[], path: string): LoopError {
  const names = steps.map((step, index) => stepNameOf(step, index));
  const index = names.findIndex((name, position) => names.indexOf(name) < position);
  const reason = `is ${JSON.stringify(names[index])}, which an earlier step has`;
  return new LoopError('DEFINITION_INVALID', `${path}/${index}/name: ${reason}.`, {
    path: `${path}/${index}/name`,
    reason,
  });
}

function labelOf(labels: ReadonlyMap<string, Label>, name: string, path: string): Label {
  const label = labels.get(name);
  if (label !== undefined) return label;
  throw unknownStepError(name, [...labels.keys()], path);
}
