/**
 * A step of a plan that calls a loop. A step without retries and without a timeout is one call; any other is a series of
 * attempts, each a call of its own.
 */
import { backoffMs } from '../../base/backoff.js';
import { isRetryableError, LoopError, toLoopError } from '../../base/errors.js';
import type { Loop, Scope } from '../../protocol/body.js';
import type { Json } from '../../protocol/json.js';
import type { OnError, PlanRetry } from '../../protocol/plan.js';
import type { LayerScope } from '../../protocol/session.js';
import { withCallTimeout } from '../call-timeout.js';
import type { FailedDefinition } from '../failed-definition.js';
import type { CallInstruction, StepInstruction } from './driver.js';
import { askPerson } from './gate.js';
import type { BuildInput } from './plan-inputs.js';
import { failed, type PlanRun, type StepResult, succeeded } from './plan-run.js';
import { stepFailedError } from './step-error.js';

/** A loop that a plan calls. It is linked after the plan is compiled. */
export interface PlanCallee {
  readonly loopId: string;
  readonly version: string | undefined;
  /** Undefined until it is linked, and for good if no loop with that id is registered. */
  loop: Loop | undefined;
  /** Why the definition of that loop could not be loaded, if it was found. */
  failure: FailedDefinition | undefined;
  /** Where the plan refers to it, for messages. */
  readonly where: string;
  /** True if a failure repeats the call without asking a person. */
  readonly isRetried: boolean;
}

/** Returns a callee that is not linked yet, with the retries of the step that calls it. */
export function newCallee(
  { loopId, version }: { readonly loopId: string; readonly version?: string | undefined },
  where: string,
  retry?: PlanRetry,
): PlanCallee {
  return { loopId, version, loop: undefined, failure: undefined, where, isRetried: maxAttemptsOf(retry) > 1 };
}

function maxAttemptsOf(retry: PlanRetry | undefined): number {
  return retry === undefined || retry.strategy === 'none' ? 1 : (retry.max_attempts ?? 3);
}

/** A call with its input. */
interface PlannedCall {
  readonly callee: PlanCallee;
  readonly buildInput: BuildInput;
}

/** What replaces the result of a step whose attempts all failed. */
export type CompiledFallback = 'skip' | 'escalate' | { readonly value: Json } | { readonly call: PlannedCall };

/** The index of an instruction that is not compiled yet. */
export interface Label {
  index: number;
}

/** A compiled step. */
export interface PlanCallOptions extends PlannedCall {
  /** The id of the plan and the name of the step, for messages and approvals. */
  readonly planId: string;
  readonly stepName: string;
  readonly capture: string | undefined;
  readonly retry: (PlanRetry & { readonly compiledFallback: CompiledFallback | undefined }) | undefined;
  readonly timeoutMs: number | undefined;
  /** `continue` is for states: their transitions decide. */
  readonly onError: Exclude<OnError, { readonly goto: string }> | { readonly label: Label } | 'continue';
  /** The number of blocks that are open around the step. */
  readonly depth: number;
  /** Called before each attempt, with its input. May throw BUDGET_EXHAUSTED. */
  readonly count?: ((run: PlanRun, input: Json) => void) | undefined;
  /** The instruction that follows. */
  readonly next: number;
}

/** Returns the instruction of a step. */
export function planCall(options: PlanCallOptions): CallInstruction<PlanRun> | StepInstruction<PlanRun> {
  const { retry, timeoutMs } = options;
  const isSingle = (retry === undefined || retry.strategy === 'none') && timeoutMs === undefined;
  if (isSingle && retry?.compiledFallback === undefined) return new SingleCall(options);
  return { kind: 'step', run: (run, scope) => runAttempts(options, run, scope) };
}

class SingleCall implements CallInstruction<PlanRun> {
  readonly kind = 'call';
  private readonly options: PlanCallOptions;

  constructor(options: PlanCallOptions) {
    this.options = options;
  }

  loopOf(): Loop {
    return this.options.callee.loop as Loop;
  }

  inputOf(run: PlanRun): Json {
    const { buildInput, count } = this.options;
    const input = buildInput(run);
    count?.(run, input);
    return input;
  }

  complete(run: PlanRun, _scope: Scope, output: unknown): number {
    const { stepName, capture, next } = this.options;
    run.setResult(succeeded(output as Json), stepName, capture);
    return next;
  }

  fail(run: PlanRun, scope: Scope, thrown: unknown, hasStarted: boolean): number {
    const { loopId } = this.options.callee;
    return handleFailure(this.options, run, scope, thrown, {
      loopId,
      callId: hasStarted ? lastStepOf(scope) : undefined,
    });
  }
}

/** True for an error that ends the plan whatever its steps say: a cancellation, or a limit that was reached. */
export function endsPlan(scope: Scope, thrown: unknown): boolean {
  return scope.isCancelled || (thrown instanceof LoopError && thrown.code === 'BUDGET_EXHAUSTED');
}

/** A call of a step; without an id before it has started. */
interface StepCall {
  loopId: string;
  callId: string | undefined;
}

function lastStepOf(scope: Scope): string | undefined {
  return (scope as Partial<LayerScope>).stepKey;
}

function handleFailure(
  options: PlanCallOptions,
  run: PlanRun,
  scope: Scope,
  thrown: unknown,
  { loopId, callId }: StepCall,
): number {
  const { onError, stepName, capture, depth, next } = options;
  if (endsPlan(scope, thrown)) throw thrown;
  const error = toLoopError(thrown);
  if (onError === 'fail')
    throw stepFailedError(error, `Step "${stepName}"`, {
      step: stepName,
      loopId,
      ...(callId !== undefined && { callId }),
    });
  const result: StepResult =
    typeof onError === 'object' && 'value' in onError ? succeeded(onError.value) : failed(error);
  run.setResult(result, stepName, capture);
  if (typeof onError !== 'object' || !('label' in onError)) return next;
  run.countTransition();
  run.unwindTo(depth);
  return onError.label.index;
}

/** Makes the attempts of a step, and returns the index of the next instruction. */
async function runAttempts(options: PlanCallOptions, run: PlanRun, scope: Scope): Promise<number> {
  const { stepName, capture, next, callee } = options;
  const last: StepCall = { loopId: callee.loopId, callId: undefined };
  try {
    const result = await attemptResult(options, run, scope, last);
    run.setResult(result, stepName, capture);
    return next;
  } catch (thrown) {
    return handleFailure(options, run, scope, thrown, last);
  }
}

/** Makes the attempts of a step. Sets `last` to the last one that started. */
async function attemptResult(
  options: PlanCallOptions,
  run: PlanRun,
  scope: Scope,
  last: StepCall,
): Promise<StepResult> {
  const { retry, planId, stepName } = options;
  const maxAttempts = maxAttemptsOf(retry);
  for (let attempt = 1; ; attempt++) {
    try {
      return succeeded(await callOnce(options, run, scope, last));
    } catch (thrown) {
      if (endsPlan(scope, thrown)) throw thrown;
      const error = toLoopError(thrown);
      if (attempt < maxAttempts && isRetryableError(error)) await backOff(scope, retry as PlanRetry, attempt, error);
      else if (retry?.compiledFallback === 'escalate') {
        // An approval starts another series of attempts.
        await askPerson(scope, { planId, gate: stepName, question: escalationText(stepName, attempt, error) }, error);
        attempt = 0;
      } else return fallbackResult(retry?.compiledFallback, run, scope, error, last);
    }
  }
}

function escalationText(stepName: string, attempts: number, { code, message }: LoopError): string {
  const times = attempts === 1 ? 'once' : `${attempts} times`;
  return `Step "${stepName}" failed ${times}: ${code}: ${message.slice(0, 1000)} Approve to try again, or deny to fail.`;
}

function callOnce(
  { callee, buildInput, count, timeoutMs, stepName }: PlanCallOptions,
  run: PlanRun,
  scope: Scope,
  last: StepCall,
): Promise<Json> {
  last.callId = undefined;
  const input = buildInput(run);
  count?.(run, input);
  const call = (value: Json, inner: Scope): Promise<Json> => callLoop(callee, value, inner, last);
  return Promise.resolve(withCallTimeout(stepName, timeoutMs, call)(input, scope));
}

/** Calls a loop, and sets `last` to this call. */
async function callLoop(callee: PlanCallee, input: Json, scope: Scope, last: StepCall): Promise<Json> {
  const output = scope.call(callee.loop as Loop, input) as Promise<Json>;
  last.loopId = callee.loopId;
  last.callId = lastStepOf(scope);
  try {
    return await output;
  } finally {
    // A turn that is retried may have skipped a recorded step, and called under the next key.
    last.callId = lastStepOf(scope);
  }
}

const DEFAULT_DELAY_MS = 1000;
const DEFAULT_MAX_DELAY_MS = 60_000;
/** The largest share of an exponential delay that is subtracted at random. */
const JITTER = 0.5;

async function backOff(scope: Scope, retry: PlanRetry, attempt: number, { code }: LoopError): Promise<void> {
  const { strategy, delay_ms: delay = DEFAULT_DELAY_MS, max_delay_ms: maxMs = DEFAULT_MAX_DELAY_MS } = retry;
  const isExponential = strategy === 'exponential';
  const initialMs = strategy === 'immediate' ? 0 : delay;
  const random = isExponential ? await scope.random() : 0;
  const growth = isExponential ? { factor: 2, maxMs, jitter: JITTER } : { factor: 1, maxMs: initialMs, jitter: 0 };
  const delayMs = backoffMs({ initialMs, ...growth }, attempt, random);
  await scope.record('rondo.retry', () => ({ attempt, code, delayMs }));
  if (delayMs > 0) await scope.sleep(delayMs);
}

async function fallbackResult(
  fallback: Exclude<CompiledFallback, 'escalate'> | undefined,
  run: PlanRun,
  scope: Scope,
  error: LoopError,
  last: StepCall,
): Promise<StepResult> {
  if (fallback === undefined) throw error;
  if (fallback === 'skip') return failed(error);
  if ('value' in fallback) return succeeded(fallback.value);
  const { callee, buildInput } = fallback.call;
  return succeeded(await callLoop(callee, buildInput(run), scope, last));
}
