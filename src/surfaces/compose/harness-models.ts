/** Creates the models of the cases of a harness: scripted ones, which need no keys and no network. */
import { caseScript, type ScriptProblem } from '../../adapters/models/case-script.js';
import { mockProvider } from '../../adapters/models/mock.js';
import { parseScript, type ScriptStep } from '../../adapters/models/script.js';
import { scriptedProvider } from '../../adapters/models/scripted.js';
import type { ModelProvider } from '../../loops/model.js';

export type { ScriptProblem } from '../../adapters/models/case-script.js';
export type { ScriptStep } from '../../adapters/models/script.js';

/** The models of a case, and what differs from its script. */
export interface CaseModels {
  readonly provider: ModelProvider;
  problems(): readonly ScriptProblem[];
}

/** Checks the steps of a script. `label` begins the messages. Throws BACKEND_FAILED if one is invalid. */
export function toScriptSteps(script: unknown, label: string): readonly ScriptStep[] {
  return parseScript(script, label);
}

/**
 * Returns the models of a case. All reply from its script. Without one, the providers `mock` and `scripted` reply, and a
 * call of any other model fails the case.
 */
export function createCaseModels(script: readonly ScriptStep[] | undefined): CaseModels {
  const listed = caseScript(script ?? []);
  if (script !== undefined) return { provider: listed, problems: () => listed.problems() };
  const files = scriptedProvider();
  const local = new Map<string, ModelProvider>([
    ['mock', mockProvider()],
    ['scripted', files],
  ]);
  // guard: unscripted-model-not-called
  const providerOf = (id: string): ModelProvider => local.get(id) ?? listed;
  const unused = (): ScriptProblem[] =>
    files.unfinishedScripts().map((unfinished) => ({
      path: '/script',
      expected: `all steps of ${unfinished.script}`,
      actual: `${unfinished.remainingSteps} steps are unused`,
    }));
  return {
    provider: { ...listed, open: async (ref, options) => providerOf(ref.id).open(ref, options) },
    problems: () => [...listed.problems(), ...unused()],
  };
}
