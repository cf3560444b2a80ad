/**
 * The operator's own file, trust.toml: which directories may run code, which variables may be sent where, and which hosts
 * that are not public may be reached. It is believed only if nobody but its user and root could have written it.
 */
import { constants, lstatSync, mkdirSync, realpathSync, renameSync, rmSync, type Stats, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { LoopError } from '../../base/errors.js';
import { findHostProblem, findVariableProblem, type PermitLists } from '../../base/permits.js';
import { ConfigKeyError, readTomlFile, type TomlTable, toTable } from './toml-table.js';

export interface OperatorFile extends PermitLists {
  /** Directories that may run code, absolute. */
  readonly directories: readonly string[];
}

const MAX_OPERATOR_FILE_BYTES = 1024 * 1024;
const EMPTY_OPERATOR_FILE: OperatorFile = { directories: [], send: new Map(), destinations: [] };

/** What the file says; nothing if it is absent. CONFIG_INVALID says why it is not believed, or what is wrong in it. */
export async function loadOperatorFile(file: string): Promise<OperatorFile> {
  if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return EMPTY_OPERATOR_FILE;
  // guard: operator-file-owned-by-user
  assertOnlyOwnerCanWrite(file);
  return (await readTomlFile(file, MAX_OPERATOR_FILE_BYTES, true, parseOperatorFile)) ?? EMPTY_OPERATOR_FILE;
}

/** Refuses a file that others could have written, or whose directory lets others replace it. */
function assertOnlyOwnerCanWrite(file: string): void {
  if (process.getuid === undefined) return;
  let real: string;
  try {
    real = realpathSync(file);
  } catch {
    throw untrustedFileError(file, 'it is a link that leads nowhere', 'remove it');
  }
  for (const path of [real, dirname(real)]) {
    const status = statSync(path);
    if (path === real && !status.isFile()) throw untrustedFileError(file, 'it is not a regular file', 'remove it');
    const why = findOwnershipProblem(status, process.getuid());
    if (why !== undefined)
      throw untrustedFileError(file, `${path === real ? 'it' : path} ${why}`, `chmod go-w ${path}`);
  }
}

function findOwnershipProblem({ uid, mode }: Stats, user: number): string | undefined {
  if (uid !== user && uid !== 0) return `belongs to another user (uid ${uid})`;
  return (mode & 0o022) === 0 ? undefined : 'can be written by others';
}

function untrustedFileError(file: string, why: string, advice: string): LoopError {
  const message = `${file} decides what may run and be sent, so only you may be able to write it: ${why}. If it is yours: ${advice}`;
  return new LoopError('CONFIG_INVALID', message, { file, reason: why });
}

function parseOperatorFile(value: unknown): OperatorFile {
  const root = toTable(value, [], ['directories', 'destinations', 'send']);
  const send = root.members.has('send')
    ? toTable(root.members.get('send'), ['send'])
    : { path: ['send'], members: new Map() };
  const absolute = (text: string): string | undefined => (isAbsolute(text) ? undefined : 'must be absolute paths');
  return {
    directories: parseStringList(root, 'directories', absolute),
    destinations: parseStringList(root, 'destinations', findHostProblem),
    send: new Map([...send.members.keys()].map((variable) => [variable, parseHosts(send, variable)])),
  };
}

function parseHosts(send: TomlTable, variable: string): readonly string[] {
  const flaw = findVariableProblem(variable);
  if (flaw !== undefined) throw new ConfigKeyError([...send.path, variable], flaw);
  return parseStringList(send, variable, findHostProblem);
}

function parseStringList(
  { path, members }: TomlTable,
  key: string,
  flaw: (text: string) => string | undefined,
): readonly string[] {
  const value = members.get(key) ?? [];
  if (!Array.isArray(value)) throw new ConfigKeyError([...path, key], 'must be a list of texts');
  for (const item of value) {
    const wrong = typeof item === 'string' ? flaw(item) : 'must be a list of texts';
    if (wrong !== undefined) throw new ConfigKeyError([...path, key], wrong);
  }
  return value as string[];
}

const HEADER_COMMENT = `# What Rondo may run and send for you. \`rondo trust\` writes this file; comments are not kept.
# directories: may run code. destinations: hosts that are not public and may be reached.
# [send]: which environment variable may be sent to which hosts.
`;

/** A string of TOML. It is that of JSON, except that TOML has no raw delete character. */
function tomlString(text: string): string {
  // guard: delete-character-escaped
  return JSON.stringify(text).replaceAll('\u007f', '\\u007f');
}

function formatOperatorFile({ directories, destinations, send }: OperatorFile): string {
  const list = (items: readonly string[]): string => `[${items.map((item) => `\n  ${tomlString(item)},`).join('')}\n]`;
  const lines = [`directories = ${list(directories)}`, `destinations = ${list(destinations)}`, '', '[send]'];
  for (const [variable, hosts] of send) lines.push(`${variable} = ${JSON.stringify(hosts)}`);
  return `${HEADER_COMMENT}\n${lines.join('\n')}\n`;
}

/** Replaces the file as a whole: a reader sees the old one or the new one. Only its user can read it. */
export async function saveOperatorFile(file: string, content: OperatorFile): Promise<void> {
  // guard: operator-directory-private
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // guard: linked-operator-file-kept
  const target = lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() ? realpathSync(file) : file;
  const draft = join(dirname(target), `.trust.toml.${process.pid}`);
  let handle: FileHandle | undefined;
  // guard: draft-created-exclusively
  try {
    rmSync(draft, { force: true });
    // guard: operator-file-private
    handle = await open(draft, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600);
    await handle.writeFile(formatOperatorFile(content));
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
