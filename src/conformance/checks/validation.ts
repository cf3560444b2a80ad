/**
 * Checks of validation: every input and output is validated against its schema and not altered (sections 4 and 5 of
 * LSEM).
 */
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

/** A schema with defaults and types for which a validator that coerces would change its input. */
const coercibleSchema = {
  type: 'object',
  properties: {
    filled: { type: 'string', default: 'added' },
    number: { type: 'number' },
    nested: { type: 'object', properties: { filled: { type: 'number', default: 1 } } },
  },
  additionalProperties: false,
} as const;

async function assertInputUnchanged(context: CheckContext, loopId: string, input: unknown): Promise<void> {
  const before: unknown = structuredClone(input);
  await context.run(loopId, input);
  assertSameJson(input, before, `the caller's input after a run of ${loopId}`);
}

async function assertNoCoercion(context: CheckContext): Promise<void> {
  const cases: readonly (readonly [type: string, valid: unknown, invalid: unknown])[] = [
    ['string', 'text', 7],
    ['number', 7, '7'],
    ['array', [1], {}],
    ['null', null, ''],
    ['boolean', false, 0],
  ];
  for (const [type, valid, invalid] of cases) {
    await context.register(echoLoop(context, `only-${type}`, { inputSchema: { type }, outputSchema: { type } }));
    await context.runExpectingSuccess(`only-${type}`, valid);
    await context.runExpectingFailure(`only-${type}`, invalid);
  }
}

/** The checks of validation. */
export const validationChecks: readonly ConformanceCheck[] = checksOf(2, [
  {
    id: 'VAL-01',
    section: '4',
    level: 'MUST',
    title: 'an invalid input reaches no backend, no tool and no child',
    async run(context) {
      let callCount = 0;
      const countingTool = context.customTool((input) => {
        callCount += 1;
        return input;
      });
      if (countingTool === undefined)
        context.addNote('checked by the trace alone: the driver has no custom tools (tool.custom)');
      const strict = { inputSchema: NAMED_OBJECT_SCHEMA, tool: countingTool ?? context.profile.tool.echo };
      await context.register(
        sampleLoop('inner', 'tool', { tool: strict.tool }),
        sampleLoop('a-tool', 'tool', strict),
        promptLoop(context, 'a-prompt', { inputSchema: NAMED_OBJECT_SCHEMA }),
        compositeLoop('a-composite', [sampleStep('inner')], { inputSchema: NAMED_OBJECT_SCHEMA }),
      );
      for (const id of ['a-tool', 'a-prompt', 'a-composite']) {
        const run = await context.runExpectingFailure(id, { name: 7 });
        const activity = run.events.map(({ type }) => type).filter((type) => ACTIVITY_PATTERN.test(type));
        assertSameJson(activity, [], `the activity of ${id} with an invalid input`);
      }
      assertSameJson(callCount, 0, 'the number of tool calls');
    },
  },
  {
    id: 'VAL-02',
    section: '4, 5',
    level: 'MUST',
    title: 'an invalid input emits exactly call.started and call.errored',
    async run(context) {
      for (const id of await registerEachKind(context, { inputSchema: NAMED_OBJECT_SCHEMA })) {
        const run = await context.runExpectingFailure(id, {});
        assertSameJson(run.lifecycle(), ['call.started', 'call.errored'], `the events of ${id}`);
      }
    },
  },
  {
    id: 'VAL-03',
    section: '4',
    level: 'MUST',
    title: 'an invalid output is never returned as a success',
    async run(context) {
      await context.register(echoLoop(context, 'fine'));
      const success = (await context.runExpectingSuccess('fine', {})).result.status;
      for (const id of await registerEachKind(context, { outputSchema: NEVER_SCHEMA })) {
        const { output, status } = (await context.runExpectingFailure(id, {})).result;
        assertThat(isNullish(output), `${id} returned ${describeValue(output)}, which its outputSchema forbids`);
        assertThat(status !== success, `${id} has the status ${describeValue(status)}, that of a success`);
      }
    },
  },
  {
    id: 'VAL-04',
    section: '4, 5',
    level: 'MUST',
    title: 'an invalid output ends with call.errored, without call.output.validated and call.completed',
    async run(context) {
      for (const id of await registerEachKind(context, { outputSchema: NEVER_SCHEMA })) {
        const lifecycle = (await context.runExpectingFailure(id, {})).lifecycle();
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
    async run(context) {
      await context.register(
        echoLoop(context, 'picky', { inputSchema: NAMED_OBJECT_SCHEMA }),
        echoLoop(context, 'poor', { outputSchema: NAMED_OBJECT_SCHEMA }),
        compositeLoop('to-picky', [sampleStep('picky')]),
        compositeLoop('to-poor', [sampleStep('poor')]),
      );
      const before = await context.runExpectingFailure('to-picky', {});
      assertSameJson(
        before.lifecycle(before.callIdOf('picky')),
        ['call.started', 'call.errored'],
        'a child with bad input',
      );
      const after = await context.runExpectingFailure('to-poor', {});
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
    async run(context) {
      await context.register(
        echoLoop(context, 'mend', { inputSchema: coercibleSchema }),
        compositeLoop('pass', [sampleStep('mend', { nested: `${context.profile.path.input}.nested` })]),
      );
      await assertInputUnchanged(context, 'mend', { number: 1, nested: {} });
      await assertInputUnchanged(context, 'mend', { number: '1' });
      await assertInputUnchanged(context, 'mend', { surplus: true });
      await assertInputUnchanged(context, 'pass', { nested: {} });
    },
  },
  {
    id: 'VAL-07',
    section: '4',
    level: 'IMPLIED',
    title: 'boolean schemas work, and so do values that are not objects',
    async run(context) {
      await context.register(
        echoLoop(context, 'any', { inputSchema: true, outputSchema: true }),
        echoLoop(context, 'no-input', { inputSchema: false }),
        echoLoop(context, 'no-output', { outputSchema: false }),
      );
      for (const value of ['text', '', 7, 0, true, false, null, [], [1, ['x']], {}]) {
        assertSameJson((await context.runExpectingSuccess('any', value)).result.output, value, 'the output of an echo');
      }
      await context.runExpectingFailure('no-input', {});
      await context.runExpectingFailure('no-output', {});
      await assertNoCoercion(context);
    },
  },
]);
