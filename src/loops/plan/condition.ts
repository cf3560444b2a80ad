/**
 * Conditions of workflows. A named condition tests the result of a step; any other text is an expression of the Common
 * Expression Language (CEL) over the data of the workflow. A condition is compiled and checked when its workflow is
 * loaded, runs no code, and has no effects.
 */
import { LoopError } from '../../base/errors.js';
import { nearestWord } from '../../base/nearest-word.js';
import { isObject, ownProperty } from '../../base/own-property.js';
import { checkCel, checkMemberPath } from '../../json/cel/check.js';
import { compileCel } from '../../json/cel/evaluate.js';
import { CelFailure } from '../../json/cel/failure.js';
import { describeKind, kindOf } from '../../json/cel/functions.js';
import { MAX_EXPRESSION_CHARS, parseCel } from '../../json/cel/parse.js';
import { type CelNode, CelSyntaxError, readPathsOf } from '../../json/cel/syntax.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import type { JsonSchema } from '../../protocol/loop.js';
import { embeddedCodeReason } from './embedded-code.js';
import { compileText } from './placeholders.js';
import { textError } from './words.js';

/** The name under which `evaluate` reads whether the file of a `file_exists` condition exists. */
export const FILE_EXISTS = 'file_exists';

/** A compiled condition. */
export interface Condition {
  readonly text: string;
  /** The variables that it reads. */
  readonly names: readonly string[];
  /** The member paths that it reads, such as `['result', 'output', 'count']`. */
  readonly reads: readonly (readonly string[])[];
  /** The path of `file_exists:PATH`, which may have placeholders. The caller looks for the file. */
  readonly file?: string;
  /**
   * Returns whether the condition holds. The members of `data` are its variables; for `file_exists`, the member of that
   * name is the answer. Throws EXECUTION_FAILED if the data lacks what it reads, or if a limit is reached.
   */
  evaluate(data: JsonObject): boolean;
  /** Returns why it cannot hold for variables with these schemas; undefined if it can. */
  check(types: { readonly [name: string]: JsonSchema }): string | undefined;
}

/** Named conditions, and the expression that is closest to each of them. */
const namedConditions: { readonly [name: string]: { test(result: Json): boolean; readonly expression: string } } = {
  success: { test: (result) => ownProperty(result, 'ok') === true && !hasErrors(result), expression: 'result.ok' },
  has_errors: { test: hasErrors, expression: '!result.ok' },
  empty: { test: isEmpty, expression: 'size(result.output) == 0' },
};
const ARGUMENT = /^(contains|file_exists)\s*:(.*)$/s;

/** True if the step failed, or if its output reports errors as a list or a number. Text is never searched for errors. */
function hasErrors(result: Json): boolean {
  if (ownProperty(result, 'ok') === false) return true;
  const output = ownProperty(result, 'output');
  const errors = isObject(output) ? ownProperty(output, 'errors') : undefined;
  return Array.isArray(errors) ? errors.length > 0 : typeof errors === 'number' && errors > 0;
}

function isEmpty(result: Json): boolean {
  const output = ownProperty(result, 'output') ?? null;
  if (typeof output === 'object' && output !== null) return Object.keys(output).length === 0;
  return output === null || output === '';
}

/**
 * Compiles a condition. Throws DEFINITION_INVALID, with the reason, if it is no valid condition. `where` is its location
 * in the definition, for messages.
 *
 * @example
 * compileCondition('result.output.count > 3', '/states/0/transitions/0/when').evaluate({ result });
 */
export function compileCondition(text: string, where: string): Condition {
  const source = text.trim();
  const invalid = (reason: string): LoopError => textError(`condition ${quote(source)}`, where, reason);
  if (source === '') throw textError('condition', where, 'it is empty');
  if (source.length > MAX_EXPRESSION_CHARS)
    throw invalid(`it has ${source.length} characters; the limit is ${MAX_EXPRESSION_CHARS}`);
  const codeReason = embeddedCodeReason(source);
  if (codeReason !== undefined) throw invalid(codeReason);
  const named = Object.hasOwn(namedConditions, source) ? namedConditions[source] : undefined;
  if (named !== undefined) return resultCondition(source, where, named.test);
  const [, name, argument = ''] = ARGUMENT.exec(source) ?? [];
  if (name !== undefined && argument.trim() === '') throw invalid(`${name}: needs a text after the colon`);
  if (name === 'contains') return resultCondition(source, where, (result) => outputText(result).includes(argument));
  if (name === 'file_exists') return fileCondition(source, where, argument.trim());
  try {
    return celCondition(source, where, parseCel(source));
  } catch (error) {
    if (error instanceof CelSyntaxError) throw invalid(error.message);
    throw error;
  }
}

function quote(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
}

function outputText(result: Json): string {
  const output = ownProperty(result, 'output') ?? null;
  return typeof output === 'string' ? output : JSON.stringify(output);
}

/** Calls a test, and reports its failures as EXECUTION_FAILED with the condition. */
function evaluating(text: string, where: string, test: () => Json): boolean {
  let reason: string;
  try {
    const value = test();
    if (typeof value === 'boolean') return value;
    reason = `its result is ${describeKind(kindOf(value))}, not true or false`;
  } catch (error) {
    if (error instanceof CelFailure) reason = error.message;
    else if (error instanceof RangeError) reason = 'it reads a value that is too large or nested too deeply';
    else throw error;
  }
  const location = where === '' ? '' : ` at ${where}`;
  const message = `The condition ${quote(text)}${location} failed: ${reason}.`;
  throw new LoopError('EXECUTION_FAILED', message, { condition: text, path: where, reason });
}

/** What an undeclared member of a variable is, for messages. */
const describeMissing = (variable: string): string => (variable === 'input' ? 'is not declared' : 'is not produced');

function checkReads(reads: Condition['reads'], types: { readonly [name: string]: JsonSchema }): string | undefined {
  for (const path of reads) {
    const reason = checkMemberPath(path, types, describeMissing);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

function resultCondition(text: string, where: string, test: (result: Json) => boolean): Condition {
  const reads = [['result']];
  return {
    text,
    names: ['result'],
    reads,
    evaluate: (data) =>
      evaluating(text, where, () => {
        const result = ownProperty(data, 'result');
        if (result === undefined) throw new CelFailure('result has no value');
        return test(result);
      }),
    check: (types) => checkReads(reads, types),
  };
}

function fileCondition(text: string, where: string, file: string): Condition {
  const reads = compileText(file, where).placeholders.map((name) => name.split('.'));
  return {
    text,
    names: variablesOf(reads),
    reads,
    file,
    evaluate: (data) =>
      evaluating(text, where, () => {
        const exists = ownProperty(data, FILE_EXISTS);
        if (exists === undefined) throw new CelFailure(`${FILE_EXISTS} has no value`);
        return exists;
      }),
    check: (types) => checkReads(reads, types),
  };
}

function variablesOf(reads: Condition['reads']): readonly string[] {
  return [...new Set(reads.map(([variable = '']) => variable))];
}

function celCondition(text: string, where: string, root: CelNode): Condition {
  const reason = checkCel(root);
  if (reason !== undefined) throw new CelSyntaxError(reason);
  const reads = readPathsOf(root);
  const names = variablesOf(reads);
  const run = compileCel(root);
  return {
    text,
    names,
    reads,
    evaluate: (data) => evaluating(text, where, () => run(data)),
    check: (types) => misusedName(root, names, types) ?? checkCel(root, types, describeMissing),
  };
}

/** Returns the reason for a named condition that is misspelt or part of an expression. */
function misusedName(
  root: CelNode,
  names: readonly string[],
  types: { readonly [name: string]: JsonSchema },
): string | undefined {
  const known = Object.keys(namedConditions);
  for (const name of names) {
    if (Object.hasOwn(types, name)) continue;
    const named = Object.hasOwn(namedConditions, name) ? namedConditions[name] : undefined;
    if (named !== undefined) return `${name} can only be a condition by itself; write ${named.expression}`;
    const nearest = root.kind === 'name' ? nearestWord(name, [...known, ...Object.keys(types)]) : undefined;
    if (nearest !== undefined) return `${name} is not readable here; did you mean ${nearest}?`;
  }
  return undefined;
}
