import fc from 'fast-check';
import { expect } from 'vitest';
import { randomGrant } from '../../spec/support/random-grants.js';
import { verifies } from '../../spec/verifies.js';
import { LoopError } from '../base/errors.js';
import { matchesDestination } from '../base/permits.js';
import { grantDigest, parseGrant } from './grant.js';
import { assertNamesKnown } from './grant-names.js';

const parse = (grant: unknown, isOperators = false) => parseGrant(grant, { isOperators });
const base = { allowedTools: [], limits: {} };

/** Returns the path that the refusal of a document names. */
function refusedAt(document: unknown): unknown {
  try {
    parse(document);
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(LoopError);
    const { code, data } = thrown as LoopError;
    expect(code).toBe('GRANT_INVALID');
    return (data as { path: string }).path;
  }
  return 'accepted';
}

verifies('grant.document', 'every valid grant is accepted', () => {
  fc.assert(
    fc.property(randomGrant, (grant) => {
      expect(parse(grant).allowedTools).toEqual(grant.allowedTools);
    }),
  );
});

verifies('grant.document', 'a member that is unknown, misspelled or of a prototype is refused and named', () => {
  const unknown = ['limit', 'AllowedTools', 'allowed_tools', 'tools', '__proto__', 'constructor', 'toString', ' id'];
  for (const member of unknown) {
    const withMember = (object: object) => JSON.parse(JSON.stringify(object).replace(/^\{/, `{"${member}":1,`));
    expect(refusedAt(withMember(base))).toBe(`/${member}`);
    expect(refusedAt({ ...base, limits: withMember({ turns: 1 }) })).toBe(`/limits/${member}`);
  }
  fc.assert(
    fc.property(randomGrant, fc.string({ minLength: 12, maxLength: 20 }), (grant, member) => {
      expect(refusedAt({ ...grant, [member]: true })).toBe(`/${member}`);
    }),
  );
});

const refused: readonly [path: string, document: unknown][] = [
  ['', null],
  ['', []],
  ['', 'all'],
  ['/allowedTools', { limits: {} }],
  ['/limits', { allowedTools: [] }],
  ['/allowedTools', { ...base, allowedTools: 'act' }],
  ['/allowedTools/0', { ...base, allowedTools: [['act']] }],
  ['/allowedTools/1', { ...base, allowedTools: ['act', 'a..b'] }],
  ['/allowedTools', { ...base, allowedTools: Array(1001).fill('act') }],
  ['/id', { ...base, id: '' }],
  ['/id', { ...base, id: '../x' }],
  ['/scopes/0', { ...base, scopes: ['repo:*:x'] }],
  ['/arguments/act', { ...base, arguments: { act: { type: 'nothing' } } }],
  ['/arguments/act', { ...base, arguments: { act: { propertys: { path: { const: '/srv' } } } } }],
  ['/arguments/act', { ...base, arguments: { act: { anyOf: [{ items: { maxLenght: 3 } }] } } }],
  ['/arguments/act@1.0.0', { ...base, arguments: { 'act@1.0.0': true } }],
  ['/review/act@1.0.0', { ...base, review: { 'act@1.0.0': 'blocked' } }],
  ['/limits/effects/act@1.0.0', { ...base, limits: { effects: { 'act@1.0.0': 0 } } }],
  ['/limits/effects/*', { ...base, limits: { effects: { '*': 0 } } }],
  ['/limits/effects/an act', { ...base, limits: { effects: { 'an act': 0 } } }],
  ['/expiresAt', { ...base, expiresAt: '2026-02-30T00:00:00Z' }],
  ['/expiresAt', { ...base, expiresAt: '2026-02-28T24:00:00Z' }],
  ['/destinations/0', { ...base, destinations: ['*.http://example.com'] }],
  ['/arguments/a*', { ...base, arguments: { 'a*': true } }],
  ['/arguments', { ...base, arguments: [] }],
  ['/review/act', { ...base, review: { act: 'always_allow' } }],
  ['/review/act', { ...base, review: { act: true } }],
  ['/limits/turns', { ...base, limits: { turns: -1 } }],
  ['/limits/turns', { ...base, limits: { turns: 1.5 } }],
  ['/limits/turns', { ...base, limits: { turns: '5' } }],
  ['/limits/turns', { ...base, limits: { turns: null } }],
  ['/limits/turns', { ...base, limits: { turns: Number.NaN } }],
  ['/limits/turns', { ...base, limits: { turns: Number.POSITIVE_INFINITY } }],
  ['/limits/effects', { ...base, limits: { effects: [] } }],
  ['/limits/effects', { ...base, limits: { effects: null } }],
  ['/limits/effects/a.*', { ...base, limits: { effects: { 'a.*': 1 } } }],
  ['/limits/effects/act', { ...base, limits: { effects: { act: -1 } } }],
  ['/roots/0', { ...base, roots: ['data'] }],
  ['/roots/0', { ...base, roots: ['/data/../etc'] }],
  ['/roots/0', { ...base, roots: ['/data/'] }],
  ['/destinations/0', { ...base, destinations: ['*'] }],
  ['/destinations/0', { ...base, destinations: ['https://user@example.com'] }],
  ['/destinations/0', { ...base, destinations: ['a.*.com'] }],
  ['/unconfined/0', { ...base, unconfined: ['a.*'] }],
  ['/unconfined/0', { ...base, unconfined: ['*'] }],
  ['/approvers/0', { ...base, approvers: [' '] }],
  ['/expiresAt', { ...base, expiresAt: 'tomorrow' }],
  ['/expiresAt', { ...base, expiresAt: '2030-01-01' }],
  ['/expiresAt', { ...base, expiresAt: 1e12 }],
];

verifies('grant.document', `each of ${refused.length} bad documents is refused with the path of its problem`, () => {
  for (const [path, document] of refused) expect(refusedAt(document), JSON.stringify(document)).toBe(path);
});

const ALLOWED = ['act', 'files.*', 'web:*', 'a.b.c'];

/** Documents with a rule for one name, by the path of the rule. */
function rulesFor(name: string): readonly (readonly [path: string, more: object])[] {
  const byPattern = [
    [`/review/${name}`, { review: { [name]: 'blocked' } }],
    [`/arguments/${name}`, { arguments: { [name]: true } }],
  ] as const;
  if (name.endsWith('*')) return byPattern;
  const counted = [`/limits/effects/${name}`, { limits: { effects: { [name]: 0 } } }] as const;
  return [...byPattern, counted, ['/unconfined/0', { unconfined: [name] }]];
}

verifies('grant.document', 'a rule for a name that the grant does not permit is refused and named', () => {
  for (const name of ['atc', 'file.read', 'files', 'files.a.b', 'files:a', 'web.a', 'a.b', 'a.*', 'files.a.*', 'act.*'])
    for (const [path, more] of rulesFor(name)) {
      expect(refusedAt({ ...base, allowedTools: ALLOWED, ...more }), path).toBe(path);
      expect(() => parse({ ...base, allowedTools: ALLOWED, ...more })).toThrow(`"${name}"`);
    }
  for (const name of ['act', 'files.read', 'files.*', 'web:a', 'a.b.c', 'a.b.*'])
    for (const [path, more] of rulesFor(name))
      expect(refusedAt({ ...base, allowedTools: ALLOWED, ...more }), path).toBe('accepted');
  for (const more of [{ review: { '*': 'ask' } }, { arguments: { '*': true } }])
    expect(refusedAt({ ...base, ...more }), 'all tools').toBe('accepted');
});

verifies('grant.document', 'a name that only a pattern permits must be that of a known loop', () => {
  const known = ['files.read', 'deep.files.read'];
  const check = (allowedTools: readonly string[], more: object) => () =>
    assertNamesKnown(parse({ ...base, allowedTools, ...more }, true), (matches) => known.some(matches));
  for (const allowedTools of [['files.*'], ['*']])
    for (const name of ['files.raed', 'files.write'])
      for (const [path, more] of rulesFor(name)) {
        expect(check(allowedTools, more), path).toThrow(`list "${name}" itself in allowedTools`);
        expect(check([...allowedTools, name], more), 'a tool that is not registered here').not.toThrow();
      }
  for (const [, more] of rulesFor('files.read')) expect(check(['*'], more)).not.toThrow();
  for (const [, more] of rulesFor('flies.*')) expect(check(['*'], more)).toThrow('no registered loop');
  for (const [, more] of rulesFor('files.*')) expect(check(['*'], more)).not.toThrow();
  for (const [, more] of rulesFor('web.*')) expect(check(['web.*'], more), 'an entry itself').not.toThrow();
  for (const [, more] of rulesFor('*')) expect(check(['web.*'], more), 'all tools').not.toThrow();
});

verifies('grant.document', 'only a grant of the operator may contain a bare wildcard', () => {
  for (const member of ['allowedTools', 'scopes']) {
    expect(refusedAt({ ...base, [member]: ['*'] })).toBe(`/${member}/0`);
    expect(() => parse({ ...base, [member]: ['*'] }, true)).not.toThrow();
  }
});

verifies('grant.document', 'the digest of a grant depends on its content and not on the order of its members', () => {
  const grant = { allowedTools: ['a'], limits: { turns: 1, depth: 2 } };
  expect(grantDigest({ limits: { depth: 2, turns: 1 }, allowedTools: ['a'] })).toBe(grantDigest(grant));
  expect(grantDigest({ ...grant, limits: { turns: 2, depth: 2 } })).not.toBe(grantDigest(grant));
});

verifies('grant.document', 'a schema of arguments may have all keywords of JSON Schema', () => {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $comment: 'any',
    title: 'a path',
    $defs: { path: { type: 'string', format: 'uri', pattern: '^/', default: '/' } },
    properties: { path: { $ref: '#/$defs/path' }, pattern: { enum: [1] }, unknown: true },
    required: ['path'],
    dependentRequired: { path: ['pattern'] },
    if: { minProperties: 1 },
    else: { additionalProperties: false },
    prefixItems: [{ const: { anything: 1 } }],
    unevaluatedProperties: false,
  };
  expect(refusedAt({ allowedTools: ['act'], limits: {}, arguments: { act: schema } })).toBe('accepted');
});

verifies('grant.confined', 'a destination below a host matches its port', () => {
  const matches = (entry: string, url: string) => matchesDestination(entry, new URL(url));
  expect(matches('*.example.com:8443', 'https://a.example.com:8443/')).toBe(true);
  expect(matches('*.Example.com', 'https://a.b.example.com/')).toBe(true);
  for (const url of ['https://a.example.com/', 'https://example.com:8443/', 'https://badexample.com:8443/'])
    expect(matches('*.example.com:8443', url), url).toBe(false);
  expect(matches('*.example.com', 'https://a.example.com:8443/')).toBe(false);
});
