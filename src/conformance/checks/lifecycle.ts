/** That every call takes its way through the lifecycle and ends once (section 5). */
import { ownProperty } from '../../base/own-property.js';
import { type Check, checksOf } from '../check.js';
import { callsIn, followsLifecycle, framesChildren, isTerminal, lifecycleOf } from '../events.js';
import { demand, demandSame, isText, show } from '../failure.js';
import { demandFrames } from '../frames.js';
import type { Recording } from '../recording.js';
import { composite, type Definition, echo, failing, loop, prompt, runAll, step } from '../samples.js';
import type { Stage } from '../stage.js';

const OPENING = ['call.started', 'call.input.validated'] as const;
const CLOSING = ['call.output.validated', 'call.completed'] as const;
const PROMPT = [...OPENING, 'call.backend.requested', 'call.backend.responded', ...CLOSING] as const;
const TOOL = [...OPENING, 'call.tool.invoked', 'call.tool.returned', ...CLOSING] as const;
const CHILD = ['child.started', 'child.completed'] as const;

/** What names something that is not there is refused when it is registered, or ends its call. */
async function endsInOrder(stage: Stage, definition: Definition): Promise<void> {
  const refusal = await stage.refusal(definition);
  if (refusal !== undefined) return stage.note(`${definition.id} was refused when registered`);
  const run = await stage.fail(definition.id, {});
  demandSame(run.lifecycle().at(-1), 'call.errored', `the last event of ${definition.id}`);
}

export const lifecycleChecks: readonly Check[] = checksOf(3, [
  {
    id: 'LIF-01',
    section: '5',
    level: 'MUST',
    title: 'a prompt call has its six events, in order, once each',
    async run(stage) {
      await stage.register(prompt(stage, 'prompt'));
      demandSame((await stage.succeed('prompt', {})).lifecycle(), PROMPT, 'the events of a prompt call');
    },
  },
  {
    id: 'LIF-02',
    section: '5',
    level: 'MUST',
    title: 'a tool call has its six events, in order, once each',
    async run(stage) {
      await stage.register(echo(stage, 'tool'));
      demandSame((await stage.succeed('tool', {})).lifecycle(), TOOL, 'the events of a tool call');
    },
  },
  {
    id: 'LIF-03',
    section: '5',
    level: 'MUST',
    title: 'a composite call frames each step, between validated input and validated output',
    async run(stage) {
      await stage.register(echo(stage, 'inner'), composite('two', [step('inner'), step('inner')]));
      const expected = [...OPENING, ...CHILD, ...CHILD, ...CLOSING];
      demandSame((await stage.succeed('two', {})).lifecycle(), expected, 'the events of a composite call');
    },
  },
  {
    id: 'LIF-04',
    section: '5',
    level: 'MUST',
    title: 'a backend that fails was requested, did not respond, and the call errored',
    async run(stage) {
      await stage.register(prompt(stage, 'mute', { backend: stage.profile.backend.failing }));
      const expected = [...OPENING, 'call.backend.requested', 'call.errored'];
      demandSame((await stage.fail('mute', {})).lifecycle(), expected, 'the events of a prompt call that failed');
    },
  },
  {
    id: 'LIF-05',
    section: '5',
    level: 'MUST',
    title: 'a tool that fails was invoked, did not return, and the call errored',
    async run(stage) {
      await stage.register(failing(stage, 'failing'));
      const expected = [...OPENING, 'call.tool.invoked', 'call.errored'];
      demandSame((await stage.fail('failing', {})).lifecycle(), expected, 'the events of a tool call that failed');
    },
  },
  {
    id: 'LIF-06',
    section: '5',
    level: 'MUST',
    title: 'every call of every run has one terminal event, and nothing after it',
    census: true,
    async run(stage) {
      await runAll(stage);
      for (const { loopId, events } of stage.history.filter((run) => run.settled)) {
        for (const [callId, call] of callsIn(events)) {
          const ends = call.filter(isTerminal).length;
          demand(ends === 1, () => `call ${show(callId)} in a run of ${loopId} has ${ends} terminal events`);
          const last = call.at(-1);
          const over = last !== undefined && isTerminal(last);
          demand(over, () => `${show(last?.type)} comes after the end of a call of ${loopId}`);
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
      await endsInOrder(stage, prompt(stage, 'no-backend', { backend: stage.profile.backend.unknown }));
      await endsInOrder(stage, loop('no-tool', 'tool', { tool: stage.profile.tool.unknown }));
    },
  },
  {
    id: 'LIF-08',
    section: '5',
    level: 'MUST',
    title: 'a loop that is not there is refused, or gives a whole failed call',
    async run(stage) {
      await stage.register(echo(stage, 'somebody'));
      const run = await stage.attempt('nobody', {});
      if (run.refusal === undefined) demand(run.error !== undefined, 'a loop that is not there gave no error');
      for (const call of callsIn(run.events).values()) {
        demand(
          followsLifecycle(call),
          `a call of a loop that is not there broke off: ${show(call.map((e) => e.type))}`,
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
        echo(stage, 'tool'),
        prompt(stage, 'prompt'),
        composite('inner', [step('tool')]),
        composite('outer', [step('inner'), step('prompt')]),
      );
      const run = await stage.succeed('outer', {});
      const ids = ['outer', 'inner', 'tool', 'prompt'].map((id) => run.callOf(id));
      demandSame(new Set(ids).size, 4, 'how many call ids four calls have');
      demandSame(run.lifecycle(run.callOf('tool')), TOOL, 'the events of a tool child');
      demandSame(run.lifecycle(run.callOf('prompt')), PROMPT, 'the events of a prompt child');
      demandSame(
        run.lifecycle(run.callOf('inner')),
        [...OPENING, ...CHILD, ...CLOSING],
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
        echo(stage, 'fine'),
        failing(stage, 'failing'),
        composite('both', [step('fine'), step('failing')]),
        composite('well', [step('fine')]),
      );
      const good = (await stage.succeed('fine', {})).result.status;
      const bad = (await stage.fail('failing', {})).result.status;
      demand(isText(good) && isText(bad) && good !== bad, `success is ${show(good)} and failure is ${show(bad)}`);
      const both = await stage.fail('both', {});
      const well = await stage.succeed('well', {});
      demandSame(both.result.status, bad, 'the status of a composite that failed');
      demandSame(well.result.status, good, 'the status of a composite that succeeded');
      const statuses = (run: Recording) =>
        run.payloads('child.completed').map((payload) => ownProperty(payload, 'status'));
      const [fine, broken] = statuses(both);
      demand(
        isText(fine) && isText(broken) && fine !== broken,
        `child.completed has ${show([fine, broken])} for a success and a failure`,
      );
      demandSame(statuses(well), [fine], 'the status of a child that succeeded, in another run');
      if (fine !== good || broken !== bad) stage.note('child.completed has other words for its status than a result');
    },
  },
  {
    id: 'LIF-11',
    section: '5',
    level: 'MUST',
    title: 'every call of every run takes a way through the diagram',
    census: true,
    async run(stage) {
      await runAll(stage);
      for (const { loopId, events } of stage.history.filter((run) => run.settled && !run.beyond)) {
        for (const call of callsIn(events).values()) {
          const types = (): string => show(call.map(({ type }) => type));
          demand(followsLifecycle(call), () => `a call in a run of ${loopId} went another way: ${types()}`);
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
      await stage.register(echo(stage, 'tool'), prompt(stage, 'prompt'));
      let acts = true;
      await stage.registerCode('coded', async (input, scope) => {
        acts = scope.effect !== undefined;
        await scope.effect?.('coded', () => 'done');
        await scope.call('prompt', {});
        return scope.call('tool', input);
      });
      const run = await stage.runBeyond('coded', { n: 1 });
      demandSame(run.result.output, { n: 1 }, 'the output of a composite in code');
      demandSame(run.lifecycle(), [...OPENING, ...CHILD, ...CHILD, ...CLOSING], 'the events of a composite in code');
      demandSame(run.lifecycle(run.callOf('tool')), TOOL, 'the events of a tool that code calls');
      demandSame(run.lifecycle(run.callOf('prompt')), PROMPT, 'the events of a prompt that code calls');
      demandFrames(run);
      if (!acts) stage.note('bodies in code cannot do anything outside of a loop');
    },
  },
  {
    id: 'LIF-13',
    section: '5, 6',
    level: 'IMPLIED',
    title: 'an agent is a composite: it frames its calls, and has no events of a prompt or a tool',
    async run(stage) {
      await stage.register(echo(stage, 'one'), echo(stage, 'two'));
      await stage.registerAgent('agent', ['one', 'two']);
      const run = await stage.runBeyond('agent', { prompt: 'Do it.' });
      for (const id of ['one', 'two']) demandSame(run.lifecycle(run.callOf(id)), TOOL, `the events of the tool ${id}`);
      demandFrames(run);
      for (const [callId, call] of callsIn(run.events)) {
        const types = lifecycleOf(call);
        const strange = types.find((type) => /^call\.(?:backend|tool)\./.test(type));
        demand(
          callId !== run.root || strange === undefined,
          `an agent has ${strange}, an event of another kind: ${show(types)}`,
        );
        demand(framesChildren(call) || followsLifecycle(call), `a call of an agent went another way: ${show(types)}`);
      }
    },
  },
]);
