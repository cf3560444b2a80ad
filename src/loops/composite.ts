/**
 * The body of a composite: runs its steps in order and builds the input of each from its own input and earlier results.
 * A failed step ends the composite. The error identifies the failed step and its call, at any depth.
 */

import { LoopError, toLoopError } from '../base/errors.js';
import type { Loop, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { StepsSpec } from '../protocol/loop.js';
import type { CallTimes } from '../views/call-results.js';
import { type FailedDefinition, failedDefinitionError } from './failed-definition.js';
import { type CompiledMapping, compileMapping, type MappingData } from './mapping.js';
import { resultLifetimes } from './result-lifetimes.js';
import { servicesOf, turnIdOf } from './services.js';

/** A compiled step. */
interface LinkedStep {
  readonly loopId: string;
  readonly buildInput: CompiledMapping;
  readonly binding: string | undefined;
  /** True if a later mapping may read its result. */
  readonly isResultRead: boolean;
  /** Indexes of the earlier steps whose results the input mapping of this step is the last to read. */
  readonly releasedSteps: readonly number[];
  /** True if a later mapping may read its times or its trace. */
  readonly needsTimes: boolean;
  /** The loop that it calls; undefined until it is linked, and for good if no loop with that id is registered. */
  loop: Loop | undefined;
  /** Why the definition of that loop could not be loaded, if it was found. */
  failure: FailedDefinition | undefined;
}

/** Compiles the steps of a composite; the loops that they call are linked later. Throws for an invalid path. */
export function compileSteps(id: string, spec: StepsSpec): LinkedStep[] {
  const { releasedSteps, isRead, needsTimes } = resultLifetimes(id, spec);
  return spec.steps.map(({ loopId, inputMapping, outputBinding }, index) => ({
    loopId,
    buildInput: compileMapping(inputMapping, `${id}: step ${index}: inputMapping`),
    binding: outputBinding,
    isResultRead: isRead[index] === true,
    releasedSteps: releasedSteps[index] ?? [],
    needsTimes: needsTimes[index] === true,
    loop: undefined,
    failure: undefined,
  }));
}

/**
 * Returns the body of a composite. Before its first step it throws LOOP_NOT_FOUND if a loop is missing, or
 * DEFINITION_INVALID if its definition could not be loaded.
 */
export function compositeBody(
  id: string,
  spec: StepsSpec,
  steps: readonly LinkedStep[],
): (input: Json, scope: Scope) => Promise<Json> {
  const { outputMapping } = spec;
  const buildOutput = outputMapping === undefined ? undefined : compileMapping(outputMapping, `${id}: outputMapping`);
  let missing: number | undefined;
  return async (input, scope) => {
    missing ??= steps.findIndex(({ loop }) => loop === undefined);
    if (missing !== -1) throw missingStepError(missing, steps[missing] as LinkedStep);
    const results: Json[] = [];
    const data: MappingData = { input, steps: results };
    let output: Json = null;
    for (let index = 0; index < steps.length; index++) {
      const step = steps[index] as LinkedStep;
      const stepInput = step.buildInput(data);
      try {
        output = (await scope.call(step.loop as Loop, stepInput)) as Json;
      } catch (thrown) {
        throw stepFailedError(toLoopError(thrown), scope, step.loopId, index);
      }
      // Only after the call: its input may be the list of results itself.
      for (let i = 0; i < step.releasedSteps.length; i++)
        releaseResult(data, results, steps, step.releasedSteps[i] as number);
      const result = step.isResultRead ? stepResultOf(scope, step, index, output) : null;
      results.push(result);
      if (step.binding !== undefined) data[step.binding] = result;
    }
    return buildOutput === undefined ? output : buildOutput(data);
  };
}

/** Drops the references to a result, so that the garbage collector can free it before the composite ends. */
function releaseResult(data: MappingData, results: Json[], steps: readonly LinkedStep[], index: number): void {
  const { binding } = steps[index] as LinkedStep;
  results[index] = null;
  if (binding !== undefined) data[binding] = null;
}

/** Returns the LoopResult of a step for later mappings. Times and trace are folded only if a mapping may read them. */
function stepResultOf(scope: Scope, { loopId, loop, needsTimes }: LinkedStep, index: number, output: Json): Json {
  const callId = `${scope.key}/${index}`;
  const result = { callId, loopId, loopVersion: loop?.version ?? '', status: 'ok', output };
  return needsTimes
    ? { ...result, ...(callTimesOf(scope, callId) as unknown as { readonly [name: string]: Json }) }
    : result;
}

/** Returns the times and the trace of a step. Throws EXECUTION_FAILED without a host, which provides them. */
function callTimesOf(scope: Scope, callId: string): CallTimes {
  const times = servicesOf(scope).turnContext(turnIdOf(scope)).callTimes(callId, scope.key);
  if (times !== undefined) return times;
  const message = `A mapping reads the times or the trace of ${callId}: run this composite through a host.`;
  throw new LoopError('EXECUTION_FAILED', message, { callId });
}

function missingStepError(index: number, { loopId, failure }: LinkedStep): LoopError {
  if (failure !== undefined)
    return failedDefinitionError(failure, `Step ${index} calls "${loopId}", which`, { stepIndex: index });
  const message = `Step ${index} calls "${loopId}", which is not registered here.`;
  return new LoopError('LOOP_NOT_FOUND', message, { loopId, stepIndex: index });
}

/** Upper bound on each part of the error data, because the journal drops error data that is too large. */
const MAX_ERROR_PART_CHARS = 1000;

/**
 * Error codes of a step that become EXECUTION_FAILED in the error of the composite. The input of the composite was
 * valid, so a value that a step refuses is a failure of the composite.
 */
const STEP_VALIDATION_CODES: ReadonlySet<string> = new Set([
  'INPUT_VALIDATION_FAILED',
  'OUTPUT_VALIDATION_FAILED',
  'VALUE_INVALID',
]);

function stepFailedError(error: LoopError, scope: Scope, loopId: string, index: number): LoopError {
  const { code, message, data } = error;
  // The innermost step is the one that failed: enclosing composites pass its error on.
  if ((data as { readonly failedStep?: Json } | undefined)?.failedStep !== undefined) return error;
  const shortMessage = message.slice(0, MAX_ERROR_PART_CHARS);
  const isSmall = data !== undefined && JSON.stringify(data).length <= MAX_ERROR_PART_CHARS;
  const stepError = isSmall ? { code, message: shortMessage, details: data } : { code, message: shortMessage };
  const failedStep = {
    callId: `${scope.key}/${index}`.slice(0, MAX_ERROR_PART_CHARS),
    loopId,
    stepIndex: index,
    error: stepError,
  };
  const description = `Step ${index} (${loopId}) failed: ${message}`;
  const outerCode = STEP_VALIDATION_CODES.has(code) ? 'EXECUTION_FAILED' : code;
  return new LoopError(outerCode, description, { failedStep }, error);
}
