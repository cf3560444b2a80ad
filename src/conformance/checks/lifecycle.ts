/** That every call takes its way through the lifecycle and ends once (section 5). */
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

/** What names something that is not there is refused when it is registered, or ends its call. */
async function assertErroredOrRefused(stage: CheckContext, definition: SampleDefinition): Promise<void> {
  const refusal = await stage.registrationRefusal(definition);
  if (refusal !== undefined) return stage.addNote(`${definition.id} was refused when registered`);
  const run = await stage.runExpectingFailure(definition.id, {});
  assertSameJson(run.lifecycle().at(-1), 'call.errored', `the last event of ${definition.id}`);
}

export const lifecycleChecks: readonly ConformanceCheck[] = checksOf(3, [
  {
    id: 'LIF-01',
    section: '5',
    level: 'MUST',
    title: 'a prompt call has its six events, in order, once each',
    async run(stage) {
      await stage.register(promptLoop(stage, 'prompt'));
      assertSameJson(
        (await stage.runExpectingSuccess('prompt', {})).lifecycle(),
        PROMPT_EVENTS,
        'the events of a prompt call',
      );
    },
  },
  {
    id: 'LIF-02',
    section: '5',
    level: 'MUST',
    title: 'a tool call has its six events, in order, once each',
    async run(stage) {
      await stage.register(echoLoop(stage, 'tool'));
      assertSameJson(
        (await stage.runExpectingSuccess('tool', {})).lifecycle(),
        TOOL_EVENTS,
        'the events of a tool call',
      );
    },
  },
  {
    id: 'LIF-03',
    section: '5',
    level: 'MUST',
    title: 'a composite call frames each step, between validated input and validated output',
    async run(stage) {
      await stage.register(echoLoop(stage, 'inner'), compositeLoop('two', [sampleStep('inner'), sampleStep('inner')]));
      const expected = [...OPENING_EVENTS, ...CHILD_EVENTS, ...CHILD_EVENTS, ...CLOSING_EVENTS];
      assertSameJson(
        (await stage.runExpectingSuccess('two', {})).lifecycle(),
        expected,
        'the events of a composite call',
      );
    },
  },
  {
    id: 'LIF-04',
    section: '5',
    level: 'MUST',
    title: 'a backend that fails was requested, did not respond, and the call errored',
    async run(stage) {
      await stage.register(promptLoop(stage, 'mute', { backend: stage.profile.backend.failing }));
      const expected = [...OPENING_EVENTS, 'call.backend.requested', 'call.errored'];
      assertSameJson(
        (await stage.runExpectingFailure('mute', {})).lifecycle(),
        expected,
        'the events of a prompt call that failed',
      );
    },
  },
  {
    id: 'LIF-05',
    section: '5',
    level: 'MUST',
    title: 'a tool that fails was invoked, did not return, and the call errored',
    async run(stage) {
      await stage.register(failingLoop(stage, 'failing'));
      const expected = [...OPENING_EVENTS, 'call.tool.invoked', 'call.errored'];
      assertSameJson(
        (await stage.runExpectingFailure('failing', {})).lifecycle(),
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
    async run(stage) {
      await runSampleLoops(stage);
      for (const { loopId, events } of stage.recordedRuns.filter((run) => run.hasEnded)) {
        for (const [callId, call] of eventsByCall(events)) {
          const ends = call.filter(isTerminal).length;
          assertThat(
            ends === 1,
            () => `call ${describeValue(callId)} in a run of ${loopId} has ${ends} terminal events`,
          );
          const last = call.at(-1);
          const over = last !== undefined && isTerminal(last);
          assertThat(over, () => `${describeValue(last?.type)} comes after the end of a call of ${loopId}`);
        }
      }
    },
  },
  {
    id: 'LIF-07',
    section: '5',
    level: 'MUST',
    title: 'a backend or tool that is not there ends the call, not the runtime',
    async run(stage) {
      await assertErroredOrRefused(stage, promptLoop(stage, 'no-backend', { backend: stage.profile.backend.unknown }));
      await assertErroredOrRefused(stage, sampleLoop('no-tool', 'tool', { tool: stage.profile.tool.unknown }));
    },
  },
  {
    id: 'LIF-08',
    section: '5',
    level: 'MUST',
    title: 'a loop that is not there is refused, or gives a whole failed call',
    async run(stage) {
      await stage.register(echoLoop(stage, 'known'));
      const run = await stage.tryRun('nobody', {});
      if (run.refusalReason === undefined)
        assertThat(run.error !== undefined, 'a loop that is not there gave no error');
      for (const call of eventsByCall(run.events).values()) {
        assertThat(
          followsLifecycle(call),
          `a call of a loop that is not there broke off: ${describeValue(call.map((e) => e.type))}`,
        );
      }
    },
  },
  {
    id: 'LIF-09',
    section: '5',
    level: 'MUST',
    title: 'each child has a complete lifecycle under a call id of its own',
    async run(stage) {
      await stage.register(
        echoLoop(stage, 'tool'),
        promptLoop(stage, 'prompt'),
        compositeLoop('inner', [sampleStep('tool')]),
        compositeLoop('outer', [sampleStep('inner'), sampleStep('prompt')]),
      );
      const run = await stage.runExpectingSuccess('outer', {});
      const ids = ['outer', 'inner', 'tool', 'prompt'].map((id) => run.callIdOf(id));
      assertSameJson(new Set(ids).size, 4, 'how many call ids four calls have');
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
    title: 'the status of a result and of child.completed say how the call ended',
    async run(stage) {
      await stage.register(
        echoLoop(stage, 'fine'),
        failingLoop(stage, 'failing'),
        compositeLoop('both', [sampleStep('fine'), sampleStep('failing')]),
        compositeLoop('well', [sampleStep('fine')]),
      );
      const good = (await stage.runExpectingSuccess('fine', {})).result.status;
      const bad = (await stage.runExpectingFailure('failing', {})).result.status;
      assertThat(
        isNonEmptyString(good) && isNonEmptyString(bad) && good !== bad,
        `success is ${describeValue(good)} and failure is ${describeValue(bad)}`,
      );
      const both = await stage.runExpectingFailure('both', {});
      const well = await stage.runExpectingSuccess('well', {});
      assertSameJson(both.result.status, bad, 'the status of a composite that failed');
      assertSameJson(well.result.status, good, 'the status of a composite that succeeded');
      const statuses = (run: RecordedRun) =>
        run.payloads('child.completed').map((payload) => ownProperty(payload, 'status'));
      const [fine, broken] = statuses(both);
      assertThat(
        isNonEmptyString(fine) && isNonEmptyString(broken) && fine !== broken,
        `child.completed has ${describeValue([fine, broken])} for a success and a failure`,
      );
      assertSameJson(statuses(well), [fine], 'the status of a child that succeeded, in another run');
      if (fine !== good || broken !== bad)
        stage.addNote('child.completed has other words for its status than a result');
    },
  },
  {
    id: 'LIF-11',
    section: '5',
    level: 'MUST',
    title: 'every call of every run takes a way through the diagram',
    coversAllRuns: true,
    async run(stage) {
      await runSampleLoops(stage);
      for (const { loopId, events } of stage.recordedRuns.filter((run) => run.hasEnded && !run.isBeyondLsem)) {
        for (const call of eventsByCall(events).values()) {
          const types = (): string => describeValue(call.map(({ type }) => type));
          assertThat(followsLifecycle(call), () => `a call in a run of ${loopId} went another way: ${types()}`);
        }
      }
    },
  },
  {
    id: 'LIF-12',
    section: '5, 6',
    level: 'IMPLIED',
    title:
      "a composite in code has the events of a composite; what else its body does stands in the runtime's namespace",
    async run(stage) {
      await stage.register(echoLoop(stage, 'tool'), promptLoop(stage, 'prompt'));
      let acts = true;
      await stage.registerCode('coded', async (input, scope) => {
        acts = scope.effect !== undefined;
        await scope.effect?.('coded', () => 'done');
        await scope.call('prompt', {});
        return scope.call('tool', input);
      });
      const run = await stage.runBeyondLsem('coded', { n: 1 });
      assertSameJson(run.result.output, { n: 1 }, 'the output of a composite in code');
      assertSameJson(
        run.lifecycle(),
        [...OPENING_EVENTS, ...CHILD_EVENTS, ...CHILD_EVENTS, ...CLOSING_EVENTS],
        'the events of a composite in code',
      );
      assertSameJson(run.lifecycle(run.callIdOf('tool')), TOOL_EVENTS, 'the events of a tool that code calls');
      assertSameJson(run.lifecycle(run.callIdOf('prompt')), PROMPT_EVENTS, 'the events of a prompt that code calls');
      assertFrames(run);
      if (!acts) stage.addNote('bodies in code cannot do anything outside of a loop');
    },
  },
  {
    id: 'LIF-13',
    section: '5, 6',
    level: 'IMPLIED',
    title: 'an agent is a composite: it frames its calls, and has no events of a prompt or a tool',
    async run(stage) {
      await stage.register(echoLoop(stage, 'one'), echoLoop(stage, 'two'));
      await stage.registerAgent('agent', ['one', 'two']);
      const run = await stage.runBeyondLsem('agent', { prompt: 'Do it.' });
      for (const id of ['one', 'two'])
        assertSameJson(run.lifecycle(run.callIdOf(id)), TOOL_EVENTS, `the events of the tool ${id}`);
      assertFrames(run);
      for (const [callId, call] of eventsByCall(run.events)) {
        const types = lifecycleOf(call);
        const strange = types.find((type) => /^call\.(?:backend|tool)\./.test(type));
        assertThat(
          callId !== run.rootCallId || strange === undefined,
          `an agent has ${strange}, an event of another kind: ${describeValue(types)}`,
        );
        assertThat(
          closesChildFrames(call) || followsLifecycle(call),
          `a call of an agent went another way: ${describeValue(types)}`,
        );
      }
    },
  },
]);
