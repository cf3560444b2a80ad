/**
 * Definitions that could not be loaded. The registry keeps them by id, so that a request for such a loop reports what is
 * wrong with its file, and not only that there is no such loop.
 */

import { LoopError } from '../base/errors.js';
import type { Json } from '../protocol/json.js';
import type { Registry } from './registry.js';

/** One problem of a definition file, with its place as far as it is known. */
export interface DefinitionProblem {
  readonly file: string;
  readonly reason: string;
  /** A JSON Pointer to the member concerned. */
  readonly path?: string;
  /** The one-based line and column, if the position is known. */
  readonly line?: number;
  readonly column?: number;
}

/** A definition that could not be loaded. */
export interface FailedDefinition {
  /** The id of the loop that the file defines or, if the id cannot be read, the name of the file. */
  readonly id: string;
  readonly problems: readonly DefinitionProblem[];
}

const MAX_LISTED_PROBLEMS = 20;

/** Describes a problem in one line: file, line, column, path and reason. */
export function describeProblem({ file, path, line, column, reason }: DefinitionProblem): string {
  const location = line === undefined ? file : `${file}:${line}${column === undefined ? '' : `:${column}`}`;
  return `${location}: ${path ? `${path}: ` : ''}${reason}`;
}

/**
 * Returns DEFINITION_INVALID for a loop that could not be loaded. `subject` begins the message and names the loop;
 * `data` is added to the problems in the data of the error.
 */
export function failedDefinitionError(
  { id, problems }: FailedDefinition,
  subject = `The loop "${id}"`,
  data: { readonly [name: string]: Json } = {},
): LoopError {
  const [first, ...others] = problems;
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  const description = first === undefined ? 'its file is invalid' : describeProblem(first);
  const flaws = problems.slice(0, MAX_LISTED_PROBLEMS).map((problem) => ({ ...problem }));
  const message = `${subject} could not be loaded: ${description}${more}`;
  return new LoopError('DEFINITION_INVALID', message, { loopId: id, ...data, flaws });
}

/**
 * Returns the error for an id that is not registered: DEFINITION_INVALID with the problems of its file if its definition
 * could not be loaded, or else LOOP_NOT_FOUND, which names the modules that could not be loaded and may define it.
 * @param label the loop as it appears in the message; the quoted id by default
 */
export function loopNotFoundError(registry: Registry, id: string, label = `"${id}"`): LoopError {
  const failure = registry.failureOf(id);
  if (failure !== undefined) return failedDefinitionError(failure);
  const modules = registry.failures().flatMap(({ problems }) => problems.slice(0, 1).filter(isModuleProblem));
  const hints = modules
    .slice(0, MAX_LISTED_MODULES)
    .map((problem) => ` A module that may define it could not be loaded: ${describeProblem(problem)}`);
  return new LoopError('LOOP_NOT_FOUND', `There is no loop ${label}.${hints.join('')}`, { loopId: id });
}

const MAX_LISTED_MODULES = 3;

/** True if the file is a module, whose loops are not known before it is imported. A document defines one loop. */
function isModuleProblem({ file }: DefinitionProblem): boolean {
  return !/\.(?:json|toml)$/.test(file);
}
