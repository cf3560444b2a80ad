/**
 * Reads and writes trust.toml, the file in which the operator lists the directories whose code may run, the environment
 * variables that may be sent and to which hosts, and the private hosts that may be reached. The file is accepted only
 * if it and its directory belong to this user or root and only the owner can write them. Windows has no such check.
 */
import { constants, lstatSync, mkdirSync, realpathSync, renameSync, rmSync, type Stats, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { LoopError } from '../../base/errors.js';
import { findHostProblem, findVariableProblem, type TrustSettings } from '../../base/permits.js';
import { ConfigKeyError, readTomlFile, type TomlTable, toTable } from './toml-table.js';

const MAX_TRUST_FILE_BYTES = 1024 * 1024;
const EMPTY_SETTINGS: TrustSettings = { directories: [], send: new Map(), destinations: [] };

/**
 * Reads the trust file. Returns empty lists if it does not exist.
 * Throws CONFIG_INVALID if the file is invalid, belongs to another user, or can be written or replaced by others.
 */
export async function loadTrustFile(file: string): Promise<TrustSettings> {
  if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return EMPTY_SETTINGS;
  // guard: trust-file-owned-by-user
  assertOnlyOwnerCanWrite(file);
  return (await readTomlFile(file, MAX_TRUST_FILE_BYTES, true, parseTrustFile)) ?? EMPTY_SETTINGS;
}

/**
 * Throws CONFIG_INVALID if the path does not lead to a regular file, or if that file or its directory belongs to a user
 * other than this one and root, or is writable for its group or others.
 */
function assertOnlyOwnerCanWrite(file: string): void {
  if (process.getuid === undefined) return;
  let real: string;
  try {
    real = realpathSync(file);
  } catch {
    throw untrustedFileError(file, 'it is a dangling symbolic link', 'remove it');
  }
  for (const path of [real, dirname(real)]) {
    const status = statSync(path);
    if (path === real && !status.isFile()) throw untrustedFileError(file, 'it is not a regular file', 'remove it');
    const problem = findOwnershipProblem(status, process.getuid());
    if (problem !== undefined)
      throw untrustedFileError(file, `${path === real ? 'it' : path} ${problem}`, `chmod go-w ${path}`);
  }
}

function findOwnershipProblem({ uid, mode }: Stats, user: number): string | undefined {
  if (uid !== user && uid !== 0) return `belongs to another user (uid ${uid})`;
  return (mode & 0o022) === 0 ? undefined : 'can be written by others';
}

function untrustedFileError(file: string, reason: string, advice: string): LoopError {
  const message = `${file} controls what may run and be sent, so only you may have write access to it, but ${reason}. If it is yours: ${advice}`;
  return new LoopError('CONFIG_INVALID', message, { file, reason });
}

function parseTrustFile(value: unknown): TrustSettings {
  const root = toTable(value, [], ['directories', 'destinations', 'send']);
  const send = root.members.has('send')
    ? toTable(root.members.get('send'), ['send'])
    : { path: ['send'], members: new Map() };
  const findPathProblem = (path: string): string | undefined =>
    isAbsolute(path) ? undefined : 'must be absolute paths';
  return {
    directories: parseStringList(root, 'directories', findPathProblem),
    destinations: parseStringList(root, 'destinations', findHostProblem),
    send: new Map([...send.members.keys()].map((variable) => [variable, parseHosts(send, variable)])),
  };
}

function parseHosts(send: TomlTable, variable: string): readonly string[] {
  const problem = findVariableProblem(variable);
  if (problem !== undefined) throw new ConfigKeyError([...send.path, variable], problem);
  return parseStringList(send, variable, findHostProblem);
}

function parseStringList(
  { path, members }: TomlTable,
  key: string,
  findProblem: (item: string) => string | undefined,
): readonly string[] {
  const value = members.get(key) ?? [];
  if (!Array.isArray(value)) throw new ConfigKeyError([...path, key], 'must be an array of strings');
  for (const item of value) {
    const problem = typeof item === 'string' ? findProblem(item) : 'must be an array of strings';
    if (problem !== undefined) throw new ConfigKeyError([...path, key], problem);
  }
  return value as string[];
}

const HEADER_COMMENT = `# What Rondo may run and send for you. \`rondo trust\` writes this file; comments are not kept.
# directories: their code may run. destinations: private hosts that may be reached.
# [send]: the hosts that each environment variable may be sent to.
`;

/** Formats a TOML string. JSON strings are valid TOML, except that TOML requires the DEL character to be escaped. */
function tomlString(text: string): string {
  // guard: delete-character-escaped
  return JSON.stringify(text).replaceAll('\u007f', '\\u007f');
}

function formatTrustFile({ directories, destinations, send }: TrustSettings): string {
  const list = (items: readonly string[]): string => `[${items.map((item) => `\n  ${tomlString(item)},`).join('')}\n]`;
  const lines = [`directories = ${list(directories)}`, `destinations = ${list(destinations)}`, '', '[send]'];
  for (const [variable, hosts] of send) lines.push(`${variable} = ${JSON.stringify(hosts)}`);
  return `${HEADER_COMMENT}\n${lines.join('\n')}\n`;
}

/**
 * Replaces the file atomically, so that readers see either the old content or the new. Only its owner can read it. A
 * symbolic link is kept, and its target is replaced. Throws CONFIG_INVALID if the file cannot be written, and a system
 * error if its directory cannot be created or the link is dangling.
 */
export async function saveTrustFile(file: string, content: TrustSettings): Promise<void> {
  // guard: trust-directory-private
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // guard: linked-trust-file-kept
  const target = lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() ? realpathSync(file) : file;
  const draft = join(dirname(target), `.trust.toml.${process.pid}`);
  let handle: FileHandle | undefined;
  // guard: draft-created-exclusively
  try {
    rmSync(draft, { force: true });
    // guard: trust-file-private
    handle = await open(draft, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600);
    await handle.writeFile(formatTrustFile(content));
    await handle.sync();
    renameSync(draft, target);
  } catch (thrown) {
    // guard: failed-draft-removed
    rmSync(draft, { force: true });
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    throw new LoopError('CONFIG_INVALID', `${file} cannot be written: ${reason}`, { file, reason }, thrown);
  } finally {
    await handle?.close();
  }
}
