// Random plans, as definitions that are valid in form. Their texts contain what breaks out of other languages.

import fc from 'fast-check';
import type { Json, JsonObject } from '../../src/protocol/json.js';
import type { LoopDef } from '../../src/protocol/loop.js';
import type { PlanSpec } from '../../src/protocol/plan.js';

const HOSTILE = [
  ...['"', "'", '"""', "'''", '\\', '\\n', '\n', '\r\n', '\t', '\u007f', '\u0000', '\u2028', '#', '#quot;', '#35;'],
  ...[
    '[',
    ']',
    '{',
    '}',
    '(',
    ')',
    '|',
    '-->',
    '---',
    '%%',
    '%%{init: {}}%%',
    ';',
    ':',
    ':::',
    '&',
    '<br/>',
    '<script>',
  ],
  ...[
    'end',
    'subgraph',
    'state',
    '[*]',
    'click n1 "x"',
    'classDef a:b#c;',
    'style n1 fill:#f00;',
    '`',
    '$',
    '=',
    '[[steps]]',
  ],
  ...['1979-05-27', '1979-05-27T07:32:00Z', '07:32', 'true', 'nan', '0x10', '1e5', 'ä', '東京', '🙂', 'é', '\u202e'],
];

/** Texts with quotes, brackets, line ends, arrows, dates, keywords and unicode; never blank. */
export const hostileText: fc.Arbitrary<string> = fc
  .array(fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ unit: 'grapheme', maxLength: 6 }), fc.constant('word ')), {
    minLength: 1,
    maxLength: 6,
  })
  .map((parts) => parts.join(''))
  .filter(
    (text) =>
      text.trim() !== '' && !/^(?:python3?|py|javascript|js|node|lua|shell|bash|sh|ruby|eval)\s*:/i.test(text.trim()),
  );

/** Values without null, which TOML cannot express. */
const value: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    hostileText,
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(
      hostileText.filter((name) => name !== '__proto__'),
      tie('value'),
      { maxKeys: 3 },
    ),
  ),
})).value;
const schema = fc.record(
  { type: fc.constantFrom('object', 'string'), default: value, title: hostileText },
  { requiredKeys: [] },
);

const path = fc.constantFrom('$.input', '$.input.file', 'literal:a "b"\n', 'optional:$.one.output', "$['a b']");
const base = {
  condition: hostileText,
  capture: fc.constantFrom('one', 'two', 'three'),
  on_error: fc.oneof(fc.constantFrom('fail', 'skip'), fc.record({ value })),
};
const call = {
  ...base,
  retry: fc.record({ strategy: fc.constantFrom('fixed', 'none'), max_attempts: fc.integer({ min: 1, max: 9 }) }),
  timeout_ms: fc.integer({ min: 1, max: 9999 }),
};
const table = <T>(required: string, model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<JsonObject> =>
  fc.record(model, { requiredKeys: [required as keyof T] }) as unknown as fc.Arbitrary<JsonObject>;

const callStep: fc.Arbitrary<JsonObject> = fc.oneof(
  table('action', { action: hostileText, ...call }),
  table('prompt', { prompt: hostileText, system: hostileText, schema, ...call }),
  table('loop', {
    loop: fc.constantFrom('lint', 'a/b'),
    input: fc.dictionary(
      hostileText.filter((name) => name !== '__proto__'),
      path,
    ),
    ...call,
  }),
  table('plugin', { plugin: fc.constant('other'), parameter: value, text: hostileText, ...call }),
);

/** Steps of one list. Their names differ. */
const listOf = (one: fc.Arbitrary<JsonObject>, maxLength: number): fc.Arbitrary<JsonObject[]> =>
  fc.uniqueArray(one, {
    ...{ minLength: 1, maxLength },
    comparator: (a, b) => a.name !== undefined && a.name === b.name,
  });

const step: fc.Arbitrary<JsonObject> = fc.letrec<{ step: JsonObject; steps: JsonObject[] }>((tie) => ({
  steps: listOf(tie('step'), 3),
  step: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    callStep,
    tie('steps').map((steps) => ({ type: 'sequence', sequence: { steps } })),
    fc.tuple(tie('steps'), hostileText).map(([steps, until]) => ({ type: 'repeat', repeat: { steps, until, max: 3 } })),
    fc.tuple(tie('steps'), hostileText, tie('steps')).map(([steps, condition, otherwise]) => ({
      type: 'branch',
      branch: { cases: [{ condition, steps }], else: otherwise },
    })),
    tie('steps').map((steps) => ({ type: 'each', each: { items: '$.input.list', steps, collect: true } })),
    tie('steps').map((steps) => ({ type: 'fanout', fanout: { branches: [{ steps }], join: { quorum: 1 } } })),
    fc.tuple(tie('steps'), hostileText).map(([steps, name]) => ({ type: 'scope', name, scope: { steps } })),
    hostileText.map((signal) => ({ type: 'wait', wait: { signal } })),
  ),
})).step;

const states = fc
  .uniqueArray(hostileText, { minLength: 1, maxLength: 4 })
  .chain((names) =>
    fc.tuple(
      ...names.map((name) =>
        fc.tuple(callStep, fc.constantFrom(...names, 'done'), hostileText).map((parts) => stateOf(name, ...parts)),
      ),
    ),
  );

function stateOf(name: string, { condition: _, ...action }: JsonObject, next: string, condition: string): JsonObject {
  return { ...action, name, on_entry: condition, transitions: [{ condition, next }, { next: 'failed' }] };
}

const settings = {
  context: fc.constantFrom({ strategy: 'flat' }, { strategy: 'none' }),
  limits: fc.record({ max_turns: fc.integer({ min: 1, max: 99 }) }),
  llm: fc.record({ strategy: fc.constant('simple'), system_prompt: hostileText, thinking: fc.boolean() }),
};

/** Plans: lists of steps, and state machines. */
const plan = fc.oneof(
  table('steps', { steps: listOf(step, 4), ...settings }),
  table('states', { states, ...settings }),
) as unknown as fc.Arbitrary<PlanSpec>;

/** Definitions of plans. `version` is undefined for the version that follows from the plan. */
export const planDefinition: fc.Arbitrary<Omit<LoopDef, 'version'> & { readonly version: string | undefined }> = fc
  .record({
    plan,
    version: fc.constantFrom(undefined, '1.2.3', '2.0.0-beta+7'),
    inputSchema: schema,
    outputSchema: fc.constantFrom({}, true),
    description: hostileText,
    name: fc.constantFrom('flow', 'A Flow'),
  })
  .map(({ plan: spec, name, ...others }) => ({
    id: 'flow',
    name,
    ...others,
    kind: 'composite',
    composite: { plan: spec },
  }));
