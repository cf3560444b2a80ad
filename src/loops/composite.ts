/**
 * The body of a composite: its steps, one after another, each made of what is known by then. A step that fails ends the
 * composite; its error says which step of which call it was, however deep.
 */

import { LoopError, outcomeOf } from '../base/errors.js';
import type { Loop, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { StepsSpec } from '../protocol/loop.js';
import type { CallTimes } from '../views/call-results.js';
import { benchOf, turnOf } from './bench.js';
import { lifespans } from './lifespan.js';
import { compileMapping, type Known, type Maker } from './mapping.js';

/** A step with the loop that it calls; undefined if there is none of that id. */
export interface LinkedStep {
  readonly loopId: string;
  readonly make: Maker;
  readonly binding: string | undefined;
  /** Whether a later mapping reads its result, and whose results nobody reads once it has ended. */
  readonly kept: boolean;
  readonly ends: readonly number[];
  /** Whether a later mapping may read when it ran, or its trace. */
  readonly timed: boolean;
  loop: Loop | undefined;
}

export function compileSteps(id: string, spec: StepsSpec): LinkedStep[] {
  const { ends, kept, timed } = lifespans(id, spec);
  return spec.steps.map(({ loopId, inputMapping, outputBinding }, index) => ({
    loopId,
    make: compileMapping(inputMapping, `${id}: step ${index}: inputMapping`),
    binding: outputBinding,
    kept: kept[index] === true,
    ends: ends[index] ?? [],
    timed: timed[index] === true,
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
    if (missing !== -1) throw notThere(missing, steps[missing]?.loopId ?? '');
    const results: Json[] = [];
    const known: Known = { input, steps: results };
    let output: Json = null;
    for (let index = 0; index < steps.length; index++) {
      const step = steps[index] as LinkedStep;
      const made = step.make(known);
      try {
        output = (await scope.call(step.loop as Loop, made)) as Json;
      } catch (thrown) {
        throw stepFailed(outcomeOf(thrown), scope, step.loopId, index);
      }
      // Not before the call has ended: what it was given may be the very list that is shortened here.
      for (let i = 0; i < step.ends.length; i++) forget(known, results, steps, step.ends[i] as number);
      const done = step.kept ? resultOf(scope, step, index, output) : null;
      results.push(done);
      if (step.binding !== undefined) known[step.binding] = done;
    }
    return result === undefined ? output : result(known);
  };
}

/** Lets go of a result that nobody reads any more. */
function forget(known: Known, results: Json[], steps: readonly LinkedStep[], index: number): void {
  const { binding } = steps[index] as LinkedStep;
  results[index] = null;
  if (binding !== undefined) known[binding] = null;
}

/** What later steps may read of a step: its LoopResult. What the entries tell is folded only if a mapping may read it. */
function resultOf(scope: Scope, { loopId, loop, timed }: LinkedStep, index: number, output: Json): Json {
  const callId = `${scope.key}/${index}`;
  const result = { callId, loopId, loopVersion: loop?.version ?? '', status: 'ok', output };
  return timed ? { ...result, ...(timesOf(scope, callId) as unknown as { readonly [name: string]: Json }) } : result;
}

function timesOf(scope: Scope, callId: string): CallTimes {
  const times = benchOf(scope).occasion(turnOf(scope)).result(callId, scope.key);
  if (times !== undefined) return times;
  const message = `When ${callId} ran is known only to a host: run this composite through one.`;
  throw new LoopError('EXECUTION_FAILED', message, { callId });
}

/** Told before the first step runs: what would be done until then would be for nothing. */
function notThere(index: number, loopId: string): LoopError {
  const message = `Step ${index} calls "${loopId}", which is not registered here.`;
  return new LoopError('LOOP_NOT_FOUND', message, { loopId, stepIndex: index });
}

/** How many characters each part of a failure may have: the journal drops the data of an error that is too large. */
const TOLD = 1000;

/** The caller's own input was fine: what a step refuses is a failure of the composite. */
const OWN: ReadonlySet<string> = new Set(['INPUT_VALIDATION_FAILED', 'OUTPUT_VALIDATION_FAILED', 'VALUE_INVALID']);

function stepFailed(error: LoopError, scope: Scope, loopId: string, index: number): LoopError {
  const known = error.data as { readonly failedStep?: Json } | undefined;
  if (known?.failedStep !== undefined) return error;
  const { code, message, data } = error;
  const said = message.slice(0, TOLD);
  const small = data !== undefined && JSON.stringify(data).length <= TOLD;
  const own = small ? { code, message: said, details: data } : { code, message: said };
  const failedStep = { callId: `${scope.key}/${index}`.slice(0, TOLD), loopId, stepIndex: index, error: own };
  const told = `Step ${index} (${loopId}) failed: ${message}`;
  return new LoopError(OWN.has(code) ? 'EXECUTION_FAILED' : code, told, { failedStep }, error);
}
