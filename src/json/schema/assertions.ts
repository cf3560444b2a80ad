/** The keywords that look at a value alone: its type, what it equals, numbers and strings. */

import type { Json } from '../../protocol/json.js';
import { characters } from '../characters.js';
import { same } from '../value.js';
import { multiple } from './multiple.js';
import { assertion, type Check, isOf, kinds, type Maker, shown } from './rule.js';

const type: Maker = (_, value) => {
  const names = (typeof value === 'string' ? [value] : value) as readonly string[];
  const codes = names.map((name) => kinds[name] ?? 0);
  const message = `must be ${names.join(' or ')}`;
  const [a = 0, b = 0] = codes;
  if (codes.length === 1) return assertion('type', (part) => isOf(a, part), message);
  if (codes.length === 2) return assertion('type', (part) => isOf(a, part) || isOf(b, part), message);
  return assertion('type', (part) => codes.some((code) => isOf(code, part)), message);
};

function equals(expected: Json): Check {
  if (typeof expected !== 'object' || expected === null) return (value) => value === expected;
  return (value) => same(value as Json, expected);
}

const constant: Maker = (_, value) => assertion('const', equals(value), `must be ${shown(value)}`);

const enumeration: Maker = (_, value) => {
  const values = value as readonly Json[];
  const plain = new Set<unknown>(values.filter((item) => typeof item !== 'object' || item === null));
  const others = values.filter((item) => !plain.has(item)).map(equals);
  const names = values.slice(0, 10).map(shown).join(', ');
  const message = `must be one of ${names}${values.length > 10 ? ', …' : ''}`;
  if (others.length === 0) return assertion('enum', (item) => plain.has(item), message);
  return assertion('enum', (item) => plain.has(item) || others.some((check) => check(item)), message);
};

/** A keyword about numbers: the check for a bound, and how to say it. */
function numeric(keyword: string, words: string, check: (bound: number) => Check): Maker {
  return (_, bound) => assertion(keyword, check(bound as number), `must be ${words} ${bound}`);
}

/** A text has at most as many characters as units and at least half as many: most lengths need no counting. */
const minLength: Maker = (_, value) => {
  const least = value as number;
  const check: Check = (text) =>
    typeof text !== 'string' || text.length >= 2 * least || (text.length >= least && characters(text) >= least);
  return assertion('minLength', check, `must have at least ${least} characters`);
};

const maxLength: Maker = (_, value) => {
  const most = value as number;
  const check: Check = (text) =>
    typeof text !== 'string' || text.length <= most || (text.length <= 2 * most && characters(text) <= most);
  return assertion('maxLength', check, `must have at most ${most} characters`);
};

const pattern: Maker = (site, value) => {
  const linear = site.pattern(value as string);
  return assertion(
    'pattern',
    (text) => typeof text !== 'string' || linear.test(text),
    `must match the pattern ${shown(value)}`,
  );
};

export const assertions: { readonly [keyword: string]: Maker } = {
  type,
  const: constant,
  enum: enumeration,
  minimum: numeric('minimum', '>=', (bound) => (value) => typeof value !== 'number' || value >= bound),
  maximum: numeric('maximum', '<=', (bound) => (value) => typeof value !== 'number' || value <= bound),
  exclusiveMinimum: numeric('exclusiveMinimum', '>', (bound) => (value) => typeof value !== 'number' || value > bound),
  exclusiveMaximum: numeric('exclusiveMaximum', '<', (bound) => (value) => typeof value !== 'number' || value < bound),
  multipleOf: numeric(
    'multipleOf',
    'a multiple of',
    (bound) => (value) => typeof value !== 'number' || multiple(value, bound),
  ),
  minLength,
  maxLength,
  pattern,
};
