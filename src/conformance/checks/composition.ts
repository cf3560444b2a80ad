/** How composites run their steps and pass values between them (section 7). */
import { ownProperty } from '../../base/own-property.js';
import { assertSameJson, assertThat, describeValue, isNonEmptyString, NotApplicableError } from '../assertions.js';
import { type ConformanceCheck, checksOf } from '../check.js';
import type { CheckContext } from '../check-context.js';
import { assertFrames } from '../child-frames.js';
import { closesChildFrames, eventsByCall, followsLifecycle, lifecycleOf } from '../events.js';
import { containsText } from '../json.js';
import type { RecordedRun } from '../recorded-run.js';
import {
  compositeLoop,
  echoLoop,
  failingLoop,
  promptLoop,
  type SampleDefinition,
  type SampleStep,
  sampleLoop,
  sampleStep,
} from '../sample-loops.js';

/** A composite that cannot work is refused, or its run fails with every frame closed. */
async function assertFailsWithFramesClosed(
  stage: CheckContext,
  definition: SampleDefinition,
  input: unknown = {},
): Promise<void> {
  if ((await stage.registrationRefusal(definition)) !== undefined) return;
  const run = await stage.runExpectingFailure(definition.id, input);
  assertFramesClosed(run);
}

function assertFramesClosed(run: RecordedRun): void {
  for (const call of eventsByCall(run.events).values()) {
    const types = lifecycleOf(call);
    const frames = types.filter((type) => type.startsWith('child.')).join(' ');
    const closed = /^(?:child\.started child\.completed ?)*$/.test(frames);
    assertThat(closed, () => `${run.loopId} left a frame open: ${describeValue(types.slice(-8))}`);
    assertSameJson(types.at(-1)?.startsWith('call.'), true, `whether the calls of ${run.loopId} came to their end`);
  }
  assertSameJson(run.lifecycle().at(-1), 'call.errored', `the last event of ${run.loopId}`);
}

/** What the only step of a composite gets through this mapping; `last` is an echo. */
async function mappedInput(
  stage: CheckContext,
  id: string,
  inputMapping: SampleStep['inputMapping'],
  input: unknown,
): Promise<unknown> {
  await stage.register(compositeLoop(id, [sampleStep('last', inputMapping)]));
  return (await stage.runExpectingSuccess(id, input)).result.output;
}

/** What the step that read too early got: in the output under `got`, or as the output itself. */
function earlyReadValue(run: RecordedRun): unknown {
  const { output } = run.result;
  return ownProperty(output, 'got') ?? ownProperty(output, 'seen');
}

const SAMPLE_INPUT = {
  plain: 'a',
  list: ['b', { name: 'c' }],
  deep: { er: { est: 'd' } },
  'with.dot': 'e',
  'with space': 'f',
  'with-dash': { "it's": 'g' },
} as const;

/** Paths below the input, and what they lead to. */
const PATH_CASES: readonly (readonly [path: string, value: unknown])[] = [
  ['.plain', 'a'],
  ["['plain']", 'a'],
  ['["plain"]', 'a'],
  ['.list[0]', 'b'],
  ["['list'][1].name", 'c'],
  ['.deep.er.est', 'd'],
  ["['deep']['er'].est", 'd'],
  ["['with.dot']", 'e'],
  ["['with space']", 'f'],
  ["['with-dash'][\"it's\"]", 'g'],
  ['.deep', SAMPLE_INPUT.deep],
  ['.list', SAMPLE_INPUT.list],
];

export const compositionChecks: readonly ConformanceCheck[] = checksOf(5, [
  {
    id: 'CMP-01',
    section: '7',
    level: 'MUST',
    title: 'steps run in the order of the list, each after the one before is completed',
    async run(stage) {
      await stage.register(echoLoop(stage, 'a'), promptLoop(stage, 'b'), echoLoop(stage, 'c'));
      await stage.register(compositeLoop('abc', [sampleStep('a'), sampleStep('b'), sampleStep('c')]));
      const run = await stage.runExpectingSuccess('abc', {});
      const order = run.events.filter(({ type }) => type === 'child.completed' || type === 'call.started').slice(1);
      const seen = order.map(({ type, payload }) =>
        type === 'call.started' ? ownProperty(payload, 'loopId') : 'completed',
      );
      assertSameJson(seen, ['a', 'completed', 'b', 'completed', 'c', 'completed'], 'the order of the steps');
    },
  },
  {
    id: 'CMP-02',
    section: '7',
    level: 'MUST',
    title: 'an inputMapping reads the outer input, at any depth',
    async run(stage) {
      const { input } = stage.profile.path;
      const inputMapping = {
        name: `${input}.person.name`,
        zip: `${input}.person.address.zip`,
        person: `${input}.person`,
      };
      const person = { name: 'n', address: { zip: 7 } };
      await stage.register(echoLoop(stage, 'last'));
      const got = await mappedInput(stage, 'map', inputMapping, { person });
      assertSameJson(got, { name: 'n', zip: 7, person }, 'what the step got');
    },
  },
  {
    id: 'CMP-03',
    section: '7',
    level: 'MUST',
    title: 'what a step is bound to can be read by every later step, beside the input',
    async run(stage) {
      const { path } = stage.profile;
      await stage.register(echoLoop(stage, 'echo'));
      const steps = [
        sampleStep('echo', { mark: `${path.input}.one` }, 'first'),
        sampleStep('echo', { mark: `${path.input}.two` }, 'second'),
        sampleStep('echo', { a: path.binding('first'), b: path.binding('second'), c: `${path.input}.three` }),
      ];
      await stage.register(compositeLoop('bind', steps));
      const { output } = (await stage.runExpectingSuccess('bind', { one: 'mark-1', two: 'mark-2', three: 'mark-3' }))
        .result;
      for (const [member, mark] of Object.entries({ a: 'mark-1', b: 'mark-2', c: 'mark-3' })) {
        assertThat(
          containsText(ownProperty(output, member), mark),
          `the last step should find ${mark} in ${member}: saw ${describeValue(ownProperty(output, member))}`,
        );
      }
    },
  },
  {
    id: 'CMP-04',
    section: '7',
    level: 'MUST',
    title: 'what is bound is the result: its output and its status can be reached',
    async run(stage) {
      const { path } = stage.profile;
      await stage.register(echoLoop(stage, 'echo'));
      const alone = (await stage.runExpectingSuccess('echo', {})).result.status;
      const first = path.binding('first');
      const inputMapping = { output: `${first}.output`, mark: `${first}.output.mark`, status: `${first}.status` };
      await stage.register(
        compositeLoop('bind', [sampleStep('echo', { mark: path.input }, 'first'), sampleStep('echo', inputMapping)]),
      );
      const { output } = (await stage.runExpectingSuccess('bind', 'm')).result;
      assertSameJson(output, { output: { mark: 'm' }, mark: 'm', status: alone }, 'what the second step got');
    },
  },
  {
    id: 'CMP-05',
    section: '7',
    level: 'IMPLIED',
    title: 'what a step is bound to cannot be read by that step or an earlier one, not even of another run',
    async run(stage) {
      const { input, binding } = stage.profile.path;
      await stage.register(echoLoop(stage, 'echo'));
      const early = [
        sampleStep('echo', { seen: binding('later') }, 'first'),
        sampleStep('echo', { mark: input }, 'later'),
        sampleStep('echo', { got: binding('first') }),
      ];
      const own = [sampleStep('echo', { seen: binding('mine'), mark: input }, 'mine')];
      for (const [id, steps] of Object.entries({ early, own })) {
        if ((await stage.registrationRefusal(compositeLoop(id, steps))) !== undefined) continue;
        for (const mark of ['mark-1', 'mark-2']) {
          const run = await stage.run(id, mark);
          if (!run.hasSucceeded) assertFramesClosed(run);
          else
            assertThat(
              !containsText(earlyReadValue(run), 'mark-'),
              `${id} read a binding before its step ended: ${describeValue(run.result.output)}`,
            );
        }
      }
    },
  },
  {
    id: 'CMP-06',
    section: '7',
    level: 'MUST',
    title: "a composite's output is the last step's output",
    async run(stage) {
      const { input } = stage.profile.path;
      await stage.register(echoLoop(stage, 'echo'));
      const steps = [sampleStep('echo', { a: `${input}.a` }, 'a'), sampleStep('echo', { b: `${input}.b` }, 'b')];
      await stage.register(compositeLoop('two', steps));
      assertSameJson(
        (await stage.runExpectingSuccess('two', { a: 1, b: [2] })).result.output,
        { b: [2] },
        'the output of the composite',
      );
    },
  },
  {
    id: 'CMP-07',
    section: '7',
    level: 'IMPLIED',
    title: 'a child that fails ends the composite after its child.completed; later steps never start',
    async run(stage) {
      await stage.register(echoLoop(stage, 'before'), failingLoop(stage, 'failing'), echoLoop(stage, 'after'));
      await stage.register(compositeLoop('three', [sampleStep('before'), sampleStep('failing'), sampleStep('after')]));
      const run = await stage.runExpectingFailure('three', {});
      const ends = ['child.started', 'child.completed', 'child.started', 'child.completed', 'call.errored'];
      assertSameJson(run.lifecycle().slice(2), ends, 'the events of the composite');
      const [good, bad] = run.payloads('child.completed').map((payload) => ownProperty(payload, 'status'));
      assertThat(good !== bad, `the child that failed has the status ${describeValue(bad)}, as the one that succeeded`);
      assertSameJson(run.callIdsOf('after'), [], 'the calls of the step after the failure');
    },
  },
  {
    id: 'CMP-08',
    section: '7',
    level: 'IMPLIED',
    title: 'a mapping that leads nowhere fails before the child starts, or closes the frame it opened',
    async run(stage) {
      const inputSchema = { type: 'object', required: ['got'], properties: { got: { type: 'object' } } };
      await stage.register(echoLoop(stage, 'needy', { inputSchema }), echoLoop(stage, 'after'));
      const nowhere = [`${stage.profile.path.input}.absent.deeper`, stage.profile.path.binding('nobody'), '$[', ''];
      for (const [index, got] of nowhere.entries()) {
        await assertFailsWithFramesClosed(
          stage,
          compositeLoop(`lost-${index}`, [sampleStep('needy', { got }), sampleStep('after')]),
          {
            absent: null,
          },
        );
      }
    },
  },
  {
    id: 'CMP-09',
    section: '7',
    level: 'IMPLIED',
    title: 'a path may be the root, dotted, bracketed, indexed, and name members with dots and spaces',
    async run(stage) {
      const { input } = stage.profile.path;
      await stage.register(echoLoop(stage, 'last'));
      for (const [index, [path, value]] of PATH_CASES.entries()) {
        const got = await mappedInput(stage, `map-${index}`, { got: `${input}${path}` }, SAMPLE_INPUT);
        assertSameJson(got, { got: value }, `what ${input}${path} leads to`);
      }
      const root = describeValue(await mappedInput(stage, 'map', { got: '$' }, { mark: 'at-root' }));
      assertThat(root.includes('at-root'), `the root $ should hold the input: saw ${root}`);
    },
  },
  {
    id: 'CMP-10',
    section: '7',
    level: 'IMPLIED',
    title: 'in composites within composites each call names its parent, three levels deep',
    async run(stage) {
      await stage.register(echoLoop(stage, 'leaf'));
      const chain = ['leaf', 'one', 'two', 'three'];
      for (const [index, id] of chain.slice(1).entries()) {
        await stage.register(compositeLoop(id, [sampleStep(chain[index] ?? ''), sampleStep('leaf')]));
      }
      const run = await stage.runExpectingSuccess('three', {});
      for (const [index, id] of ['one', 'two'].entries()) {
        const parent = ownProperty(run.payload('call.started', run.callIdOf(id)), 'parentCallId');
        assertSameJson(parent, run.callIdOf(chain[index + 2] ?? ''), `the parent of ${id}`);
      }
      const parents = run.callIdsOf('leaf').map((id) => ownProperty(run.payload('call.started', id), 'parentCallId'));
      assertSameJson(
        parents,
        ['one', 'one', 'two', 'three'].map((id) => run.callIdOf(id)),
        'the parents of the four leaves',
      );
    },
  },
  {
    id: 'CMP-11',
    section: '7',
    level: 'IMPLIED',
    title: 'composites that call themselves, or each other, come to an end with call.errored',
    async run(stage) {
      await assertFailsWithFramesClosed(stage, compositeLoop('self', [sampleStep('self')]));
      await stage.openFreshRuntime();
      if ((await stage.registrationRefusal(compositeLoop('ping', [sampleStep('pong')]))) !== undefined) {
        return stage.addNote('two composites cannot name each other: one was refused when registered');
      }
      if ((await stage.registrationRefusal(compositeLoop('pong', [sampleStep('ping')]))) !== undefined) return;
      assertFramesClosed(await stage.runExpectingFailure('ping', {}));
    },
  },
  {
    id: 'CMP-12',
    section: '7',
    level: 'IMPLIED',
    title: 'a step whose loop is not there is found when registered, or fails within its frame',
    async run(stage) {
      await stage.register(echoLoop(stage, 'there'));
      await assertFailsWithFramesClosed(
        stage,
        compositeLoop('half', [sampleStep('there'), sampleStep('not-there'), sampleStep('there')]),
      );
    },
  },
  {
    id: 'CMP-13',
    section: '4',
    level: 'IMPLIED',
    title: 'a loop that is used twice in a composite makes two calls',
    async run(stage) {
      await stage.register(sampleLoop('twice', 'tool', { tool: stage.profile.tool.echo }));
      await stage.register(compositeLoop('both', [sampleStep('twice'), sampleStep('twice')]));
      const run = await stage.runExpectingSuccess('both', {});
      assertSameJson(new Set(run.callIdsOf('twice')).size, 2, 'how many call ids the two calls have');
    },
  },
  {
    id: 'CMP-14',
    section: '5, 7',
    level: 'IMPLIED',
    title: 'children that run side by side each have a frame and a lifecycle of their own, and end before their parent',
    async run(stage) {
      await stage.register(
        echoLoop(stage, 'tool'),
        promptLoop(stage, 'prompt'),
        compositeLoop('inner', [sampleStep('tool')]),
      );
      const ids = ['tool', 'prompt', 'inner', 'tool'];
      let able = true;
      await stage.registerCode('parallel', async (_, scope) => {
        able = scope.all !== undefined;
        return scope.all?.(ids.map((loopId, n) => ({ loopId, input: { n } }))) ?? [];
      });
      const run = await stage.runBeyondLsem('parallel', {});
      if (!able) throw new NotApplicableError('bodies in code cannot call loops side by side (all)');
      const outputs = run.result.output;
      const [first, last] = Array.isArray(outputs) ? [outputs[0], outputs.at(-1)] : [];
      assertSameJson([first, last], [{ n: 0 }, { n: 3 }], 'the first and the last output, in the order of the calls');
      assertFrames(run);
      const started = run.payloads('child.started').map((payload) => ownProperty(payload, 'childCallId'));
      assertSameJson(started.length, ids.length, 'how many frames there are');
      const named = started.filter(isNonEmptyString);
      assertSameJson(new Set(named).size, named.length, 'how many children the frames name');
      const types = run.lifecycle();
      assertThat(
        closesChildFrames(run.eventsOf(run.rootCallId)),
        `the parent of parallel children has the events ${describeValue(types)}`,
      );
      for (const [callId, call] of eventsByCall(run.events)) {
        if (callId === run.rootCallId) continue;
        assertThat(
          followsLifecycle(call),
          () => `a parallel child went another way: ${describeValue(lifecycleOf(call))}`,
        );
      }
    },
  },
]);
