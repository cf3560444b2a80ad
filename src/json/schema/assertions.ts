/**
 * The keywords that assert something about the value itself: type, equality, numeric bounds, string length and pattern.
 */

import type { Json } from '../../protocol/json.js';
import { countCharacters } from '../characters.js';
import { jsonEquals } from '../value.js';
import { isMultipleOf } from './multiple-of.js';
import { assertionRule, hasType, type KeywordCompiler, quoteJson, type SchemaCheck, typeCodes } from './rule.js';

const type: KeywordCompiler = (_, value) => {
  const names = (typeof value === 'string' ? [value] : value) as readonly string[];
  const codes = names.map((name) => typeCodes[name] ?? 0);
  const message = `must be ${names.join(' or ')}`;
  const [a = 0, b = 0] = codes;
  if (codes.length === 1) return assertionRule('type', (part) => hasType(a, part), message);
  if (codes.length === 2) return assertionRule('type', (part) => hasType(a, part) || hasType(b, part), message);
  return assertionRule('type', (part) => codes.some((code) => hasType(code, part)), message);
};

function equalityCheck(expected: Json): SchemaCheck {
  if (typeof expected !== 'object' || expected === null) return (value) => value === expected;
  return (value) => jsonEquals(value as Json, expected);
}

const constKeyword: KeywordCompiler = (_, value) =>
  assertionRule('const', equalityCheck(value), `must be ${quoteJson(value)}`);

const enumKeyword: KeywordCompiler = (_, value) => {
  const values = value as readonly Json[];
  const scalars = new Set<unknown>(values.filter((item) => typeof item !== 'object' || item === null));
  const others = values.filter((item) => !scalars.has(item)).map(equalityCheck);
  const names = values.slice(0, 10).map(quoteJson).join(', ');
  const message = `must be one of ${names}${values.length > 10 ? ', …' : ''}`;
  if (others.length === 0) return assertionRule('enum', (item) => scalars.has(item), message);
  return assertionRule('enum', (item) => scalars.has(item) || others.some((check) => check(item)), message);
};

/** Returns the compiler of a keyword for numbers. `relation` precedes the bound in messages. */
function numericKeyword(keyword: string, relation: string, check: (bound: number) => SchemaCheck): KeywordCompiler {
  return (_, bound) => assertionRule(keyword, check(bound as number), `must be ${relation} ${bound}`);
}

/**
 * `minLength`. A text has at most as many characters as code units and at least half as many, so most texts need no
 * counting.
 */
const minLength: KeywordCompiler = (_, value) => {
  const min = value as number;
  const check: SchemaCheck = (text) =>
    typeof text !== 'string' || text.length >= 2 * min || (text.length >= min && countCharacters(text) >= min);
  return assertionRule('minLength', check, `must have at least ${min} characters`);
};

const maxLength: KeywordCompiler = (_, value) => {
  const max = value as number;
  const check: SchemaCheck = (text) =>
    typeof text !== 'string' || text.length <= max || (text.length <= 2 * max && countCharacters(text) <= max);
  return assertionRule('maxLength', check, `must have at most ${max} characters`);
};

const pattern: KeywordCompiler = (context, value) => {
  const linear = context.compilePattern(value as string);
  return assertionRule(
    'pattern',
    (text) => typeof text !== 'string' || linear.test(text),
    `must match the pattern ${quoteJson(value)}`,
  );
};

/** The compilers of these keywords. */
export const assertionKeywords: { readonly [keyword: string]: KeywordCompiler } = {
  type,
  const: constKeyword,
  enum: enumKeyword,
  minimum: numericKeyword('minimum', '>=', (bound) => (value) => typeof value !== 'number' || value >= bound),
  maximum: numericKeyword('maximum', '<=', (bound) => (value) => typeof value !== 'number' || value <= bound),
  exclusiveMinimum: numericKeyword(
    'exclusiveMinimum',
    '>',
    (bound) => (value) => typeof value !== 'number' || value > bound,
  ),
  exclusiveMaximum: numericKeyword(
    'exclusiveMaximum',
    '<',
    (bound) => (value) => typeof value !== 'number' || value < bound,
  ),
  multipleOf: numericKeyword(
    'multipleOf',
    'a multiple of',
    (bound) => (value) => typeof value !== 'number' || isMultipleOf(value, bound),
  ),
  minLength,
  maxLength,
  pattern,
};
