/**
 * Checks of definitions: members, kinds, bodies and steps that a registry accepts or refuses (sections 3, 4, 7 and 9 of
 * LSEM).
 */
import { assertSameJson, assertThat, describeValue } from '../assertions.js';
import { type ConformanceCheck, checksOf } from '../check.js';
import type { CheckContext } from '../check-context.js';
import { containsText } from '../json.js';
import {
  compositeLoop,
  echoLoop,
  NEVER_SCHEMA,
  promptLoop,
  sampleLoop,
  sampleStep,
  withoutMembers,
} from '../sample-loops.js';

const REQUIRED_MEMBERS = ['id', 'name', 'version', 'inputSchema', 'outputSchema', 'kind'] as const;

/** Registers the loop `inner` and returns a valid body for each kind. */
async function validBodies(context: CheckContext): Promise<{ readonly [kind: string]: unknown }> {
  await context.register(echoLoop(context, 'inner'));
  const { profile } = context;
  return {
    prompt: profile.prompt(['Say something.']),
    composite: { steps: [sampleStep('inner')] },
    tool: profile.tool.echo,
  };
}

/** The event types that show that a call used the body of a kind. */
const ACTIVITY_PATTERNS: { readonly [kind: string]: RegExp } = {
  prompt: /^call\.backend\./,
  composite: /^child\./,
  tool: /^call\.tool\./,
};

/** Misspelt member names, each with the member that a lenient registry would take it for. */
const nearMisses: { readonly [wrong: string]: string } = {
  ID: 'id',
  Name: 'name',
  Version: 'version',
  inputschema: 'inputSchema',
  input_schema: 'inputSchema',
  outputschema: 'outputSchema',
  outputSchemas: 'outputSchema',
  Kind: 'kind',
  Tool: 'tool',
  tools: 'tool',
};

/** The checks of the shape of definitions. */
export const definitionChecks: readonly ConformanceCheck[] = checksOf(1, [
  {
    id: 'DEF-01',
    section: '4',
    level: 'MUST',
    title: 'a definition of each kind with only the required members is accepted',
    async run(context) {
      const bodies = await validBodies(context);
      for (const [kind, body] of Object.entries(bodies)) {
        await context.register(sampleLoop(`least-${kind}`, kind, { [kind]: body }));
      }
    },
  },
  {
    id: 'DEF-02',
    section: '4',
    level: 'MUST',
    title: 'a definition that lacks a required member is refused',
    async run(context) {
      await context.register(echoLoop(context, 'complete'));
      for (const member of REQUIRED_MEMBERS)
        await context.assertRefused(
          withoutMembers(echoLoop(context, 'part'), member),
          `a definition without ${member}`,
        );
    },
  },
  {
    id: 'DEF-04',
    section: '4',
    level: 'MUST',
    title: 'a version is semver, with or without prerelease and build metadata',
    async run(context) {
      for (const version of ['1', '1.0', 'v1.0', 'v1.0.0', 'latest', '', '1.0.0.0', '1.0.0-', '01.0.0']) {
        await context.assertRefused(echoLoop(context, 'loose', { version }), `the version ${describeValue(version)}`);
      }
      const exact = ['0.0.0', '10.20.30', '1.0.0-rc.1', '1.0.0+build.5', '1.0.0-alpha-a.b+exp.sha.5'];
      for (const [index, version] of exact.entries())
        await context.register(echoLoop(context, `exact-${index}`, { version }));
    },
  },
  {
    id: 'DEF-05',
    section: '3',
    level: 'MUST',
    title: 'a kind other than prompt, composite and tool is refused',
    async run(context) {
      const bodies = await validBodies(context);
      for (const kind of ['agent', 'Tool', '', 'constructor', ['tool'], 3, null]) {
        await context.assertRefused(sampleLoop('odd', 'tool', { ...bodies, kind }), `the kind ${describeValue(kind)}`);
      }
    },
  },
  {
    id: 'DEF-06',
    section: '3',
    level: 'MUST',
    title: 'a body of another kind is refused or ignored',
    async run(context) {
      const bodies = await validBodies(context);
      const backend = context.profile.backend.answering.ref;
      for (const kind of Object.keys(bodies)) {
        const definition = sampleLoop(`all-${kind}`, kind, { ...bodies, backend });
        await context.assertRefused(
          withoutMembers(definition, kind),
          `the kind ${kind} with only bodies of other kinds`,
        );
        if ((await context.tryRegister(definition)) !== undefined) continue;
        const run = await context.runExpectingSuccess(definition.id, {});
        for (const [other, pattern] of Object.entries(ACTIVITY_PATTERNS)) {
          const isActive = run.lifecycle().some((type) => pattern.test(type));
          assertSameJson(isActive, other === kind, `whether a loop of kind ${kind} used its ${other} body`);
        }
      }
    },
  },
  {
    id: 'DEF-07',
    section: '4',
    level: 'MUST',
    title: 'a definition without the body of its kind is refused',
    async run(context) {
      for (const kind of ['prompt', 'composite', 'tool']) {
        await context.assertRefused(sampleLoop('hollow', kind, {}), `the kind ${kind} without a body`);
      }
    },
  },
  {
    id: 'DEF-11',
    section: '9.1',
    level: 'IMPLIED',
    title: 'members that LSEM does not define do not invalidate a definition',
    async run(context) {
      await context.register(echoLoop(context, 'extended', { 'x-owner': 'me', somethingNew: { deep: [1] } }));
      await context.runExpectingSuccess('extended', { n: 1 });
    },
  },
  {
    id: 'DEF-13',
    section: '4',
    level: 'IMPLIED',
    title: 'a member of the wrong type is refused, and so is a definition that is not an object',
    async run(context) {
      const wrong = { id: 7, name: 5, version: 1, inputSchema: 'object', outputSchema: 3 };
      for (const [member, value] of Object.entries(wrong)) {
        await context.assertRefused(
          echoLoop(context, 'typed', { [member]: value }),
          `${member} as ${describeValue(value)}`,
        );
      }
      await context.assertRefused(
        sampleLoop('typed', 'composite', { composite: { steps: 'inner' } }),
        'a composite whose steps are not a list',
      );
      for (const value of [null, 'a loop', 7, []])
        await context.assertRefused(value, 'a definition that is not an object');
    },
  },
  {
    id: 'DEF-14',
    section: '7',
    level: 'IMPLIED',
    title: 'a step without its required members is refused, or fails with its frame closed',
    async run(context) {
      await context.register(echoLoop(context, 'inner'));
      const steps = [{ inputMapping: {} }, { loopId: 7, inputMapping: {} }, { loopId: 'inner' }, 'inner', null];
      for (const [index, invalidStep] of steps.entries()) {
        const definition = compositeLoop(`flawed-${index}`, [invalidStep]);
        if ((await context.tryRegister(definition)) !== undefined) continue;
        const run = await context.runExpectingFailure(definition.id, {});
        const openedCount = run.payloads('child.started').length;
        assertThat(
          openedCount === run.payloads('child.completed').length,
          `the step ${describeValue(invalidStep)} left a frame open`,
        );
      }
    },
  },
  {
    id: 'DEF-16',
    section: '4',
    level: 'IMPLIED',
    title: 'a misspelt member is never read as the correct one',
    async run(context) {
      for (const [wrong, right] of Object.entries(nearMisses)) {
        const { [right]: value, ...rest } = echoLoop(context, 'near') as { readonly [member: string]: unknown };
        await context.assertRefused({ ...rest, [wrong]: value }, `${wrong} in place of ${right}`);
      }
      const misspelt = { Backend: context.profile.backend.failing, backends: context.profile.backend.failing };
      const beside = promptLoop(context, 'beside', {
        ...misspelt,
        InputSchema: NEVER_SCHEMA,
        output_schema: NEVER_SCHEMA,
      });
      if ((await context.tryRegister(beside)) === undefined) await context.runExpectingSuccess('beside', {});
      await context.register(echoLoop(context, 'inner'));
      const bound = { loopId: 'inner', inputMapping: { mark: context.profile.path.input }, outputbinding: 'first' };
      const steps = [bound, sampleStep('inner', { seen: context.profile.path.binding('first') })];
      if ((await context.tryRegister(compositeLoop('bound', steps))) !== undefined) return;
      const run = await context.run('bound', 'mark-1');
      const isBound = run.hasSucceeded && containsText(run.result.output, 'mark-1');
      assertThat(!isBound, 'outputbinding was read as outputBinding: a later step read the binding');
    },
  },
]);
