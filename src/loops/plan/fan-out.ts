/**
 * Fan-outs: programs that run concurrently. At most `limit` branches run at the same time, and each takes every
 * `limit`-th item, so that the key of a step does not depend on timing. The results keep the order of the items.
 */
import { LoopError } from '../../base/errors.js';
import { compileJsonPath, type JsonPath } from '../../json/path.js';
import { jsonEquals } from '../../json/value.js';
import type { Scope } from '../../protocol/body.js';
import type { Json } from '../../protocol/json.js';
import type { FanOutGate, FanOutJoin } from '../../protocol/plan.js';
import { type Program, runProgram } from './driver.js';
import { askPerson } from './gate.js';
import { endsPlan } from './plan-call.js';
import { failed, type PlanRun, type StepResult, succeeded } from './plan-run.js';

/** A compiled fan-out. */
interface FanOutOptions {
  readonly planId: string;
  readonly stepName: string;
  /** The program of each branch, or the one program of all items. */
  readonly programs: readonly Program<PlanRun>[];
  /** The names of the branches; empty for items. */
  readonly names: readonly string[];
  /** Returns the items; undefined for branches. */
  readonly listOf: ((run: PlanRun) => readonly Json[]) | undefined;
  readonly limit: number;
  readonly join: FanOutJoin;
  readonly gates: readonly FanOutGate[];
}

interface BranchResult {
  readonly run: PlanRun;
  readonly result: StepResult;
}

/** Returns the step of a fan-out. Its output is the list of the outputs; null for a branch that failed. */
export function fanOutStep(options: FanOutOptions): (run: PlanRun, scope: Scope) => Promise<void> {
  const gates = options.gates.map((gate) => compileGate(gate, `${options.planId}: ${options.stepName}`));
  return async (run, scope) => {
    const branches = branchesOf(options, run);
    const results = await runBranches(branches, options.limit, scope);
    run.addUsageOf(results.map((branch) => branch.run));
    const stepResults = results.map(({ result }) => result);
    assertJoined(options, stepResults);
    for (const gate of gates) await gate(options, stepResults, scope);
    run.setResult(succeeded(stepResults.map(({ output }) => output)), options.stepName, undefined);
  };
}

interface Branch {
  readonly program: Program<PlanRun>;
  readonly run: PlanRun;
}

function branchesOf({ programs, listOf, names }: FanOutOptions, run: PlanRun): readonly Branch[] {
  if (listOf === undefined)
    return programs.map((program, index) => ({ program, run: run.branch({ index, item: names[index] ?? null }) }));
  const [program = []] = programs;
  return listOf(run).map((item, index) => ({ program, run: run.branch({ item, index }) }));
}

async function runBranches(branches: readonly Branch[], limit: number, scope: Scope): Promise<readonly BranchResult[]> {
  const workerCount = Math.min(limit, branches.length);
  const results: BranchResult[] = [];
  const workers = Array.from({ length: workerCount }, (_, worker) => async (inner: Scope): Promise<null> => {
    for (let index = worker; index < branches.length; index += workerCount)
      results[index] = await runBranch(branches[index] as Branch, inner);
    return null;
  });
  await scope.all(workers);
  return results;
}

async function runBranch({ program, run }: Branch, scope: Scope): Promise<BranchResult> {
  try {
    await runProgram(program, run, scope);
    return { run, result: run.result };
  } catch (thrown) {
    if (endsPlan(scope, thrown)) throw thrown;
    return { run, result: failed(thrown) };
  }
}

/** Throws EXECUTION_FAILED if fewer branches succeeded than the fan-out needs. */
function assertJoined({ join, stepName }: FanOutOptions, results: readonly StepResult[]): void {
  const isFailed = ({ status }: StepResult): boolean => status === 'error';
  const failures = results.filter(isFailed).length;
  const succeededCount = results.length - failures;
  const needed = join === 'all' ? results.length : join === 'any' ? Math.min(1, results.length) : join.quorum;
  if (succeededCount >= needed) return;
  const index = results.findIndex(isFailed);
  const first = results[index]?.error;
  const reason = first === undefined ? '' : `; the first failure, of branch ${index}: ${first.code}: ${first.message}`;
  const message = `Step "${stepName}": ${succeededCount} of ${results.length} branches succeeded, ${needed} are needed${reason}`;
  throw new LoopError(first?.code ?? 'EXECUTION_FAILED', message, { stepName, succeeded: succeededCount, needed });
}

type Gate = (options: FanOutOptions, results: readonly StepResult[], scope: Scope) => Promise<void>;

/** Compiles a gate. If it does not pass, a person decides whether the plan goes on. */
function compileGate(gate: FanOutGate, where: string): Gate {
  const path = compileJsonPath(gate.path, `${where}: gates`);
  return async ({ planId, stepName }, results, scope) => {
    const values = results.filter(({ status }) => status === 'ok').map(({ output }) => valueAt(path, output));
    const reason = closedReason(gate, values);
    if (reason === undefined) return;
    const refusal = new LoopError('APPROVAL_DENIED', `Step "${stepName}" stopped at a gate: ${reason}.`, { stepName });
    const question = `Step "${stepName}": ${reason}. Approve to continue with these results.`;
    await askPerson(scope, { planId, gate: stepName, question, evidence: { path: gate.path, values } }, refusal);
  };
}

function valueAt(path: JsonPath, output: Json): Json {
  return path.findOne(output) ?? null;
}

function closedReason({ path, threshold, conflict }: FanOutGate, values: readonly Json[]): string | undefined {
  if (threshold !== undefined) {
    const numbers = values.filter((value): value is number => typeof value === 'number');
    const average = numbers.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
    if (!(average >= threshold)) return `the average of ${path} is ${average}, below ${threshold}`;
  }
  if (conflict === true && values.some((value) => !jsonEquals(value, values[0]))) return `the values of ${path} differ`;
  return undefined;
}
