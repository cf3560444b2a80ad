import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { LoopError } from '../base/errors.js';
import type { Effect } from '../protocol/body.js';
import type { Grant } from '../protocol/grant.js';
import { parseGrant } from './grant.js';
import { assertAdmitted, assertBodyAdmitted, reviewOf } from './grant-admission.js';

const parse = (more: Partial<Grant>) =>
  parseGrant({ allowedTools: ['files.*', 'act'], limits: {}, ...more }, { isOperators: true });

/** Returns why an effect is refused; undefined if it is admitted. */
function refusal(grant: Partial<Grant>, effect: Partial<Effect>): string | undefined {
  try {
    assertAdmitted(parse(grant), {
      kind: 'tool',
      name: 'act',
      input: {},
      safety: 'once',
      perform: () => null,
      ...effect,
    });
  } catch (thrown) {
    expect((thrown as LoopError).code).toBe('TOOL_NOT_ADMITTED');
    return (thrown as LoopError).message;
  }
  return undefined;
}

/** A body in code that no model chose. */
const CODE = { name: 'act', input: {}, isChosen: false, isCode: true, isRoot: false };

verifies('grant.tools', 'a tool is admitted by exactly its name, however the name is written', () => {
  expect(refusal({}, { name: 'act' })).toBeUndefined();
  expect(refusal({}, { name: 'files.read' })).toBeUndefined();
  const others = [
    'Act',
    'ACT',
    'act ',
    ' act',
    'act\u200b',
    'ａｃｔ',
    'а\u0441t',
    'act%00',
    'act\0',
    '%61ct',
    'act/x',
    'acts',
    'ac',
  ];
  const below = ['files', 'files.a.b', 'files.read:x', 'files..read', 'files.*', '__proto__', 'constructor', '', '*'];
  for (const name of [...others, ...below.filter((one) => one !== 'files.*')])
    expect(refusal({}, { name }), JSON.stringify(name)).toMatch(/not in allowedTools/);
});

verifies('grant.tools', 'every scope that a tool requires must be granted', () => {
  expect(refusal({}, { scopes: ['repo:write'] }), 'without a list every scope is granted').toBeUndefined();
  expect(refusal({ scopes: ['repo:*'] }, { scopes: ['repo:write'] })).toBeUndefined();
  expect(refusal({ scopes: ['repo:*'] }, { scopes: ['repo:write', 'org:read'] })).toMatch(/scope "org:read"/);
  expect(refusal({ scopes: [] }, { scopes: ['repo:write'] })).toMatch(/scope "repo:write"/);
});

verifies('grant.tools', 'arguments must satisfy every schema whose pattern covers the tool', () => {
  const schemas = {
    act: {
      type: 'object',
      properties: { n: { type: 'integer', maximum: 5 } },
      required: ['n'],
      additionalProperties: false,
    },
    '*': { properties: { n: { minimum: 1 } } },
  } as const;
  const tried = (input: unknown) => refusal({ arguments: schemas }, { input });
  expect(tried({ n: 3 })).toBeUndefined();
  const bad = [
    { n: 6 },
    { n: 0 },
    { n: '3' },
    { n: 3, m: 1 },
    {},
    '{"n":3}',
    ['n'],
    null,
    JSON.parse('{"n":3,"__proto__":1}'),
  ];
  for (const input of bad) expect(tried(input), JSON.stringify(input)).toMatch(/arguments do not satisfy/);
});

verifies('grant.review', 'the strictest review of all patterns that cover a tool applies', () => {
  const review = { '*': 'ask', 'files.*': 'blocked', 'files.read': 'ask' } as const;
  expect(reviewOf(parse({ review }), 'files.read')).toBe('blocked');
  expect(reviewOf(parse({ review }), 'act')).toBe('ask');
  expect(reviewOf(parse({}), 'act')).toBeUndefined();
  expect(refusal({ review }, { name: 'files.read' })).toMatch(/review is "blocked"/);
  expect(refusal({ review }, { name: 'act' })).toBeUndefined();
});

verifies(
  'grant.confined',
  'under roots or destinations only what something confines, or what is listed, is admitted',
  () => {
    for (const limited of [{ roots: ['/data'] }, { destinations: [] }]) {
      for (const boundary of ['builtin', 'toolbox', 'http']) expect(refusal(limited, { boundary })).toBeUndefined();
      for (const boundary of ['code', 'mcp', 'command', 'Toolbox', undefined])
        expect(refusal(limited, boundary === undefined ? {} : { boundary }), boundary).toMatch(/nothing confines it/);
      expect(refusal({ ...limited, unconfined: ['act'] }, { boundary: 'mcp' })).toBeUndefined();
      expect(() => assertBodyAdmitted(parse(limited), CODE)).toThrow(LoopError);
      expect(() => assertBodyAdmitted(parse({ ...limited, unconfined: ['act'] }), CODE)).not.toThrow();
    }
    expect(() => assertBodyAdmitted(parse({}), CODE)).not.toThrow();
  },
);

verifies('grant.tools', 'model calls and questions to people are not tools', () => {
  for (const kind of ['model', 'gate']) expect(refusal({ allowedTools: [] }, { kind })).toBeUndefined();
});
