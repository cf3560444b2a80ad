// Random grants, effects and chains of derived grants, for property tests.

import fc from 'fast-check';
import { isNamePermitted } from '../../src/policy/grant-names.js';
import type { Effect } from '../../src/protocol/body.js';
import type { Grant, GrantLimits } from '../../src/protocol/grant.js';

const segment = fc.constantFrom('a', 'b', 'files', 'read', 'x1');
const name = fc.array(segment, { minLength: 1, maxLength: 3 }).map((segments) => segments.join('.'));
const pattern = fc.oneof(
  name,
  name.map((prefix) => `${prefix}.*`),
);
const patterns = fc.array(pattern, { maxLength: 4 });
const limit = fc.nat(6);
const limits: fc.Arbitrary<GrantLimits> = fc.record(
  {
    turns: limit,
    modelRounds: limit,
    outputTokens: limit,
    costMicros: limit,
    depth: limit,
    effects: fc.oneof(limit, fc.dictionary(name, limit, { maxKeys: 2, noNullPrototype: true })),
  },
  { requiredKeys: [] },
);
const schema = fc.constantFrom(true, false, { type: 'object' }, { properties: { n: { maximum: 3 } } } as const);
const root = fc.constantFrom('/', '/data', '/data/in', '/data/in/deep', '/database', '/srv');
const host = fc.constantFrom(
  'example.com',
  '*.example.com',
  'a.example.com',
  '*.a.example.com',
  'example.com:8443',
  'a.example.com:443',
  'a.example.com:8443',
  'http://a.example.com',
  'notexample.com',
  '127.0.0.1:80',
);

/** Returns a grant that permits every tool for which it has a rule. */
function permittingItsRules(grant: Grant): Grant {
  const { limits: counted, arguments: rules = {}, review = {}, unconfined = [] } = grant;
  const effects = typeof counted.effects === 'object' ? Object.keys(counted.effects) : [];
  const ruled = [...effects, ...Object.keys(rules), ...Object.keys(review), ...unconfined];
  const missing = ruled.filter((tool) => !isNamePermitted(grant.allowedTools, tool));
  return { ...grant, allowedTools: [...grant.allowedTools, ...new Set(missing)] };
}

/** A random grant, without a bare `*`. */
export const randomGrant: fc.Arbitrary<Grant> = fc
  .record(
    {
      allowedTools: patterns,
      limits,
      scopes: patterns,
      arguments: fc.dictionary(pattern, schema, { maxKeys: 2, noNullPrototype: true }),
      review: fc.dictionary(fc.oneof(pattern, fc.constant('*')), fc.constantFrom('ask' as const, 'blocked' as const), {
        maxKeys: 2,
        noNullPrototype: true,
      }),
      roots: fc.array(root, { maxLength: 3 }),
      destinations: fc.array(host, { maxLength: 3 }),
      unconfined: fc.array(name, { maxLength: 3 }),
      approvers: fc.array(fc.constantFrom('ada', 'bob', 'eve'), { maxLength: 3 }),
      expiresAt: fc.integer({ min: 0, max: 9 }).map((second) => `2030-01-01T00:00:0${second}Z`),
    },
    { requiredKeys: ['allowedTools', 'limits'] },
  )
  .map((grant) => permittingItsRules(grant as Grant));

/** A random effect of a tool. */
export const randomEffect: fc.Arbitrary<Effect> = fc
  .record({
    name,
    scopes: fc.array(name, { maxLength: 2 }),
    input: fc.constantFrom({ n: 1 }, { n: 5 }, 'text', null),
    boundary: fc.constantFrom('code', 'builtin', 'toolbox', 'http', 'mcp', undefined),
  })
  .map(({ boundary, ...effect }) => ({
    kind: 'tool',
    safety: 'once',
    perform: () => null,
    ...effect,
    ...(boundary !== undefined && { boundary }),
  })) as fc.Arbitrary<Effect>;

/** A random URL, some of which are destinations of random grants. */
export const randomUrl: fc.Arbitrary<URL> = fc
  .record({
    scheme: fc.constantFrom('https', 'https', 'http'),
    host: fc.constantFrom('example.com', 'a.example.com', 'b.a.example.com', 'notexample.com', '127.0.0.1'),
    port: fc.constantFrom('', '', ':8443', ':80', ':443'),
  })
  .map(({ scheme, host: hostname, port }) => new URL(`${scheme}://${hostname}${port}/path`));

/** A random path, some of which are inside the roots of random grants. */
export const randomPath: fc.Arbitrary<string> = fc
  .tuple(root, fc.constantFrom('', '/x', 'x', '/in', '/in/deep/x'))
  .map(([directory, rest]) => `${directory === '/' ? '' : directory}${rest}` || '/');

/** Random choices of which members of a grant a derived grant narrows, and how far. */
export const randomNarrowing = fc.array(fc.nat(3), { minLength: 12, maxLength: 12 });

/** Returns a document that permits no more than `grant`: some members are absent, some are narrowed. */
export function narrowed(grant: Grant, [...choices]: readonly number[]): Grant {
  const choose = (): number => choices.shift() ?? 0;
  const sublist = (list: readonly string[]): readonly string[] => {
    const choice = choose();
    return choice === 0 ? list : list.filter((_, index) => index % 3 !== choice - 1);
  };
  const part = (list: readonly string[] | undefined): readonly string[] | undefined =>
    choose() === 0 || list === undefined ? undefined : sublist(list);
  const lower = (value: number): number => Math.max(0, value - choose());
  const numbers = Object.entries(grant.limits).flatMap(([counter, value]) =>
    typeof value === 'number' ? [[counter, lower(value)]] : [],
  );
  const allowedTools = sublist(grant.allowedTools).map((tool) => (choose() === 1 ? tool.replace(/\.\*$/, '.a') : tool));
  const optional = {
    unconfined: part(grant.unconfined)?.filter((tool) => isNamePermitted(allowedTools, tool)),
    scopes: part(grant.scopes),
    roots: part(grant.roots)?.map((path) => (choose() === 1 && path !== '/' ? `${path}/below` : path)),
    destinations: part(grant.destinations),
    approvers: part(grant.approvers),
  };
  return {
    allowedTools,
    limits: Object.fromEntries(numbers),
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)),
  } as Grant;
}
