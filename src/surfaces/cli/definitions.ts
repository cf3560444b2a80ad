/** Definitions as verbs name them: `loop`, `loop@1.2.0`, or a file that holds one. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { LoopError } from '../../base/errors.js';
import { nearestWord } from '../../base/nearest-word.js';
import { isLoopId } from '../../loops/definition/loop-identity.js';
import type { Registry } from '../../loops/registry.js';
import { type BadFile, type Definitions, loadLoops, type ProjectSettings } from '../compose.js';
import { UsageError } from '../settings.js';
import type { Terminal } from './terminal.js';
import { sanitizeText } from './terminal-text.js';

/** A loop as it was asked for. */
export interface LoopReference {
  readonly id: string;
  readonly version: string | undefined;
}

/** How the name of a file ends that can hold a definition. */
const DEFINITION_FILE_PATTERN = /\.(?:json|toml|mjs|js|ts)$/;

/**
 * The file that is meant, if what was given is the path of one and not the id of a loop: it ends like a definition and such
 * a file exists, or it can be nothing but a path. An id may have slashes and points too.
 */
function definitionFileOf(given: string, cwd: string): string | undefined {
  const file = resolve(cwd, given);
  if (DEFINITION_FILE_PATTERN.test(given) && existsSync(file)) return file;
  if (isLoopId(given) || isLoopId(splitVersion(given)[0])) return undefined;
  if (!/[/\\]/.test(given)) return undefined;
  if (existsSync(file)) return file;
  throw new UsageError(`There is no file ${given}.`);
}

/** What stands before and behind the last @; a first character is part of the id. */
function splitVersion(given: string): readonly [id: string, version: string | undefined] {
  const at = given.lastIndexOf('@');
  return at > 0 ? [given.slice(0, at), given.slice(at + 1)] : [given, undefined];
}

/** An id with the version that stands behind an @ or in `--version`; an id that has an @ itself is told by the registry. */
function parseLoopReference(given: string, option: string | undefined, registry: Registry): LoopReference {
  if (registry.find(given) !== undefined) return { id: given, version: option };
  const [id, version = option] = splitVersion(given);
  if (option !== undefined && version !== option) {
    throw new UsageError(`"${given}" and --version ${option} name two versions; give one.`);
  }
  return { id, version };
}

/** The one loop that a file holds. */
function singleLoopIn(file: string, { loops, badFiles }: Definitions, option: string | undefined): LoopReference {
  const flaws = badFiles.filter((item) => item.file === file);
  const [flaw] = flaws;
  if (flaw !== undefined) {
    throw new LoopError('DEFINITION_INVALID', describeBadFile(flaw), { flaws: flaws.map((item) => ({ ...item })) });
  }
  const definitions = loops.filter((item) => item.file === file).map(({ registered }) => registered.definition);
  const [loop] = definitions;
  if (loop === undefined) throw new UsageError(`${file} holds no loop.`);
  if (definitions.length > 1) {
    throw new UsageError(
      `${file} holds several loops: ${definitions.map(({ id }) => id).join(', ')}. Name one, with --loops.`,
    );
  }
  if (option !== undefined && option !== loop.version) {
    throw new UsageError(`"${loop.id}@${loop.version}" and --version ${option} name two versions; give one.`);
  }
  return { id: loop.id, version: loop.version };
}

/** The loop that was asked for, and the definitions that it is to be found in. */
export async function findLoop(
  given: string,
  version: string | undefined,
  settings: ProjectSettings,
): Promise<{ readonly wanted: LoopReference; readonly definitions: Definitions }> {
  const file = definitionFileOf(given, settings.cwd);
  const definitions = await loadLoops(settings, file === undefined ? [] : [file]);
  if (file === undefined && DEFINITION_FILE_PATTERN.test(given) && definitions.registry.find(given) === undefined) {
    throw new UsageError(`There is no file ${given}, and no loop of that id.`);
  }
  const wanted =
    file === undefined
      ? parseLoopReference(given, version, definitions.registry)
      : singleLoopIn(file, definitions, version);
  return { wanted, definitions };
}

export function loopNotFoundError(given: string, wanted: LoopReference, definitions: Definitions): LoopError {
  const hints = missingLoopHints(wanted, definitions).map((line) => ` ${line}`);
  return new LoopError('LOOP_NOT_FOUND', `There is no loop "${given}".${hints.join('')} See: rondo list`);
}

/** What to try when there is no loop of this name. */
export function missingLoopHints({ id, version }: LoopReference, { registry }: Definitions): readonly string[] {
  const known = registry.list().map(({ definition }) => definition);
  const versions = known.filter((definition) => definition.id === id).map((definition) => definition.version);
  if (version !== undefined && versions.length > 0) return [`"${id}" is there as ${versions.join(', ')}.`];
  const ids = known.map((definition) => definition.id);
  const meant = nearestWord(id, ids) ?? ids.find((other) => other.startsWith(id));
  return meant === undefined ? [] : [`Did you mean "${meant}"?`];
}

const MAX_LISTED_FILES = 3;

/** Tells of files that could not be loaded: how many, and the first of them. */
export function warnBadFiles(bad: readonly BadFile[], terminal: Terminal): void {
  if (bad.length === 0) return;
  const files = new Set(bad.map(({ file }) => file)).size;
  terminal.printToStderr(`${files === 1 ? 'One file' : `${files} files`} could not be loaded (see: rondo check):`);
  for (const item of bad.slice(0, MAX_LISTED_FILES)) terminal.printToStderr(`  ${describeBadFile(item)}`);
  if (bad.length > MAX_LISTED_FILES) terminal.printToStderr(`  and ${bad.length - MAX_LISTED_FILES} more`);
}

/** Tells of what looks like a mistake in files that were loaded: how much there is, and the first of it. */
export function warnIgnoredKeys(warnings: Definitions['warnings'], terminal: Terminal): void {
  const mistakes = warnings.filter(({ mistake }) => mistake);
  if (mistakes.length === 0) return;
  terminal.printToStderr(
    `${mistakes.length === 1 ? 'One key is' : `${mistakes.length} keys are`} ignored (see: rondo check):`,
  );
  for (const item of mistakes.slice(0, MAX_LISTED_FILES)) terminal.printToStderr(`  warning: ${describeBadFile(item)}`);
  if (mistakes.length > MAX_LISTED_FILES) terminal.printToStderr(`  and ${mistakes.length - MAX_LISTED_FILES} more`);
}

/** File, line and path of a flaw in one line. */
export function describeBadFile({ file, path, line, column, reason }: BadFile): string {
  const place = line === undefined ? file : `${file}:${line}${column === undefined ? '' : `:${column}`}`;
  return sanitizeText(`${place}: ${path ? `${path}: ` : ''}${reason}`);
}
