/**
 * Loads the definitions of a harness. A harness decides the inputs, the replies of the models, the grants and the
 * approvals of its cases, so one in a directory that is not trusted runs nothing that needs trust.
 */
import { LoopError } from '../../base/errors.js';
import { trustProblem } from '../../loops/trust-boundary.js';
import { isInside, realPathOf, trustPredicateOf } from '../authority.js';
import { type Definitions, loadLoops, type ProjectSettings } from '../compose.js';
import type { Harness } from './harness-case.js';

/** The definitions of a harness, and the settings with their directory. */
export interface HarnessDefinitions {
  readonly settings: ProjectSettings;
  readonly definitions: Definitions;
}

/**
 * Loads the definitions of the harness of a directory. Those that a flag or a variable of the operator names take
 * precedence over those of its file. Throws CONFIG_INVALID if one of them needs trust, and the directory is not trusted.
 */
export async function loadHarnessDefinitions(
  directory: string,
  { loops, file }: Harness,
  settings: ProjectSettings,
  hasLocationOfOperator: boolean,
): Promise<HarnessDefinitions> {
  const project =
    loops === undefined || hasLocationOfOperator
      ? settings
      : { ...settings, loopsDirectory: loops, hasExplicitLoops: true };
  const definitions = await loadLoops(project);
  const { loopsDirectory, authority } = project;
  const [home, real] = [directory, loopsDirectory].map((path) => realPathOf(path) ?? path) as [string, string];
  // guard: untrusted-harness-runs-no-trusted-code
  if (isInside(home, real) || trustPredicateOf(authority)(directory)) return { settings: project, definitions };
  for (const { registered } of definitions.loops) {
    const { id: loopId, version: loopVersion } = registered.definition;
    const reason = trustProblem(definitions.registry, [{ loopId, loopVersion }], directory);
    if (reason !== undefined) throw new LoopError('CONFIG_INVALID', `${file}: ${reason}.`, { file, path: '', reason });
  }
  return { settings: project, definitions };
}
