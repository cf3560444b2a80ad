import fc from 'fast-check';
import { expect } from 'vitest';
import { fullHostedLoop, randomHostedLoop, smallestHostedLoop } from '../../../spec/support/random-hosted-documents.js';
import { verifies } from '../../../spec/verifies.js';
import { LoopError } from '../../base/errors.js';
import { completeTurnGrant } from '../../policy/narrow-grant.js';
import type { Json } from '../../protocol/json.js';
import { hostedLoopDigest, parseHostedLoop } from './hosted-document.js';

interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly flaws: readonly { readonly path: string; readonly reason: string }[];
}

/** Returns how a document is refused; undefined if it is accepted. */
function refusalOf(document: unknown): Refusal | undefined {
  try {
    parseHostedLoop(document);
    return undefined;
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(LoopError);
    const { code, message, data } = thrown as LoopError;
    return { code, message, flaws: (data as unknown as Pick<Refusal, 'flaws'>).flaws };
  }
}

const change = (changes: object): unknown => ({ ...fullHostedLoop, ...changes });
const pathsOf = (document: unknown): readonly string[] => refusalOf(document)?.flaws.map(({ path }) => path) ?? [];

type Fields = { [name: string]: unknown };

/** Values and maps that have no members of their own. */
const OPEN =
  /^\/(?:input|next|grant\/arguments|grant\/review|signals|signals\/[^/]*\/schema)$|\/equals$|\/input$|\/effects$/;

/** Returns the pointers of all members with fixed names. */
function membersOf(value: unknown, path = ''): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  if (OPEN.test(path) && path !== '/signals') return [];
  return Object.entries(value).flatMap(([name, part]) => {
    const inner = membersOf(part, `${path}/${name}`);
    return Array.isArray(value) || path === '/signals' ? inner : [`${path}/${name}`, ...inner];
  });
}

/** Returns a copy of the full document in which one member is changed. */
function edited(pointer: string, edit: (parent: Fields, name: string) => void): unknown {
  const copy = structuredClone(fullHostedLoop) as unknown as Fields;
  const names = pointer.split('/').slice(1);
  const last = names.pop() as string;
  edit(
    names.reduce<Fields>((parent, name) => parent[name] as Fields, copy),
    last,
  );
  return copy;
}

const REQUIRED = new Set(
  (
    '/id /loop /grant /grant/allowedTools /grant/limits /stop /stop/maxTurns /stop/confidence/path /stop/confidence/atLeast ' +
    '/stop/terminal/path /stop/terminal/equals /schedule/cron /schedule/zone /signals/mail/schema /signals/look/schema ' +
    '/signals/mail/verify/method /signals/mail/verify/secret /retry/maxFailures /handoffs/0/target /handoffs/0/when/path ' +
    '/handoffs/0/when/equals /handoffs/0/input /handoffs/0/reason'
  ).split(' '),
);
const members = membersOf(fullHostedLoop);

verifies('hosted.document', 'a document with every member, and the smallest one, are accepted', () => {
  expect(parseHostedLoop(fullHostedLoop)).toEqual(fullHostedLoop);
  expect(parseHostedLoop(smallestHostedLoop)).toEqual(smallestHostedLoop);
  expect(members.length).toBeGreaterThan(60);
  for (const path of REQUIRED) expect(members).toContain(path);
});

verifies('hosted.document', 'a required member that is missing is named', () => {
  for (const path of members) {
    const refusal = refusalOf(edited(path, (parent, name) => delete parent[name]));
    if (path === '/schedule') expect(refusal?.flaws.map((flaw) => flaw.path)).toEqual(['/overlap', '/catchUp']);
    else if (REQUIRED.has(path)) expect(refusal?.message, path).toContain(path.replace(/\/cron$/, ''));
    else expect(refusal, path).toBeUndefined();
  }
});

verifies('hosted.document', 'a misspelt member is named at every level', () => {
  for (const path of members)
    for (const misspelt of ['x', '_']) {
      const document = edited(path, (parent, name) => {
        parent[name + misspelt] = parent[name];
        delete parent[name];
      });
      expect(pathsOf(document), path).toContain(`${path}${misspelt}`);
    }
});

verifies('hosted.document', 'a member of the wrong type is named', () => {
  for (const path of members.filter((item) => !OPEN.test(item) || item === '/signals' || item === '/next')) {
    const document = edited(path, (parent, name) => {
      parent[name] = [[null]];
    });
    expect(
      pathsOf(document).filter((flaw) => flaw === path || flaw.startsWith(`${path}/`)),
      path,
    ).not.toEqual([]);
  }
});

verifies('hosted.document', 'a document without a maximum of turns is refused', () => {
  const reason = 'is missing: a hosted loop always has a maximum of turns';
  expect(refusalOf(change({ stop: {} }))?.flaws).toEqual([{ path: '/stop/maxTurns', reason }]);
  expect(refusalOf(change({ stop: undefined }))?.flaws).toEqual([
    { path: '/stop', reason: `${reason}; { maxTurns = 10 } permits ten` },
  ]);
  for (const maxTurns of [1, 1_000_000]) expect(refusalOf(change({ stop: { maxTurns } }))).toBeUndefined();
  for (const maxTurns of [0, -1, 1.5, null, '5', 1_000_001, 2 ** 53 - 1, 2 ** 53, []])
    expect(pathsOf(change({ stop: { maxTurns } })), String(maxTurns)).toEqual(['/stop/maxTurns']);
});

const refused: readonly [path: string, changes: object][] = [
  ['/id', { id: '.hidden' }],
  ['/id', { id: 'a'.repeat(61) }],
  ['/id', { id: 'a/b' }],
  ['/loop', { loop: '' }],
  ['/loop', { loop: 'triage@1.0.0' }],
  ['/next', { next: 'last' }],
  ['/next', { next: '$[' }],
  ['/next/a', { next: { a: '$.last.' } }],
  ['/next/a', { next: { a: '$.lasst.output' } }],
  ['/next/a', { next: { a: 'optional:$.state' } }],
  ['/next', { next: '$[0]' }],
  ['/turn/contextSkills/0', { turn: { contextSkills: ['../x'] } }],
  ['/turn/contextSkills/0', { turn: { contextSkills: ['receipt:next'] } }],
  ['/turn/contextSkills/1', { turn: { contextSkills: ['receipt:previous', 'receipt:previous'] } }],
  ['/turn/history', { turn: { history: 'all' } }],
  ['/stop/deadline', { stop: { maxTurns: 1, deadline: '2030-02-30T00:00:00Z' } }],
  ['/stop/deadline', { stop: { maxTurns: 1, deadline: '2030-01-31' } }],
  ['/stop/deadline', { stop: { maxTurns: 1, deadline: '2030-01-31T12:00:00' } }],
  ['/stop/deadline', { stop: { maxTurns: 1, deadline: 'tomorrow' } }],
  ['/stop/confidence/path', { stop: { maxTurns: 1, confidence: { path: '$..x', atLeast: 1 } } }],
  ['/stop/confidence/path', { stop: { maxTurns: 1, confidence: { path: '$.x[*]', atLeast: 1 } } }],
  ['/stop/confidence/path', { stop: { maxTurns: 1, confidence: { path: 'x', atLeast: 1 } } }],
  ['/stop/confidence/atLeast', { stop: { maxTurns: 1, confidence: { path: '$.x', atLeast: Number.NaN } } }],
  ['/stop/terminal/path', { stop: { maxTurns: 1, terminal: { path: '$.x[?@.y]', equals: 1 } } }],
  ['/stop/noProgress', { stop: { maxTurns: 1, noProgress: 0 } }],
  ['/schedule', { schedule: { everyMs: 1, delayMs: 1 } }],
  ['/schedule', { schedule: { cron: '* * * * *', zone: 'UTC', everyMs: 5 } }],
  ['/schedule', { schedule: {}, overlap: undefined, catchUp: undefined }],
  ['/schedule', { schedule: { cron: 'often', zone: 'UTC' } }],
  ['/schedule', { schedule: { cron: '* * * * *', zone: 'Moon/Base' } }],
  ['/overlap', { schedule: { delayMs: 5 }, catchUp: undefined }],
  ['/catchUp', { schedule: undefined, overlap: undefined }],
  ['/signals/a b', { signals: { 'a b': { schema: true } } }],
  ['/signals/mail/schema/type', { signals: { mail: { schema: { type: 'objekt' } } } }],
  ['/signals/mail/schema', { signals: { mail: { schema: { requird: ['a'] } } } }],
  ['/signals/mail/schema', { signals: { mail: { schema: 'object' } } }],
  ['/retry/maxFailures', { retry: { maxFailures: 0 } }],
  ['/handoffs', { handoffs: Array(21).fill(fullHostedLoop.handoffs[0]) }],
  ['/handoffs/0/target', { handoffs: [{ ...fullHostedLoop.handoffs[0], target: fullHostedLoop.id }] }],
  ['/handoffs/0/reason', { handoffs: [{ ...fullHostedLoop.handoffs[0], reason: ' ' }] }],
  ['/handoffs/0/input/a', { handoffs: [{ ...fullHostedLoop.handoffs[0], input: { a: '$.output' } }] }],
];

for (const [path, changes] of refused)
  verifies('hosted.document', `it is refused and named: ${JSON.stringify(changes).slice(0, 100)}`, () => {
    expect(pathsOf(change(changes))[0]?.startsWith(path), JSON.stringify(refusalOf(change(changes)))).toBe(true);
    expect(refusalOf(change(changes))?.code).toBe('DEFINITION_INVALID');
  });

verifies('hosted.document', 'two signals of one document have different secrets', () => {
  const verify = { method: 'hmac-sha256', secret: 'env:ONE' };
  const signals = { a: { schema: true, verify }, b: { schema: true, verify } };
  expect(pathsOf(change({ signals }))).toEqual(['/signals/b/verify/secret']);
  for (const secret of ['ONE', 'env:', 'env:1A', 'env:A-B', 'file:x', 'whsec_abc'])
    expect(pathsOf(change({ signals: { a: { schema: true, verify: { ...verify, secret } } } }))).toHaveLength(1);
});

verifies('hosted.document', 'at most 100 signals are declared', () => {
  const signalsOf = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`s${index}`, { schema: true }]));
  expect(refusalOf(change({ signals: signalsOf(100) }))).toBeUndefined();
  expect(pathsOf(change({ signals: signalsOf(101) }))).toEqual(['/signals']);
});

verifies('hosted.document', 'an invalid grant is GRANT_INVALID with its path in the document', () => {
  const grant = { ...fullHostedLoop.grant, limits: { turns: -1 } };
  expect(refusalOf(change({ grant }))).toMatchObject({
    code: 'GRANT_INVALID',
    flaws: [{ path: '/grant/limits/turns' }],
  });
  const turn = { grant: { limits: { turns: -1 } } };
  expect(refusalOf(change({ turn }))).toMatchObject({
    code: 'GRANT_INVALID',
    flaws: [{ path: '/turn/grant/limits/turns' }],
  });
  expect(refusalOf(change({ grant: undefined }))?.code).toBe('DEFINITION_INVALID');
  expect(refusalOf(change({ grant, id: 5 }))).toMatchObject({ code: 'DEFINITION_INVALID' });
  expect(pathsOf(change({ grant, id: 5 }))).toEqual(['/id', '/grant/limits/turns']);
});

verifies(
  'hosted.document',
  'the grant of a turn inherits tools, has no id, and is not compared with that of the loop',
  () => {
    const parsed = (grant: object) => refusalOf(change({ turn: { grant } }));
    expect(parsed({})).toBeUndefined();
    expect(parsed({ allowedTools: ['*'] })).toBeUndefined();
    expect(parsed({ arguments: { 'mail.label': { type: 'object' } } })).toBeUndefined();
    expect(parsed({ id: 'other' })?.flaws).toMatchObject([{ path: '/turn/grant/id' }]);
    expect(parsed({ review: { 'mail.send': 'ask' } })?.flaws).toMatchObject([{ path: '/turn/grant/review/mail.send' }]);
    const { allowedTools: tools, unconfined } = fullHostedLoop.grant;
    const complete = completeTurnGrant({ approvers: ['bob'] }, fullHostedLoop.grant);
    expect(complete).toEqual({ allowedTools: tools, unconfined, limits: {}, approvers: ['bob'] });
    const outer = { allowedTools: ['a', 'b'], limits: {} };
    for (const allowedTools of [5, null, [5], 'a', [['a.*']]]) {
      const broken = { grant: outer, loop: 'a', turn: { grant: { allowedTools } } };
      expect(refusalOf(change(broken))?.flaws).toMatchObject([{ path: expect.stringMatching(/^\/turn\/grant/) }]);
    }
  },
);

verifies('hosted.document', 'the grant of a hosted loop may permit every tool', () => {
  expect(refusalOf({ ...smallestHostedLoop, grant: { allowedTools: ['*'], limits: {} } })).toBeUndefined();
});

verifies('hosted.document', 'every valid document is returned as an equal, frozen copy', () => {
  fc.assert(
    fc.property(randomHostedLoop, (document) => {
      const parsed = parseHostedLoop(document);
      expect(parsed).toEqual(document);
      expect(parseHostedLoop(JSON.parse(JSON.stringify(parsed)))).toEqual(parsed);
      expect(parsed === document || parsed.grant === document.grant).toBe(false);
      const assertFrozen = (value: unknown): void => {
        if (typeof value !== 'object' || value === null) return;
        expect(Object.isFrozen(value)).toBe(true);
        Object.values(value).forEach(assertFrozen);
      };
      assertFrozen(parsed);
    }),
  );
});

verifies('hosted.document', 'the digest of a document does not depend on the order of its members', () => {
  const reversed = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(reversed);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([name, part]) => [name, reversed(part)]),
    );
  };
  fc.assert(
    fc.property(randomHostedLoop, (document) => {
      const digest = hostedLoopDigest(parseHostedLoop(document));
      expect(hostedLoopDigest(parseHostedLoop(reversed(document)))).toBe(digest);
      const other = { ...document, stop: { ...document.stop, maxTurns: document.stop.maxTurns === 1 ? 2 : 1 } };
      expect(hostedLoopDigest(parseHostedLoop(other))).not.toBe(digest);
    }),
  );
});

verifies('hosted.document', 'every message says where and is short', () => {
  const long = 'k'.repeat(500_000);
  for (const document of [change({ [long]: 1 }), change({ id: long }), change({ grant: { [long]: 1 } })]) {
    const refusal = refusalOf(document);
    expect(refusal?.message.length).toBeLessThan(1000);
    expect(refusal?.message).toMatch(/^The document is not a valid hosted loop: at \//);
  }
});

verifies('hosted.document', 'a hostile document is refused, and pollutes nothing', () => {
  let deep: Json = 1;
  for (let level = 0; level < 100_000; level++) deep = [deep];
  const getter = Object.defineProperty({}, 'maxTurns', {
    enumerable: true,
    get: () => {
      throw new TypeError('no');
    },
  });
  const hostile: readonly unknown[] = [
    null,
    [],
    'text',
    undefined,
    change({ input: deep }),
    change({ input: 'x'.repeat(1_048_577) }),
    change({ stop: getter }),
    JSON.parse(JSON.stringify(fullHostedLoop).replace('{', '{"__proto__":{"polluted":1},')),
    JSON.parse(JSON.stringify(fullHostedLoop).replace('"mail":{', '"__proto__":{"schema":true},"mail":{')),
    change({ stop: Object.create({ maxTurns: 5 }) }),
    change({ input: () => 1 }),
    change({ input: new Date(0) }),
    change({ stop: new Proxy({}, { ownKeys: () => [1] as never }) }),
  ];
  for (const document of hostile) expect(refusalOf(document)?.code).toBe('DEFINITION_INVALID');
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

verifies('hosted.document', 'a getter is read once, so the checked value is the one that is used', () => {
  let reads = 0;
  const stop = Object.defineProperty({}, 'maxTurns', { enumerable: true, get: () => ++reads });
  expect(parseHostedLoop(change({ stop })).stop.maxTurns).toBe(1);
});
