/**
 * The state of a running plan: the values that mappings, placeholders and conditions read, the frames of the blocks that
 * are open, and the counters of its bounds. It is never journaled: a replay computes it again from recorded results.
 */
import { LoopError, toLoopError } from '../../base/errors.js';
import { isObject } from '../../base/own-property.js';
import { canonicalJson } from '../../json/canonical.js';
import type { Json } from '../../protocol/json.js';
import type { PlanLimits } from '../../protocol/plan.js';
import type { MappingData } from '../mapping.js';

/** The result of a step, as later steps read it. A type, because an interface is not JSON. */
export type StepResult = {
  readonly ok: boolean;
  readonly status: 'ok' | 'error';
  readonly output: Json;
  readonly error?: { readonly code: string; readonly message: string };
};

/** What a block changes while its steps run, and what is restored after it. */
interface Frame {
  /** The values outside of the block. */
  readonly outerData: MappingData;
  /** True if the names that its steps capture stay visible after it. */
  readonly keepsNames: boolean;
  /** The items of an `each`. */
  readonly items: readonly Json[];
  /** The outputs of the items so far; undefined if they are not collected. */
  readonly outputs: Json[] | undefined;
  /** The zero-based number of the repetition or of the item. */
  index: number;
  /** The result before the steps of the item; it stays if all of them are skipped. */
  resultBefore: Json | undefined;
}

const DEFAULT_MAX_TRANSITIONS = 50;
const DEFAULT_MAX_TURNS = 20;
const DEFAULT_MAX_IDENTICAL_ACTIONS = 5;
/** How many results `{context}` shows, and how many characters of each. */
const MAX_CONTEXT_RESULTS = 10;
const MAX_CONTEXT_RESULT_CHARS = 2000;

const NO_RESULT: StepResult = { ok: true, status: 'ok', output: null };

/** The counters of a plan. */
class PlanUsage {
  transitions = 0;
  modelTurns = 0;
  lastAction = '';
  identicalActions = 0;
}

/** What is the same for every run of a plan. */
export interface PlanRunOptions {
  readonly id: string;
  readonly limits: PlanLimits;
  /** True if a step uses the placeholder `{context}`. */
  readonly usesContext: boolean;
}

/** The state of one run of a plan, or of one branch of a fan-out. */
export class PlanRun {
  /** `input`, `result`, and inside of blocks `item`, `index` and `iteration`; and the captured results by name. */
  data: MappingData;
  /** The instruction that follows the `on_exit` of the state that is left. */
  exitTarget = 0;
  private readonly options: PlanRunOptions;
  private readonly usage: PlanUsage;
  private readonly frames: Frame[] = [];
  /** The latest results, as lines for the context of a model; undefined for a plan that does not use them. */
  private readonly contextLines: string[] | undefined;

  constructor(options: PlanRunOptions, data: MappingData, usage: PlanUsage, contextLines: readonly string[] = []) {
    this.options = options;
    this.data = data;
    this.usage = usage;
    this.contextLines = options.usesContext ? [...contextLines] : undefined;
  }

  /** Starts a plan with its input. */
  static start(options: PlanRunOptions, input: Json): PlanRun {
    return new PlanRun(options, { input, result: NO_RESULT }, new PlanUsage());
  }

  /**
   * Returns the state of a branch that starts with the values of this one, and with others of its own. It counts for
   * itself, because the order of concurrent branches is not recorded; see `addUsageOf`.
   */
  branch(values: MappingData): PlanRun {
    return new PlanRun(this.options, { ...this.data, ...values }, { ...this.usage }, this.contextLines);
  }

  /** Adds what the branches of a fan-out, which started with the counters of this run, have counted. */
  addUsageOf(branches: readonly PlanRun[]): void {
    const { transitions, modelTurns } = this.usage;
    for (const { usage } of branches) {
      this.usage.transitions += usage.transitions - transitions;
      this.usage.modelTurns += usage.modelTurns - modelTurns;
    }
  }

  /** The result of the last step. */
  get result(): StepResult {
    return this.data.result as StepResult;
  }

  /** Sets the result of a step, which later steps read as `result` and under the name that captures it. */
  setResult(result: StepResult, stepName: string, capture: string | undefined): void {
    this.data.result = result;
    if (capture !== undefined) this.data[capture] = result;
    const { contextLines } = this;
    if (contextLines === undefined) return;
    const { output, error } = result;
    const text =
      error !== undefined ? `error: ${error.message}` : typeof output === 'string' ? output : JSON.stringify(output);
    contextLines.push(`${stepName}: ${text.slice(0, MAX_CONTEXT_RESULT_CHARS)}`);
    if (contextLines.length > MAX_CONTEXT_RESULTS) contextLines.shift();
  }

  /** The latest results as text: the value of the placeholder `{context}`. */
  get contextText(): string {
    return this.contextLines?.join('\n') ?? '';
  }

  /** The number of open blocks. */
  get depth(): number {
    return this.frames.length;
  }

  /** Opens a block. Names that its steps set are restored by `leave`; without `keepsNames`, so are captured ones. */
  enter(keepsNames: boolean, items: readonly Json[] = [], collects = false): void {
    this.frames.push({
      outerData: this.data,
      keepsNames,
      items,
      outputs: collects ? [] : undefined,
      index: -1,
      resultBefore: undefined,
    });
    this.data = { ...this.data };
  }

  /** Begins the next repetition of the innermost block, and returns its zero-based number. */
  nextIteration(): number {
    const frame = this.frame;
    frame.index += 1;
    this.data.iteration = frame.index;
    return frame.index;
  }

  /** Begins the next item of the innermost block. Returns false if there is none. */
  nextItem(): boolean {
    const frame = this.frame;
    const { result } = this.data;
    if (frame.index >= 0) frame.outputs?.push(result === frame.resultBefore ? null : this.result.output);
    frame.resultBefore = result;
    frame.index += 1;
    if (frame.index >= frame.items.length) return false;
    this.data.item = frame.items[frame.index] as Json;
    this.data.index = frame.index;
    return true;
  }

  /** The outputs that the innermost block has collected; undefined if it collects none. */
  get collectedOutputs(): readonly Json[] | undefined {
    return this.frame.outputs;
  }

  /** Closes the innermost block. Its last result stays. */
  leave(): void {
    const frame = this.frames.pop();
    if (frame === undefined) return;
    const inner = this.data;
    const { outerData, keepsNames } = frame;
    if (keepsNames) {
      for (const name of BLOCK_NAMES) {
        if (outerData[name] === undefined) delete inner[name];
        else inner[name] = outerData[name];
      }
      return;
    }
    outerData.result = inner.result as Json;
    this.data = outerData;
  }

  /** Closes blocks until `depth` are open, for a jump out of them. */
  unwindTo(depth: number): void {
    while (this.frames.length > depth) this.leave();
  }

  private get frame(): Frame {
    const frame = this.frames.at(-1);
    if (frame === undefined) throw new TypeError('No block of the plan is open.');
    return frame;
  }

  /** Counts a change of state or a repetition. Throws BUDGET_EXHAUSTED if the plan has reached its limit. */
  countTransition(): void {
    const { max_transitions: limit = DEFAULT_MAX_TRANSITIONS } = this.options.limits;
    // guard: plan-transitions-bounded
    if (this.usage.transitions >= limit) throw this.stoppedError('transitions', `made ${limit} transitions`);
    this.usage.transitions += 1;
  }

  /** Counts a call of a model by the plan. Throws BUDGET_EXHAUSTED if the plan has reached its limit. */
  countModelTurn(): void {
    const { max_turns: limit = DEFAULT_MAX_TURNS } = this.options.limits;
    // guard: plan-model-turns-bounded
    if (this.usage.modelTurns >= limit) throw this.stoppedError('turns', `called a model ${limit} times`);
    this.usage.modelTurns += 1;
  }

  /** Counts an action. Throws BUDGET_EXHAUSTED if the same one has run too often in a row. */
  countAction(input: Json): void {
    const { max_identical_actions: limit = DEFAULT_MAX_IDENTICAL_ACTIONS } = this.options.limits;
    const { usage } = this;
    const action = canonicalJson(input);
    usage.identicalActions = action === usage.lastAction ? usage.identicalActions + 1 : 1;
    usage.lastAction = action;
    // guard: identical-actions-bounded
    if (usage.identicalActions > limit)
      throw this.stoppedError('stalled', `ran the same action ${limit} times in a row`);
  }

  private stoppedError(reason: string, cause: string): LoopError {
    return new LoopError('BUDGET_EXHAUSTED', `"${this.options.id}" stopped: it ${cause}.`, { reason });
  }
}

const BLOCK_NAMES = ['item', 'index', 'iteration'];

/** Returns the result of a step whose call completed. An output with `ok: false` reports a failure of its own. */
export function succeeded(output: Json): StepResult {
  const ok = !(isObject(output) && Object.hasOwn(output, 'ok') && output.ok === false);
  return { ok, status: 'ok', output };
}

/** Returns the result of a step that failed. */
export function failed(thrown: unknown): StepResult {
  const { code, message } = toLoopError(thrown);
  return { ok: false, status: 'error', output: null, error: { code, message } };
}
