/**
 * Reads keys from the file `.env` of the working directory. The file belongs to the project, which may come from a
 * stranger: it is used only if the operator trusts the directory, and even then only for names of keys. A key is sent
 * only to hosts that the operator permits. The file cannot grant permissions, move the data directory, redirect a key
 * to another address or change how Node and other programs run.
 */
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { DocumentReadError } from '../../adapters/files/document-read-error.js';
import { readText } from '../../adapters/files/read-text.js';
import type { TrustPredicate } from '../authority.js';
import type { Environment, SettingsInput } from '../settings.js';

const ENV_FILE_NAME = '.env';
const MAX_ENV_FILE_BYTES = 256 * 1024;

/** The names that are read: keys, tokens and secrets. */
const KEY_NAME = /^[A-Z][A-Z0-9_]*_(?:KEY|TOKEN|SECRET)$/;
/** Prefixes of variables that control Rondo, Node and npm. None of them is a key of a service. */
const CONTROL_NAME = /^(?:RONDO|NODE|NPM)_/;

/** What a `.env` file contributes, by name of the variable. The values are not part of it. */
export interface EnvFileReport {
  readonly file: string;
  /** True if the operator trusts the directory of the file. */
  readonly isTrusted: boolean;
  /** The variables that the file sets; if it is not trusted, those that it would set. */
  readonly names: readonly string[];
  /** The variables of the file that are never read. */
  readonly ignored: readonly string[];
  /** Why the file cannot be read. */
  readonly problem?: string;
}

/** Variables of a `.env` file, and the report about it. */
interface EnvFile {
  readonly variables: Environment;
  readonly report: EnvFileReport;
}

/**
 * Reads the variables of `.env` that the environment does not have yet. Returns undefined if there is no such file. An
 * unreadable file is reported, not thrown: some projects have a directory of this name.
 */
export async function readEnvFile({ env, cwd }: SettingsInput, trusts: TrustPredicate): Promise<EnvFile | undefined> {
  const file = join(cwd, ENV_FILE_NAME);
  const isTrusted = trusts(cwd);
  try {
    const entries = Object.entries(parseEnv(await readText(file, MAX_ENV_FILE_BYTES)));
    const accepted = entries.filter(
      ([name]) => /* guard: env-file-sets-only-keys */ KEY_NAME.test(name) && !CONTROL_NAME.test(name),
    );
    // guard: env-file-overrides-nothing
    const added = accepted.filter(([name]) => env[name] === undefined);
    const ignored = entries.filter((entry) => !accepted.includes(entry)).map(([name]) => name);
    return {
      // guard: env-file-needs-trust
      variables: isTrusted ? Object.fromEntries(added) : {},
      report: { file, isTrusted, names: added.map(([name]) => name), ignored },
    };
  } catch (thrown) {
    if (!(thrown instanceof DocumentReadError)) throw thrown;
    if (thrown.isMissing) return undefined;
    return { variables: {}, report: { file, isTrusted, names: [], ignored: [], problem: thrown.message } };
  }
}

/** Makes variables visible to code of the project, which runs in this process, if `env` is the real environment. */
export function exposeVariables(env: Environment, variables: Environment): void {
  if (env === process.env) Object.assign(process.env, variables);
}
