/** Compiles filter expressions of JSONPath. A missing value is undefined; RFC 9535 calls it Nothing. */
import type { JSONPathQuery } from 'json-p3';
import { LoopError } from '../../base/errors.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import { countCharacters } from '../characters.js';
import { jsonPathPattern } from '../linear-pattern.js';
import { jsonP3 } from './json-p3.js';
import type { CompiledQuery } from './query.js';
import type { PathSearch } from './search.js';

const expressionTypes = () => jsonP3().jsonpath.expressions;

type ExpressionTypes = ReturnType<typeof expressionTypes>;
type Expression = InstanceType<ExpressionTypes['FilterExpression']>;
type FunctionCall = InstanceType<ExpressionTypes['FunctionExtension']>;
type FilterTest = (current: Json, search: PathSearch) => boolean;
type FilterValue = (current: Json, search: PathSearch) => Json | undefined;
type CompileQuery = (query: JSONPathQuery) => CompiledQuery;
/** How many characters of a string cost as much time as visiting one value. */
const CHARS_PER_VISIT = 32;

/** Compiles a filter expression to a test. `compile` compiles the queries in it. */
export function compileFilter(expression: Expression, compile: CompileQuery): FilterTest {
  if (expression instanceof expressionTypes().LogicalExpression) return compileFilter(expression.expression, compile);
  if (expression instanceof expressionTypes().PrefixExpression) {
    const test = compileFilter(expression.right, compile);
    return (current, search) => !test(current, search);
  }
  if (expression instanceof expressionTypes().InfixExpression) return compileInfix(expression, compile);
  if (expression instanceof expressionTypes().FilterQuery) {
    const nodes = compileNodes(expression, compile);
    return (current, search) => nodes(current, search).length > 0;
  }
  if (expression instanceof expressionTypes().FunctionExtension) return compileMatch(expression, compile);
  throw new Error('The parser returned a filter expression that RFC 9535 does not define.');
}

function compileInfix(expression: InstanceType<ExpressionTypes['InfixExpression']>, compile: CompileQuery): FilterTest {
  const { operator, left, right } = expression;
  if (operator === '&&' || operator === '||') {
    const [a, b] = [compileFilter(left, compile), compileFilter(right, compile)];
    if (operator === '&&') return (current, search) => a(current, search) && b(current, search);
    return (current, search) => a(current, search) || b(current, search);
  }
  const [a, b] = [compileValue(left, compile), compileValue(right, compile)];
  return (current, search) => compareValues(a(current, search), operator, b(current, search), search);
}

function compareValues(a: Json | undefined, operator: string, b: Json | undefined, search: PathSearch): boolean {
  switch (operator) {
    case '==':
      return isEqual(a, b, search);
    case '!=':
      return !isEqual(a, b, search);
    case '<':
      return isLess(a, b);
    case '>':
      return isLess(b, a);
    case '<=':
      return isLess(a, b) || isEqual(a, b, search);
    default:
      return isLess(b, a) || isEqual(a, b, search);
  }
}

/** True if two values are equal, or both are missing. Each visited part counts towards the limit of the search. */
function isEqual(a: Json | undefined, b: Json | undefined, search: PathSearch): boolean {
  search.countVisits(typeof a === 'string' ? a.length / CHARS_PER_VISIT : 1);
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const names = Object.keys(a);
  if (Array.isArray(a) !== Array.isArray(b) || names.length !== Object.keys(b).length) return false;
  const [left, right] = [a as JsonObject, b as JsonObject];
  return names.every((name) => Object.hasOwn(right, name) && isEqual(left[name], right[name], search));
}

function isLess(a: Json | undefined, b: Json | undefined): boolean {
  if (typeof a === 'number' && typeof b === 'number') return a < b;
  return typeof a === 'string' && typeof b === 'string' && isBefore(a, b);
}

/** True if `a` sorts before `b` by code points. Surrogates rank above all other code units. */
function isBefore(a: string, b: string): boolean {
  let i = 0;
  while (i < a.length && a.charCodeAt(i) === b.charCodeAt(i)) i += 1;
  const rank = (text: string) => {
    const unit = text.charCodeAt(i);
    return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
  };
  return i < b.length && (i === a.length || rank(a) < rank(b));
}

function compileNodes(expression: Expression, compile: CompileQuery): CompiledQuery {
  if (!(expression instanceof expressionTypes().FilterQuery))
    throw new Error('The parser returned a function argument that is not a query.');
  const query = compile(expression.path);
  if (expression instanceof expressionTypes().RootQuery) return (_, search) => query(search.root, search);
  return query;
}

function compileValue(expression: Expression, compile: CompileQuery): FilterValue {
  if (expression instanceof expressionTypes().NullLiteral) return () => null;
  if (
    expression instanceof expressionTypes().BooleanLiteral ||
    expression instanceof expressionTypes().NumberLiteral ||
    expression instanceof expressionTypes().StringLiteral
  ) {
    const { value } = expression;
    return () => value;
  }
  if (expression instanceof expressionTypes().FunctionExtension) return compileFunction(expression, compile);
  const nodes = compileNodes(expression, compile);
  return (current, search) => nodes(current, search)[0];
}

/** Compiles the functions that return a value: `length`, `count` and `value`. */
function compileFunction({ name, args: [argument] }: FunctionCall, compile: CompileQuery): FilterValue {
  if (argument === undefined) throw new Error(`${name}() was parsed without an argument.`);
  if (name === 'length') {
    const value = compileValue(argument, compile);
    return (current, search) => lengthOf(value(current, search), search);
  }
  const nodes = compileNodes(argument, compile);
  if (name === 'count') return (current, search) => nodes(current, search).length;
  return (current, search) => {
    const values = nodes(current, search);
    return values.length === 1 ? values[0] : undefined;
  };
}

/** Returns the number of characters, items or members of a value; undefined for other values. */
function lengthOf(value: Json | undefined, search: PathSearch): number | undefined {
  if (typeof value === 'string') {
    search.countVisits(value.length / CHARS_PER_VISIT);
    return countCharacters(value);
  }
  if (typeof value !== 'object' || value === null) return undefined;
  return Array.isArray(value) ? value.length : Object.keys(value).length;
}

/**
 * Compiles `match` and `search`. An unsupported pattern in the path makes the path invalid; an unsupported pattern that
 * comes from the document matches nothing.
 */
function compileMatch({ name, args: [subject, source] }: FunctionCall, compile: CompileQuery): FilterTest {
  if (subject === undefined || source === undefined) throw new Error(`${name}() was parsed without its arguments.`);
  const matchesEntireText = name === 'match';
  if (source instanceof expressionTypes().StringLiteral) jsonPathPattern(source.value, matchesEntireText);
  const [text, pattern] = [compileValue(subject, compile), compileValue(source, compile)];
  return (current, search) => {
    const [value, patternSource] = [text(current, search), pattern(current, search)];
    if (typeof value !== 'string' || typeof patternSource !== 'string') return false;
    search.countVisits(1 + value.length / CHARS_PER_VISIT);
    return matchesPattern(patternSource, matchesEntireText, value);
  };
}

function matchesPattern(source: string, matchesEntireText: boolean, text: string): boolean {
  try {
    return jsonPathPattern(source, matchesEntireText).test(text);
  } catch (error) {
    if (error instanceof LoopError) return false;
    throw error;
  }
}
