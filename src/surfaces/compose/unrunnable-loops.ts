/**
 * Finds what keeps the loops of files from running and is no mistake of theirs alone: a loop that they call does not
 * exist, or nothing chooses a model. They are loaded all the same, because a program or a flag can still provide it.
 */

import type { BadFile } from '../../adapters/files/index.js';
import { nearestWord } from '../../base/nearest-word.js';
import { shortVersion } from '../../base/short-version.js';
import { type DefinitionIssue, DefinitionIssues, didYouMean } from '../../loops/definition/shape.js';
import { planReferences } from '../../loops/plan/analysis/analyze.js';
import { firstPromptIn, MODEL_ADVICE } from '../../loops/plan/bind-plan.js';
import { compilePlan, unsupportedStrategy } from '../../loops/plan/plan.js';
import { shippedVerbOf } from '../../loops/plan/verbs.js';
import type { LoopDef } from '../../protocol/loop.js';
import type { PlanSpec } from '../../protocol/plan.js';
import { withDrafts } from './draft-definitions.js';
import { locateInFile } from './locate-problems.js';
import type { Definitions } from './project-loops.js';

/** Returns the problems of all loops that cannot run, with their places. */
export async function unrunnableLoops({ registry, loops, drafts }: Definitions): Promise<readonly BadFile[]> {
  const table = withDrafts(registry, drafts);
  const items = [...loops.map(({ file, registered }) => ({ file, loop: registered })), ...drafts.map(asItem)];
  const ids = registry.list().map(({ definition }) => definition.id);
  const found = items.map(async ({ file, loop }) => {
    const { definition } = loop;
    const issues = new DefinitionIssues();
    for (const { loopId, version, path } of [...referencesOf(definition), ...planReferences(loop, table)])
      if (table.find(loopId, version) === undefined)
        issues.add(path, missingReason(loopId, version, registry.failureOf(loopId)?.problems[0]?.file, ids));
    if (definition.composite?.plan !== undefined) addPlanIssues(definition.composite.plan, issues);
    const registered = loops.find((item) => item.registered === loop)?.registered;
    const retried = registered && registry.retriedOnceTool(registered);
    if (retried !== undefined) issues.addError(retried);
    if (registered?.definedLoop === undefined) return locateInFile(file, issues.list);
    // The file of a module has no positions, and may define several loops.
    return issues.list.map(({ path, reason }) => ({ file, reason: `${definition.id}: ${path} ${reason}` }));
  });
  return (await Promise.all(found)).flat();
}

function asItem<L extends { readonly file: string }>(draft: L): { readonly file: string; readonly loop: L } {
  return { file: draft.file, loop: draft };
}

/** Returns the references of a composite of steps or an agent. */
function referencesOf({
  composite,
}: LoopDef): readonly { loopId: string; version: string | undefined; path: string }[] {
  const { steps = [], agent } = composite ?? {};
  const tools = ['tools', 'handoffs'] as const;
  return [
    ...steps.map(({ loopId, loopVersion: version }, index) => {
      return { loopId, version, path: `/composite/steps/${index}/loopId` };
    }),
    ...tools.flatMap((list) =>
      (agent?.[list] ?? []).map((loopId, index) => {
        return { loopId, version: undefined, path: `/composite/agent/${list}/${index}` };
      }),
    ),
  ];
}

function missingReason(
  loopId: string,
  version: string | undefined,
  failedFile: string | undefined,
  ids: readonly string[],
): string {
  if (failedFile !== undefined) return `calls "${loopId}", which could not be loaded (${failedFile})`;
  const verb = shippedVerbOf(loopId);
  if (verb !== undefined)
    return `the verb "${verb}" needs a binding: add ${verb} = "LOOP" to the [verbs] of rondo.toml`;
  const name = version === undefined ? loopId : `${loopId}@${shortVersion(version)}`;
  return `calls "${name}", which does not exist${didYouMean(
    nearestWord(
      loopId,
      ids.filter((id) => id !== loopId),
    ),
  )}`;
}

function addPlanIssues(spec: PlanSpec, issues: DefinitionIssues): void {
  const prompt = firstPromptIn(spec);
  if (prompt !== undefined && spec.backend === undefined) issues.add(prompt, `has no model: ${MODEL_ADVICE}`);
  const unsupported: DefinitionIssue | undefined = unsupportedStrategy(spec, usesContext(spec));
  if (unsupported !== undefined) issues.add(unsupported.path, unsupported.reason);
}

/** True if a text of the plan shows the latest results to a model. A plan that cannot be compiled has its own issues. */
function usesContext(spec: PlanSpec): boolean {
  const createPrompt = () => ({ name: '', body: () => null });
  const compiled = new DefinitionIssues().attempt(() => compilePlan({ id: '', createPrompt }, spec));
  return compiled?.runOptions.usesContext === true;
}
