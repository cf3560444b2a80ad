/** Checks of definitions: unique ids, versions, schemas, and reading a definition back (section 4 of LSEM). */
import { ownProperty } from '../../base/own-property.js';
import { assertSameJson, assertThat, describeValue } from '../assertions.js';
import { type ConformanceCheck, checksOf } from '../check.js';
import type { CheckContext } from '../check-context.js';
import { jsonCopy } from '../json.js';
import type { RecordedRun } from '../recorded-run.js';
import {
  compositeLoop,
  echoLoop,
  failingLoop,
  NEVER_SCHEMA,
  promptLoop,
  type SampleDefinition,
  sampleLoop,
  sampleStep,
  withoutMembers,
} from '../sample-loops.js';

/** Fails if a version that is registered during a call affects the call. */
async function assertRunningCallKeepsVersion(context: CheckContext): Promise<void> {
  const tool = context.customTool(async (input) => {
    await context.tryRegister(echoLoop(context, 'moving', { version: '2.0.0', outputSchema: NEVER_SCHEMA }));
    return input;
  });
  if (tool === undefined)
    return context.addNote('not checked during a call: the driver has no custom tools (tool.custom)');
  await context.register(sampleLoop('moving', 'tool', { tool }));
  const run = await context.runExpectingSuccess('moving', { n: 1 });
  assertSameJson(
    ownProperty(run.payload('call.started'), 'loopVersion'),
    '1.0.0',
    'the version of a call that was running',
  );
}

/** Returns a version of the loop `twice`. Each version accepts other inputs. */
function versionedEcho(context: CheckContext, version: string): SampleDefinition {
  return echoLoop(context, 'twice', { version, inputSchema: { type: 'object', required: [`v${version.charAt(0)}`] } });
}

/** Fails unless a call behaves like the version that its `call.started` names. Returns the version. */
function assertVersion(run: RecordedRun, callId: string, input: { readonly [member: string]: unknown }): string {
  const version = ownProperty(run.payload('call.started', callId), 'loopVersion');
  assertThat(
    version === '1.0.0' || version === '2.0.0',
    `a call has the version ${describeValue(version)}, not 1.0.0 or 2.0.0`,
  );
  const isValid = Object.hasOwn(input, `v${version.charAt(0)}`);
  const hasPassed = run.lifecycle(callId).includes('call.completed');
  assertSameJson(
    hasPassed,
    isValid,
    `whether ${describeValue(input)} passed the inputSchema of ${version}, which call.started names`,
  );
  return version;
}

const DRAFT_2020_12_URI = 'https://json-schema.org/draft/2020-12/schema';
const draft2020Cases: readonly (readonly [schema: object, valid: unknown, invalid: unknown])[] = [
  [{ type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }], items: false }, ['a', 1], [1, 'a']],
  [{ type: 'object', dependentRequired: { card: ['name'] } }, { card: 1, name: 'n' }, { card: 1 }],
  [
    { $defs: { word: { type: 'string', minLength: 2 } }, type: 'object', properties: { w: { $ref: '#/$defs/word' } } },
    { w: 'ok' },
    { w: 'x' },
  ],
  [
    { type: 'object', allOf: [{ properties: { a: { type: 'number' } } }], unevaluatedProperties: false },
    { a: 1 },
    { a: 1, b: 2 },
  ],
];

/** Fails unless an invalid schema is refused at registration, or ends the call with `call.errored`. */
async function assertSchemaErrorReported(context: CheckContext, definition: SampleDefinition): Promise<void> {
  if ((await context.tryRegister(definition)) !== undefined) return;
  const run = await context.runExpectingFailure(definition.id, { name: 'n' });
  assertSameJson(run.lifecycle().at(-1), 'call.errored', 'the last event of a call with an invalid schema');
}

/** Fails unless every member of the original is unchanged. A registry may add members. */
function assertMembersKept(actual: unknown, original: SampleDefinition, what: string): void {
  for (const [member, value] of Object.entries(original))
    assertSameJson(ownProperty(actual, member), value, `${member} of ${what}`);
}

/** The checks of the content of definitions. */
export const definitionContentChecks: readonly ConformanceCheck[] = checksOf(1, [
  {
    id: 'DEF-03',
    section: '4',
    level: 'MUST',
    title: 'an id is unique: after a second definition, it refers to exactly one of the two',
    async run(context) {
      await context.register(echoLoop(context, 'same'), compositeLoop('around', [sampleStep('same')]));
      const refusal = await context.tryRegister(failingLoop(context, 'same'));
      if (refusal === undefined) context.addNote('a second definition of an id and version is not refused');
      const successes: boolean[] = [];
      for (const id of ['same', 'around', 'same']) successes.push((await context.run(id, {})).hasSucceeded);
      const isConsistent = successes.every((success) => success === successes[0]);
      assertThat(
        isConsistent,
        `one id refers to two loops: the runs of an echo succeed, those of a failing tool fail: ${describeValue(successes)}`,
      );
      if (refusal !== undefined)
        assertSameJson(successes[0], true, 'whether the first definition is in effect after the second was refused');
    },
  },
  {
    id: 'DEF-08',
    section: '4',
    level: 'SHOULD',
    title: 'a schema in Draft 2020-12 is honoured',
    async run(context) {
      for (const [index, [schema, valid, invalid]] of draft2020Cases.entries()) {
        for (const side of ['inputSchema', 'outputSchema']) {
          const id = `modern-${index}-${side}`;
          await context.register(echoLoop(context, id, { [side]: { $schema: DRAFT_2020_12_URI, ...schema } }));
          await context.runExpectingSuccess(id, valid);
          await context.runExpectingFailure(id, invalid);
        }
      }
    },
  },
  {
    id: 'DEF-09',
    section: '4',
    level: 'MAY',
    title: 'description, backend, policy and metadata are optional, and are kept if present',
    async run(context) {
      const optionalMembers = {
        description: 'What it is for.',
        policy: {},
        metadata: { owner: { team: 'a' }, tags: ['x', 1, null] },
      };
      await context.register(promptLoop(context, 'full', optionalMembers));
      await context.register(withoutMembers(promptLoop(context, 'spare'), 'backend'));
      const definition = await context.readBack('full');
      for (const [member, value] of Object.entries(optionalMembers))
        assertSameJson(ownProperty(definition, member), value, `${member}, read back`);
      assertSameJson(ownProperty(definition, 'backend'), context.profile.backend.answering.ref, 'backend, read back');
    },
  },
  {
    id: 'DEF-10',
    section: '4',
    level: 'IMPLIED',
    title: 'an invalid schema is reported, never thrown by a run',
    async run(context) {
      const invalidSchemas = [
        { type: 'no-such-type' },
        { $ref: '#/$defs/nowhere' },
        { properties: { name: { type: 12 } } },
      ];
      for (const [index, schema] of invalidSchemas.entries()) {
        await assertSchemaErrorReported(context, echoLoop(context, `absurd-input-${index}`, { inputSchema: schema }));
        await assertSchemaErrorReported(context, echoLoop(context, `absurd-output-${index}`, { outputSchema: schema }));
      }
    },
  },
  {
    id: 'DEF-12',
    section: '4',
    level: 'IMPLIED',
    title: 'a definition is JSON: serialising and parsing it does not change it',
    async run(context) {
      await context.register(echoLoop(context, 'inner'));
      const definitions = [
        promptLoop(context, 'p', { metadata: { a: 1 } }),
        compositeLoop('c', [sampleStep('inner', { a: context.profile.path.input }, 'x'), sampleStep('inner')]),
        echoLoop(context, 't', { inputSchema: { type: ['object', 'null'], default: null } }),
      ];
      await context.register(...definitions);
      const copies: unknown[] = [];
      for (const definition of definitions) {
        const copy = jsonCopy(await context.readBack(definition.id));
        assertMembersKept(copy, definition, 'a definition, read back');
        copies.push(copy);
      }
      await context.openFreshRuntime();
      await context.register(echoLoop(context, 'inner'), ...copies);
      for (const definition of definitions) {
        assertMembersKept(await context.readBack(definition.id), definition, 'a definition after a second registry');
      }
    },
  },
  {
    id: 'DEF-15',
    section: '4, 6',
    level: 'IMPLIED',
    title: 'a call behaves from start to end like the version that its call.started names',
    async run(context) {
      const refusals: boolean[] = [];
      for (const order of [
        ['1.0.0', '2.0.0'],
        ['2.0.0', '1.0.0'],
      ]) {
        await context.openFreshRuntime();
        for (const version of order)
          refusals.push((await context.tryRegister(versionedEcho(context, version))) !== undefined);
        const { input } = context.profile.path;
        await context.register(compositeLoop('around', [sampleStep('twice', { v1: input })]));
        const versions = new Set<string>();
        for (const members of [{ v1: 1 }, { v2: 2 }, { v1: 1, v2: 2 }]) {
          const run = await context.run('twice', members);
          versions.add(assertVersion(run, run.rootCallId, members));
        }
        const nested = await context.run('around', 1);
        versions.add(assertVersion(nested, nested.callIdOf('twice'), { v1: 1 }));
        assertThat(
          versions.size === 1,
          `calls of one id have the versions ${[...versions].join(' and ')}, although none requests a version`,
        );
        context.addNote(`registered as ${order.join(', then ')}, the id refers to ${[...versions].join()}`);
      }
      if (refusals.includes(true)) context.addNote('a second version of an id is refused');
      await context.openFreshRuntime();
      await assertRunningCallKeepsVersion(context);
    },
  },
]);
