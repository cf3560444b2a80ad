/** Resolves the loop arguments of verbs: `loop`, `loop@1.2.0`, or the path of a definition file. */

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { LoopError } from '../../base/errors.js';
import { nearestWord } from '../../base/nearest-word.js';
import { shortVersion } from '../../base/short-version.js';
import { isLoopId } from '../../loops/definition/loop-identity.js';
import {
  describeProblem,
  failedDefinitionError,
  loopNotFoundError as notFoundError,
} from '../../loops/failed-definition.js';
import { calleesOf, type Registry } from '../../loops/registry.js';
import { type BadFile, type Definitions, loadLoops, type ProjectSettings } from '../compose.js';
import { UsageError } from '../settings.js';
import type { Terminal } from './terminal.js';
import { sanitizeText } from './terminal-text.js';

/** A loop that a verb refers to. */
export interface LoopReference {
  readonly id: string;
  readonly version: string | undefined;
}

/** The extensions of definition files. */
const DEFINITION_FILE_PATTERN = /\.(?:json|toml|mjs|js|ts)$/;

/**
 * Returns the path if the argument is a definition file instead of a loop id. It is a file if it has the extension of a
 * definition and exists, or if it contains a slash and is not a valid id; such a file must exist, otherwise a
 * UsageError is thrown. Ids may contain slashes and dots.
 */
function definitionFileOf(argument: string, cwd: string): string | undefined {
  const file = resolve(cwd, argument);
  if (DEFINITION_FILE_PATTERN.test(argument) && existsSync(file)) return file;
  if (isLoopId(argument) || isLoopId(splitVersion(argument)[0])) return undefined;
  if (!/[/\\]/.test(argument)) return undefined;
  if (existsSync(file)) return file;
  throw new UsageError(`There is no file ${argument}.`);
}

/** Splits an argument at its last @. An @ at the beginning is part of the id. */
function splitVersion(argument: string): readonly [id: string, version: string | undefined] {
  const at = argument.lastIndexOf('@');
  return at > 0 ? [argument.slice(0, at), argument.slice(at + 1)] : [argument, undefined];
}

/**
 * Parses an id with an optional version after an @ or in `--version`. An id that contains an @ is found in the
 * registry.
 */
function parseLoopReference(argument: string, option: string | undefined, registry: Registry): LoopReference {
  if (registry.find(argument) !== undefined)
    return { id: argument, version: option === undefined ? undefined : fullVersion(argument, option, registry) };
  const [id, given = option] = splitVersion(argument);
  const version = given === undefined ? undefined : fullVersion(id, given, registry);
  if (option !== undefined && given !== option) {
    throw new UsageError(`"${argument}" and --version ${option} are different versions; give only one.`);
  }
  return { id, version };
}

/** Returns the version that a short one of a table stands for; any other as it is. */
function fullVersion(id: string, version: string, registry: Registry): string {
  const versions = registry.list().flatMap(({ definition }) => (definition.id === id ? [definition.version] : []));
  const [only, ...others] = versions.filter((each) => shortVersion(each) === version);
  return only === undefined || others.length > 0 ? version : only;
}

/**
 * Returns the only loop of a file. Throws DEFINITION_INVALID if the file is invalid, and a UsageError for another
 * number.
 */
function singleLoopIn(
  file: string,
  { loops, badFiles, hosted }: Definitions,
  option: string | undefined,
): LoopReference {
  const problems = badFiles.filter((item) => item.file === file);
  const [problem] = problems;
  if (problem !== undefined) throw failedDefinitionError({ id: problem.loopId ?? file, problems });
  if (hosted.some((item) => item.file === file))
    throw new UsageError(`${file} contains a hosted loop, which has turns of its own; give the loop that it runs.`);
  const definitions = loops.filter((item) => item.file === file).map(({ registered }) => registered.definition);
  const [loop] = definitions;
  if (loop === undefined) throw new UsageError(`${file} contains no loop.`);
  if (definitions.length > 1) {
    throw new UsageError(
      `${file} contains several loops: ${definitions.map(({ id }) => id).join(', ')}. Give the id of one, with --loops.`,
    );
  }
  if (option !== undefined && ![loop.version, shortVersion(loop.version)].includes(option)) {
    throw new UsageError(`${file} contains "${loop.id}@${shortVersion(loop.version)}", not the --version ${option}.`);
  }
  return { id: loop.id, version: loop.version };
}

/** Resolves a loop argument and loads the definitions. The loop that an id refers to may not be registered. */
export async function findLoop(
  argument: string,
  version: string | undefined,
  settings: ProjectSettings,
  model?: string,
): Promise<{ readonly wanted: LoopReference; readonly definitions: Definitions }> {
  const file = definitionFileOf(argument, settings.cwd);
  const definitions = await loadLoops(settings, file === undefined ? [] : [file], { model });
  if (
    file === undefined &&
    DEFINITION_FILE_PATTERN.test(argument) &&
    definitions.registry.find(argument) === undefined
  ) {
    throw new UsageError(`There is no file ${argument}, and no loop with that id.`);
  }
  const wanted =
    file === undefined
      ? parseLoopReference(argument, version, definitions.registry)
      : singleLoopIn(file, definitions, version);
  return { wanted, definitions };
}

/**
 * Returns the error for a loop argument without a loop: the problems of its file if its definition could not be loaded,
 * or else LOOP_NOT_FOUND with hints.
 */
export function loopNotFoundError(argument: string, wanted: LoopReference, definitions: Definitions): LoopError {
  const error = notFoundError(definitions.registry, wanted.id, `"${argument}"`);
  if (error.code !== 'LOOP_NOT_FOUND') return error;
  const hints = missingLoopHints(wanted, definitions).map((line) => ` ${line}`);
  return new LoopError(error.code, `${error.message}${hints.join('')} See: rondo list`, error.data);
}

/** Returns hints for a loop that was not found: that it is a hosted loop, its other versions, or a similar id. */
export function missingLoopHints({ id, version }: LoopReference, { registry, hosted }: Definitions): readonly string[] {
  const runs = hosted.find(({ document }) => document?.id === id)?.document?.loop;
  if (runs !== undefined) return [`"${id}" is a hosted loop, which runs the loop "${runs}": rondo host start ${id}`];
  const registered = registry.list().map(({ definition }) => definition);
  const versions = registered.filter((definition) => definition.id === id).map((definition) => definition.version);
  if (version !== undefined && versions.length > 0)
    return [`"${id}" exists as ${versions.map(shortVersion).join(', ')}.`];
  const ids = registered.map((definition) => definition.id);
  const suggestion = nearestWord(id, ids) ?? ids.find((other) => other.startsWith(id));
  return suggestion === undefined ? [] : [`Did you mean "${suggestion}"?`];
}

/** The number of problems that a warning lists. */
const MAX_LISTED_ITEMS = 3;

/** Warns about files that could not be loaded: their number and the first problems. */
export function warnBadFiles(badFiles: readonly BadFile[], terminal: Terminal): void {
  if (badFiles.length === 0) return;
  const count = new Set(badFiles.map(({ file }) => file)).size;
  terminal.printToStderr(`${count === 1 ? 'One file' : `${count} files`} could not be loaded (see: rondo check):`);
  for (const item of badFiles.slice(0, MAX_LISTED_ITEMS)) terminal.printToStderr(`  ${describeBadFile(item)}`);
  if (badFiles.length > MAX_LISTED_ITEMS) terminal.printToStderr(`  and ${badFiles.length - MAX_LISTED_ITEMS} more`);
}

/**
 * Warns about the files of a loop: ignored keys in its own and in those of the loops that it calls. If there is no such
 * loop, warns about the files that could not be loaded, which may define it. Other files are for `check` and `list`.
 */
export function warnAboutLoop({ id, version }: LoopReference, definitions: Definitions, terminal: Terminal): void {
  const { registry, badFiles, warnings } = definitions;
  const root = registry.find(id, version);
  if (root === undefined) warnBadFiles(badFiles, terminal);
  const reached = new Set(root === undefined ? [] : [root]);
  for (const { definition } of reached)
    for (const { loopId, loopVersion } of calleesOf(definition.composite)) {
      const callee = registry.find(loopId, loopVersion);
      if (callee !== undefined) reached.add(callee);
    }
  const files = new Set([...reached].map(({ origin }) => origin.file));
  const isConcerned = ({ file }: BadFile): boolean => root === undefined || files.has(file);
  warnIgnoredKeys(warnings.filter(isConcerned), terminal);
}

/** Warns about ignored keys that are probably mistakes: their number and the first of them. */
export function warnIgnoredKeys(warnings: Definitions['warnings'], terminal: Terminal): void {
  const mistakes = warnings.filter(({ mistake }) => mistake);
  if (mistakes.length === 0) return;
  terminal.printToStderr(
    `${mistakes.length === 1 ? 'One key is' : `${mistakes.length} keys are`} ignored (see: rondo check):`,
  );
  for (const item of mistakes.slice(0, MAX_LISTED_ITEMS)) terminal.printToStderr(`  warning: ${describeBadFile(item)}`);
  if (mistakes.length > MAX_LISTED_ITEMS) terminal.printToStderr(`  and ${mistakes.length - MAX_LISTED_ITEMS} more`);
}

/** Describes a problem in one line: file, line, path and reason. */
export function describeBadFile(problem: BadFile): string {
  return sanitizeText(describeProblem(problem));
}
