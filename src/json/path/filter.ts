/** The expressions of filters. A value that is not there is undefined, which RFC 9535 calls Nothing. */
import type { JSONPathQuery } from 'json-p3';
import { LoopError } from '../../base/errors.js';
import type { Json } from '../../protocol/json.js';
import { characters } from '../characters.js';
import { pathPattern } from '../pattern.js';
import { parser } from './parser.js';
import type { Query } from './query.js';
import type { Search } from './search.js';

const known = () => parser().jsonpath.expressions;

type Known = ReturnType<typeof known>;
type Expression = InstanceType<Known['FilterExpression']>;
type Call = InstanceType<Known['FunctionExtension']>;
type Test = (current: Json, search: Search) => boolean;
type Value = (current: Json, search: Search) => Json | undefined;
type Compile = (query: JSONPathQuery) => Query;
type Fields = { readonly [name: string]: Json };

/** How many characters are read in the time that a value takes. */
const CHARACTERS = 32;

/** Whether an expression holds for a value; `compile` makes the queries in it. */
export function compileFilter(expression: Expression, compile: Compile): Test {
  if (expression instanceof known().LogicalExpression) return compileFilter(expression.expression, compile);
  if (expression instanceof known().PrefixExpression) {
    const test = compileFilter(expression.right, compile);
    return (current, search) => !test(current, search);
  }
  if (expression instanceof known().InfixExpression) return infix(expression, compile);
  if (expression instanceof known().FilterQuery) {
    const nodes = nodesOf(expression, compile);
    return (current, search) => nodes(current, search).length > 0;
  }
  if (expression instanceof known().FunctionExtension) return matching(expression, compile);
  throw new Error('A filter that RFC 9535 does not know was parsed.');
}

function infix(expression: InstanceType<Known['InfixExpression']>, compile: Compile): Test {
  const { operator, left, right } = expression;
  if (operator === '&&' || operator === '||') {
    const [a, b] = [compileFilter(left, compile), compileFilter(right, compile)];
    if (operator === '&&') return (current, search) => a(current, search) && b(current, search);
    return (current, search) => a(current, search) || b(current, search);
  }
  const [a, b] = [valued(left, compile), valued(right, compile)];
  return (current, search) => compare(a(current, search), operator, b(current, search), search);
}

function compare(a: Json | undefined, operator: string, b: Json | undefined, search: Search): boolean {
  switch (operator) {
    case '==':
      return equal(a, b, search);
    case '!=':
      return !equal(a, b, search);
    case '<':
      return isLess(a, b);
    case '>':
      return isLess(b, a);
    case '<=':
      return isLess(a, b) || equal(a, b, search);
    default:
      return isLess(b, a) || equal(a, b, search);
  }
}

/** Whether two values are the same; each part that is looked at counts. */
function equal(a: Json | undefined, b: Json | undefined, search: Search): boolean {
  search.spend(typeof a === 'string' ? a.length / CHARACTERS : 1);
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const names = Object.keys(a);
  if (Array.isArray(a) !== Array.isArray(b) || names.length !== Object.keys(b).length) return false;
  const [left, right] = [a as Fields, b as Fields];
  return names.every((name) => Object.hasOwn(right, name) && equal(left[name], right[name], search));
}

function isLess(a: Json | undefined, b: Json | undefined): boolean {
  if (typeof a === 'number' && typeof b === 'number') return a < b;
  return typeof a === 'string' && typeof b === 'string' && isBefore(a, b);
}

/** By code points: the halves of pairs stand for characters behind all others. */
function isBefore(a: string, b: string): boolean {
  let i = 0;
  while (i < a.length && a.charCodeAt(i) === b.charCodeAt(i)) i += 1;
  const rank = (text: string) => {
    const unit = text.charCodeAt(i);
    return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
  };
  return i < b.length && (i === a.length || rank(a) < rank(b));
}

function nodesOf(expression: Expression, compile: Compile): Query {
  if (!(expression instanceof known().FilterQuery)) throw new Error('A function was given something that is no query.');
  const query = compile(expression.path);
  if (expression instanceof known().RootQuery) return (_, search) => query(search.root, search);
  return query;
}

function valued(expression: Expression, compile: Compile): Value {
  if (expression instanceof known().NullLiteral) return () => null;
  if (
    expression instanceof known().BooleanLiteral ||
    expression instanceof known().NumberLiteral ||
    expression instanceof known().StringLiteral
  ) {
    const { value } = expression;
    return () => value;
  }
  if (expression instanceof known().FunctionExtension) return called(expression, compile);
  const nodes = nodesOf(expression, compile);
  return (current, search) => nodes(current, search)[0];
}

/** The functions that have a value. */
function called({ name, args: [argument] }: Call, compile: Compile): Value {
  if (argument === undefined) throw new Error(`${name}() was parsed without an argument.`);
  if (name === 'length') {
    const value = valued(argument, compile);
    return (current, search) => lengthOf(value(current, search), search);
  }
  const nodes = nodesOf(argument, compile);
  if (name === 'count') return (current, search) => nodes(current, search).length;
  return (current, search) => {
    const found = nodes(current, search);
    return found.length === 1 ? found[0] : undefined;
  };
}

function lengthOf(value: Json | undefined, search: Search): number | undefined {
  if (typeof value === 'string') {
    search.spend(value.length / CHARACTERS);
    return characters(value);
  }
  if (typeof value !== 'object' || value === null) return undefined;
  return Array.isArray(value) ? value.length : Object.keys(value).length;
}

/** `match` and `search`. A pattern in the path itself must be one we can match; one from the document just does not fit. */
function matching({ name, args: [subject, source] }: Call, compile: Compile): Test {
  if (subject === undefined || source === undefined) throw new Error(`${name}() was parsed without its arguments.`);
  const whole = name === 'match';
  if (source instanceof known().StringLiteral) pathPattern(source.value, whole);
  const [text, pattern] = [valued(subject, compile), valued(source, compile)];
  return (current, search) => {
    const [value, written] = [text(current, search), pattern(current, search)];
    if (typeof value !== 'string' || typeof written !== 'string') return false;
    search.spend(1 + value.length / CHARACTERS);
    return matches(written, whole, value);
  };
}

function matches(source: string, whole: boolean, text: string): boolean {
  try {
    return pathPattern(source, whole).test(text);
  } catch (error) {
    if (error instanceof LoopError) return false;
    throw error;
  }
}
