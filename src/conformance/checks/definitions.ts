/** Which definitions a registry accepts, and what it keeps of them (sections 3 and 4). */
import { ownProperty } from '../../base/own-property.js';
import { assertSameJson, assertThat, describeValue } from '../assertions.js';
import { type ConformanceCheck, checksOf } from '../check.js';
import type { CheckContext } from '../check-context.js';
import { containsText, jsonCopy } from '../json.js';
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
} from '../sample-loops.js';
import { DRAFT_2020_12_URI, draft2020Cases, nearMisses } from './definition-data.js';

const REQUIRED_MEMBERS = ['id', 'name', 'version', 'inputSchema', 'outputSchema', 'kind'] as const;

function withoutMembers(definition: SampleDefinition, ...members: readonly string[]): object {
  return Object.fromEntries(Object.entries(definition).filter(([name]) => !members.includes(name)));
}

/** A body for each kind, all of them sound. */
async function validBodies(stage: CheckContext): Promise<{ readonly [kind: string]: unknown }> {
  await stage.register(echoLoop(stage, 'inner'));
  const { profile } = stage;
  return {
    prompt: profile.prompt(['Say something.']),
    composite: { steps: [sampleStep('inner')] },
    tool: profile.tool.echo,
  };
}

const ACTIVITY_PATTERNS: { readonly [kind: string]: RegExp } = {
  prompt: /^call\.backend\./,
  composite: /^child\./,
  tool: /^call\.tool\./,
};

/** A call is of one definition: a version that comes while it runs does not judge its output. */
async function assertRunningCallKeepsVersion(stage: CheckContext): Promise<void> {
  const tool = stage.customTool(async (input) => {
    await stage.registrationRefusal(echoLoop(stage, 'moving', { version: '2.0.0', outputSchema: NEVER_SCHEMA }));
    return input;
  });
  if (tool === undefined) return stage.addNote('not judged while a call runs: the driver takes no functions as tools');
  await stage.register(sampleLoop('moving', 'tool', { tool }));
  const run = await stage.runExpectingSuccess('moving', { n: 1 });
  assertSameJson(
    ownProperty(run.payload('call.started'), 'loopVersion'),
    '1.0.0',
    'the version of a call that had begun',
  );
}

/** Two versions of an id, told apart by which inputs they take. */
function versionedEcho(stage: CheckContext, version: string): SampleDefinition {
  return echoLoop(stage, 'twice', { version, inputSchema: { type: 'object', required: [`v${version.charAt(0)}`] } });
}

/** A call of an id that has two versions: it tells which one it is, and is that one. */
function assertVersion(run: RecordedRun, callId: string, input: { readonly [member: string]: unknown }): string {
  const version = ownProperty(run.payload('call.started', callId), 'loopVersion');
  assertThat(
    version === '1.0.0' || version === '2.0.0',
    `a call has the version ${describeValue(version)}, of 1.0.0 and 2.0.0`,
  );
  const fits = Object.hasOwn(input, `v${version.charAt(0)}`);
  const passed = run.lifecycle(callId).includes('call.completed');
  assertSameJson(
    passed,
    fits,
    `whether ${describeValue(input)} passed by the inputSchema of ${version}, which call.started names`,
  );
  return version;
}

/** A schema that means nothing is refused, or ends the call; it never takes the runtime by surprise. */
async function assertSchemaErrorReported(stage: CheckContext, definition: SampleDefinition): Promise<void> {
  if ((await stage.registrationRefusal(definition)) !== undefined) return;
  const run = await stage.runExpectingFailure(definition.id, { name: 'n' });
  assertSameJson(run.lifecycle().at(-1), 'call.errored', 'the last event of a call whose schema means nothing');
}

/** Every member that was given is still there; a registry may add members of its own. */
function assertMembersKept(seen: unknown, given: SampleDefinition, what: string): void {
  for (const [member, value] of Object.entries(given))
    assertSameJson(ownProperty(seen, member), value, `${member} of ${what}`);
}

export const definitionChecks: readonly ConformanceCheck[] = checksOf(1, [
  {
    id: 'DEF-01',
    section: '4',
    level: 'MUST',
    title: 'a definition with the required members only is accepted, of each kind',
    async run(stage) {
      const bodies = await validBodies(stage);
      for (const [kind, body] of Object.entries(bodies)) {
        await stage.register(sampleLoop(`least-${kind}`, kind, { [kind]: body }));
      }
    },
  },
  {
    id: 'DEF-02',
    section: '4',
    level: 'MUST',
    title: 'a definition that lacks a required member is refused',
    async run(stage) {
      await stage.register(echoLoop(stage, 'whole'));
      for (const member of REQUIRED_MEMBERS)
        await stage.assertRefused(withoutMembers(echoLoop(stage, 'part'), member), `without ${member} it`);
    },
  },
  {
    id: 'DEF-03',
    section: '4',
    level: 'MUST',
    title: 'an id is unique: after a second definition of it, it means one of the two',
    async run(stage) {
      await stage.register(echoLoop(stage, 'same'), compositeLoop('around', [sampleStep('same')]));
      const refusal = await stage.registrationRefusal(failingLoop(stage, 'same'));
      if (refusal === undefined) stage.addNote('a second definition of an id and version is not refused');
      const meanings: boolean[] = [];
      for (const id of ['same', 'around', 'same']) meanings.push((await stage.run(id, {})).hasSucceeded);
      const same = meanings.every((works) => works === meanings[0]);
      assertThat(
        same,
        `one id means two things: an echo where ${describeValue(meanings)} is true, and a failing tool elsewhere`,
      );
      if (refusal !== undefined)
        assertSameJson(meanings[0], true, 'whether the first definition holds once the second was refused');
    },
  },
  {
    id: 'DEF-04',
    section: '4',
    level: 'MUST',
    title: 'a version is semver, with or without prerelease and build',
    async run(stage) {
      for (const version of ['1', '1.0', 'v1.0', 'v1.0.0', 'latest', '', '1.0.0.0', '1.0.0-', '01.0.0']) {
        await stage.assertRefused(echoLoop(stage, 'loose', { version }), `the version ${describeValue(version)}`);
      }
      const exact = ['0.0.0', '10.20.30', '1.0.0-rc.1', '1.0.0+build.5', '1.0.0-alpha-a.b+exp.sha.5'];
      for (const [index, version] of exact.entries())
        await stage.register(echoLoop(stage, `exact-${index}`, { version }));
    },
  },
  {
    id: 'DEF-05',
    section: '3',
    level: 'MUST',
    title: 'a kind other than the three is refused',
    async run(stage) {
      const bodies = await validBodies(stage);
      for (const kind of ['agent', 'Tool', '', 'constructor', ['tool'], 3, null]) {
        await stage.assertRefused(sampleLoop('odd', 'tool', { ...bodies, kind }), `the kind ${describeValue(kind)}`);
      }
    },
  },
  {
    id: 'DEF-06',
    section: '3',
    level: 'MUST',
    title: 'a body of another kind is refused or left alone',
    async run(stage) {
      const bodies = await validBodies(stage);
      const backend = stage.profile.backend.answering.ref;
      for (const kind of Object.keys(bodies)) {
        const all = sampleLoop(`all-${kind}`, kind, { ...bodies, backend });
        await stage.assertRefused(withoutMembers(all, kind), `the kind ${kind} with bodies of the others only`);
        if ((await stage.registrationRefusal(all)) !== undefined) continue;
        const run = await stage.runExpectingSuccess(all.id, {});
        for (const [other, pattern] of Object.entries(ACTIVITY_PATTERNS)) {
          const active = run.lifecycle().some((type) => pattern.test(type));
          assertSameJson(active, other === kind, `whether a loop of kind ${kind} used its ${other} body`);
        }
      }
    },
  },
  {
    id: 'DEF-07',
    section: '4',
    level: 'MUST',
    title: 'a definition without the body of its kind is refused',
    async run(stage) {
      for (const kind of ['prompt', 'composite', 'tool']) {
        await stage.assertRefused(sampleLoop('hollow', kind, {}), `the kind ${kind} without a body`);
      }
    },
  },
  {
    id: 'DEF-08',
    section: '4',
    level: 'SHOULD',
    title: 'a schema in Draft 2020-12 is honoured',
    async run(stage) {
      for (const [index, [schema, fits, unfit]] of draft2020Cases.entries()) {
        for (const side of ['inputSchema', 'outputSchema']) {
          const id = `modern-${index}-${side}`;
          await stage.register(echoLoop(stage, id, { [side]: { $schema: DRAFT_2020_12_URI, ...schema } }));
          await stage.runExpectingSuccess(id, fits);
          await stage.runExpectingFailure(id, unfit);
        }
      }
    },
  },
  {
    id: 'DEF-09',
    section: '4',
    level: 'MAY',
    title: 'description, backend, policy and metadata may be left out, and are kept when given',
    async run(stage) {
      const full = {
        description: 'What it is for.',
        policy: {},
        metadata: { owner: { team: 'a' }, tags: ['x', 1, null] },
      };
      await stage.register(promptLoop(stage, 'full', full));
      await stage.register(withoutMembers(promptLoop(stage, 'spare'), 'backend'));
      const kept = await stage.readBack('full');
      for (const [member, value] of Object.entries(full))
        assertSameJson(ownProperty(kept, member), value, `${member}, read back`);
      assertSameJson(ownProperty(kept, 'backend'), stage.profile.backend.answering.ref, 'backend, read back');
    },
  },
  {
    id: 'DEF-10',
    section: '4',
    level: 'IMPLIED',
    title: 'a schema that means nothing is reported, never thrown out of a run',
    async run(stage) {
      const absurd = [{ type: 'no-such-type' }, { $ref: '#/$defs/nowhere' }, { properties: { name: { type: 12 } } }];
      for (const [index, schema] of absurd.entries()) {
        await assertSchemaErrorReported(stage, echoLoop(stage, `absurd-input-${index}`, { inputSchema: schema }));
        await assertSchemaErrorReported(stage, echoLoop(stage, `absurd-output-${index}`, { outputSchema: schema }));
      }
    },
  },
  {
    id: 'DEF-11',
    section: '9.1',
    level: 'IMPLIED',
    title: 'members that LSEM does not know do not make a definition fail',
    async run(stage) {
      await stage.register(echoLoop(stage, 'extended', { 'x-owner': 'me', somethingNew: { deep: [1] } }));
      await stage.runExpectingSuccess('extended', { n: 1 });
    },
  },
  {
    id: 'DEF-12',
    section: '4',
    level: 'IMPLIED',
    title: 'a definition is JSON: written out and read in again it is the same',
    async run(stage) {
      await stage.register(echoLoop(stage, 'inner'));
      const given = [
        promptLoop(stage, 'p', { metadata: { a: 1 } }),
        compositeLoop('c', [sampleStep('inner', { a: stage.profile.path.input }, 'x'), sampleStep('inner')]),
        echoLoop(stage, 't', { inputSchema: { type: ['object', 'null'], default: null } }),
      ];
      await stage.register(...given);
      const copies: unknown[] = [];
      for (const definition of given) {
        const copy = jsonCopy(await stage.readBack(definition.id));
        assertMembersKept(copy, definition, 'a definition, read back');
        copies.push(copy);
      }
      await stage.openFreshRuntime();
      await stage.register(echoLoop(stage, 'inner'), ...copies);
      for (const definition of given) {
        assertMembersKept(await stage.readBack(definition.id), definition, 'a definition after a second registry');
      }
    },
  },
  {
    id: 'DEF-13',
    section: '4',
    level: 'IMPLIED',
    title: 'a member of the wrong type is refused, and so is what is not an object',
    async run(stage) {
      const wrong = { id: 7, name: 5, version: 1, inputSchema: 'object', outputSchema: 3 };
      for (const [member, value] of Object.entries(wrong)) {
        await stage.assertRefused(
          echoLoop(stage, 'typed', { [member]: value }),
          `${member} as ${describeValue(value)}`,
        );
      }
      await stage.assertRefused(
        sampleLoop('typed', 'composite', { composite: { steps: 'inner' } }),
        'steps that are no list',
      );
      for (const value of [null, 'a loop', 7, []]) await stage.assertRefused(value, 'what is not an object');
    },
  },
  {
    id: 'DEF-14',
    section: '7',
    level: 'IMPLIED',
    title: 'a step without its required members is refused or fails in good order',
    async run(stage) {
      await stage.register(echoLoop(stage, 'inner'));
      const steps = [{ inputMapping: {} }, { loopId: 7, inputMapping: {} }, { loopId: 'inner' }, 'inner', null];
      for (const [index, flawed] of steps.entries()) {
        const definition = compositeLoop(`flawed-${index}`, [flawed]);
        if ((await stage.registrationRefusal(definition)) !== undefined) continue;
        const run = await stage.runExpectingFailure(definition.id, {});
        const opened = run.payloads('child.started').length;
        assertThat(
          opened === run.payloads('child.completed').length,
          `the step ${describeValue(flawed)} opened a frame for ever`,
        );
      }
    },
  },
  {
    id: 'DEF-15',
    section: '4, 6',
    level: 'IMPLIED',
    title: 'of two versions of an id, a call is of the one that its call.started names, from beginning to end',
    async run(stage) {
      const refusals: boolean[] = [];
      for (const order of [
        ['1.0.0', '2.0.0'],
        ['2.0.0', '1.0.0'],
      ]) {
        await stage.openFreshRuntime();
        for (const version of order)
          refusals.push((await stage.registrationRefusal(versionedEcho(stage, version))) !== undefined);
        const { input } = stage.profile.path;
        await stage.register(compositeLoop('around', [sampleStep('twice', { v1: input })]));
        const seen = new Set<string>();
        for (const members of [{ v1: 1 }, { v2: 2 }, { v1: 1, v2: 2 }]) {
          const run = await stage.run('twice', members);
          seen.add(assertVersion(run, run.rootCallId, members));
        }
        const nested = await stage.run('around', 1);
        seen.add(assertVersion(nested, nested.callIdOf('twice'), { v1: 1 }));
        assertThat(
          seen.size === 1,
          `calls of one id are of the versions ${[...seen].join(' and ')}, with nothing to choose by`,
        );
        stage.addNote(`registered as ${order.join(', then ')}, the id means ${[...seen].join()}`);
      }
      if (refusals.includes(true)) stage.addNote('a second version of an id is refused');
      await stage.openFreshRuntime();
      await assertRunningCallKeepsVersion(stage);
    },
  },
  {
    id: 'DEF-16',
    section: '4',
    level: 'IMPLIED',
    title: 'a member whose name is almost that of a known one is never taken for it',
    async run(stage) {
      for (const [wrong, right] of Object.entries(nearMisses)) {
        const { [right]: value, ...rest } = echoLoop(stage, 'near') as { readonly [member: string]: unknown };
        await stage.assertRefused({ ...rest, [wrong]: value }, `${wrong} in place of ${right}`);
      }
      const stray = { Backend: stage.profile.backend.failing, backends: stage.profile.backend.failing };
      const beside = promptLoop(stage, 'beside', { ...stray, InputSchema: NEVER_SCHEMA, output_schema: NEVER_SCHEMA });
      if ((await stage.registrationRefusal(beside)) === undefined) await stage.runExpectingSuccess('beside', {});
      await stage.register(echoLoop(stage, 'inner'));
      const bound = { loopId: 'inner', inputMapping: { mark: stage.profile.path.input }, outputbinding: 'first' };
      const steps = [bound, sampleStep('inner', { seen: stage.profile.path.binding('first') })];
      if ((await stage.registrationRefusal(compositeLoop('bound', steps))) !== undefined) return;
      const run = await stage.run('bound', 'mark-1');
      const read = run.hasSucceeded && containsText(run.result.output, 'mark-1');
      assertThat(!read, 'outputbinding was taken for outputBinding: a later step read what it names');
    },
  },
]);
