/** The body of a composite that is a plan. */
import { hash } from 'node:crypto';
import { LoopError } from '../../base/errors.js';
import { canonicalJson } from '../../json/canonical.js';
import type { Loop, Scope } from '../../protocol/body.js';
import type { Json } from '../../protocol/json.js';
import type { PlanSpec } from '../../protocol/plan.js';
import { failedDefinitionError } from '../failed-definition.js';
import { type CompiledPlan, type CompilerOptions, compileStepList } from './compiler.js';
import { runProgram } from './driver.js';
import type { PlanCallee } from './plan-call.js';
import { PlanRun } from './plan-run.js';
import { compileStates } from './states.js';
import { shippedVerbOf } from './verbs.js';

/**
 * Returns the digest of a plan, in hexadecimal digits. The same plan has the same digest in TOML, JSON and code. What a
 * project binds it to, its verbs and its model, is no part of it.
 */
export function planDigest({ verbs: _verbs, backend: _backend, ...plan }: PlanSpec): string {
  return hash('sha256', canonicalJson(plan as unknown as Json), 'hex');
}

/** Compiles a plan. Throws DEFINITION_INVALID for an invalid text, path or condition. */
export function compilePlan(options: CompilerOptions, spec: PlanSpec): CompiledPlan {
  return compileStepList(options, spec, (compiler) => {
    if (spec.states !== undefined) compileStates(compiler, spec);
    else compiler.steps(spec.steps ?? [], '/composite/plan/steps');
  });
}

/** Returns the loops that a plan calls by their ids. */
export function planCallees(id: string, spec: PlanSpec): readonly PlanCallee[] {
  const createPrompt = ({ name }: { readonly name: string }): Loop => ({ name: `${id}.${name}`, body: () => null });
  return compilePlan({ id, createPrompt }, spec).callees;
}

/**
 * Returns the body of a plan. Before its first step it throws LOOP_NOT_FOUND if a loop is missing, and
 * DEFINITION_INVALID if the plan needs a strategy that does not exist yet, or a model and has none.
 */
export function planBody(
  id: string,
  spec: PlanSpec,
  { program, callees, runOptions }: CompiledPlan,
): (input: Json, scope: Scope) => Promise<Json> {
  return async (input, scope) => {
    assertSupported(id, spec, runOptions.usesContext);
    const missing = callees.find(({ loop }) => loop === undefined);
    if (missing !== undefined) throw missingCalleeError(missing);
    const run = PlanRun.start(runOptions, input);
    await runProgram(program, run, scope);
    return run.result.output;
  };
}

/** Throws DEFINITION_INVALID if the plan needs a strategy that is not implemented yet. */
function assertSupported(id: string, spec: PlanSpec, usesContext: boolean): void {
  const unsupported = unsupportedStrategy(spec, usesContext);
  if (unsupported === undefined) return;
  const { strategy, reason } = unsupported;
  throw new LoopError('DEFINITION_INVALID', `"${id}" cannot run: it ${reason}.`, { strategy });
}

/** Returns the strategy of a plan that is not implemented yet, and its path in the definition; undefined if there is none. */
export function unsupportedStrategy(
  { steps, states, llm, context }: PlanSpec,
  usesContext: boolean,
): { readonly strategy: string; readonly path: string; readonly reason: string } | undefined {
  const isDrivenByModel = steps === undefined && states === undefined;
  const [member, name] = isDrivenByModel
    ? ['llm', llm?.strategy ?? 'none']
    : usesContext && (context?.strategy === 'task_list' || context?.strategy === 'task_tree')
      ? ['context', context.strategy]
      : [];
  if (member === undefined) return undefined;
  const strategy = `${member} strategy "${name}"`;
  const reason = `needs the ${strategy}, which this version does not implement yet`;
  return { strategy, path: `/composite/plan/${member}`, reason };
}

function missingCalleeError({ loopId, where, failure }: PlanCallee): LoopError {
  const verb = shippedVerbOf(loopId);
  if (failure !== undefined) return failedDefinitionError(failure, `${where} calls "${loopId}", which`);
  if (verb !== undefined) {
    const message = `${where}: the verb "${verb}" needs a binding: add ${verb} = "LOOP" to the [verbs] of rondo.toml.`;
    return new LoopError('LOOP_NOT_FOUND', message, { verb, where });
  }
  return new LoopError('LOOP_NOT_FOUND', `${where} calls "${loopId}", which is not registered here.`, {
    loopId,
    where,
  });
}
