/** Waits of a plan: for a duration, until a time, or for a signal. */
import { durationMs } from '../../base/duration.js';
import { LoopError } from '../../base/errors.js';
import { compileSchema, createSchemaCheck } from '../../json/schema.js';
import type { Scope, SignalType } from '../../protocol/body.js';
import type { Json } from '../../protocol/json.js';
import type { WaitStep } from '../../protocol/plan.js';
import { type PlanRun, succeeded } from './plan-run.js';

/** Compiles a wait. Throws DEFINITION_INVALID for a duration or a time that cannot be read. */
export function waitStep(
  wait: WaitStep['wait'],
  name: string,
  where: string,
): (run: PlanRun, scope: Scope) => Promise<void> {
  const receive = compileWait(wait, name, where);
  return async (run, scope) => run.setResult(succeeded(await receive(scope)), name, undefined);
}

function compileWait(wait: WaitStep['wait'], name: string, where: string): (scope: Scope) => Promise<Json> {
  const { until, signal, timeout, schema } = wait;
  if (wait.for !== undefined) {
    const ms = readDuration(wait.for, `${where}/for`);
    return (scope) => scope.sleep(ms).then(() => null);
  }
  if (until !== undefined) {
    const at = readTime(until, `${where}/until`);
    return async (scope) => {
      const remainingMs = at - (await scope.now());
      if (remainingMs > 0) await scope.sleep(remainingMs);
      return null;
    };
  }
  const signalName = signal ?? name;
  const awaited = schema === undefined ? signalName : typedSignal(signalName, schema, where);
  const receive = (scope: Scope): Promise<Json> =>
    (typeof awaited === 'string' ? scope.wait(awaited) : scope.wait(awaited)).then((payload) => payload ?? null);
  if (timeout === undefined) return receive;
  const ms = readDuration(timeout, `${where}/timeout`);
  const late = async (scope: Scope): Promise<never> => {
    await scope.sleep(ms);
    throw new LoopError('TIMEOUT', `The signal "${signalName}" did not arrive within ${ms} ms.`, {
      signal: signalName,
    });
  };
  return (scope) => scope.race([receive, late]);
}

function typedSignal(name: string, schema: NonNullable<WaitStep['wait']['schema']>, where: string): SignalType<Json> {
  const validator = compileSchema(schema, `${where}/schema`);
  const validate = createSchemaCheck(validator, 'INPUT_VALIDATION_FAILED', name) as (value: unknown) => Json;
  return { name, schema, validate };
}

function readDuration(duration: number | string, where: string): number {
  try {
    return durationMs(duration);
  } catch (thrown) {
    throw invalidWait(where, thrown instanceof Error ? thrown.message : 'is not a duration');
  }
}

function readTime(text: string, where: string): number {
  const at = /^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:\d\d)$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at)) throw invalidWait(where, 'must be a time with a zone, such as 2030-01-31T09:00:00Z');
  return at;
}

function invalidWait(where: string, reason: string): LoopError {
  return new LoopError('DEFINITION_INVALID', `${where}: ${reason}.`, { path: where, reason });
}
