import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { LoopError } from '../../base/errors.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import { compileCondition } from './condition.js';

/** Generous for a loaded machine: without its limits, each of these expressions runs for hours or exhausts memory. */
const MAX_MS = 5_000;

function outcomeOf(text: string, data: JsonObject): string {
  try {
    return String(compileCondition(text, '').evaluate(data));
  } catch (error) {
    if (!(error instanceof LoopError)) throw error;
    return (error.data as { reason: string }).reason;
  }
}

verifies('plan.conditions', 'a condition that would run too long is refused or stopped by its limits', () => {
  const list = Array.from({ length: 10_000 }, (_, index) => index);
  const text = 'a'.repeat(1_000_000);
  const data = { list, long: [...list, 0], text, texts: list.slice(0, 500).map(() => text), deep: nested(100_000) };
  const cases: [expression: string, reason: string][] = [
    ['list.all(x, x >= 0)', 'true'],
    ['long.all(x, x >= 0)', 'long has 10001 elements; the limit is 10000'],
    ['list.all(x, list.all(y, x + y >= 0))', 'more than 1000000 steps'],
    ['list.all(x, x.missing) || true', 'true'],
    ['list.all(x, list.exists(y, y.missing))', 'more than 1000000 steps'],
    ['list.all(x, list.all(y, list.all(z, x + y + z > 0)))', 'more than 2 nested list operations'],
    ['list.map(x, list) == list.map(x, list)', 'more than 1000000 steps'],
    ['list.map(x, list).map(y, y + y).size() > 1', 'more than 1000000 steps'],
    ['list.all(x, text + text != "a")', 'more than 1000000 steps'],
    ['list.all(x, !text.contains("b"))', 'more than 1000000 steps'],
    ['!text.contains(text + "b")', 'more than 1000000 steps'],
    ['texts.join().size() > 1', 'more than 1000000 steps'],
    ['text.split("").all(x, x == "a")', '1000000 elements; the limit is 10000'],
    ['text.split("").join() == text', 'true'],
    ['deep == deep', 'too large or nested too deeply'],
    ['contains:x', 'result has no value'],
    [`${'!'.repeat(3_000)}true`, 'too large or nested too deeply'],
    [`${'('.repeat(1_500)}true${')'.repeat(1_500)}`, 'too large or nested too deeply'],
    [`${'['.repeat(1_500)}`, 'too large or nested too deeply'],
    [`a${'.b'.repeat(1_500)}`, 'too large or nested too deeply'],
    [`true${' && true'.repeat(400)}`, 'too large or nested too deeply'],
    [`true${' && true'.repeat(200)}`, 'true'],
    [`a == "${'x'.repeat(4_000)}"`, 'the limit is 4000'],
    [`python:${'not ('.repeat(700)}`, 'is never run'],
  ];
  for (const [expression, reason] of cases) {
    const start = performance.now();
    expect(outcomeOf(expression, data), expression.slice(0, 80)).toContain(reason);
    expect(performance.now() - start, `${expression.slice(0, 80)} runs too long`).toBeLessThan(MAX_MS);
  }
  expect(outcomeOf('contains:x', { result: { output: nested(100_000) } })).toContain('nested too deeply');
});

function nested(depth: number): Json {
  let value: Json = [];
  for (let i = 0; i < depth; i++) value = [value];
  return value;
}

verifies('plan.conditions', 'nothing but own properties of the data can be read', () => {
  const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', 'prototype'];
  const data = { input: { a: 1 }, list: ['x'], text: 'x' };
  for (const name of names) {
    expect(outcomeOf(`has(input.${name})`, data), name).toBe('false');
    expect(outcomeOf(`"${name}" in input`, data), name).toBe('false');
    for (const read of [`input.${name}`, `input["${name}"]`, `list.${name}`, `text.${name}`, `list["${name}"]`])
      expect(outcomeOf(`${read} == null`, data), read).toMatch(/is absent/);
    expect(outcomeOf(`{"${name}": 1}.${name} == 1`, data), name).toMatch(/^(?:true|.*(?:eserved|unexpected).*)$/);
    expect(outcomeOf(`${name} == 1`, data), name).toMatch(/has no value|reserved/i);
  }
  const own = JSON.parse('{"input": {"__proto__": {"admin": true}, "constructor": 1}}') as JsonObject;
  expect(outcomeOf('has(input.admin)', own)).toBe('false');
  expect(outcomeOf('input.constructor == 1', own)).toBe('true');
  expect(Object.keys(Object.prototype)).toEqual([]);
});

const parts = fc.letrec<{ expression: string }>((tie) => {
  const inner = tie('expression');
  const joined = (...strings: fc.Arbitrary<string>[]): fc.Arbitrary<string> =>
    fc.tuple(...strings).map((texts) => texts.join(''));
  const operator = fc.constantFrom('==', '!=', '<', '>=', '+', '-', '*', '/', '%', '&&', '||', 'in');
  const literal = fc.constantFrom('1', '0', '2.5', '"a"', 'true', 'null', '[]', '{}', 'has(input.a)');
  const variable = fc.constantFrom('input.a', 'result.a', 'result.b', 'item', 'item', 'x', 'input', 'result.output.c');
  const operand = fc.oneof(literal, variable, variable, variable);
  const member = fc.constantFrom('.a', '.b', '["a"]', '[0]', '.output', '.__proto__', '[-1]', '["constructor"]');
  return {
    expression: fc.oneof(
      { maxDepth: 4, depthIdentifier: 'cel' },
      operand,
      joined(operand, member),
      joined(fc.constant('('), inner, fc.constant(' '), operator, fc.constant(' '), inner, fc.constant(')')),
      joined(fc.constantFrom('!', '-', 'size', 'string', 'int'), fc.constant('('), inner, fc.constant(')')),
      joined(
        inner,
        fc.constantFrom('.all', '.exists', '.map', '.filter'),
        fc.constant('(x, '),
        inner,
        fc.constant(')'),
      ),
      joined(inner, fc.constantFrom('.contains(', '.split(', '.join(', '.startsWith('), inner, fc.constant(')')),
      joined(inner, fc.constant(' ? '), inner, fc.constant(' : '), inner),
      joined(fc.constant('['), inner, fc.constant(', '), inner, fc.constant(']')),
      joined(fc.constant('{"a": '), inner, fc.constant('}')),
    ),
  };
});
/** Deep expressions, of which few have a value, and shallow ones. */
const read = fc.constantFrom('input.a', 'result.a', 'result.b', 'item', 'result.output', '1', '"a"', 'true', '[true]');
const shallow = fc.tuple(read, fc.constantFrom('==', '!=', '<', 'in', '&&', '||'), read).map((part) => part.join(' '));
const expressions = fc.oneof(
  parts.expression,
  shallow,
  fc.tuple(shallow, fc.constantFrom('&&', '||', '=='), shallow).map(([a, operator, b]) => `(${a}) ${operator} (${b})`),
);
const json = fc.jsonValue() as fc.Arbitrary<Json>;
const value = fc.oneof(json, fc.boolean(), fc.integer(), fc.constantFrom('', 'a', 'ab'), fc.array(fc.boolean()));
const members = fc.record({ a: value, b: value, output: json });
const dataObjects = fc.record({ input: fc.oneof(json, members), result: members, item: value });

verifies('plan.conditions', 'every condition over every data is true, false or a typed error, always the same', () => {
  let evaluated = 0;
  fc.assert(
    fc.property(expressions, dataObjects, (text, data) => {
      const outcome = outcomeOf(text, data);
      if (outcome === 'true' || outcome === 'false') evaluated++;
      expect(outcomeOf(text, data)).toBe(outcome);
    }),
    { numRuns: 3_000 },
  );
  expect(evaluated, 'no generated condition has a value').toBeGreaterThan(100);
  const named = fc.constantFrom('success', 'has_errors', 'empty', 'contains:a', 'result.output.errors > 0');
  fc.assert(
    fc.property(fc.oneof(fc.string(), named), dataObjects, (text, data) => {
      expect(outcomeOf(text, data)).toBeTypeOf('string');
    }),
  );
});

verifies('plan.conditions', 'the check against any schemas returns a reason or nothing, and never throws', () => {
  const schema = fc.oneof(
    fc.boolean(),
    fc.record({ type: fc.constantFrom('object', 'array', 'string', 'number', 'x'), items: json, properties: json }),
    fc.dictionary(fc.constantFrom('type', 'properties', 'items', 'anyOf'), json),
  );
  const types = fc.dictionary(fc.constantFrom('input', 'result', 'item', 'x'), schema);
  fc.assert(
    fc.property(parts.expression, types, (text, schemas) => {
      let reason: unknown;
      try {
        reason = compileCondition(text, '').check(schemas as { [name: string]: JsonObject });
      } catch (error) {
        reason = (error as LoopError).code === 'DEFINITION_INVALID' ? 'invalid' : error;
      }
      expect(typeof reason === 'string' || reason === undefined, `${text}: ${reason}`).toBe(true);
    }),
    { numRuns: 2_000 },
  );
});
