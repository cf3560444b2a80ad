import { Environment } from '@marcbachmann/cel-js';
import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import { compileCel } from './evaluate.js';
import { CelFailure } from './failure.js';
import { kindOf } from './functions.js';
import { parseCel } from './parse.js';
import { CelSyntaxError } from './syntax.js';

const reference = new Environment({ unlistedVariablesAreDyn: true, homogeneousAggregateLiterals: false });

function ours(text: string, data: JsonObject): unknown {
  try {
    return compileCel(parseCel(text))(data);
  } catch (error) {
    if (error instanceof CelFailure || error instanceof CelSyntaxError) return undefined;
    throw error;
  }
}

function theirs(text: string, data: JsonObject): unknown {
  try {
    return reference.evaluate(text, data);
  } catch {
    return undefined;
  }
}

/** Expressions by the kind of their value. Numbers are doubles, which both evaluators compute alike. */
const kinds = fc.letrec<{ bool: string; number: string; text: string; list: string }>((tie) => {
  const depth = { maxDepth: 3, depthIdentifier: 'differential' };
  const form = (strings: TemplateStringsArray, ...parts: fc.Arbitrary<string>[]): fc.Arbitrary<string> =>
    fc.tuple(...parts).map((texts) => strings.map((one, i) => one + (texts[i] ?? '')).join(''));
  const [bool, number, text, list] = [tie('bool'), tie('number'), tie('text'), tie('list')];
  const order = fc.constantFrom('<', '<=', '>', '>=', '==', '!=');
  const any = fc.oneof(bool, number, text, list, fc.constantFrom('o', 'o.x', 'o.missing', 'none', 'any'));
  return {
    bool: fc.oneof(
      depth,
      fc.constantFrom('true', 'false', 'b', 'o.b', 'has(o.b)', 'has(o.missing)', '"b" in o', 'any'),
      form`(${bool} ${fc.constantFrom('&&', '||', '==', '!=')} ${bool})`,
      form`!${bool}`,
      form`(${number} ${order} ${number})`,
      form`(${text} ${order} ${text})`,
      form`${text}.${fc.constantFrom('contains', 'startsWith', 'endsWith')}(${text})`,
      form`(${any} in ${list})`,
      form`(${list} == ${list})`,
      form`${list}.${fc.constantFrom('all', 'exists', 'exists_one')}(e, ${fc.oneof(bool, fc.constantFrom('e', 'e == n', 'e.x'))})`,
      form`(${bool} ? ${bool} : ${bool})`,
      form`(dyn(${any}) == dyn(${any}))`,
    ),
    number: fc.oneof(
      depth,
      fc.constantFrom('1.0', '2.5', 'n', 'o.n', 'any'),
      form`(${number} ${fc.constantFrom('+', '-', '*')} ${number})`,
      form`double(size(${list}))`,
      form`(-${number})`,
    ),
    text: fc.oneof(
      depth,
      fc.constantFrom('"a"', '""', 's', 'o.s', 'any'),
      form`(${text} + ${text})`,
      form`string(${bool})`,
    ),
    list: fc.oneof(
      depth,
      fc.constantFrom('[]', 'l', 'o.l', 'any'),
      form`[${any}]`,
      form`${list}.filter(e, ${bool})`,
      form`${list}.map(e, ${any})`,
      form`${text}.split(${text})`,
    ),
  };
});

verifies('plan.conditions', 'an expression has the value that the reference implementation computes', () => {
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.boolean(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
  );
  const data = fc.record({
    b: fc.boolean(),
    n: fc.constantFrom(0, 1, 2.5, -3),
    s: fc.constantFrom('', 'a', 'aa', 'b'),
    l: fc.array(fc.oneof(fc.boolean(), fc.constantFrom(1, 2.5, 'a')), { maxLength: 3 }),
    o: fc.record({
      b: fc.boolean(),
      n: fc.integer(),
      s: fc.string(),
      l: fc.array(fc.boolean(), { maxLength: 3 }),
      x: value,
    }),
    any: value,
    none: fc.constant(null),
  });
  let compared = 0;
  fc.assert(
    fc.property(kinds.bool, data, (text, values) => {
      const members = values as unknown as { [name: string]: Json };
      const [own, other] = [ours(text, members), theirs(text, members)];
      // The reference converts a key of any kind to text, so that [] is in {"": 1}.
      const hasKeyTest =
        text.includes(' in ') && [members.any, values.o.x].some((one) => kindOf(one as Json) === 'map');
      if (typeof own !== 'boolean' || typeof other !== 'boolean' || hasKeyTest) return;
      compared++;
      expect(own, `${text} over ${JSON.stringify(members)}`).toBe(other);
    }),
    { numRuns: 3_000 },
  );
  expect(compared, 'too few expressions have a value in both implementations').toBeGreaterThan(500);
});
