/**
 * The body of a composite: its steps, one after another, each made of what is known by then. A step that fails ends the
 * composite; its error says which step of which call it was, however deep.
 */

import { LoopError, toLoopError } from '../base/errors.js';
import type { Loop, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { StepsSpec } from '../protocol/loop.js';
import type { CallTimes } from '../views/call-results.js';
import { type CompiledMapping, compileMapping, type MappingData } from './mapping.js';
import { resultLifetimes } from './result-lifetimes.js';
import { servicesOf, turnIdOf } from './services.js';

/** A step with the loop that it calls; undefined if there is none of that id. */
interface LinkedStep {
  readonly loopId: string;
  readonly buildInput: CompiledMapping;
  readonly binding: string | undefined;
  /** Whether a later mapping reads its result, and whose results nobody reads once it has ended. */
  readonly isResultRead: boolean;
  readonly releasedSteps: readonly number[];
  /** Whether a later mapping may read when it ran, or its trace. */
  readonly needsTimes: boolean;
  loop: Loop | undefined;
}

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
  }));
}

export function compositeBody(
  id: string,
  spec: StepsSpec,
  steps: readonly LinkedStep[],
): (input: Json, scope: Scope) => Promise<Json> {
  const { outputMapping } = spec;
  const result = outputMapping === undefined ? undefined : compileMapping(outputMapping, `${id}: outputMapping`);
  let missing: number | undefined;
  return async (input, scope) => {
    missing ??= steps.findIndex(({ loop }) => loop === undefined);
    if (missing !== -1) throw missingStepError(missing, steps[missing]?.loopId ?? '');
    const results: Json[] = [];
    const known: MappingData = { input, steps: results };
    let output: Json = null;
    for (let index = 0; index < steps.length; index++) {
      const step = steps[index] as LinkedStep;
      const made = step.buildInput(known);
      try {
        output = (await scope.call(step.loop as Loop, made)) as Json;
      } catch (thrown) {
        throw stepFailedError(toLoopError(thrown), scope, step.loopId, index);
      }
      // Not before the call has ended: what it was given may be the very list that is shortened here.
      for (let i = 0; i < step.releasedSteps.length; i++)
        releaseResult(known, results, steps, step.releasedSteps[i] as number);
      const done = step.isResultRead ? stepResultOf(scope, step, index, output) : null;
      results.push(done);
      if (step.binding !== undefined) known[step.binding] = done;
    }
    return result === undefined ? output : result(known);
  };
}

/** Lets go of a result that nobody reads any more. */
function releaseResult(known: MappingData, results: Json[], steps: readonly LinkedStep[], index: number): void {
  const { binding } = steps[index] as LinkedStep;
  results[index] = null;
  if (binding !== undefined) known[binding] = null;
}

/** What later steps may read of a step: its LoopResult. What the entries tell is folded only if a mapping may read it. */
function stepResultOf(scope: Scope, { loopId, loop, needsTimes }: LinkedStep, index: number, output: Json): Json {
  const callId = `${scope.key}/${index}`;
  const result = { callId, loopId, loopVersion: loop?.version ?? '', status: 'ok', output };
  return needsTimes
    ? { ...result, ...(callTimesOf(scope, callId) as unknown as { readonly [name: string]: Json }) }
    : result;
}

function callTimesOf(scope: Scope, callId: string): CallTimes {
  const times = servicesOf(scope).turnContext(turnIdOf(scope)).callTimes(callId, scope.key);
  if (times !== undefined) return times;
  const message = `When ${callId} ran is known only to a host: run this composite through one.`;
  throw new LoopError('EXECUTION_FAILED', message, { callId });
}

/** Told before the first step runs: what would be done until then would be for nothing. */
function missingStepError(index: number, loopId: string): LoopError {
  const message = `Step ${index} calls "${loopId}", which is not registered here.`;
  return new LoopError('LOOP_NOT_FOUND', message, { loopId, stepIndex: index });
}

/** How many characters each part of a failure may have: the journal drops the data of an error that is too large. */
const MAX_ERROR_PART_CHARS = 1000;

/** The caller's own input was fine: what a step refuses is a failure of the composite. */
const STEP_VALIDATION_CODES: ReadonlySet<string> = new Set([
  'INPUT_VALIDATION_FAILED',
  'OUTPUT_VALIDATION_FAILED',
  'VALUE_INVALID',
]);

function stepFailedError(error: LoopError, scope: Scope, loopId: string, index: number): LoopError {
  const known = error.data as { readonly failedStep?: Json } | undefined;
  if (known?.failedStep !== undefined) return error;
  const { code, message, data } = error;
  const said = message.slice(0, MAX_ERROR_PART_CHARS);
  const small = data !== undefined && JSON.stringify(data).length <= MAX_ERROR_PART_CHARS;
  const own = small ? { code, message: said, details: data } : { code, message: said };
  const failedStep = {
    callId: `${scope.key}/${index}`.slice(0, MAX_ERROR_PART_CHARS),
    loopId,
    stepIndex: index,
    error: own,
  };
  const told = `Step ${index} (${loopId}) failed: ${message}`;
  return new LoopError(STEP_VALIDATION_CODES.has(code) ? 'EXECUTION_FAILED' : code, told, { failedStep }, error);
}
