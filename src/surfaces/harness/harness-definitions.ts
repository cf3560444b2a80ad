/**
 * Loads the definitions of a harness. A harness decides the inputs, the replies of the models, the grants and the
 * approvals of its cases, so a directory that is not trusted must not choose what trusted definitions outside of it do.
 */
import { LoopError } from '../../base/errors.js';
import { trustAdvice } from '../../base/permits.js';
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
 * precedence over those of its file. Throws CONFIG_INVALID if they are trusted, and the directory is not.
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
  const { loopsDirectory, authority } = project;
  const [home, real] = [directory, loopsDirectory].map((path) => realPathOf(path) ?? path) as [string, string];
  const trusts = trustPredicateOf(authority);
  // guard: untrusted-harness-runs-no-trusted-code
  if (!isInside(home, real) && trusts(loopsDirectory) && !trusts(directory)) {
    const reason = `its definitions in ${loopsDirectory} are trusted, and its own directory is not, so it must not run them`;
    throw new LoopError('CONFIG_INVALID', `${file}: ${reason}. ${trustAdvice(directory)}`, {
      ...{ file, path: '', reason },
    });
  }
  return { settings: project, definitions: await loadLoops(project) };
}
