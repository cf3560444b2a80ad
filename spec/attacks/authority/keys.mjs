// Identities of turns: keys, principals, sessions and call ids that must not be confused with each other.

import { aiSdkLibrary, createHost, expect, outcome } from './fixture.mjs';

/** @typedef {import('./fixture.mjs').AuthorityFixture} AuthorityFixture */
/** @typedef {{ key?: string, principal?: string, sessionId?: string }} TurnIdentity */

/** Pairs of requests for different turns. @type {Record<string, [one: TurnIdentity, other: TurnIdentity]>} */
const DISTINCT_REQUESTS = {
  'separator-in-the-principal': [
    { principal: 'a:b', key: 'c' },
    { principal: 'a', key: 'b:c' },
  ],
  'escape-in-the-principal': [
    { principal: 'a%3Ab', key: 'c' },
    { principal: 'a:b', key: 'c' },
  ],
  'escape-in-the-key': [
    { principal: 'a', key: '%3A' },
    { principal: 'a', key: ':' },
  ],
  'no-principal': [{ key: 'a:c' }, { principal: 'a', key: 'c' }],
  'principal-in-the-key': [{ key: 'ada:k' }, { key: 'k', principal: 'ada' }],
  'case-of-the-principal': [
    { principal: 'ada', key: 'k' },
    { principal: 'Ada', key: 'k' },
  ],
  'blank-after-the-principal': [
    { principal: 'ada', key: 'k' },
    { principal: 'ada ', key: 'k' },
  ],
  'decomposed-principal': [
    { principal: 'jos\u00e9', key: 'k' },
    { principal: 'jose\u0301', key: 'k' },
  ],
  'nul-in-the-principal': [
    { principal: 'ada', key: 'k' },
    { principal: 'ada\u0000', key: 'k' },
  ],
  'zero-width-principal': [
    { principal: 'ada', key: 'k' },
    { principal: 'ad\u200ba', key: 'k' },
  ],
  'the-word-undefined': [{ key: 'k' }, { principal: 'undefined', key: 'k' }],
  'the-word-null': [{ key: 'k' }, { principal: 'null', key: 'k' }],
  'prototype-names': [
    { principal: '__proto__', key: 'k' },
    { principal: 'constructor', key: 'k' },
  ],
  sessions: [
    { key: 'k', sessionId: 's' },
    { key: 'k', sessionId: 't' },
  ],
  'session-and-none': [{ key: 'k', sessionId: 's' }, { key: 'k' }],
  'principals-in-one-session': [
    { principal: 'ada', key: 'k', sessionId: 's' },
    { principal: 'eve', key: 'k', sessionId: 's' },
  ],
  'principal-and-none-in-one-session': [
    { principal: 'ada', key: 'k', sessionId: 's' },
    { key: 'k', sessionId: 's' },
  ],
  'points-in-sessions': [
    { key: 'k', sessionId: 'a.b' },
    { key: 'b.k', sessionId: 'a' },
  ],
  'long-keys': [{ key: 'k'.repeat(999) }, { key: 'k'.repeat(1000) }],
};

/** @returns {import('../runner.mjs').Case[]} */
function keyCases() {
  return Object.entries(DISTINCT_REQUESTS).map(([name, [one, other]]) => ({
    id: `identity.key.${name}`,
    run: async () => {
      const { host, rondo } = await createHost();
      const inputs = /** @type {string[]} */ ([]);
      const loop = rondo.defineLoop({
        id: 'note',
        input: true,
        output: true,
        tool: (/** @type {any} */ input) => ({ count: inputs.push(input.text), text: input.text }),
      });
      const first = await outcome(host.run({ loop, input: { text: 'secret of one' }, ...one }));
      const second = await outcome(host.run({ loop, input: { text: 'secret of one' }, ...other }));
      const [a, b] = /** @type {any[]} */ ([first.ok, second.ok]);
      expect(a?.turnId !== undefined && a.turnId !== b?.turnId, 'two turns, or an error', {
        first: a?.turnId,
        second: b?.turnId ?? second.code,
      });
      expect(
        inputs.length === (b === undefined ? 1 : 2),
        'no result of one request to answer the other',
        inputs.length,
      );
    },
  }));
}

/** Malformed requests. @type {Record<string, object>} */
const MALFORMED = {
  'principal-empty': { principal: '' },
  'principal-blank': { principal: ' \t' },
  'principal-a-number': { principal: 5 },
  'principal-a-list': { principal: ['ada'] },
  'principal-lone-surrogate': { principal: 'a\ud800' },
  'principal-long': { principal: 'x'.repeat(201) },
  'key-empty': { key: '' },
  'key-lone-surrogate': { key: 'a\udc00' },
  'key-long': { key: 'x'.repeat(1001) },
  'session-of-the-runtime': { sessionId: 'rondo:refusals' },
  'session-path': { sessionId: '../s' },
  'session-slash': { sessionId: 'a/b' },
  'session-empty': { sessionId: '' },
  'approvers-empty': { approvers: [] },
  'approvers-a-text': { approvers: 'ada' },
  'approvers-blank': { approvers: ['ada', ' '] },
  'unknown-member': { trusted: true },
};

/** @returns {import('../runner.mjs').Case[]} */
function malformedCases() {
  return Object.entries(MALFORMED).map(([name, more]) => ({
    id: `identity.malformed.${name}`,
    run: async () => {
      const { host, rondo } = await createHost();
      let ran = 0;
      const loop = rondo.defineLoop({ id: 'note', input: true, output: true, tool: () => ({ n: ++ran }) });
      const { code, ok } = await outcome(host.run({ loop, input: {}, ...more }));
      const isRefused = code === 'REQUEST_INVALID' || code === 'TypeError';
      expect(isRefused && ran === 0, 'a refusal and no turn', { code, ok, ran });
    },
  }));
}

const messages = [{ role: 'user', content: 'x' }];
/**
 * Pairs of calls of an AI SDK tool, and whether they are the same turn.
 * @type {Record<string, [options: object, one: any, other: any, isSame: boolean]>}
 */
const CALLS = {
  'same-call-of-one-session': [{ sessionId: 's' }, { toolCallId: 'call_0' }, { toolCallId: 'call_0' }, true],
  'same-list': [{}, { toolCallId: 'call_0', messages }, { toolCallId: 'call_0', messages }, true],
  'equal-lists': [
    {},
    { toolCallId: 'call_0', messages: [...messages] },
    { toolCallId: 'call_0', messages: [...messages] },
    false,
  ],
  'list-and-none': [{}, { toolCallId: 'call_0', messages }, { toolCallId: 'call_0' }, false],
  'other-call': [{ sessionId: 's' }, { toolCallId: 'call_0' }, { toolCallId: 'call_1' }, false],
  'separators-in-the-call': [{ sessionId: 's' }, { toolCallId: 'a:b' }, { toolCallId: 'a%3Ab' }, false],
  'principal-by-context': [
    { sessionId: 's', principal: (/** @type {any} */ call) => call.experimental_context.user },
    { toolCallId: 'call_0', experimental_context: { user: 'ada' } },
    { toolCallId: 'call_0', experimental_context: { user: 'eve' } },
    false,
  ],
  'session-by-context': [
    { sessionId: (/** @type {any} */ call) => call.experimental_context.chat },
    { toolCallId: 'call_0', experimental_context: { chat: 'a' } },
    { toolCallId: 'call_0', experimental_context: { chat: 'b' } },
    false,
  ],
};

/** @returns {import('../runner.mjs').Case[]} */
function toolCallCases() {
  const pairs = Object.entries(CALLS).map(([name, [options, one, other, isSame]]) => ({
    id: `identity.call.${name}`,
    run: async () => {
      const { toAISDKTool } = await aiSdkLibrary();
      const { host, rondo } = await createHost();
      let ran = 0;
      const loop = rondo.defineLoop({ id: 'note', input: true, output: true, tool: () => ({ n: ++ran }) });
      const tool = toAISDKTool(loop, { host, ...options });
      await tool.execute({ text: 'x' }, one);
      await tool.execute({ text: 'x' }, other);
      expect(ran === (isSame ? 1 : 2), isSame ? 'one turn' : 'two turns', ran);
    },
  }));
  const invalidPrincipals = [undefined, null, 5, {}, ''].map((principal, n) => ({
    id: `identity.call.nobody-${n}`,
    run: async () => {
      const { toAISDKTool } = await aiSdkLibrary();
      const { host, rondo } = await createHost();
      let ran = 0;
      const loop = rondo.defineLoop({ id: 'note', input: true, output: true, tool: () => ({ n: ++ran }) });
      const tool = toAISDKTool(loop, { host, sessionId: 's', principal: () => principal });
      const { code } = await outcome(tool.execute({}, { toolCallId: 'c' }));
      expect(['TypeError', 'REQUEST_INVALID'].includes(code) && ran === 0, 'a call without a principal to be refused', {
        code,
        ran,
      });
    },
  }));
  return [...pairs, ...invalidPrincipals];
}

/**
 * Options of two runs with the same key that are different turns.
 * @type {Record<string, [one: string[], other: string[]]>}
 */
const OPTION_PAIRS = {
  'as-other': [
    ['--as', 'ada'],
    ['--as', 'eve'],
  ],
  'as-and-none': [['--as', 'ada'], []],
  'as-case': [
    ['--as', 'ada'],
    ['--as', 'ADA'],
  ],
  'session-other': [
    ['--session', 'a'],
    ['--session', 'b'],
  ],
};

/** @returns {import('../runner.mjs').Case[]} */
function commandLineCases() {
  return Object.entries(OPTION_PAIRS).map(([name, [one, other]]) => ({
    id: `identity.line.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      fixture.define('echo', { tool: { implementation: 'builtin:echo', safety: 'pure' } });
      const first = await fixture.json(['run', 'echo', '--key', 'k', '--input', '{"of":"one"}', ...one]);
      const second = await fixture.json(['run', 'echo', '--key', 'k', '--input', '{"of":"other"}', ...other]);
      expect(first.status === 'ok' && second.output?.of !== 'one', 'no result of one run to answer the other', second);
      expect(second.turnId !== first.turnId, 'two turns', second.turnId);
    },
  }));
}

/** Options of `rondo approve` that do not name the approver `bob`. @returns {import('../runner.mjs').Case[]} */
function approverCases() {
  const answerers = /** @type {Record<string, string[]>} */ ({
    principal: ['--as', 'ada'],
    login: [],
    case: ['--as', 'Bob'],
    blank: ['--as', 'bob '],
    list: ['--as', 'bob,carol'],
    agent: ['--as', 'pay'],
    empty: ['--as', ''],
  });
  return Object.entries(answerers).map(([name, as]) => ({
    id: `identity.approver.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      fixture.write('loops/tool.sh', fixture.shell('A'), 0o755);
      fixture.define('pay', { tool: { implementation: 'exec:./tool.sh' }, policy: { approval: 'ask' } });
      const { id } = await fixture.requestApproval('pay', { args: ['--as', 'ada', '--approver', 'bob'] });
      const { code } = await fixture.rondo(['approve', id, ...as], { trust: true });
      expect(code !== 0 && fixture.count('A') === 0, 'only bob to be able to answer', {
        code,
        ran: fixture.executed(),
      });
      await fixture.rondo(['approve', id, '--as', 'bob'], { trust: true });
      expect(fixture.count('A') === 1, 'bob to be able to answer', fixture.executed());
    },
  }));
}

export const cases = () => [
  ...keyCases(),
  ...malformedCases(),
  ...toolCallCases(),
  ...commandLineCases(),
  ...approverCases(),
];
