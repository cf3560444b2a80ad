/** That every input and every output is held against its schema, and nothing else happens to it (section 4). */
import { type Check, checksOf } from '../check.js';
import { demand, demandSame, isNothing, show } from '../failure.js';
import { composite, eachKind, echo, loop, NAMED, NOTHING, prompt, step } from '../samples.js';
import type { Stage } from '../stage.js';

const activity = /^(?:call\.backend|call\.tool|child)\./;

/** Inputs that a validator which mends what it reads would change. */
const mendable = {
  type: 'object',
  properties: {
    filled: { type: 'string', default: 'added' },
    number: { type: 'number' },
    nested: { type: 'object', properties: { filled: { type: 'number', default: 1 } } },
  },
  additionalProperties: false,
} as const;

async function leavesAlone(stage: Stage, loopId: string, input: unknown): Promise<void> {
  const before: unknown = structuredClone(input);
  await stage.run(loopId, input);
  demandSame(input, before, `the caller's input after a run of ${loopId}`);
}

async function keepsTypes(stage: Stage): Promise<void> {
  const typed: readonly (readonly [type: string, fits: unknown, unfit: unknown])[] = [
    ['string', 'text', 7],
    ['number', 7, '7'],
    ['array', [1], {}],
    ['null', null, ''],
    ['boolean', false, 0],
  ];
  for (const [type, fits, unfit] of typed) {
    await stage.register(echo(stage, `only-${type}`, { inputSchema: { type }, outputSchema: { type } }));
    await stage.succeed(`only-${type}`, fits);
    await stage.fail(`only-${type}`, unfit);
  }
}

export const validationChecks: readonly Check[] = checksOf(2, [
  {
    id: 'VAL-01',
    section: '4',
    level: 'MUST',
    title: 'an invalid input reaches no backend, no tool and no child',
    async run(stage) {
      let reached = 0;
      const counting = stage.custom((input) => {
        reached += 1;
        return input;
      });
      if (counting === undefined) stage.note('judged by the trace alone: the driver takes no functions as tools');
      const strict = { inputSchema: NAMED, tool: counting ?? stage.profile.tool.echo };
      await stage.register(
        loop('inner', 'tool', { tool: strict.tool }),
        loop('a-tool', 'tool', strict),
        prompt(stage, 'a-prompt', { inputSchema: NAMED }),
        composite('a-composite', [step('inner')], { inputSchema: NAMED }),
      );
      for (const id of ['a-tool', 'a-prompt', 'a-composite']) {
        const run = await stage.fail(id, { name: 7 });
        const active = run.events.map(({ type }) => type).filter((type) => activity.test(type));
        demandSame(active, [], `what ${id} did with an invalid input`);
      }
      demandSame(reached, 0, 'how often a tool was reached');
    },
  },
  {
    id: 'VAL-02',
    section: '4, 5',
    level: 'MUST',
    title: 'an invalid input leaves exactly call.started and call.errored',
    async run(stage) {
      for (const id of await eachKind(stage, { inputSchema: NAMED })) {
        const run = await stage.fail(id, {});
        demandSame(run.lifecycle(), ['call.started', 'call.errored'], `the events of ${id}`);
      }
    },
  },
  {
    id: 'VAL-03',
    section: '4',
    level: 'MUST',
    title: 'an invalid output is never handed out as a success',
    async run(stage) {
      await stage.register(echo(stage, 'fine'));
      const success = (await stage.succeed('fine', {})).result.status;
      for (const id of await eachKind(stage, { outputSchema: NOTHING })) {
        const { output, status } = (await stage.fail(id, {})).result;
        demand(isNothing(output), `${id} handed out ${show(output)}, which its outputSchema forbids`);
        demand(status !== success, `${id} has the status ${show(status)}, that of a success`);
      }
    },
  },
  {
    id: 'VAL-04',
    section: '4, 5',
    level: 'MUST',
    title: 'an invalid output ends in call.errored, without output.validated and completed',
    async run(stage) {
      for (const id of await eachKind(stage, { outputSchema: NOTHING })) {
        const lifecycle = (await stage.fail(id, {})).lifecycle();
        demandSame(lifecycle.at(-1), 'call.errored', `the last event of ${id}`);
        for (const type of ['call.output.validated', 'call.completed']) {
          demand(!lifecycle.includes(type), `${id} has ${type} although its output is invalid`);
        }
      }
    },
  },
  {
    id: 'VAL-05',
    section: '4',
    level: 'MUST',
    title: 'the inputs and outputs of children are validated too',
    async run(stage) {
      await stage.register(
        echo(stage, 'picky', { inputSchema: NAMED }),
        echo(stage, 'poor', { outputSchema: NAMED }),
        composite('to-picky', [step('picky')]),
        composite('to-poor', [step('poor')]),
      );
      const before = await stage.fail('to-picky', {});
      demandSame(before.lifecycle(before.callOf('picky')), ['call.started', 'call.errored'], 'a child with bad input');
      const after = await stage.fail('to-poor', {});
      demandSame(
        after.lifecycle(after.callOf('poor')),
        ['call.started', 'call.input.validated', 'call.tool.invoked', 'call.tool.returned', 'call.errored'],
        'a child with bad output',
      );
    },
  },
  {
    id: 'VAL-06',
    section: '4',
    level: 'IMPLIED',
    title: "validation does not alter the caller's input",
    async run(stage) {
      await stage.register(
        echo(stage, 'mend', { inputSchema: mendable }),
        composite('pass', [step('mend', { nested: `${stage.profile.path.input}.nested` })]),
      );
      await leavesAlone(stage, 'mend', { number: 1, nested: {} });
      await leavesAlone(stage, 'mend', { number: '1' });
      await leavesAlone(stage, 'mend', { surplus: true });
      await leavesAlone(stage, 'pass', { nested: {} });
    },
  },
  {
    id: 'VAL-07',
    section: '4',
    level: 'IMPLIED',
    title: 'boolean schemas work, and so do values that are not objects',
    async run(stage) {
      await stage.register(
        echo(stage, 'any', { inputSchema: true, outputSchema: true }),
        echo(stage, 'no-input', { inputSchema: false }),
        echo(stage, 'no-output', { outputSchema: false }),
      );
      for (const value of ['text', '', 7, 0, true, false, null, [], [1, ['x']], {}]) {
        demandSame((await stage.succeed('any', value)).result.output, value, 'what an echo gave back');
      }
      await stage.fail('no-input', {});
      await stage.fail('no-output', {});
      await keepsTypes(stage);
    },
  },
]);
