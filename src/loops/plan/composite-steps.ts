/**
 * LSEM `steps` as a program: each step is a call whose input is built from the input of the composite and from earlier
 * results. A failed step ends the composite. The error identifies the failed step and its call, at any depth.
 */

import { LoopError, toLoopError } from '../../base/errors.js';
import type { Loop, Scope } from '../../protocol/body.js';
import type { Json } from '../../protocol/json.js';
import type { StepsSpec } from '../../protocol/loop.js';
import type { CallTimes } from '../../views/call-results.js';
import { type FailedDefinition, failedDefinitionError } from '../failed-definition.js';
import { type CompiledMapping, compileMapping, type MappingData } from '../mapping.js';
import { servicesOf, turnIdOf } from '../services.js';
import { type CallInstruction, type Program, runProgram } from './driver.js';
import { resultLifetimes } from './result-lifetimes.js';
import { stepFailedError } from './step-error.js';

/** The state of a running composite. */
interface CompositeRun {
  readonly data: MappingData;
  /** The results of the steps so far; null for a result that no later mapping reads. */
  readonly results: Json[];
  /** The output of the last step. */
  output: Json;
}

interface CompositeStepOptions {
  readonly index: number;
  readonly loopId: string;
  readonly buildInput: CompiledMapping;
  readonly binding: string | undefined;
  /** True if a later mapping may read its result. */
  readonly isResultRead: boolean;
  /** The earlier steps whose results the input mapping of this step is the last to read. */
  readonly releasedSteps: readonly CompositeCall[];
  /** True if a later mapping may read its times or its trace. */
  readonly needsTimes: boolean;
}

/** A compiled step. */
export class CompositeCall implements CallInstruction<CompositeRun> {
  readonly kind = 'call';
  /** The loop that it calls; undefined until it is linked, and for good if no loop with that id is registered. */
  loop: Loop | undefined;
  /** Why the definition of that loop could not be loaded, if it was found. */
  failure: FailedDefinition | undefined;
  readonly index: number;
  readonly loopId: string;
  private readonly binding: string | undefined;
  private readonly options: CompositeStepOptions;

  constructor(options: CompositeStepOptions) {
    this.options = options;
    this.index = options.index;
    this.loopId = options.loopId;
    this.binding = options.binding;
  }

  loopOf(): Loop {
    return this.loop as Loop;
  }

  inputOf({ data }: CompositeRun): Json {
    return this.options.buildInput(data);
  }

  complete(run: CompositeRun, scope: Scope, output: unknown): number {
    const { isResultRead, releasedSteps } = this.options;
    run.output = output as Json;
    // Only after the call: its input may be the list of results itself.
    for (let i = 0; i < releasedSteps.length; i++) releasedSteps[i]?.releaseResult(run);
    const result = isResultRead ? this.resultOf(scope, run.output) : null;
    run.results.push(result);
    if (this.binding !== undefined) run.data[this.binding] = result;
    return this.index + 1;
  }

  fail(_run: CompositeRun, scope: Scope, thrown: unknown, hasStarted: boolean): never {
    if (!hasStarted) throw thrown;
    const { index, loopId } = this;
    const callId = `${scope.key}/${index}`;
    throw stepFailedError(toLoopError(thrown), `Step ${index}`, { callId, loopId, stepIndex: index });
  }

  /** Drops the references to the result, so that the garbage collector can free it before the composite ends. */
  private releaseResult({ data, results }: CompositeRun): void {
    results[this.index] = null;
    if (this.binding !== undefined) data[this.binding] = null;
  }

  /** Returns the LoopResult for later mappings. Times and trace are folded only if a mapping may read them. */
  private resultOf(scope: Scope, output: Json): Json {
    const callId = `${scope.key}/${this.index}`;
    const result = { callId, loopId: this.loopId, loopVersion: this.loop?.version ?? '', status: 'ok', output };
    return this.options.needsTimes
      ? { ...result, ...(callTimesOf(scope, callId) as unknown as { readonly [name: string]: Json }) }
      : result;
  }
}

/** Compiles the steps of a composite; the loops that they call are linked later. Throws for an invalid path. */
export function compileSteps(id: string, spec: StepsSpec): readonly CompositeCall[] {
  const { releasedSteps, isRead, needsTimes } = resultLifetimes(id, spec);
  const calls: CompositeCall[] = [];
  for (const [index, { loopId, inputMapping, outputBinding }] of spec.steps.entries()) {
    const buildInput = compileMapping(inputMapping, `${id}: step ${index}: inputMapping`);
    const released = (releasedSteps[index] ?? []).map((earlier) => calls[earlier] as CompositeCall);
    const reads = { isResultRead: isRead[index] === true, needsTimes: needsTimes[index] === true };
    calls.push(
      new CompositeCall({ index, loopId, buildInput, binding: outputBinding, releasedSteps: released, ...reads }),
    );
  }
  return calls;
}

/**
 * Returns the body of a composite. Before its first step it throws LOOP_NOT_FOUND if a loop is missing, or
 * DEFINITION_INVALID if its definition could not be loaded.
 */
export function compositeBody(
  id: string,
  spec: StepsSpec,
  calls: readonly CompositeCall[],
): (input: Json, scope: Scope) => Promise<Json> {
  const { outputMapping } = spec;
  const buildOutput = outputMapping === undefined ? undefined : compileMapping(outputMapping, `${id}: outputMapping`);
  const program: Program<CompositeRun> = calls;
  let missing: CompositeCall | null | undefined;
  return async (input, scope) => {
    if (missing === undefined) missing = calls.find(({ loop }) => loop === undefined) ?? null;
    if (missing !== null) throw missingStepError(missing);
    const results: Json[] = [];
    const run: CompositeRun = { data: { input, steps: results }, results, output: null };
    await runProgram(program, run, scope);
    return buildOutput === undefined ? run.output : buildOutput(run.data);
  };
}

/** Returns the times and the trace of a step. Throws EXECUTION_FAILED without a host, which provides them. */
function callTimesOf(scope: Scope, callId: string): CallTimes {
  const times = servicesOf(scope).turnContext(turnIdOf(scope)).callTimes(callId, scope.key);
  if (times !== undefined) return times;
  const message = `A mapping reads the times or the trace of ${callId}: run this composite through a host.`;
  throw new LoopError('EXECUTION_FAILED', message, { callId });
}

function missingStepError({ index, loopId, failure }: CompositeCall): LoopError {
  if (failure !== undefined)
    return failedDefinitionError(failure, `Step ${index} calls "${loopId}", which`, { stepIndex: index });
  const message = `Step ${index} calls "${loopId}", which is not registered here.`;
  return new LoopError('LOOP_NOT_FOUND', message, { loopId, stepIndex: index });
}
