/** Checks of the lifecycle: every call follows LSEM's lifecycle diagram and ends once (sections 2, 5 and 6 of LSEM). */
import { ownProperty } from '../../base/own-property.js';
import { assertSameJson, assertThat, describeValue, isNonEmptyString } from '../assertions.js';
import { type ConformanceCheck, checksOf } from '../check.js';
import type { CheckContext } from '../check-context.js';
import { assertFrames } from '../child-frames.js';
import { closesChildFrames, eventsByCall, followsLifecycle, isTerminal, lifecycleOf } from '../events.js';
import type { RecordedRun } from '../recorded-run.js';
import {
  compositeLoop,
  echoLoop,
  failingLoop,
  promptLoop,
  runSampleLoops,
  type SampleDefinition,
  sampleLoop,
  sampleStep,
} from '../sample-loops.js';

const OPENING_EVENTS = ['call.started', 'call.input.validated'] as const;
const CLOSING_EVENTS = ['call.output.validated', 'call.completed'] as const;
const PROMPT_EVENTS = [
  ...OPENING_EVENTS,
  'call.backend.requested',
  'call.backend.responded',
  ...CLOSING_EVENTS,
] as const;
const TOOL_EVENTS = [...OPENING_EVENTS, 'call.tool.invoked', 'call.tool.returned', ...CLOSING_EVENTS] as const;
const CHILD_EVENTS = ['child.started', 'child.completed'] as const;

/** Fails unless a definition with an unknown reference is refused at registration, or its call errors. */
async function assertErroredOrRefused(context: CheckContext, definition: SampleDefinition): Promise<void> {
  const refusal = await context.tryRegister(definition);
  if (refusal !== undefined) return context.addNote(`${definition.id} was refused when registered`);
  const run = await context.runExpectingFailure(definition.id, {});
  assertSameJson(run.lifecycle().at(-1), 'call.errored', `the last event of ${definition.id}`);
}

/** The checks of the lifecycle. */
export const lifecycleChecks: readonly ConformanceCheck[] = checksOf(3, [
  {
    id: 'LIF-01',
    section: '5',
    level: 'MUST',
    title: 'a prompt call emits its six events once each, in order',
    async run(context) {
      await context.register(promptLoop(context, 'prompt'));
      assertSameJson(
        (await context.runExpectingSuccess('prompt', {})).lifecycle(),
        PROMPT_EVENTS,
        'the events of a prompt call',
      );
    },
  },
  {
    id: 'LIF-02',
    section: '5',
    level: 'MUST',
    title: 'a tool call emits its six events once each, in order',
    async run(context) {
      await context.register(echoLoop(context, 'tool'));
      assertSameJson(
        (await context.runExpectingSuccess('tool', {})).lifecycle(),
        TOOL_EVENTS,
        'the events of a tool call',
      );
    },
  },
  {
    id: 'LIF-03',
    section: '5',
    level: 'MUST',
    title: 'a composite call frames each step, between the validation of input and output',
    async run(context) {
      await context.register(
        echoLoop(context, 'inner'),
        compositeLoop('two', [sampleStep('inner'), sampleStep('inner')]),
      );
      const expected = [...OPENING_EVENTS, ...CHILD_EVENTS, ...CHILD_EVENTS, ...CLOSING_EVENTS];
      assertSameJson(
        (await context.runExpectingSuccess('two', {})).lifecycle(),
        expected,
        'the events of a composite call',
      );
    },
  },
  {
    id: 'LIF-04',
    section: '5',
    level: 'MUST',
    title: 'a call whose backend fails emits call.backend.requested, no response, and call.errored',
    async run(context) {
      await context.register(promptLoop(context, 'mute', { backend: context.profile.backend.failing }));
      const expected = [...OPENING_EVENTS, 'call.backend.requested', 'call.errored'];
      assertSameJson(
        (await context.runExpectingFailure('mute', {})).lifecycle(),
        expected,
        'the events of a prompt call that failed',
      );
    },
  },
  {
    id: 'LIF-05',
    section: '5',
    level: 'MUST',
    title: 'a call whose tool fails emits call.tool.invoked, no return, and call.errored',
    async run(context) {
      await context.register(failingLoop(context, 'failing'));
      const expected = [...OPENING_EVENTS, 'call.tool.invoked', 'call.errored'];
      assertSameJson(
        (await context.runExpectingFailure('failing', {})).lifecycle(),
        expected,
        'the events of a tool call that failed',
      );
    },
  },
  {
    id: 'LIF-06',
    section: '5',
    level: 'MUST',
    title: 'every call of every run has one terminal event, and nothing after it',
    coversAllRuns: true,
    async run(context) {
      await runSampleLoops(context);
      for (const { loopId, events } of context.suiteRuns.filter((run) => run.hasEnded)) {
        for (const [callId, call] of eventsByCall(events)) {
          const terminalCount = call.filter(isTerminal).length;
          assertThat(
            terminalCount === 1,
            () => `call ${describeValue(callId)} in a run of ${loopId} has ${terminalCount} terminal events`,
          );
          const last = call.at(-1);
          const endsWithTerminal = last !== undefined && isTerminal(last);
          assertThat(endsWithTerminal, () => `${describeValue(last?.type)} comes after the end of a call of ${loopId}`);
        }
      }
    },
  },
  {
    id: 'LIF-07',
    section: '5',
    level: 'MUST',
    title: 'an unknown backend or tool fails the call, not the runtime',
    async run(context) {
      await assertErroredOrRefused(
        context,
        promptLoop(context, 'no-backend', { backend: context.profile.backend.unknown }),
      );
      await assertErroredOrRefused(context, sampleLoop('no-tool', 'tool', { tool: context.profile.tool.unknown }));
    },
  },
  {
    id: 'LIF-08',
    section: '5',
    level: 'MUST',
    title: 'a run of an unknown loop is refused, or is a complete failed call',
    async run(context) {
      await context.register(echoLoop(context, 'known'));
      const run = await context.tryRun('unknown', {});
      if (run.refusalReason === undefined)
        assertThat(run.error !== undefined, 'the run of an unknown loop returned no error');
      for (const call of eventsByCall(run.events).values()) {
        assertThat(
          followsLifecycle(call),
          `the call of an unknown loop is incomplete: ${describeValue(call.map((e) => e.type))}`,
        );
      }
    },
  },
  {
    id: 'LIF-09',
    section: '5',
    level: 'MUST',
    title: 'each child has a complete lifecycle with its own call id',
    async run(context) {
      await context.register(
        echoLoop(context, 'tool'),
        promptLoop(context, 'prompt'),
        compositeLoop('inner', [sampleStep('tool')]),
        compositeLoop('outer', [sampleStep('inner'), sampleStep('prompt')]),
      );
      const run = await context.runExpectingSuccess('outer', {});
      const ids = ['outer', 'inner', 'tool', 'prompt'].map((id) => run.callIdOf(id));
      assertSameJson(new Set(ids).size, 4, 'the number of call ids of four calls');
      assertSameJson(run.lifecycle(run.callIdOf('tool')), TOOL_EVENTS, 'the events of a tool child');
      assertSameJson(run.lifecycle(run.callIdOf('prompt')), PROMPT_EVENTS, 'the events of a prompt child');
      assertSameJson(
        run.lifecycle(run.callIdOf('inner')),
        [...OPENING_EVENTS, ...CHILD_EVENTS, ...CLOSING_EVENTS],
        'the events of a composite child',
      );
    },
  },
  {
    id: 'LIF-10',
    section: '2, 6',
    level: 'IMPLIED',
    title: 'the status of a result and of child.completed distinguishes success and failure',
    async run(context) {
      await context.register(
        echoLoop(context, 'fine'),
        failingLoop(context, 'failing'),
        compositeLoop('both', [sampleStep('fine'), sampleStep('failing')]),
        compositeLoop('well', [sampleStep('fine')]),
      );
      const okStatus = (await context.runExpectingSuccess('fine', {})).result.status;
      const errorStatus = (await context.runExpectingFailure('failing', {})).result.status;
      assertThat(
        isNonEmptyString(okStatus) && isNonEmptyString(errorStatus) && okStatus !== errorStatus,
        `success is ${describeValue(okStatus)} and failure is ${describeValue(errorStatus)}`,
      );
      const both = await context.runExpectingFailure('both', {});
      const well = await context.runExpectingSuccess('well', {});
      assertSameJson(both.result.status, errorStatus, 'the status of a composite that failed');
      assertSameJson(well.result.status, okStatus, 'the status of a composite that succeeded');
      const statuses = (run: RecordedRun) =>
        run.payloads('child.completed').map((payload) => ownProperty(payload, 'status'));
      const [fine, broken] = statuses(both);
      assertThat(
        isNonEmptyString(fine) && isNonEmptyString(broken) && fine !== broken,
        `child.completed has ${describeValue([fine, broken])} for a success and a failure`,
      );
      assertSameJson(statuses(well), [fine], 'the status of a child that succeeded, in another run');
      if (fine !== okStatus || broken !== errorStatus)
        context.addNote('the statuses of child.completed differ from those of results');
    },
  },
  {
    id: 'LIF-11',
    section: '5',
    level: 'MUST',
    title: 'every call of every run follows the lifecycle diagram',
    coversAllRuns: true,
    async run(context) {
      await runSampleLoops(context);
      for (const { loopId, events } of context.suiteRuns.filter((run) => run.hasEnded && !run.isOutsideLsem)) {
        for (const call of eventsByCall(events).values()) {
          const types = (): string => describeValue(call.map(({ type }) => type));
          assertThat(
            followsLifecycle(call),
            () => `a call in a run of ${loopId} does not follow the diagram: ${types()}`,
          );
        }
      }
    },
  },
  {
    id: 'LIF-12',
    section: '5, 6',
    level: 'IMPLIED',
    title: "a composite in code has the events of a composite; its other events are in the runtime's namespace",
    async run(context) {
      await context.register(echoLoop(context, 'tool'), promptLoop(context, 'prompt'));
      let hasEffects = true;
      await context.registerCode('coded', async (input, scope) => {
        hasEffects = scope.effect !== undefined;
        await scope.effect?.('coded', () => 'done');
        await scope.call('prompt', {});
        return scope.call('tool', input);
      });
      const run = await context.runOutsideLsem('coded', { n: 1 });
      assertSameJson(run.result.output, { n: 1 }, 'the output of a composite in code');
      assertSameJson(
        run.lifecycle(),
        [...OPENING_EVENTS, ...CHILD_EVENTS, ...CHILD_EVENTS, ...CLOSING_EVENTS],
        'the events of a composite in code',
      );
      assertSameJson(run.lifecycle(run.callIdOf('tool')), TOOL_EVENTS, 'the events of a tool that code calls');
      assertSameJson(run.lifecycle(run.callIdOf('prompt')), PROMPT_EVENTS, 'the events of a prompt that code calls');
      assertFrames(run);
      if (!hasEffects) context.addNote('bodies in code cannot perform effects');
    },
  },
  {
    id: 'LIF-13',
    section: '5, 6',
    level: 'IMPLIED',
    title: 'an agent is a composite: it frames its calls, and emits no events of a prompt or a tool',
    async run(context) {
      await context.register(echoLoop(context, 'one'), echoLoop(context, 'two'));
      await context.registerAgent('agent', ['one', 'two']);
      const run = await context.runOutsideLsem('agent', { prompt: 'Do it.' });
      for (const id of ['one', 'two'])
        assertSameJson(run.lifecycle(run.callIdOf(id)), TOOL_EVENTS, `the events of the tool ${id}`);
      assertFrames(run);
      for (const [callId, call] of eventsByCall(run.events)) {
        const types = lifecycleOf(call);
        const unexpected = types.find((type) => /^call\.(?:backend|tool)\./.test(type));
        assertThat(
          callId !== run.rootCallId || unexpected === undefined,
          `an agent has ${unexpected}, an event of another kind: ${describeValue(types)}`,
        );
        assertThat(
          closesChildFrames(call) || followsLifecycle(call),
          `a call of an agent does not follow the diagram: ${describeValue(types)}`,
        );
      }
    },
  },
  {
    id: 'LIF-14',
    section: '5, 6',
    level: 'IMPLIED',
    title: 'a plan is a composite: it frames its calls in order, and its choices are in the namespace of the runtime',
    async run(context) {
      await context.register(echoLoop(context, 'one'), promptLoop(context, 'two'));
      await context.registerPlan('plan', ['one', 'two']);
      const run = await context.runOutsideLsem('plan', { n: 1 });
      const children = ['one', 'two', 'one', 'two'].flatMap(() => CHILD_EVENTS);
      assertSameJson(run.lifecycle(), [...OPENING_EVENTS, ...children, ...CLOSING_EVENTS], 'the events of a plan');
      assertFrames(run);
    },
  },
]);
