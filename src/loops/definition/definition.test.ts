import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { LoopError } from '../../base/errors.js';
import { parseDefinition, warningsOf } from './definition.js';

const base = { id: 'greet', name: 'Greet', version: '1.0.0', inputSchema: true, outputSchema: { type: 'object' } };
const prompt = { ...base, kind: 'prompt', prompt: { template: 'Hello {{name}}' } };
const tool = { ...base, kind: 'tool', tool: { implementation: 'builtin:echo' } };
const step = { loopId: 'echo', inputMapping: { text: '$.input.text' } };
const composite = { ...base, kind: 'composite', composite: { steps: [step] } };

/** The error of a document that must be refused. */
function refusal(value: unknown): LoopError {
  try {
    parseDefinition(value, 'here');
  } catch (error) {
    expect(error).toBeInstanceOf(LoopError);
    return error as LoopError;
  }
  throw new Error('it was accepted');
}

function isAccepted(value: unknown): boolean {
  return parseDefinition(value, 'here') !== undefined;
}

verifies('lsem.4.shape', 'a conforming definition is accepted unchanged', () => {
  const full = {
    $schema: 'https://example.org/loop.json',
    ...prompt,
    description: '',
    prompt: {
      template: 'Hi {{ user.name }}, {not a placeholder} }}',
      variables: ['user', 'unused'],
      systemPrompt: 'Be {{kind}}.',
      maxTokens: 1,
      temperature: 2,
    },
    backend: { id: 'openai', model: 'small', options: { seed: [1, null] } },
    policy: {
      routing: [{ when: { promptLengthOver: 0, input: { '$.a': null } }, backend: { id: 'mock' } }],
      fallback: [{ id: 'mock' }],
      retry: { attempts: 20, backoffMs: 0, factor: 1.5, maxBackoffMs: 10, jitter: 0.5 },
      timeoutMs: 86_400_000,
      rateLimit: { requests: 1, perMs: 1 },
      cache: {},
      filters: {
        before: [{ pattern: 'a\nb', action: 'redact', replacement: '' }],
        after: [{ pattern: 'c', action: 'refuse', reason: 'r' }],
      },
      approval: 'ask',
    },
    metadata: { owner: { team: 'x' }, constructor: 1 },
  };
  const wide = { steps: Array.from({ length: 10_000 }, () => step), outputMapping: '$' };
  const last = '$.steps[1].output';
  const bound = {
    steps: [
      { ...step, loopVersion: '2.0.0-rc.1', outputBinding: 'first-one' },
      { loopId: 'a.b_c-1', inputMapping: "$['first-one'].output" },
      {
        loopId: 'b',
        inputMapping: {
          a: 'literal:',
          o: 'optional:$.input.x',
          b: '$ ["steps"] [ -2 ]',
          c: '$..x',
          d: '$[?@.a]',
          e: '$.steps[0:9]',
        },
      },
    ],
    outputMapping: { a: last, b: '$', c: "$['first-one']" },
  };
  for (const value of [
    prompt,
    tool,
    composite,
    full,
    { ...composite, composite: wide },
    { ...composite, composite: bound },
  ]) {
    expect(parseDefinition(value, 'here')).toEqual(value);
  }
  expect(isAccepted({ ...tool, tool: { implementation: 'http:https://a.example', config: {}, safety: 'keyed' } })).toBe(
    true,
  );
});

verifies('lsem.4.shape', 'a definition without a required member is refused', () => {
  for (const name of ['id', 'name', 'version', 'inputSchema', 'outputSchema', 'kind'] as const) {
    const { [name]: _, ...rest } = prompt;
    expect(refusal(rest).data, name).toMatchObject({ path: `/${name}`, reason: 'is required' });
  }
});

verifies('lsem.4.shape', 'a parsed definition equals its document, including ignored members', () => {
  const document = { $comment: 'c', 'x-team': [1], author: { a: 1 }, ...prompt, zone: null };
  const parsed = parseDefinition(document, 'here');
  expect(JSON.stringify(parsed)).toBe(JSON.stringify(document));
  expect(warningsOf(parsed).map(({ path, mistake }) => [path, mistake])).toEqual([
    ['/author', false],
    ['/zone', false],
  ]);
});

verifies('lsem.4.shape', 'a later change of the document does not change the definition', () => {
  const document = structuredClone(composite);
  const before = JSON.stringify(document);
  const parsed = parseDefinition(document, 'here');
  expect(JSON.stringify(document)).toBe(before);
  document.composite.steps[0] = { loopId: 'other', inputMapping: { text: '$' } };
  expect(parsed.composite?.steps?.[0]?.loopId).toBe('echo');
  expect(parseDefinition(Object.freeze(structuredClone(prompt)), 'here')).toEqual(prompt);
});

verifies('lsem.3.kind', 'a definition has exactly the body of its kind', () => {
  expect(refusal({ ...prompt, kind: 'agent' }).data).toMatchObject({ path: '/kind' });
  expect(refusal({ ...prompt, kind: 'promt' }).message).toContain('did you mean "prompt"?');
  for (const extra of [tool.tool, null, {}, false]) {
    expect(refusal({ ...prompt, tool: extra }).data).toMatchObject({ path: '/tool' });
  }
  for (const kind of ['prompt', 'composite', 'tool']) {
    const data = { path: `/${kind}`, reason: `is required for kind "${kind}"` };
    expect(refusal({ ...base, kind }).data).toMatchObject(data);
  }
});

/** The outcome for one more member of a definition: refused, warned about, or accepted. */
function verdictOn(key: string, definition: object = prompt): string {
  try {
    const [warning] = warningsOf(parseDefinition({ ...definition, [key]: {} }, 'here'));
    return warning === undefined ? 'accepted' : `${warning.mistake ? 'mistake' : 'ignored'}: ${warning.reason}`;
  } catch (error) {
    return `refused: ${(error as LoopError).message}`;
  }
}

verifies('definition.near-miss', 'a near miss of policy is refused, because it would disable the policy', () => {
  const near = 'polcy Policy POLICY plociy policies polices policys policy_ _policy po-licy policy. pоlicy olicy poli';
  for (const key of [...near.split(' '), 'policy ']) {
    for (const definition of [prompt, tool, composite, { ...prompt, policy: {} }]) {
      expect(verdictOn(key, definition), key).toMatch(/^refused: .*did you mean "policy"\?/);
    }
  }
});

verifies('definition.near-miss', 'a near miss of any other member is accepted with a warning that names it', () => {
  const near: readonly [key: string, meant: string][] = [
    ['tools', 'tool'],
    ['prompts', 'prompt'],
    ['promt', 'prompt'],
    ['composites', 'composite'],
    ['backed', 'backend'],
    ['backends', 'backend'],
    ['meta_data', 'metadata'],
    ['inputschema', 'inputSchema'],
    ['output_schema', 'outputSchema'],
    ['ID', 'id'],
    ['Name', 'name'],
    ['kinds', 'kind'],
    ['discription', 'description'],
    ['versoin', 'version'],
  ];
  for (const [key, meant] of near) {
    expect(verdictOn(key), key).toBe(`mistake: is not a known key and is ignored; did you mean "${meant}"?`);
    expect(parseDefinition({ ...prompt, [key]: 1 }, 'here'), key).toHaveProperty(key, 1);
  }
});

verifies('definition.near-miss', 'a near miss of a missing required member is refused and named as the cause', () => {
  for (const [key, meant] of [
    ['inputschema', 'inputSchema'],
    ['versoin', 'version'],
    ['kynd', 'kind'],
    ['prompts', 'prompt'],
  ] as const) {
    const { [meant]: value, ...rest } = prompt;
    const { flaws } = refusal({ ...rest, [key]: value }).data as { flaws: { path: string; reason: string }[] };
    expect(flaws, key).toContainEqual({ path: `/${key}`, reason: `is not a known key; did you mean "${meant}"?` });
    expect(
      flaws.map(({ path }) => path),
      key,
    ).toContain(`/${meant}`);
  }
});

verifies(
  'definition.near-miss',
  'near misses of restricting members of tools, agents and policies are refused at their location',
  () => {
    const agent = { backend: { id: 'mock' }, tools: [] };
    const inAgent = (change: object): object => ({ ...composite, composite: { agent: { ...agent, ...change } } });
    const guards: readonly [document: object, path: string][] = [
      [inAgent({ approval: {} }), '/composite/agent/approval'],
      [inAgent({ Approvals: {} }), '/composite/agent/Approvals'],
      [inAgent({ stops: {} }), '/composite/agent/stops'],
      [inAgent({ maxRound: 1 }), '/composite/agent/maxRound'],
      [inAgent({ toolTimeout: 1 }), '/composite/agent/toolTimeout'],
      [inAgent({ stop: { deadline: 1 } }), '/composite/agent/stop/deadline'],
      [{ ...tool, tool: { ...tool.tool, safty: 'once' } }, '/tool/safty'],
      [{ ...tool, policy: { approvals: 'ask' } }, '/policy/approvals'],
      [{ ...tool, policy: { timeout: 5 } }, '/policy/timeout'],
      [{ ...prompt, policy: { filter: {} } }, '/policy/filter'],
    ];
    for (const [document, path] of guards) expect(refusal(document).data, path).toMatchObject({ path });
  },
);

verifies(
  'definition.near-miss',
  'a nested restricting member at the top level, where it has no effect, causes a warning',
  () => {
    const guards: readonly [key: string, parent: string][] = [
      ['approval', 'policy'],
      ['timeoutMs', 'policy'],
      ['approvals', 'composite.agent'],
      ['stop', 'composite.agent'],
      ['safety', 'tool'],
    ];
    for (const [key, parent] of guards) {
      expect(verdictOn(key), key).toBe(`mistake: has no effect here and is ignored; it belongs in "${parent}"`);
    }
  },
);

verifies('definition.keys', 'unknown members for other programs are accepted', () => {
  const unrelated = [
    'x',
    'ui',
    'note',
    'tags',
    'author',
    'extra',
    'title',
    'license',
    'x-policy',
    '$schema',
    'constructor',
    'toString',
    '',
    'schemaVersion',
    'ключ',
  ];
  for (const key of unrelated) expect(verdictOn(key), key).toMatch(/^(?:accepted|ignored: )/);
  expect(refusal({ ...prompt, policy: { retries: 3 } }).message).toContain('did you mean "retry"?');
});

verifies('definition.place', 'an error lists all mistakes of a definition, up to 20', () => {
  const error = refusal({
    ...prompt,
    id: 3,
    version: 'v1',
    prompt: { template: '', temprature: 1 },
    policy: { timeout: 1 },
  });
  expect(error.code).toBe('DEFINITION_INVALID');
  expect(error.data).toMatchObject({
    where: 'here',
    path: '/id',
    flaws: [
      { path: '/id' },
      { path: '/version' },
      { path: '/policy/timeout' },
      { path: '/prompt/template' },
      { path: '/prompt/temprature' },
    ],
  });
  expect(error.message).toBe(
    'here is not a valid definition: at /id: must be an id of 1 to 256 visible characters (Unicode normal form C) without a space at either end, an empty part, "." or ".." between slashes, "*" or ".*" at the end, or "@" and a version at the end, not 3. (4 more; see data.flaws)',
  );
  const mappings = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`k${n}`, '$.no']));
  const flood = refusal({ ...composite, composite: { steps: [{ ...step, inputMapping: mappings }] } });
  expect((flood.data as { flaws: unknown[] }).flaws).toHaveLength(20);
});

verifies('lsem.4.shape', 'a hostile value is refused without a crash and without prototype pollution', () => {
  const cyclic: Record<string, unknown> = { ...prompt };
  cyclic.metadata = { left: cyclic, right: cyclic };
  const deep = JSON.parse(`${'{"a":'.repeat(300)}1${'}'.repeat(300)}`);
  const throwing = {
    ...prompt,
    get metadata(): never {
      throw new Error('no');
    },
  };
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const hostile: [unknown, string][] = [
    [undefined, 'undefined is not JSON'],
    [null, 'must be an object'],
    ['text', 'must be an object'],
    [[prompt], 'must be an object'],
    [cyclic, 'deeper than 200'],
    [{ ...prompt, metadata: deep }, 'deeper than 200'],
    [throwing, 'cannot be read: no'],
    [revoked.proxy, 'cannot be read'],
    [JSON.parse(`{"__proto__": {"polluted": 1}}`), '__proto__'],
    [{ ...prompt, metadata: JSON.parse('{"a":{"__proto__":[]}}') }, '__proto__'],
    [{ ...prompt, metadata: { when: new Date(0) } }, 'write it as text'],
    [{ ...prompt, metadata: new Map() }, 'instance of a class'],
    [{ ...prompt, metadata: { n: Number.NaN } }, 'NaN is not a JSON number'],
    [{ ...prompt, metadata: { n: 1n } }, 'a bigint is not JSON'],
    [{ ...prompt, metadata: { f: () => 1 } }, 'a function is not JSON'],
    [{ ...prompt, metadata: { s: '\ud800' } }, 'lone surrogate'],
    [{ ...prompt, metadata: { '\udc00': 1 } }, 'lone surrogate'],
    [{ ...prompt, metadata: { list: new Array(5) } }, 'undefined is not JSON'],
    [{ ...prompt, name: 'a'.repeat(1_100_000) }, 'larger than'],
    [Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`key${n}`, 1])), '5000 members'],
  ];
  for (const [value, reason] of hostile) expect(refusal(value).message).toContain(reason);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  expect(Object.getPrototypeOf(parseDefinition(Object.assign(Object.create(null), prompt), 'here'))).toBe(
    Object.prototype,
  );
});
