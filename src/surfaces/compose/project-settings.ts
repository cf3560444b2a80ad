/** Loads the settings of a project from flags, environment variables, trust.toml and `rondo.toml`. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ProjectConfig } from '../../adapters/files/index.js';
import type { TrustSettings } from '../../base/permits.js';
import {
  assertOutsideProject,
  authorityOf,
  isInside,
  realPathOf,
  type TrustPredicate,
  trustFilePath,
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
import type { EnvFileReport } from './env-file.js';

/** Settings with the complete config of the project. */
export interface ProjectSettings extends Settings<ProjectConfig> {
  /** What the file `.env` of the working directory contributes; undefined if there is none. */
  readonly envFile?: EnvFileReport;
}

/**
 * Loads the settings of an invocation. Throws CONFIG_INVALID for an invalid file, and a UsageError for an invalid
 * setting.
 */
export async function loadSettings(input: SettingsInput): Promise<ProjectSettings> {
  const authority = authorityOf(input, await readTrustFile(input));
  const trusts = trustPredicateOf(authority);
  const configFile = explicitConfigFile(input);
  let config = EMPTY_CONFIG;
  if (configFile !== undefined || existsSync(join(input.cwd, 'rondo.toml'))) {
    const { loadConfig } = await import('../../adapters/files/config.js');
    const explicit = explicitLocations(input);
    const fromConfig = (['data', 'loops', 'store'] as const).filter((key) => !explicit[key]);
    const confinedPaths = (directory: string) => (trusts(directory) ? [] : fromConfig);
    config = await loadConfig(configFile, input.cwd, { confinedPaths });
  }
  const settings = resolveSettings(input, config, authority);
  assertLoopsInsideProject(settings, trusts);
  return existsSync(join(input.cwd, '.env')) ? addEnvFile(settings, input, trusts) : settings;
}

/** Adds the keys of `.env` to the environment. The settings themselves have been resolved without them. */
async function addEnvFile(
  settings: ProjectSettings,
  input: SettingsInput,
  trusts: TrustPredicate,
): Promise<ProjectSettings> {
  const { exposeVariables, readEnvFile } = await import('./env-file.js');
  const envFile = await readEnvFile(input, trusts);
  if (envFile === undefined) return settings;
  exposeVariables(input.env, envFile.variables);
  return { ...settings, env: { ...settings.env, ...envFile.variables }, envFile: envFile.report };
}

/** The config of a project without one. */
export const EMPTY_CONFIG: ProjectConfig = {
  file: undefined,
  prices: new Map(),
  backends: new Map(),
  verbs: new Map(),
};

/**
 * Reads trust.toml; no permissions if it does not exist. Throws CONFIG_INVALID if it is invalid or inside the project.
 */
export async function readTrustFile(input: SettingsInput): Promise<TrustSettings> {
  const file = trustFilePath(input.env);
  if (file === undefined || !existsSync(file)) return { directories: [], send: new Map(), destinations: [] };
  assertOutsideProject(file, input);
  return (await import('../../adapters/files/trust-file.js')).loadTrustFile(file);
}

/** Writes trust.toml. */
export async function writeTrustFile(file: string, content: TrustSettings): Promise<void> {
  await (await import('../../adapters/files/trust-file.js')).saveTrustFile(file, content);
}

/**
 * Throws a UsageError if the default directory of definitions of an untrusted project leads out of the project, for
 * example because it is a symbolic link.
 */
function assertLoopsInsideProject(
  { loopsDirectory, hasExplicitLoops, cwd }: ProjectSettings,
  trusts: TrustPredicate,
): void {
  const real = hasExplicitLoops ? undefined : realPathOf(loopsDirectory);
  if (real === undefined || isInside(realPathOf(cwd) ?? cwd, real) || trusts(cwd)) return;
  throw new UsageError(
    `${loopsDirectory} is a link to ${real}, outside of the untrusted project ${cwd}. To use it, pass --loops ${real}.`,
  );
}
