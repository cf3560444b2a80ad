// Standing grants: schemas that limit nothing or almost nothing, schemas that are too much, and grants applied to other calls.

import { renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { expect, handOf, hostOf, outcome, toolsLibrary } from './world.mjs';

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

/** @param {string} [name] @param {string} [source] */
async function staged(name = 'pay', source = 'one') {
  const { loopsTool } = await toolsLibrary();
  const ran = /** @type {any[]} */ ([]);
  const tool = loopsTool({ name, description: source, inputSchema: schema, execute: (input) => void ran.push(input) });
  return { ran, tool: tool.withApproval('ask') };
}

/** Gives a grant with a first call. @param {unknown} standing @param {any} [given] @param {object} [request] */
async function granting(standing, given = CALL, request = {}) {
  const { ran, tool } = await staged();
  const { host, clock, store } = await hostOf();
  const loop = await handOf(tool);
  const turn = await host.run({ loop, input: given, sessionId: 's', ...request });
  const [approval] = await host.archive.approvals('s');
  const by = /** @type {any} */ (request).approvers?.[0] ?? 'ada';
  const answer = await outcome(host.answer({ id: approval.id, approved: true, by, standing }));
  if (answer.code === undefined) await host.resume(turn.turnId);
  return { host, clock, store, loop, ran, answer, tool };
}

const all = (/** @type {object} */ properties) => ({ properties });

/** Schemas that limit no value and no range of any argument of the call: none may be a grant. */
const VOID = {
  empty: {},
  true: true,
  object: { type: 'object' },
  required: { required: ['command', 'amount'] },
  types: all({ command: { type: 'string' }, amount: { type: 'number' } }),
  annotations: { title: 'all', description: 'all', examples: [CALL], default: CALL },
  'absent-property': all({ nothing: { const: 1 } }),
  'prototype-property': all({ constructor: { const: 1 } }),
  'wrong-type-keyword': all({ command: { maximum: 5 }, amount: { pattern: '^x$' } }),
  'pattern-of-all': all({ command: { pattern: '.*' } }),
  'pattern-empty': all({ command: { pattern: '' } }),
  'pattern-any-start': all({ command: { pattern: '^' } }),
  'pattern-dot-all': all({ command: { pattern: '^[\\s\\S]*$' } }),
  'bound-beyond': all({ amount: { minimum: -1e308, maximum: 1e308 } }),
  'not-false': { not: false },
  'not-const': all({ command: { not: { const: 'rm -rf /' } } }),
  length: all({ command: { maxLength: 10_000 } }),
  counts: all({ files: { minItems: 1, maxItems: 100 } }),
  'members-count': { minProperties: 1 },
  'names-only': { propertyNames: { pattern: '^[a-z]+$' } },
  'additional-false': {
    ...all(Object.fromEntries(Object.keys(CALL).map((key) => [key, true]))),
    additionalProperties: false,
  },
  'any-of-one-open': { anyOf: [all({ amount: { maximum: 50 } }), {}] },
  'any-of-other-arguments': { anyOf: [all({ amount: { maximum: 50 } }), all({ to: { const: 'ada' } })] },
  'one-of-other-arguments': { oneOf: [all({ amount: { maximum: 50 } }), all({ to: { const: 'eve' } })] },
  'if-else': { if: { required: ['amount'] }, else: all({ amount: { maximum: 5 } }) },
  ref: { $ref: '#/$defs/a', $defs: { a: all({ amount: { maximum: 50 } }) } },
  'dynamic-ref': { $dynamicRef: '#a', $defs: { a: { $dynamicAnchor: 'a' } } },
  'pattern-properties': { patternProperties: { '^nothing': { const: 1 } } },
  'items-open': all({ files: { items: true } }),
  'contains-open': all({ files: { contains: true } }),
  'enum-of-nothing-there': all({ nothing: { enum: [1, 2] } }),
  'dependent-schemas': { dependentSchemas: { nothing: all({ amount: { maximum: 1 } }) } },
  // Keywords that limit no value, beside a keyword that everything fits: together they limit no value either.
  'pattern-of-all-with-length': all({ command: { pattern: '.*', minLength: 9 } }),
  'pattern-of-all-with-short-length': all({ command: { pattern: '', maxLength: CALL.command.length + 3 } }),
  'pattern-of-all-with-not': all({ command: { pattern: '.*', not: { const: 'QJX 0451' } } }),
  'bound-beyond-with-multiple': all({ amount: { minimum: -1e308, multipleOf: 2 } }),
  'bound-beyond-with-not': all({ amount: { maximum: 1e308, not: { const: Number.MAX_SAFE_INTEGER } } }),
  'items-behind-prefix': all({ files: { prefixItems: [true, true], items: { const: 'x' }, minItems: 2 } }),
  'member-limited-with-count': all({ deep: all({ n: { maximum: 1e308, minimum: -1e308 } }), command: true }),
  'pattern-of-all-and-names': { ...all({ to: { pattern: '.*' } }), propertyNames: { maxLength: 7 }, maxProperties: 6 },
};

/** Schemas that no process may choke on; whether they are taken does not matter. @type {Record<string, () => unknown>} */
const HUGE = {
  'redos-nested': () => all({ command: { pattern: '^(([a-z])+.)+[A-Z]([a-z])+$' } }),
  'redos-alternatives': () => all({ command: { pattern: '^(a|a)*$' } }),
  'redos-backtracking': () => all({ command: { pattern: '(x+x+)+y' } }),
  'redos-bounded': () => all({ command: { pattern: '^(.{1,100}){1,100}$' } }),
  'pattern-long': () => all({ command: { pattern: `^(${'n|'.repeat(20_000)}x)` } }),
  'enum-many': () => all({ command: { enum: [CALL.command, ...Array.from({ length: 50_000 }, (_, n) => `c${n}`)] } }),
  'any-of-many': () => ({ anyOf: Array.from({ length: 20_000 }, (_, n) => all({ amount: { maximum: n + 40 } })) }),
  'any-of-deep': () => {
    let inner = /** @type {object} */ (all({ amount: { maximum: 50 } }));
    for (let n = 0; n < 18; n++) inner = { anyOf: [inner, inner] };
    return inner;
  },
  'all-of-deep': () => {
    let inner = /** @type {object} */ (all({ amount: { maximum: 50 } }));
    for (let n = 0; n < 200; n++) inner = { allOf: [inner] };
    return inner;
  },
  'ref-circle': () => ({ $ref: '#', ...all({ amount: { maximum: 50 } }) }),
  'ref-mutual': () => ({
    $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } },
    allOf: [{ $ref: '#/$defs/a' }],
  }),
  'ref-outside': () => ({ $ref: 'http://127.0.0.1:9/schema', ...all({ amount: { maximum: 50 } }) }),
  'ref-file': () => ({ $ref: 'file:///etc/passwd', ...all({ amount: { maximum: 50 } }) }),
  'unique-items': () => all({ files: { uniqueItems: true, items: { enum: ['a.txt', 'b.txt'] } } }),
};

/** Grants that limit something, and calls that they must not cover. @type {Record<string, [standing: object, other: object]>} */
const BEYOND = {
  'amount-above': [all({ amount: { maximum: 50 } }), { ...CALL, amount: 51 }],
  'amount-absent': [all({ amount: { maximum: 50 } }), { command: 'rm -rf /' }],
  'amount-is-text': [all({ amount: { maximum: 50 } }), { ...CALL, amount: '5000' }],
  'amount-is-null': [all({ amount: { maximum: 50 } }), { ...CALL, amount: null }],
  'amount-in-a-list': [all({ amount: { maximum: 50 } }), { ...CALL, amount: [5000] }],
  'command-is-a-list': [all({ command: { pattern: '^npm test' } }), { ...CALL, command: ['rm', '-rf', '/'] }],
  'command-is-an-object': [all({ command: { pattern: '^npm test' } }), { ...CALL, command: { toString: 'npm test' } }],
  'command-other': [all({ command: { const: CALL.command } }), { ...CALL, command: `${CALL.command}; rm -rf /` }],
  'command-line-end': [
    all({ command: { pattern: '^npm test -- --all$' } }),
    { ...CALL, command: `${CALL.command}\nrm -rf /` },
  ],
  'command-line-before': [
    all({ command: { pattern: '^npm test -- --all$' } }),
    { ...CALL, command: `rm -rf /\n${CALL.command}` },
  ],
  'files-empty': [all({ files: { items: { enum: ['a.txt', 'b.txt'] } } }), { ...CALL, files: [] }],
  'files-other': [
    all({ files: { items: { enum: ['a.txt', 'b.txt'] } } }),
    { ...CALL, files: ['a.txt', '/etc/passwd'] },
  ],
  'files-a-text': [all({ files: { items: { enum: ['a.txt', 'b.txt'] } } }), { ...CALL, files: '/etc/passwd' }],
  'deep-absent': [all({ deep: all({ n: { maximum: 5 } }) }), { ...CALL, deep: {} }],
  'deep-a-list': [all({ deep: all({ n: { maximum: 5 } }) }), { ...CALL, deep: [{ n: 99 }] }],
  'not-an-object': [all({ amount: { maximum: 50 } }), [5000]],
};

/** @returns {import('../authority.mjs').Case[]} */
function written() {
  const voids = Object.entries(VOID).map(([name, standing]) => ({
    id: `grants.void.${name}`,
    run: async () => {
      const { answer, ran } = await granting(standing);
      expect(
        answer.code === 'ANSWER_REFUSED' && ran.length === 0,
        'a grant that limits no value to be refused',
        answer,
      );
    },
  }));
  const huge = Object.entries(HUGE).map(([name, make]) => ({
    id: `grants.huge.${name}`,
    run: async () => {
      const started = performance.now();
      const { answer, host, loop, ran } = await granting(make());
      if (answer.code === undefined)
        await host.run({
          loop,
          input: { ...CALL, command: `${'x'.repeat(5000)}!`, amount: 4000, files: ['c'] },
          sessionId: 's',
        });
      const ms = performance.now() - started;
      expect(ms < 10_000, 'an answer within ten seconds', `${Math.round(ms)} ms`);
      expect(ran.length <= 1, 'a call far from the grant not to be covered', ran.length);
    },
  }));
  const beyond = Object.entries(BEYOND).map(([name, [standing, other]]) => ({
    id: `grants.beyond.${name}`,
    run: async () => {
      const { answer, host, loop, ran } = await granting(standing);
      expect(answer.code === undefined && ran.length === 1, 'the grant to be taken', answer);
      await host.run({ loop, input: CALL, sessionId: 's' });
      expect(ran.length === 2, 'the same call to be covered', ran.length);
      const result = await host.run({ loop, input: other, sessionId: 's' });
      expect(result.status === 'paused' && ran.length === 2, 'the other call to be asked about', {
        status: result.status,
        ran: ran.slice(2),
      });
    },
  }));
  return [...voids, ...huge, ...beyond];
}

const LIMIT = all({ amount: { maximum: 50 } });

/** It waits, although there is a grant. @param {any} host @param {unknown[]} ran @param {object} request */
async function asked(host, ran, request) {
  const before = ran.length;
  const result = await host.run({ input: CALL, sessionId: 's', ...request });
  expect(result.status === 'paused' && ran.length === before, 'it to be asked about', {
    status: result.status,
    ran: ran.length,
  });
}

/** Calls that a grant was not given for. @type {Record<string, () => Promise<void>>} */
const ELSEWHERE = {
  'other-session': async () => {
    const { host, loop, ran } = await granting(LIMIT);
    await asked(host, ran, { loop, sessionId: 't' });
  },
  'other-tool': async () => {
    const { host } = await granting(LIMIT);
    const other = await staged('gift');
    await asked(host, other.ran, { loop: await handOf(other.tool, { id: 'hand2' }) });
  },
  'other-definition': async () => {
    const { store } = await granting(LIMIT);
    const other = await staged('pay', 'two');
    const { host } = await hostOf({ store });
    await asked(host, other.ran, { loop: await handOf(other.tool) });
  },
  'other-principal': async () => {
    const { host, loop, ran } = await granting(LIMIT, CALL, { principal: 'ada' });
    await asked(host, ran, { loop, principal: 'eve' });
  },
  'no-principal': async () => {
    const { host, loop, ran } = await granting(LIMIT, CALL, { principal: 'ada' });
    await asked(host, ran, { loop });
  },
  'giver-may-not-answer': async () => {
    const { host, loop, ran } = await granting(LIMIT, CALL, { approvers: ['bob'] });
    await asked(host, ran, { loop, approvers: ['carol'] });
  },
  'with-a-denial': async () => {
    const { ran, tool } = await staged();
    const { host } = await hostOf();
    const loop = await handOf(tool);
    const turn = await host.run({ loop, input: CALL, sessionId: 's' });
    const [{ id }] = await host.archive.approvals('s');
    const answer = await outcome(host.answer({ id, approved: false, by: 'ada', standing: LIMIT }));
    expect(answer.code === 'ANSWER_REFUSED', 'a denial not to grant anything', answer);
    await host.cancel(turn.turnId);
    await asked(host, ran, { loop });
  },
  'by-the-agent': async () => {
    const { ran, tool } = await staged();
    const { host } = await hostOf();
    const loop = await handOf(tool);
    const turn = await host.run({ loop, input: CALL, sessionId: 's' });
    const [{ id }] = await host.archive.approvals('s');
    await outcome(host.answer({ id, approved: true, by: 'hand', standing: LIMIT }));
    await host.cancel(turn.turnId);
    await asked(host, ran, { loop });
  },
  expired: async () => {
    const { ran, tool } = await staged();
    const { host, clock } = await hostOf();
    const loop = await handOf(tool);
    const turn = await host.run({ loop, input: CALL, sessionId: 's' });
    const [{ id }] = await host.archive.approvals('s');
    clock.ahead = 40 * 86_400_000;
    const answer = await outcome(host.answer({ id, approved: true, by: 'ada', standing: LIMIT }));
    expect(answer.code === 'ANSWER_REFUSED', 'a late grant to be refused', answer);
    await host.cancel(turn.turnId);
    await asked(host, ran, { loop });
  },
  'second-answer': async () => {
    const { host, loop, ran } = await granting(undefined);
    expect(ran.length === 1, 'the first answer to be taken', ran);
    const [turn] = await host.archive.turns('s');
    expect(turn !== undefined, 'a turn', turn);
    await asked(host, ran, { loop });
  },
};

/** @returns {import('../authority.mjs').Case[]} */
function elsewhere() {
  return Object.entries(ELSEWHERE).map(([name, run]) => ({ id: `grants.elsewhere.${name}`, run }));
}

/** A body in code that writes a grant into the journal itself. @returns {import('../authority.mjs').Case[]} */
function forged() {
  return ['rondo.grant.given', 'rondo.approval.requested', 'acme.grant.given'].map((type) => ({
    id: `grants.forged-by-a-body.${type}`,
    run: async () => {
      const { ran, tool } = await staged();
      const { host, rondo } = await hostOf();
      const loop = await handOf(tool);
      const value = {
        tool: 'pay',
        definition: '',
        schema: LIMIT,
        limits: ['["amount"]'],
        by: 'ada',
        approval: 's.1:x',
        at: Date.now(),
      };
      const body = async (/** @type {unknown} */ _, /** @type {any} */ scope) => {
        await scope.record(type, () => value);
        return {};
      };
      const forger = rondo.defineLoop({ id: 'forger', input: true, output: true, body });
      await outcome(host.run({ loop: forger, input: {}, sessionId: 's' }));
      const result = await host.run({ loop, input: CALL, sessionId: 's' });
      expect(result.status === 'paused' && ran.length === 0, 'it to be asked about', { status: result.status, ran });
    },
  }));
}

/** A grant on the command line ends with the program that it was given for. @returns {import('../authority.mjs').Case[]} */
function programs() {
  return ['unchanged', 'overwritten', 'linked', 'definition-edited'].map((how) => ({
    id: `grants.program.${how}`,
    run: async (/** @type {import('./world.mjs').World} */ world) => {
      const file = world.write('loops/bin/tool.sh', world.shell('A'), 0o755);
      const define = (more = {}) =>
        world.define('pay', { tool: { implementation: 'exec:./bin/tool.sh', ...more }, policy: { approval: 'ask' } });
      define();
      const given = { amount: 5 };
      const { id } = await world.ask('pay', { args: ['--session', 's'], given });
      await world.rondo(['approve', id, '--when', JSON.stringify(LIMIT)], { trust: true });
      expect(world.count('A') === 1, 'the approved call to run', world.executed());
      if (how === 'overwritten') writeFileSync(file, world.shell('B'));
      if (how === 'definition-edited') define({ config: { args: ['--more'] } });
      if (how === 'linked') {
        renameSync(world.path('loops/bin'), world.path('loops/was'));
        world.write('loops/evil/tool.sh', world.shell('B'), 0o755);
        symlinkSync('evil', world.path('loops/bin'));
      }
      await world.rondo(['run', 'pay', '--session', 's', '--input', JSON.stringify(given)], { trust: true });
      const ran = { a: world.count('A'), b: world.count('B') };
      expect(
        ran.b === 0 && ran.a === (how === 'unchanged' ? 2 : 1),
        'a grant to cover only what it was given for',
        ran,
      );
    },
  }));
}

export const cases = () => [...written(), ...elsewhere(), ...forged(), ...programs()];
