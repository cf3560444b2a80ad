/**
 * Static analysis of registered plans. Definitions and texts are valid when a plan is registered; what a plan reads of
 * other loops, and which plans call each other, is known only when all loops are. An issue makes a plan unusable.
 */
import { canonicalJson } from '../../../json/canonical.js';
import type { Json } from '../../../protocol/json.js';
import type { JsonSchema, LoopDef } from '../../../protocol/loop.js';
import type { PlanSpec } from '../../../protocol/plan.js';
import { type DefinitionIssue, DefinitionIssues } from '../../definition/shape.js';
import { placeholdersIn } from '../plan-placeholders.js';
import { inferInputSchema } from '../workflow-document.js';
import { CallAnalysis, type LoopReference } from './call-analysis.js';
import { cyclesOf } from './cycles.js';
import { ReadableValues, resultSchema, tableOf } from './readable-values.js';
import { ReferenceCheck } from './references.js';
import { StateAnalysis } from './state-analysis.js';
import { StepAnalysis } from './step-analysis.js';

/** A loop, as far as it is analyzed: one that is registered, or a document that cannot be. */
export interface AnalyzedLoop {
  readonly definition: LoopDef;
}

/** The loops that plans can call. */
export interface LoopTable<L extends AnalyzedLoop> {
  find(id: string, version?: string): L | undefined;
}

/** A plan that cannot run, and why. The paths of its issues are JSON pointers in its definition. */
export interface PlanProblems<L extends AnalyzedLoop> {
  readonly loop: L;
  readonly issues: readonly DefinitionIssue[];
}

/** Analyzes the plans among these loops, and returns those with issues. The other loops are looked up in the table. */
export function analyzePlans<L extends AnalyzedLoop>(
  loops: readonly L[],
  table: LoopTable<L>,
): readonly PlanProblems<L>[] {
  const plans = loops.filter(({ definition }) => definition.composite?.plan !== undefined);
  const analyses = new Map(plans.map((loop) => [loop, analyzePlan(loop.definition, table)]));
  const references = new Map([...analyses].map(([loop, analysis]) => [loop, analysis.references]));
  const cycles = cyclesOf(references, table);
  return [...analyses].flatMap(([loop, analysis]) => {
    const issues = [...analysis.issues, ...(cycles.get(loop) ?? [])];
    return issues.length === 0 ? [] : [{ loop, issues }];
  });
}

/** Returns the loops that a plan refers to; none if the loop is no plan. */
export function planReferences({ definition }: AnalyzedLoop, table: LoopTable<AnalyzedLoop>): readonly LoopReference[] {
  return definition.composite?.plan === undefined ? [] : analyzePlan(definition, table).references;
}

/** Returns the issues of one plan, and the loops that it refers to. */
function analyzePlan(
  definition: LoopDef,
  table: LoopTable<AnalyzedLoop>,
): { readonly issues: readonly DefinitionIssue[]; readonly references: readonly LoopReference[] } {
  const spec = definition.composite?.plan as PlanSpec;
  const issues = new DefinitionIssues();
  const check = new ReferenceCheck(issues, placeholdersIn(spec).captured);
  const calls = new CallAnalysis(spec, check, (id, version) => table.find(id, version)?.definition);
  const start = tableOf({ input: inputTypes(definition, spec), result: resultSchema({ type: 'null' }) });
  if (spec.states !== undefined)
    new StateAnalysis(spec, calls, check, issues).checkAll('/composite/plan/states', start);
  else if (spec.steps !== undefined)
    new StepAnalysis(calls, check, issues).steps(spec.steps, '/composite/plan/steps', new ReadableValues(start));
  return { issues: issues.list, references: calls.references };
}

/** Returns the schema of the input. One that was inferred from the placeholders does not list what mappings read. */
function inputTypes({ inputSchema }: LoopDef, spec: PlanSpec): JsonSchema {
  const inferred = inferInputSchema(spec);
  const isInferred = canonicalJson(inferred) === canonicalJson(inputSchema as unknown as Json);
  return isInferred ? { ...inferred, additionalProperties: true } : inputSchema;
}
