/** Which definitions a registry accepts, and what it keeps of them (sections 3 and 4). */
import { type Check, checksOf } from '../check.js';
import { demand, demandSame, own, show } from '../failure.js';
import { composite, type Definition, echo, failing, loop, NOTHING, prompt, step } from '../samples.js';
import type { Stage } from '../stage.js';

const REQUIRED = ['id', 'name', 'version', 'inputSchema', 'outputSchema', 'kind'] as const;

function without(definition: Definition, ...members: readonly string[]): object {
  return Object.fromEntries(Object.entries(definition).filter(([name]) => !members.includes(name)));
}

/** A body for each kind, all of them sound. */
async function soundBodies(stage: Stage): Promise<{ readonly [kind: string]: unknown }> {
  await stage.register(echo(stage, 'inner'));
  const { profile } = stage;
  return {
    prompt: profile.prompt(['Say something.']),
    composite: { steps: [step('inner')] },
    tool: profile.tool.echo,
  };
}

const activity: { readonly [kind: string]: RegExp } = {
  prompt: /^call\.backend\./,
  composite: /^child\./,
  tool: /^call\.tool\./,
};

/** A second definition that comes while a call of the first one runs. */
async function keepsWhatItBegan(stage: Stage): Promise<void> {
  const tool = stage.custom(async (input) => {
    await stage.refusal(echo(stage, 'moving', { version: '2.0.0', outputSchema: NOTHING }));
    return input;
  });
  if (tool === undefined) return stage.note('not judged while a call runs: the driver takes no functions as tools');
  await stage.register(loop('moving', 'tool', { tool }));
  const run = await stage.succeed('moving', { n: 1 });
  demandSame(own(run.payload('call.started'), 'loopVersion'), '1.0.0', 'the version of a call that had begun');
}

const DRAFT = 'https://json-schema.org/draft/2020-12/schema';
const modern: readonly (readonly [schema: object, fits: unknown, unfit: unknown])[] = [
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

/** A schema that means nothing is refused, or ends the call; it never takes the runtime by surprise. */
async function reportsSchema(stage: Stage, definition: Definition): Promise<void> {
  if ((await stage.refusal(definition)) !== undefined) return;
  const run = await stage.fail(definition.id, { name: 'n' });
  demandSame(run.lifecycle().at(-1), 'call.errored', 'the last event of a call whose schema means nothing');
}

export const definitionChecks: readonly Check[] = checksOf(1, [
  {
    id: 'DEF-01',
    section: '4',
    level: 'MUST',
    title: 'a definition with the required members only is accepted, of each kind',
    async run(stage) {
      const bodies = await soundBodies(stage);
      for (const [kind, body] of Object.entries(bodies)) {
        await stage.register(loop(`least-${kind}`, kind, { [kind]: body }));
      }
    },
  },
  {
    id: 'DEF-02',
    section: '4',
    level: 'MUST',
    title: 'a definition that lacks a required member is refused',
    async run(stage) {
      await stage.register(echo(stage, 'whole'));
      for (const member of REQUIRED) await stage.refused(without(echo(stage, 'part'), member), `without ${member} it`);
    },
  },
  {
    id: 'DEF-03',
    section: '4',
    level: 'MUST',
    title: 'an id is unique: a second definition does not take the place of the first',
    async run(stage) {
      await stage.register(echo(stage, 'same'));
      await stage.refused(failing(stage, 'same'), 'another definition of the same id and version');
      await stage.succeed('same', { n: 1 });
      await keepsWhatItBegan(stage);
    },
  },
  {
    id: 'DEF-04',
    section: '4',
    level: 'MUST',
    title: 'a version is semver, with or without prerelease and build',
    async run(stage) {
      for (const version of ['1', '1.0', 'v1.0', 'v1.0.0', 'latest', '', '1.0.0.0', '1.0.0-', '01.0.0']) {
        await stage.refused(echo(stage, 'loose', { version }), `the version ${show(version)}`);
      }
      const exact = ['0.0.0', '10.20.30', '1.0.0-rc.1', '1.0.0+build.5', '1.0.0-alpha-a.b+exp.sha.5'];
      for (const [index, version] of exact.entries()) await stage.register(echo(stage, `exact-${index}`, { version }));
    },
  },
  {
    id: 'DEF-05',
    section: '3',
    level: 'MUST',
    title: 'a kind other than the three is refused',
    async run(stage) {
      const bodies = await soundBodies(stage);
      for (const kind of ['agent', 'Tool', '', 'constructor', ['tool'], 3, null]) {
        await stage.refused(loop('odd', 'tool', { ...bodies, kind }), `the kind ${show(kind)}`);
      }
    },
  },
  {
    id: 'DEF-06',
    section: '3',
    level: 'MUST',
    title: 'a body of another kind is refused or left alone',
    async run(stage) {
      const bodies = await soundBodies(stage);
      const backend = stage.profile.backend.answering.ref;
      for (const kind of Object.keys(bodies)) {
        const all = loop(`all-${kind}`, kind, { ...bodies, backend });
        await stage.refused(without(all, kind), `the kind ${kind} with bodies of the others only`);
        if ((await stage.refusal(all)) !== undefined) continue;
        const run = await stage.succeed(all.id, {});
        for (const [other, pattern] of Object.entries(activity)) {
          const active = run.lifecycle().some((type) => pattern.test(type));
          demandSame(active, other === kind, `whether a loop of kind ${kind} used its ${other} body`);
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
        await stage.refused(loop('hollow', kind, {}), `the kind ${kind} without a body`);
      }
    },
  },
  {
    id: 'DEF-08',
    section: '4',
    level: 'SHOULD',
    title: 'a schema in Draft 2020-12 is honoured',
    async run(stage) {
      for (const [index, [schema, fits, unfit]] of modern.entries()) {
        for (const side of ['inputSchema', 'outputSchema']) {
          const id = `modern-${index}-${side}`;
          await stage.register(echo(stage, id, { [side]: { $schema: DRAFT, ...schema } }));
          await stage.succeed(id, fits);
          await stage.fail(id, unfit);
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
      await stage.register(prompt(stage, 'full', full));
      await stage.register(without(prompt(stage, 'spare'), 'backend'));
      const kept = await stage.readBack('full');
      for (const [member, value] of Object.entries(full)) demandSame(own(kept, member), value, `${member}, read back`);
      demandSame(own(kept, 'backend'), stage.profile.backend.answering.ref, 'backend, read back');
    },
  },
  {
    id: 'DEF-10',
    section: '4',
    level: 'MUST',
    title: 'a schema that means nothing is reported, never thrown out of a run',
    async run(stage) {
      const absurd = [{ type: 'no-such-type' }, { $ref: '#/$defs/nowhere' }, { properties: { name: { type: 12 } } }];
      for (const [index, schema] of absurd.entries()) {
        await reportsSchema(stage, echo(stage, `absurd-input-${index}`, { inputSchema: schema }));
        await reportsSchema(stage, echo(stage, `absurd-output-${index}`, { outputSchema: schema }));
      }
    },
  },
  {
    id: 'DEF-11',
    section: '9.1',
    level: 'IMPLIED',
    title: 'members that LSEM does not know do not make a definition fail',
    async run(stage) {
      await stage.register(echo(stage, 'extended', { 'x-owner': 'me', somethingNew: { deep: [1] } }));
      await stage.succeed('extended', { n: 1 });
    },
  },
  {
    id: 'DEF-12',
    section: '4',
    level: 'IMPLIED',
    title: 'a definition is JSON: written out and read in again it is the same',
    async run(stage) {
      await stage.register(echo(stage, 'inner'));
      const given = [
        prompt(stage, 'p', { metadata: { a: 1 } }),
        composite('c', [step('inner', { a: stage.profile.path.input }, 'x'), step('inner')]),
        echo(stage, 't', { inputSchema: { type: ['object', 'null'], default: null } }),
      ];
      await stage.register(...given);
      const copies: unknown[] = [];
      for (const { id } of given) copies.push(JSON.parse(JSON.stringify(await stage.readBack(id))));
      demandSame(copies, given, 'the definitions, read back');
      await stage.fresh();
      await stage.register(echo(stage, 'inner'), ...copies);
      for (const definition of given) {
        demandSame(await stage.readBack(definition.id), definition, 'a definition after a second registry');
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
        await stage.refused(echo(stage, 'typed', { [member]: value }), `${member} as ${show(value)}`);
      }
      await stage.refused(loop('typed', 'composite', { composite: { steps: 'inner' } }), 'steps that are no list');
      for (const value of [null, 'a loop', 7, []]) await stage.refused(value, 'what is not an object');
    },
  },
  {
    id: 'DEF-14',
    section: '7',
    level: 'IMPLIED',
    title: 'a step without its required members is refused or fails in good order',
    async run(stage) {
      await stage.register(echo(stage, 'inner'));
      const steps = [{ inputMapping: {} }, { loopId: 7, inputMapping: {} }, { loopId: 'inner' }, 'inner', null];
      for (const [index, flawed] of steps.entries()) {
        const definition = composite(`flawed-${index}`, [flawed]);
        if ((await stage.refusal(definition)) !== undefined) continue;
        const run = await stage.fail(definition.id, {});
        const opened = run.payloads('child.started').length;
        demand(opened === run.payloads('child.completed').length, `the step ${show(flawed)} opened a frame for ever`);
      }
    },
  },
]);
