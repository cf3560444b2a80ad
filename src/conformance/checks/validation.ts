/** That every input and every output is held against its schema, and nothing else happens to it (section 4). */

import { assertSameJson, assertThat, describeValue, isNullish } from '../assertions.js';
import { type ConformanceCheck, checksOf } from '../check.js';
import type { CheckContext } from '../check-context.js';
import {
  compositeLoop,
  echoLoop,
  NAMED_OBJECT_SCHEMA,
  NEVER_SCHEMA,
  promptLoop,
  registerEachKind,
  sampleLoop,
  sampleStep,
} from '../sample-loops.js';

const ACTIVITY_PATTERN = /^(?:call\.backend|call\.tool|child)\./;

/** Inputs that a validator which mends what it reads would change. */
const coercibleSchema = {
  type: 'object',
  properties: {
    filled: { type: 'string', default: 'added' },
    number: { type: 'number' },
    nested: { type: 'object', properties: { filled: { type: 'number', default: 1 } } },
  },
  additionalProperties: false,
} as const;

async function assertInputUnchanged(stage: CheckContext, loopId: string, input: unknown): Promise<void> {
  const before: unknown = structuredClone(input);
  await stage.run(loopId, input);
  assertSameJson(input, before, `the caller's input after a run of ${loopId}`);
}

async function assertNoCoercion(stage: CheckContext): Promise<void> {
  const typed: readonly (readonly [type: string, fits: unknown, unfit: unknown])[] = [
    ['string', 'text', 7],
    ['number', 7, '7'],
    ['array', [1], {}],
    ['null', null, ''],
    ['boolean', false, 0],
  ];
  for (const [type, fits, unfit] of typed) {
    await stage.register(echoLoop(stage, `only-${type}`, { inputSchema: { type }, outputSchema: { type } }));
    await stage.runExpectingSuccess(`only-${type}`, fits);
    await stage.runExpectingFailure(`only-${type}`, unfit);
  }
}

export const validationChecks: readonly ConformanceCheck[] = checksOf(2, [
  {
    id: 'VAL-01',
    section: '4',
    level: 'MUST',
    title: 'an invalid input reaches no backend, no tool and no child',
    async run(stage) {
      let reached = 0;
      const counting = stage.customTool((input) => {
        reached += 1;
        return input;
      });
      if (counting === undefined) stage.addNote('judged by the trace alone: the driver takes no functions as tools');
      const strict = { inputSchema: NAMED_OBJECT_SCHEMA, tool: counting ?? stage.profile.tool.echo };
      await stage.register(
        sampleLoop('inner', 'tool', { tool: strict.tool }),
        sampleLoop('a-tool', 'tool', strict),
        promptLoop(stage, 'a-prompt', { inputSchema: NAMED_OBJECT_SCHEMA }),
        compositeLoop('a-composite', [sampleStep('inner')], { inputSchema: NAMED_OBJECT_SCHEMA }),
      );
      for (const id of ['a-tool', 'a-prompt', 'a-composite']) {
        const run = await stage.runExpectingFailure(id, { name: 7 });
        const active = run.events.map(({ type }) => type).filter((type) => ACTIVITY_PATTERN.test(type));
        assertSameJson(active, [], `what ${id} did with an invalid input`);
      }
      assertSameJson(reached, 0, 'how often a tool was reached');
    },
  },
  {
    id: 'VAL-02',
    section: '4, 5',
    level: 'MUST',
    title: 'an invalid input leaves exactly call.started and call.errored',
    async run(stage) {
      for (const id of await registerEachKind(stage, { inputSchema: NAMED_OBJECT_SCHEMA })) {
        const run = await stage.runExpectingFailure(id, {});
        assertSameJson(run.lifecycle(), ['call.started', 'call.errored'], `the events of ${id}`);
      }
    },
  },
  {
    id: 'VAL-03',
    section: '4',
    level: 'MUST',
    title: 'an invalid output is never handed out as a success',
    async run(stage) {
      await stage.register(echoLoop(stage, 'fine'));
      const success = (await stage.runExpectingSuccess('fine', {})).result.status;
      for (const id of await registerEachKind(stage, { outputSchema: NEVER_SCHEMA })) {
        const { output, status } = (await stage.runExpectingFailure(id, {})).result;
        assertThat(isNullish(output), `${id} handed out ${describeValue(output)}, which its outputSchema forbids`);
        assertThat(status !== success, `${id} has the status ${describeValue(status)}, that of a success`);
      }
    },
  },
  {
    id: 'VAL-04',
    section: '4, 5',
    level: 'MUST',
    title: 'an invalid output ends in call.errored, without output.validated and completed',
    async run(stage) {
      for (const id of await registerEachKind(stage, { outputSchema: NEVER_SCHEMA })) {
        const lifecycle = (await stage.runExpectingFailure(id, {})).lifecycle();
        assertSameJson(lifecycle.at(-1), 'call.errored', `the last event of ${id}`);
        for (const type of ['call.output.validated', 'call.completed']) {
          assertThat(!lifecycle.includes(type), `${id} has ${type} although its output is invalid`);
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
        echoLoop(stage, 'picky', { inputSchema: NAMED_OBJECT_SCHEMA }),
        echoLoop(stage, 'poor', { outputSchema: NAMED_OBJECT_SCHEMA }),
        compositeLoop('to-picky', [sampleStep('picky')]),
        compositeLoop('to-poor', [sampleStep('poor')]),
      );
      const before = await stage.runExpectingFailure('to-picky', {});
      assertSameJson(
        before.lifecycle(before.callIdOf('picky')),
        ['call.started', 'call.errored'],
        'a child with bad input',
      );
      const after = await stage.runExpectingFailure('to-poor', {});
      assertSameJson(
        after.lifecycle(after.callIdOf('poor')),
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
        echoLoop(stage, 'mend', { inputSchema: coercibleSchema }),
        compositeLoop('pass', [sampleStep('mend', { nested: `${stage.profile.path.input}.nested` })]),
      );
      await assertInputUnchanged(stage, 'mend', { number: 1, nested: {} });
      await assertInputUnchanged(stage, 'mend', { number: '1' });
      await assertInputUnchanged(stage, 'mend', { surplus: true });
      await assertInputUnchanged(stage, 'pass', { nested: {} });
    },
  },
  {
    id: 'VAL-07',
    section: '4',
    level: 'IMPLIED',
    title: 'boolean schemas work, and so do values that are not objects',
    async run(stage) {
      await stage.register(
        echoLoop(stage, 'any', { inputSchema: true, outputSchema: true }),
        echoLoop(stage, 'no-input', { inputSchema: false }),
        echoLoop(stage, 'no-output', { outputSchema: false }),
      );
      for (const value of ['text', '', 7, 0, true, false, null, [], [1, ['x']], {}]) {
        assertSameJson((await stage.runExpectingSuccess('any', value)).result.output, value, 'what an echo gave back');
      }
      await stage.runExpectingFailure('no-input', {});
      await stage.runExpectingFailure('no-output', {});
      await assertNoCoercion(stage);
    },
  },
]);
