// Identities of turns: keys, principals, sessions and call ids that must not be taken for one another.

import { aiSdkLibrary, expect, hostOf, outcome } from './world.mjs';

/** @typedef {import('./world.mjs').World} World */
/** @typedef {{ key?: string, principal?: string, sessionId?: string }} Who */

/** Two requests that are not the same turn. @type {Record<string, [one: Who, other: Who]>} */
const APART = {
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

/** @returns {import('../authority.mjs').Case[]} */
function apart() {
  return Object.entries(APART).map(([name, [one, other]]) => ({
    id: `identity.key.${name}`,
    run: async () => {
      const { host, rondo } = await hostOf();
      const seen = /** @type {string[]} */ ([]);
      const loop = rondo.defineLoop({
        id: 'note',
        input: true,
        output: true,
        tool: (/** @type {any} */ input) => ({ said: seen.push(input.text), text: input.text }),
      });
      const first = await outcome(host.run({ loop, input: { text: 'secret of one' }, ...one }));
      const second = await outcome(host.run({ loop, input: { text: 'secret of one' }, ...other }));
      const [a, b] = /** @type {any[]} */ ([first.ok, second.ok]);
      expect(a?.turnId !== undefined && a.turnId !== b?.turnId, 'two turns, or a refusal', {
        first: a?.turnId,
        second: b?.turnId ?? second.code,
      });
      expect(seen.length === (b === undefined ? 1 : 2), 'no answer of one to be told to the other', seen.length);
    },
  }));
}

/** Requests that cannot be anybody's. @type {Record<string, object>} */
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

/** @returns {import('../authority.mjs').Case[]} */
function malformed() {
  return Object.entries(MALFORMED).map(([name, more]) => ({
    id: `identity.malformed.${name}`,
    run: async () => {
      const { host, rondo } = await hostOf();
      let ran = 0;
      const loop = rondo.defineLoop({ id: 'note', input: true, output: true, tool: () => ({ n: ++ran }) });
      const { code, ok } = await outcome(host.run({ loop, input: {}, ...more }));
      expect(code === 'TypeError' && ran === 0, 'a TypeError, and no turn', { code, ok, ran });
    },
  }));
}

/** Two calls of a tool of the AI SDK, and whether they are one turn. @type {Record<string, [options: object, one: any, other: any, same: boolean]>} */
const list = [{ role: 'user', content: 'x' }];
const CALLS = {
  'same-call-of-one-session': [{ sessionId: 's' }, { toolCallId: 'call_0' }, { toolCallId: 'call_0' }, true],
  'same-list': [{}, { toolCallId: 'call_0', messages: list }, { toolCallId: 'call_0', messages: list }, true],
  'equal-lists': [
    {},
    { toolCallId: 'call_0', messages: [...list] },
    { toolCallId: 'call_0', messages: [...list] },
    false,
  ],
  'list-and-none': [{}, { toolCallId: 'call_0', messages: list }, { toolCallId: 'call_0' }, false],
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

/** @returns {import('../authority.mjs').Case[]} */
function calls() {
  const pairs = Object.entries(CALLS).map(([name, [options, one, other, same]]) => ({
    id: `identity.call.${name}`,
    run: async () => {
      const { toAISDKTool } = await aiSdkLibrary();
      const { host, rondo } = await hostOf();
      let ran = 0;
      const loop = rondo.defineLoop({ id: 'note', input: true, output: true, tool: () => ({ n: ++ran }) });
      const tool = toAISDKTool(loop, { host, ...options });
      await tool.execute({ text: 'x' }, one);
      await tool.execute({ text: 'x' }, other);
      expect(ran === (same ? 1 : 2), same ? 'one turn' : 'two turns', ran);
    },
  }));
  const nobody = [undefined, null, 5, {}, ''].map((found, n) => ({
    id: `identity.call.nobody-${n}`,
    run: async () => {
      const { toAISDKTool } = await aiSdkLibrary();
      const { host, rondo } = await hostOf();
      let ran = 0;
      const loop = rondo.defineLoop({ id: 'note', input: true, output: true, tool: () => ({ n: ++ran }) });
      const tool = toAISDKTool(loop, { host, sessionId: 's', principal: () => found });
      const { code } = await outcome(tool.execute({}, { toolCallId: 'c' }));
      expect(code === 'TypeError' && ran === 0, 'a call of nobody to be refused', { code, ran });
    },
  }));
  return [...pairs, ...nobody];
}

/** Keys on the command line belong to who is named there. @type {Record<string, [one: string[], other: string[]]>} */
const LINES = {
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

/** @returns {import('../authority.mjs').Case[]} */
function lines() {
  return Object.entries(LINES).map(([name, [one, other]]) => ({
    id: `identity.line.${name}`,
    run: async (/** @type {World} */ world) => {
      world.define('echo', { tool: { implementation: 'builtin:echo', safety: 'pure' } });
      const first = await world.json(['run', 'echo', '--key', 'k', '--input', '{"of":"one"}', ...one]);
      const second = await world.json(['run', 'echo', '--key', 'k', '--input', '{"of":"other"}', ...other]);
      expect(first.status === 'ok' && second.output?.of !== 'one', 'no answer of one to be told to the other', second);
      expect(second.turnId !== first.turnId, 'two turns', second.turnId);
    },
  }));
}

/** Approvers on the command line. @returns {import('../authority.mjs').Case[]} */
function approvers() {
  const table = /** @type {Record<string, string[]>} */ ({
    principal: ['--as', 'ada'],
    login: [],
    case: ['--as', 'Bob'],
    blank: ['--as', 'bob '],
    list: ['--as', 'bob,carol'],
    agent: ['--as', 'pay'],
    empty: ['--as', ''],
  });
  return Object.entries(table).map(([name, as]) => ({
    id: `identity.approver.${name}`,
    run: async (/** @type {World} */ world) => {
      world.write('loops/tool.sh', world.shell('A'), 0o755);
      world.define('pay', { tool: { implementation: 'exec:./tool.sh' }, policy: { approval: 'ask' } });
      const { id } = await world.ask('pay', { args: ['--as', 'ada', '--approver', 'bob'] });
      const { code } = await world.rondo(['approve', id, ...as], { trust: true });
      expect(code !== 0 && world.count('A') === 0, 'nobody but bob to answer', { code, ran: world.executed() });
      await world.rondo(['approve', id, '--as', 'bob'], { trust: true });
      expect(world.count('A') === 1, 'bob to answer', world.executed());
    },
  }));
}

export const cases = () => [...apart(), ...malformed(), ...calls(), ...lines(), ...approvers()];
