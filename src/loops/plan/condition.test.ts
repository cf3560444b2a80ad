import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import { compileCondition, FILE_EXISTS } from './condition.js';

const evaluate = (text: string, data: JsonObject): boolean => compileCondition(text, '/when').evaluate(data);

function reasonOf(action: () => unknown, code: string): string {
  try {
    action();
  } catch (error) {
    expect(error).toMatchObject({ code });
    return (error as { data: { reason: string } }).data.reason;
  }
  return 'no error';
}

const compileReason = (text: string): string => reasonOf(() => compileCondition(text, '/when'), 'DEFINITION_INVALID');

const ok = (output: Json): JsonObject => ({ result: { ok: true, output, error: null } });
const failed: JsonObject = { result: { ok: false, output: null, error: { code: 'X', message: 'no' } } };

verifies('plan.conditions', 'named conditions test the typed result of a step, not its text', () => {
  const errorsInList = ok({ errors: ['a'] });
  const cases: [name: string, holdsFor: JsonObject[], not: JsonObject[]][] = [
    [
      'success',
      [ok('0 errors'), ok('error!'), ok(null), ok({ errors: [] }), ok({ errors: 0 }), ok({ errors: 'many' })],
      [failed, errorsInList, ok({ errors: 2 }), { result: { output: 1 } }, { result: 'success' }],
    ],
    ['has_errors', [failed, errorsInList, ok({ errors: 0.5 })], [ok('error'), ok([1]), ok({ errors: [] }), ok(null)]],
    [' empty ', [ok(null), ok(''), ok([]), ok({}), { result: {} }], [ok(' '), ok(0), ok(false), ok([null])]],
    ['contains:done', [ok('all done.'), ok({ a: ['done'] })], [ok('Done'), ok(null), ok({})]],
    ['contains:"a":1', [ok({ a: 1 })], [ok({ a: 2 })]],
  ];
  for (const [name, holdsFor, not] of cases) {
    for (const data of holdsFor) expect(evaluate(name, data), `${name} ${JSON.stringify(data)}`).toBe(true);
    for (const data of not) expect(evaluate(name, data), `${name} ${JSON.stringify(data)}`).toBe(false);
  }
  expect(compileCondition('success', '').reads).toEqual([['result']]);
  expect(reasonOf(() => evaluate('success', {}), 'EXECUTION_FAILED')).toBe('result has no value');
});

verifies('plan.conditions', 'file_exists names its path, and the caller supplies the answer', () => {
  const condition = compileCondition('file_exists: out/{input.name}.json', '/when');
  expect(condition).toMatchObject({ file: 'out/{input.name}.json', names: ['input'], reads: [['input', 'name']] });
  expect(condition.evaluate({ [FILE_EXISTS]: true })).toBe(true);
  expect(condition.evaluate({ [FILE_EXISTS]: false })).toBe(false);
  expect(reasonOf(() => condition.evaluate({}), 'EXECUTION_FAILED')).toContain('has no value');
  expect(condition.check({ input: { type: 'object', properties: { names: {} } } })).toContain('did you mean names?');
  expect(compileReason('file_exists:')).toContain('needs a text');
  expect(compileReason('file_exists:{a')).toContain('(column 1)');
});

const data: JsonObject = {
  input: { list: ['a', 'b'], name: 'report.txt', limit: 3, ratio: 0.5, none: null, flags: { strict: true } },
  result: {
    ok: true,
    output: {
      count: 4,
      issues: [
        { severity: 2, file: 'x.ts' },
        { severity: 5, file: 'y.md' },
      ],
    },
  },
  item: { n: 1, tags: [] },
  index: 0,
  iteration: 2,
};

verifies('plan.conditions', 'expressions over JSON numbers, texts and lists have their natural value', () => {
  const holds = [
    'result.output.count > 3',
    'result.output.count >= 4 && result.output.count < 4.5',
    'result.output.count == 4.0 && 1 == 1.0',
    'size(input.list) >= 2',
    'input.list.size() == 2',
    'iteration + 1 == 3',
    'iteration * 2 - 1 == 3',
    'item.n == 1 && item.n + 1 > 1.5',
    'iteration % 2 == 0',
    'result.output.count / 8 == input.ratio',
    '7 / 2 == 3 && size(input.list) / 4 == 0 && 7 / 2.0 == 3.5',
    '-item.n < 0 && -(1 - 2) == 1',
    'input.list[index] == "a" && input.list[iteration - 1] == "b"',
    'input.list == ["a", "b"] && input.list + ["c"] == ["a", "b", "c"]',
    'item == {"tags": [], "n": 1}',
    'item != {"tags": []}',
    '"b" in input.list && !("c" in input.list)',
    'item.n in [1, 2] && "strict" in input.flags',
    'input["name"].endsWith(".txt") && input.name.startsWith("rep") && input.name.contains("port")',
    'input.name.upperAscii() == "REPORT.TXT" && " x ".trim() == "x"',
    'input.name.split(".") == ["report", "txt"] && ["a", "b"].join("-") == "a-b"',
    'size("a😀") == 2 && size({"a": 1}) == 1',
    'input.none == null && input.name != null',
    'has(input.name) && !has(input.missing) && has(input.none)',
    '!has(input.missing) || input.missing > 3',
    'has(input.missing) ? input.missing > 3 : true',
    'result.output.issues.exists(i, i.severity > 4)',
    'result.output.issues.all(i, i.severity > 1 && size(i.file) > 0)',
    'result.output.issues.exists_one(i, i.file.endsWith(".md"))',
    'result.output.issues.filter(i, i.severity > 2).map(i, i.file) == ["y.md"]',
    'result.output.issues.map(i, i.severity > 2, i.severity + iteration) == [7]',
    'result.output.issues.exists(i, input.list.all(l, l < i.file))',
    'input.flags.exists(key, key == "strict")',
    '"a" < "b" && int("3") == 3 && int(2.9) == 2 && double("0.5") == input.ratio',
    'string(item.n) == "1" && bool("true") && dyn(1) == 1',
    'result.output.missing > 1 || result.ok',
    'input.list.exists(x, x.missing || x == "b")',
    'size(input.list) > 1 ? result.ok : false',
    "input.name == 'report.txt' // comment",
    'input.ratio == 5e-1 && 0x10 == 16',
    '1 != 2 && "1" != dyn(1)',
  ];
  for (const text of holds) {
    expect(evaluate(text, data), text).toBe(true);
    expect(evaluate(`!(${text.replace(/\/\/.*/, '')})`, data), `not ${text}`).toBe(false);
  }
});

verifies('plan.conditions', 'a condition without a value fails with its text and what is absent', () => {
  const cases: [text: string, reason: string][] = [
    ['result.output.cuont > 3', 'result.output.cuont is absent'],
    ['result.output["no"] == 1', 'result.output["no"] is absent'],
    ['input.list[2] == "c"', 'input.list[2] is absent'],
    ['input.list[-1] == "c"', 'input.list[-1] is absent'],
    ['input.name.first == "r"', 'input.name.first is absent: the value before it is a string'],
    ['input.list.length > 1', 'input.list.length is absent: the value before it is a list'],
    ['unknown == 1', 'unknown has no value'],
    ['has(input.missing.x)', 'input.missing is absent'],
    ['input.name > 3', '> cannot be applied to a string and a number: input.name > 3'],
    ['input.name + 1 == 3', '+ cannot be applied to a string and a number: input.name + 1'],
    ['1 / index > 1', '1 / index divides by zero'],
    ['size(item.n) > 1', 'item.n is a number, which size() cannot use: size(item.n)'],
    ['input.name', 'its result is a string, not true or false'],
    ['input.name && true', 'input.name is a string, not true or false'],
    ['item.n in input.name', 'input.name is a string, not a list or an object'],
    ['item.n.all(x, x)', 'item.n is a number, not a list'],
    ['int(input.name) == 1', '"report.txt" is not a number'],
  ];
  for (const [text, reason] of cases)
    expect(
      reasonOf(() => evaluate(text, data), 'EXECUTION_FAILED'),
      text,
    ).toBe(reason);
  expect(() => evaluate('result.output.cuont > 3', data)).toThrow(
    'The condition "result.output.cuont > 3" at /when failed: result.output.cuont is absent.',
  );
});

verifies('plan.conditions', 'an invalid condition is refused when it is compiled, with the reason', () => {
  const cases: [text: string, reason: string][] = [
    ['  ', 'it is empty'],
    ['a >', 'the expression is incomplete'],
    ['(a == 1', 'the expression is incomplete'],
    ['a = 1', 'write == to compare'],
    ['a and b', 'write && for "and"'],
    ['a === 1', 'write == or !='],
    ['a == "x', 'unterminated string (column 6)'],
    ['a b', 'unexpected "b" (column 3)'],
    ['a.matches("x+")', 'regular expressions are not supported; write contains(), startsWith()'],
    ['len(a) > 1', 'len() is not supported; write size()'],
    ['sise(a) > 1', 'did you mean size()?'],
    ['frobnicate(a)', 'frobnicate() is not supported; known: has, size'],
    ['a.size(1) > 1', 'size() cannot be called as a method with 1 arguments'],
    ['has(a)', 'has() needs one member'],
    ['a.all(1, true)', 'invalid predicate iteration variable'],
    ['a.b?.c', 'unexpected'],
    ['cel.bind(x, 1, x == 1)', 'bind() is not supported'],
    ['a == b"x"', 'bytes and unsigned integers are not supported'],
    ['a == 1u', 'bytes and unsigned integers are not supported'],
    ['a > 99999999999999999999', 'is too large'],
    ['timestamp(a) > timestamp(b)', 'timestamp() is not supported'],
    ['1 + 2', 'its result is a number, not true or false'],
    ['size(a)', 'its result is a number, not true or false'],
    ['"a" > 1', '> cannot be applied to a string and a number'],
    ['a && 1', '1 is a number, not true or false'],
    ['a.map(x, x)', 'its result is a list, not true or false'],
    ['a.name + "x" + 1 == b', '+ cannot be applied to a string and a number'],
  ];
  for (const [text, reason] of cases) expect(compileReason(text), text).toContain(reason);
});

verifies('plan.conditions', 'the variables and member paths of a condition are known before it runs', () => {
  const condition = compileCondition(
    'result.output.count > 3 && input["a b"].x[0].y == item && !has(input.z) && list.all(i, i.ok || i.n > input.n)',
    '',
  );
  expect(condition.names).toEqual(['result', 'input', 'item', 'list']);
  expect(condition.reads).toEqual([
    ['result', 'output', 'count'],
    ['input', 'a b', 'x'],
    ['item'],
    ['input', 'z'],
    ['list'],
    ['input', 'n'],
  ]);
});

verifies('plan.conditions', 'a condition is checked against the schemas of its variables', () => {
  const issue = { type: 'object', properties: { severity: { type: 'integer' }, file: { type: 'string' } } };
  const types = {
    result: {
      type: 'object',
      properties: {
        ok: { type: 'boolean' },
        output: {
          type: 'object',
          properties: { count: { type: 'number' }, issues: { type: 'array', items: issue }, any: {} },
        },
      },
      additionalProperties: false,
    },
    input: { type: 'object', properties: { name: { type: 'string' } }, additionalProperties: { type: 'number' } },
    open: { type: 'object' },
    anything: true,
    choice: { anyOf: [{ type: 'string' }] },
    iteration: { type: 'integer' },
  } as const;
  const reasonFor = (text: string): string | undefined => compileCondition(text, '').check(types);
  const valid = [
    'success',
    'result.output.count > 3 && iteration + 1 == 3',
    'has(result.output.extra) && result.output.any.x.y == 1',
    'result.output.issues.exists(i, i.severity > 2 && i.file.contains("x"))',
    'result.output.issues[0].severity == 1',
    'input.other > 3 && open.x == 1 && anything.y && choice.z == 2',
    'result.output == null || size(result.output) > 0',
  ];
  for (const text of valid) expect(reasonFor(text), text).toBeUndefined();
  const invalid: [text: string, reason: string][] = [
    ['result.output.cuont > 3', 'result.output.cuont is not produced; did you mean count?'],
    ['result.output["cuont"] > 3', 'result.output["cuont"] is not produced; did you mean count?'],
    ['result.outcome == 1', 'result.outcome is not produced; known: ok, output'],
    ['has(result.outpt)', 'has(result.outpt) is not produced; did you mean output?'],
    ['reslt.ok', 'reslt is not readable here; did you mean result?'],
    ['missing.x == 1', 'missing is not readable here; readable: result, input, open, anything, choice, iteration'],
    ['sucess', 'sucess is not readable here; did you mean success?'],
    ['!success', 'success can only be a condition by itself; write result.ok'],
    ['result.output.issues.exists(i, i.severty > 2)', 'i.severty is not produced; did you mean severity?'],
    ['result.output.issues.length > 0', 'result.output.issues.length: a list has no member length; write size()'],
    ['result.output.count == "3"', 'result.output.count == "3" compares a number with a string'],
    ['result.output.count + "x" == "3x"', '+ cannot be applied to a number and a string'],
    ['result.output.count', 'its result is a number, not true or false'],
    ['input.name > 3', '> cannot be applied to a string and a number'],
    ['"x" in input.name', 'input.name is a string, not a list or an object; write contains()'],
    ['size(iteration) > 1', 'iteration is a number, which size() cannot use'],
    ['!iteration', 'iteration is a number, not true or false'],
    ['iteration.all(x, x)', 'iteration is a number, not a list or an object'],
  ];
  for (const [text, reason] of invalid) expect(reasonFor(text), text).toContain(reason);
});

verifies('plan.conditions', 'embedded code is refused with the equivalent expression', () => {
  const cases: [text: string, suggestion: string][] = [
    ['python:len(context.errors) > 0', 'write size(context.errors) > 0'],
    ['python: not done and x == True', 'write !done && x == true'],
    ['python:not x == 1 or y is None', 'write !(x == 1) || y == null'],
    ['py:x is not None', 'write x != null'],
    ['python:"a and b" in names', 'write "a and b" in names'],
    ['python:x not in names', 'write !(x in names)'],
    ['python:name.lower().startswith("x")', 'write name.lowerAscii().startsWith("x")'],
    ['js:result.output.errors.length === 0', 'write size(result.output.errors) == 0'],
    ['javascript: a !== null && b.includes("x")', 'write a != null && b.contains("x")'],
    ['lua:#errors ~= 0 or x == nil', 'write size(errors) != 0 || x == null'],
    ['sh:test -f out.json', 'write file_exists:out.json'],
    ['bash:[ -e "a b" ]', 'write file_exists:a b'],
    ['eval:os.system("rm")', 'plugin = "for-each" and source = "system"'],
    ['python:find_issues()', 'use a step with plugin = "for-each" and source = "find-issues"'],
    ['js:findIssues(x)', 'source = "find-issues"'],
    ['python:[x for x in y]', 'write an expression such as size(result.output.errors) > 0'],
  ];
  for (const [text, suggestion] of cases) {
    expect(compileReason(text), text).toContain(suggestion);
    expect(compileReason(text), text).toContain('is never run');
  }
});
