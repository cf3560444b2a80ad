// Standing grants: schemas that limit nothing or almost nothing, expensive schemas, and calls outside of the scope of a
// grant.

import { renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { createHost, expect, outcome, singleToolAgent, toolsLibrary } from './fixture.mjs';

const schema = {
  '~standard': {
    version: 1,
    vendor: 'x',
    validate: (/** @type {unknown} */ value) => ({ value }),
    jsonSchema: { input: () => ({ type: 'object' }), output: () => ({}) },
  },
};

const CALL = {
  command: 'npm test -- --all',
  amount: 40,
  to: 'ada',
  files: ['a.txt', 'b.txt'],
  deep: { n: 4 },
  flag: true,
};

/** Defines a tool that requires approval. @param {string} [name] @param {string} [description] */
async function definePayTool(name = 'pay', description = 'one') {
  const { loopsTool } = await toolsLibrary();
  const ran = /** @type {any[]} */ ([]);
  const tool = loopsTool({ name, description, inputSchema: schema, execute: (input) => void ran.push(input) });
  return { ran, tool: tool.withApproval('ask') };
}

/**
 * Approves a first call with a standing grant.
 * @param {unknown} standing
 * @param {any} [input]
 * @param {object} [request]
 */
async function approveWithGrant(standing, input = CALL, request = {}) {
  const { ran, tool } = await definePayTool();
  const { host, clock, store } = await createHost();
  const loop = await singleToolAgent(tool);
  const turn = await host.run({ loop, input, sessionId: 's', ...request });
  const [approval] = await host.archive.approvals('s');
  const by = /** @type {any} */ (request).approvers?.[0] ?? 'ada';
  const answer = await outcome(host.answer({ id: approval.id, approved: true, by, standing }));
  if (answer.code === undefined) await host.resume(turn.turnId);
  return { host, clock, store, loop, ran, answer, tool };
}

const props = (/** @type {object} */ properties) => ({ properties });

/** Schemas that limit the values of no argument. They are refused as grants. */
const UNLIMITED = {
  empty: {},
  true: true,
  object: { type: 'object' },
  required: { required: ['command', 'amount'] },
  types: props({ command: { type: 'string' }, amount: { type: 'number' } }),
  annotations: { title: 'all', description: 'all', examples: [CALL], default: CALL },
  'absent-property': props({ nothing: { const: 1 } }),
  'prototype-property': props({ constructor: { const: 1 } }),
  'wrong-type-keyword': props({ command: { maximum: 5 }, amount: { pattern: '^x$' } }),
  'pattern-of-all': props({ command: { pattern: '.*' } }),
  'pattern-empty': props({ command: { pattern: '' } }),
  'pattern-any-start': props({ command: { pattern: '^' } }),
  'pattern-dot-all': props({ command: { pattern: '^[\\s\\S]*$' } }),
  'bound-beyond': props({ amount: { minimum: -1e308, maximum: 1e308 } }),
  'not-false': { not: false },
  'not-const': props({ command: { not: { const: 'rm -rf /' } } }),
  length: props({ command: { maxLength: 10_000 } }),
  counts: props({ files: { minItems: 1, maxItems: 100 } }),
  'members-count': { minProperties: 1 },
  'names-only': { propertyNames: { pattern: '^[a-z]+$' } },
  'additional-false': {
    ...props(Object.fromEntries(Object.keys(CALL).map((key) => [key, true]))),
    additionalProperties: false,
  },
  'any-of-one-open': { anyOf: [props({ amount: { maximum: 50 } }), {}] },
  'any-of-other-arguments': { anyOf: [props({ amount: { maximum: 50 } }), props({ to: { const: 'ada' } })] },
  'one-of-other-arguments': { oneOf: [props({ amount: { maximum: 50 } }), props({ to: { const: 'eve' } })] },
  'if-else': { if: { required: ['amount'] }, else: props({ amount: { maximum: 5 } }) },
  ref: { $ref: '#/$defs/a', $defs: { a: props({ amount: { maximum: 50 } }) } },
  'dynamic-ref': { $dynamicRef: '#a', $defs: { a: { $dynamicAnchor: 'a' } } },
  'pattern-properties': { patternProperties: { '^nothing': { const: 1 } } },
  'items-open': props({ files: { items: true } }),
  'contains-open': props({ files: { contains: true } }),
  'enum-of-nothing-there': props({ nothing: { enum: [1, 2] } }),
  'dependent-schemas': { dependentSchemas: { nothing: props({ amount: { maximum: 1 } }) } },
  // Combinations of keywords that limit no value.
  'pattern-of-all-with-length': props({ command: { pattern: '.*', minLength: 9 } }),
  'pattern-of-all-with-short-length': props({ command: { pattern: '', maxLength: CALL.command.length + 3 } }),
  'pattern-of-all-with-not': props({ command: { pattern: '.*', not: { const: 'QJX 0451' } } }),
  'bound-beyond-with-multiple': props({ amount: { minimum: -1e308, multipleOf: 2 } }),
  'bound-beyond-with-not': props({ amount: { maximum: 1e308, not: { const: Number.MAX_SAFE_INTEGER } } }),
  'items-behind-prefix': props({ files: { prefixItems: [true, true], items: { const: 'x' }, minItems: 2 } }),
  'member-limited-with-count': props({ deep: props({ n: { maximum: 1e308, minimum: -1e308 } }), command: true }),
  'pattern-of-all-and-names': {
    ...props({ to: { pattern: '.*' } }),
    propertyNames: { maxLength: 7 },
    maxProperties: 6,
  },
};

/**
 * Expensive schemas. They may be accepted or refused, but must not block the process.
 * @type {Record<string, () => unknown>}
 */
const EXPENSIVE = {
  'redos-nested': () => props({ command: { pattern: '^(([a-z])+.)+[A-Z]([a-z])+$' } }),
  'redos-alternatives': () => props({ command: { pattern: '^(a|a)*$' } }),
  'redos-backtracking': () => props({ command: { pattern: '(x+x+)+y' } }),
  'redos-bounded': () => props({ command: { pattern: '^(.{1,100}){1,100}$' } }),
  'pattern-long': () => props({ command: { pattern: `^(${'n|'.repeat(20_000)}x)` } }),
  'enum-many': () => props({ command: { enum: [CALL.command, ...Array.from({ length: 50_000 }, (_, n) => `c${n}`)] } }),
  'any-of-many': () => ({ anyOf: Array.from({ length: 20_000 }, (_, n) => props({ amount: { maximum: n + 40 } })) }),
  'any-of-deep': () => {
    let inner = /** @type {object} */ (props({ amount: { maximum: 50 } }));
    for (let n = 0; n < 18; n++) inner = { anyOf: [inner, inner] };
    return inner;
  },
  'all-of-deep': () => {
    let inner = /** @type {object} */ (props({ amount: { maximum: 50 } }));
    for (let n = 0; n < 200; n++) inner = { allOf: [inner] };
    return inner;
  },
  'ref-circle': () => ({ $ref: '#', ...props({ amount: { maximum: 50 } }) }),
  'ref-mutual': () => ({
    $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } },
    allOf: [{ $ref: '#/$defs/a' }],
  }),
  'ref-outside': () => ({ $ref: 'http://127.0.0.1:9/schema', ...props({ amount: { maximum: 50 } }) }),
  'ref-file': () => ({ $ref: 'file:///etc/passwd', ...props({ amount: { maximum: 50 } }) }),
  'unique-items': () => props({ files: { uniqueItems: true, items: { enum: ['a.txt', 'b.txt'] } } }),
};

/** Valid grants, and calls that they do not cover. @type {Record<string, [standing: object, uncoveredCall: object]>} */
const UNCOVERED = {
  'amount-above': [props({ amount: { maximum: 50 } }), { ...CALL, amount: 51 }],
  'amount-absent': [props({ amount: { maximum: 50 } }), { command: 'rm -rf /' }],
  'amount-is-text': [props({ amount: { maximum: 50 } }), { ...CALL, amount: '5000' }],
  'amount-is-null': [props({ amount: { maximum: 50 } }), { ...CALL, amount: null }],
  'amount-in-a-list': [props({ amount: { maximum: 50 } }), { ...CALL, amount: [5000] }],
  'command-is-a-list': [props({ command: { pattern: '^npm test' } }), { ...CALL, command: ['rm', '-rf', '/'] }],
  'command-is-an-object': [
    props({ command: { pattern: '^npm test' } }),
    { ...CALL, command: { toString: 'npm test' } },
  ],
  'command-other': [props({ command: { const: CALL.command } }), { ...CALL, command: `${CALL.command}; rm -rf /` }],
  'command-line-end': [
    props({ command: { pattern: '^npm test -- --all$' } }),
    { ...CALL, command: `${CALL.command}\nrm -rf /` },
  ],
  'command-line-before': [
    props({ command: { pattern: '^npm test -- --all$' } }),
    { ...CALL, command: `rm -rf /\n${CALL.command}` },
  ],
  'files-empty': [props({ files: { items: { enum: ['a.txt', 'b.txt'] } } }), { ...CALL, files: [] }],
  'files-other': [
    props({ files: { items: { enum: ['a.txt', 'b.txt'] } } }),
    { ...CALL, files: ['a.txt', '/etc/passwd'] },
  ],
  'files-a-text': [props({ files: { items: { enum: ['a.txt', 'b.txt'] } } }), { ...CALL, files: '/etc/passwd' }],
  'deep-absent': [props({ deep: props({ n: { maximum: 5 } }) }), { ...CALL, deep: {} }],
  'deep-a-list': [props({ deep: props({ n: { maximum: 5 } }) }), { ...CALL, deep: [{ n: 99 }] }],
  'not-an-object': [props({ amount: { maximum: 50 } }), [5000]],
};

/** @returns {import('../runner.mjs').Case[]} */
function schemaCases() {
  const unlimited = Object.entries(UNLIMITED).map(([name, standing]) => ({
    id: `grants.void.${name}`,
    run: async () => {
      const { answer, ran } = await approveWithGrant(standing);
      expect(
        answer.code === 'ANSWER_REFUSED' && ran.length === 0,
        'a grant that limits no value to be refused',
        answer,
      );
    },
  }));
  const expensive = Object.entries(EXPENSIVE).map(([name, make]) => ({
    id: `grants.huge.${name}`,
    run: async () => {
      const started = performance.now();
      const { answer, host, loop, ran } = await approveWithGrant(make());
      if (answer.code === undefined)
        await host.run({
          loop,
          input: { ...CALL, command: `${'x'.repeat(5000)}!`, amount: 4000, files: ['c'] },
          sessionId: 's',
        });
      const ms = performance.now() - started;
      expect(ms < 10_000, 'an answer within 10 seconds', `${Math.round(ms)} ms`);
      expect(ran.length <= 1, 'a call that differs from the grant not to be covered', ran.length);
    },
  }));
  const uncovered = Object.entries(UNCOVERED).map(([name, [standing, uncoveredCall]]) => ({
    id: `grants.beyond.${name}`,
    run: async () => {
      const { answer, host, loop, ran } = await approveWithGrant(standing);
      expect(answer.code === undefined && ran.length === 1, 'the grant to be accepted', answer);
      await host.run({ loop, input: CALL, sessionId: 's' });
      expect(ran.length === 2, 'the same call to be covered', ran.length);
      const result = await host.run({ loop, input: uncoveredCall, sessionId: 's' });
      expect(result.status === 'paused' && ran.length === 2, 'the other call to require approval', {
        status: result.status,
        ran: ran.slice(2),
      });
    },
  }));
  return [...unlimited, ...expensive, ...uncovered];
}

const LIMIT = props({ amount: { maximum: 50 } });

/**
 * Asserts that a call requires approval in spite of the grant.
 * @param {any} host
 * @param {unknown[]} ran
 * @param {object} request
 */
async function assertApprovalRequired(host, ran, request) {
  const before = ran.length;
  const result = await host.run({ input: CALL, sessionId: 's', ...request });
  expect(result.status === 'paused' && ran.length === before, 'an approval request', {
    status: result.status,
    ran: ran.length,
  });
}

/** Calls outside of the scope of a grant. @type {Record<string, () => Promise<void>>} */
const OUT_OF_SCOPE = {
  'other-session': async () => {
    const { host, loop, ran } = await approveWithGrant(LIMIT);
    await assertApprovalRequired(host, ran, { loop, sessionId: 't' });
  },
  'other-tool': async () => {
    const { host } = await approveWithGrant(LIMIT);
    const other = await definePayTool('gift');
    await assertApprovalRequired(host, other.ran, { loop: await singleToolAgent(other.tool, { id: 'assistant2' }) });
  },
  'other-definition': async () => {
    const { store } = await approveWithGrant(LIMIT);
    const other = await definePayTool('pay', 'two');
    const { host } = await createHost({ store });
    await assertApprovalRequired(host, other.ran, { loop: await singleToolAgent(other.tool) });
  },
  'other-principal': async () => {
    const { host, loop, ran } = await approveWithGrant(LIMIT, CALL, { principal: 'ada' });
    await assertApprovalRequired(host, ran, { loop, principal: 'eve' });
  },
  'no-principal': async () => {
    const { host, loop, ran } = await approveWithGrant(LIMIT, CALL, { principal: 'ada' });
    await assertApprovalRequired(host, ran, { loop });
  },
  'giver-may-not-answer': async () => {
    const { host, loop, ran } = await approveWithGrant(LIMIT, CALL, { approvers: ['bob'] });
    await assertApprovalRequired(host, ran, { loop, approvers: ['carol'] });
  },
  'with-a-denial': async () => {
    const { ran, tool } = await definePayTool();
    const { host } = await createHost();
    const loop = await singleToolAgent(tool);
    const turn = await host.run({ loop, input: CALL, sessionId: 's' });
    const [{ id }] = await host.archive.approvals('s');
    const answer = await outcome(host.answer({ id, approved: false, by: 'ada', standing: LIMIT }));
    expect(answer.code === 'ANSWER_REFUSED', 'a grant with a denial to be refused', answer);
    await host.cancel(turn.turnId);
    await assertApprovalRequired(host, ran, { loop });
  },
  'by-the-agent': async () => {
    const { ran, tool } = await definePayTool();
    const { host } = await createHost();
    const loop = await singleToolAgent(tool);
    const turn = await host.run({ loop, input: CALL, sessionId: 's' });
    const [{ id }] = await host.archive.approvals('s');
    await outcome(host.answer({ id, approved: true, by: 'assistant', standing: LIMIT }));
    await host.cancel(turn.turnId);
    await assertApprovalRequired(host, ran, { loop });
  },
  expired: async () => {
    const { ran, tool } = await definePayTool();
    const { host, clock } = await createHost();
    const loop = await singleToolAgent(tool);
    const turn = await host.run({ loop, input: CALL, sessionId: 's' });
    const [{ id }] = await host.archive.approvals('s');
    clock.ahead = 40 * 86_400_000;
    const answer = await outcome(host.answer({ id, approved: true, by: 'ada', standing: LIMIT }));
    expect(answer.code === 'ANSWER_REFUSED', 'a late grant to be refused', answer);
    await host.cancel(turn.turnId);
    await assertApprovalRequired(host, ran, { loop });
  },
  'second-answer': async () => {
    const { host, loop, ran } = await approveWithGrant(undefined);
    expect(ran.length === 1, 'the first answer to be accepted', ran);
    const [turn] = await host.archive.turns('s');
    expect(turn !== undefined, 'a turn', turn);
    await assertApprovalRequired(host, ran, { loop });
  },
};

/** @returns {import('../runner.mjs').Case[]} */
function scopeCases() {
  return Object.entries(OUT_OF_SCOPE).map(([name, run]) => ({ id: `grants.elsewhere.${name}`, run }));
}

/** A body in code that records a grant entry. @returns {import('../runner.mjs').Case[]} */
function forgedGrantCases() {
  return ['rondo.grant.given', 'rondo.approval.requested', 'acme.grant.given'].map((type) => ({
    id: `grants.forged-by-a-body.${type}`,
    run: async () => {
      const { ran, tool } = await definePayTool();
      const { host, rondo } = await createHost();
      const loop = await singleToolAgent(tool);
      const value = {
        tool: 'assistant.pay',
        definition: '',
        schema: LIMIT,
        limitedPaths: ['["amount"]'],
        by: 'ada',
        approval: 's.1:x',
        at: Date.now(),
      };
      const body = async (/** @type {unknown} */ _, /** @type {any} */ scope) => {
        await scope.record(type, () => value);
        return {};
      };
      const forger = rondo.defineLoop({ id: 'forger', input: true, output: true, run: body });
      await outcome(host.run({ loop: forger, input: {}, sessionId: 's' }));
      const result = await host.run({ loop, input: CALL, sessionId: 's' });
      expect(result.status === 'paused' && ran.length === 0, 'an approval request', { status: result.status, ran });
    },
  }));
}

/**
 * A grant on the command line covers only the program that it was given for.
 * @returns {import('../runner.mjs').Case[]}
 */
function programCases() {
  return ['unchanged', 'overwritten', 'linked', 'definition-edited'].map((how) => ({
    id: `grants.program.${how}`,
    run: async (/** @type {import('./fixture.mjs').AuthorityFixture} */ fixture) => {
      const file = fixture.write('loops/bin/tool.sh', fixture.shell('A'), 0o755);
      const define = (more = {}) =>
        fixture.define('pay', { tool: { implementation: 'exec:./bin/tool.sh', ...more }, policy: { approval: 'ask' } });
      define();
      const loopInput = { amount: 5 };
      const { id } = await fixture.requestApproval('pay', { args: ['--session', 's'], loopInput });
      await fixture.rondo(['approve', id, '--when', JSON.stringify(LIMIT)], { trust: true });
      expect(fixture.count('A') === 1, 'the approved call to run', fixture.executed());
      if (how === 'overwritten') writeFileSync(file, fixture.shell('B'));
      if (how === 'definition-edited') define({ config: { args: ['--more'] } });
      if (how === 'linked') {
        renameSync(fixture.path('loops/bin'), fixture.path('loops/was'));
        fixture.write('loops/evil/tool.sh', fixture.shell('B'), 0o755);
        symlinkSync('evil', fixture.path('loops/bin'));
      }
      await fixture.rondo(['run', 'pay', '--session', 's', '--input', JSON.stringify(loopInput)], { trust: true });
      const ran = { a: fixture.count('A'), b: fixture.count('B') };
      expect(
        ran.b === 0 && ran.a === (how === 'unchanged' ? 2 : 1),
        'the grant to cover only the approved program',
        ran,
      );
    },
  }));
}

export const cases = () => [...schemaCases(), ...scopeCases(), ...forgedGrantCases(), ...programCases()];
