/** The settings of a project: flags, environment, the operator's own file and `rondo.toml`, in this order of authority. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ProjectConfig } from '../../adapters/files/index.js';
import {
  assertOutsideProject,
  authorityOf,
  isInside,
  type OperatorFileContent,
  operatorFilePath,
  realPathOf,
  type TrustPredicate,
  trustPredicateOf,
} from '../authority.js';
import {
  explicitConfigFile,
  explicitLocations,
  resolveSettings,
  type Settings,
  type SettingsInput,
  UsageError,
} from '../settings.js';

export type ProjectSettings = Settings<ProjectConfig>;

/** The settings that hold for what was asked; CONFIG_INVALID or a UsageError says what is wrong. */
export async function loadSettings(asked: SettingsInput): Promise<ProjectSettings> {
  const authority = authorityOf(asked, await readOperatorFile(asked));
  const trusts = trustPredicateOf(authority);
  const named = explicitConfigFile(asked);
  let config = EMPTY_CONFIG;
  if (named !== undefined || existsSync(join(asked.cwd, 'rondo.toml'))) {
    const { loadConfig } = await import('../../adapters/files/config.js');
    const given = explicitLocations(asked);
    const open = (['data', 'loops', 'store'] as const).filter((key) => !given[key]);
    config = await loadConfig(named, asked.cwd, { confinedPaths: (directory) => (trusts(directory) ? [] : open) });
  }
  const settings = resolveSettings(asked, config, authority);
  assertLoopsInsideProject(settings, trusts);
  return settings;
}

const EMPTY_CONFIG: ProjectConfig = { file: undefined, prices: new Map(), backends: new Map() };

/** What the operator's own file says, if it is to be believed. */
export async function readOperatorFile(asked: SettingsInput): Promise<OperatorFileContent> {
  const file = operatorFilePath(asked.env);
  if (file === undefined || !existsSync(file)) return { directories: [], send: new Map(), destinations: [] };
  assertOutsideProject(file, asked);
  return (await import('../../adapters/files/operator-file.js')).loadOperatorFile(file);
}

/** Writes the operator's own file. */
export async function writeOperatorFile(file: string, content: OperatorFileContent): Promise<void> {
  await (await import('../../adapters/files/operator-file.js')).saveOperatorFile(file, content);
}

/** The usual directory of definitions may be a link; in a project that is not trusted, not one that leads out of it. */
function assertLoopsInsideProject(
  { loopsDirectory, hasExplicitLoops, cwd }: ProjectSettings,
  trusts: TrustPredicate,
): void {
  const real = hasExplicitLoops ? undefined : realPathOf(loopsDirectory);
  if (real === undefined || isInside(realPathOf(cwd) ?? cwd, real) || trusts(cwd)) return;
  throw new UsageError(
    `${loopsDirectory} is a link to ${real}, outside of ${cwd}, which is not trusted: use --loops ${real}.`,
  );
}
