/** Checks of composites: the order of steps, and the values that they pass to each other (section 7 of LSEM). */
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

/** Fails unless an invalid composite is refused, or its run fails with every frame closed. */
async function assertFailsWithFramesClosed(
  context: CheckContext,
  definition: SampleDefinition,
  input: unknown = {},
): Promise<void> {
  if ((await context.tryRegister(definition)) !== undefined) return;
  const run = await context.runExpectingFailure(definition.id, input);
  assertFramesClosed(run);
}

function assertFramesClosed(run: RecordedRun): void {
  for (const call of eventsByCall(run.events).values()) {
    const types = lifecycleOf(call);
    const frames = types.filter((type) => type.startsWith('child.')).join(' ');
    const isClosed = /^(?:child\.started child\.completed ?)*$/.test(frames);
    assertThat(isClosed, () => `${run.loopId} left a frame open: ${describeValue(types.slice(-8))}`);
    assertSameJson(types.at(-1)?.startsWith('call.'), true, `whether the calls of ${run.loopId} ended`);
  }
  assertSameJson(run.lifecycle().at(-1), 'call.errored', `the last event of ${run.loopId}`);
}

/** Returns the input that a mapping gives to the only step of a composite. The step calls the echo `last`. */
async function mappedInput(
  context: CheckContext,
  id: string,
  inputMapping: SampleStep['inputMapping'],
  input: unknown,
): Promise<unknown> {
  await context.register(compositeLoop(id, [sampleStep('last', inputMapping)]));
  return (await context.runExpectingSuccess(id, input)).result.output;
}

/** Returns the value that a step read too early: the member `got` or `seen` of the output. */
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

/** Paths below the input with their values. */
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

/** The checks of composites. */
export const compositionChecks: readonly ConformanceCheck[] = checksOf(5, [
  {
    id: 'CMP-01',
    section: '7',
    level: 'MUST',
    title: 'steps run in the order of the list, each after the previous one has completed',
    async run(context) {
      await context.register(echoLoop(context, 'a'), promptLoop(context, 'b'), echoLoop(context, 'c'));
      await context.register(compositeLoop('abc', [sampleStep('a'), sampleStep('b'), sampleStep('c')]));
      const run = await context.runExpectingSuccess('abc', {});
      const order = run.events.filter(({ type }) => type === 'child.completed' || type === 'call.started').slice(1);
      const sequence = order.map(({ type, payload }) =>
        type === 'call.started' ? ownProperty(payload, 'loopId') : 'completed',
      );
      assertSameJson(sequence, ['a', 'completed', 'b', 'completed', 'c', 'completed'], 'the order of the steps');
    },
  },
  {
    id: 'CMP-02',
    section: '7',
    level: 'MUST',
    title: 'an inputMapping reads the outer input, at any depth',
    async run(context) {
      const { input } = context.profile.path;
      const inputMapping = {
        name: `${input}.person.name`,
        zip: `${input}.person.address.zip`,
        person: `${input}.person`,
      };
      const person = { name: 'n', address: { zip: 7 } };
      await context.register(echoLoop(context, 'last'));
      const stepInput = await mappedInput(context, 'map', inputMapping, { person });
      assertSameJson(stepInput, { name: 'n', zip: 7, person }, 'the input of the step');
    },
  },
  {
    id: 'CMP-03',
    section: '7',
    level: 'MUST',
    title: 'every later step can read a binding, in addition to the input',
    async run(context) {
      const { path } = context.profile;
      await context.register(echoLoop(context, 'echo'));
      const steps = [
        sampleStep('echo', { mark: `${path.input}.one` }, 'first'),
        sampleStep('echo', { mark: `${path.input}.two` }, 'second'),
        sampleStep('echo', { a: path.binding('first'), b: path.binding('second'), c: `${path.input}.three` }),
      ];
      await context.register(compositeLoop('bind', steps));
      const { output } = (await context.runExpectingSuccess('bind', { one: 'mark-1', two: 'mark-2', three: 'mark-3' }))
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
    title: 'a binding is the result of the step, with its output and its status',
    async run(context) {
      const { path } = context.profile;
      await context.register(echoLoop(context, 'echo'));
      const okStatus = (await context.runExpectingSuccess('echo', {})).result.status;
      const first = path.binding('first');
      const inputMapping = { output: `${first}.output`, mark: `${first}.output.mark`, status: `${first}.status` };
      await context.register(
        compositeLoop('bind', [sampleStep('echo', { mark: path.input }, 'first'), sampleStep('echo', inputMapping)]),
      );
      const { output } = (await context.runExpectingSuccess('bind', 'm')).result;
      assertSameJson(output, { output: { mark: 'm' }, mark: 'm', status: okStatus }, 'the input of the second step');
    },
  },
  {
    id: 'CMP-05',
    section: '7',
    level: 'IMPLIED',
    title: 'a binding cannot be read by its own step, by an earlier one or by another run',
    async run(context) {
      const { input, binding } = context.profile.path;
      await context.register(echoLoop(context, 'echo'));
      const early = [
        sampleStep('echo', { seen: binding('later') }, 'first'),
        sampleStep('echo', { mark: input }, 'later'),
        sampleStep('echo', { got: binding('first') }),
      ];
      const self = [sampleStep('echo', { seen: binding('mine'), mark: input }, 'mine')];
      for (const [id, steps] of Object.entries({ early, self })) {
        if ((await context.tryRegister(compositeLoop(id, steps))) !== undefined) continue;
        for (const mark of ['mark-1', 'mark-2']) {
          const run = await context.run(id, mark);
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
    async run(context) {
      const { input } = context.profile.path;
      await context.register(echoLoop(context, 'echo'));
      const steps = [sampleStep('echo', { a: `${input}.a` }, 'a'), sampleStep('echo', { b: `${input}.b` }, 'b')];
      await context.register(compositeLoop('two', steps));
      assertSameJson(
        (await context.runExpectingSuccess('two', { a: 1, b: [2] })).result.output,
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
    async run(context) {
      await context.register(echoLoop(context, 'before'), failingLoop(context, 'failing'), echoLoop(context, 'after'));
      await context.register(
        compositeLoop('three', [sampleStep('before'), sampleStep('failing'), sampleStep('after')]),
      );
      const run = await context.runExpectingFailure('three', {});
      const ends = ['child.started', 'child.completed', 'child.started', 'child.completed', 'call.errored'];
      assertSameJson(run.lifecycle().slice(2), ends, 'the events of the composite');
      const [good, bad] = run.payloads('child.completed').map((payload) => ownProperty(payload, 'status'));
      assertThat(good !== bad, `the failed child has the same status as the successful one: ${describeValue(bad)}`);
      assertSameJson(run.callIdsOf('after'), [], 'the calls of the step after the failure');
    },
  },
  {
    id: 'CMP-08',
    section: '7',
    level: 'IMPLIED',
    title: 'an unresolvable mapping fails before the child starts, or with its frame closed',
    async run(context) {
      const inputSchema = { type: 'object', required: ['got'], properties: { got: { type: 'object' } } };
      await context.register(echoLoop(context, 'needy', { inputSchema }), echoLoop(context, 'after'));
      const { input, binding } = context.profile.path;
      const unresolvable = [`${input}.absent.deeper`, binding('unknown'), '$[', ''];
      for (const [index, got] of unresolvable.entries()) {
        await assertFailsWithFramesClosed(
          context,
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
    title: 'a path may be the root, use dots, brackets and indexes, and name members with dots and spaces',
    async run(context) {
      const { input } = context.profile.path;
      await context.register(echoLoop(context, 'last'));
      for (const [index, [path, value]] of PATH_CASES.entries()) {
        const stepInput = await mappedInput(context, `map-${index}`, { got: `${input}${path}` }, SAMPLE_INPUT);
        assertSameJson(stepInput, { got: value }, `the value of ${input}${path}`);
      }
      const root = describeValue(await mappedInput(context, 'map', { got: '$' }, { mark: 'at-root' }));
      assertThat(root.includes('at-root'), `the root $ should contain the input: saw ${root}`);
    },
  },
  {
    id: 'CMP-10',
    section: '7',
    level: 'IMPLIED',
    title: 'in nested composites, each call names its parent, three levels deep',
    async run(context) {
      await context.register(echoLoop(context, 'leaf'));
      const chain = ['leaf', 'one', 'two', 'three'];
      for (const [index, id] of chain.slice(1).entries()) {
        await context.register(compositeLoop(id, [sampleStep(chain[index] ?? ''), sampleStep('leaf')]));
      }
      const run = await context.runExpectingSuccess('three', {});
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
    title: 'composites that call themselves or each other end with call.errored',
    async run(context) {
      await assertFailsWithFramesClosed(context, compositeLoop('self', [sampleStep('self')]));
      await context.openFreshRuntime();
      if ((await context.tryRegister(compositeLoop('ping', [sampleStep('pong')]))) !== undefined) {
        return context.addNote('two composites cannot refer to each other: one was refused at registration');
      }
      if ((await context.tryRegister(compositeLoop('pong', [sampleStep('ping')]))) !== undefined) return;
      assertFramesClosed(await context.runExpectingFailure('ping', {}));
    },
  },
  {
    id: 'CMP-12',
    section: '7',
    level: 'IMPLIED',
    title: 'a step with an unknown loop is refused at registration, or fails inside its frame',
    async run(context) {
      await context.register(echoLoop(context, 'there'));
      await assertFailsWithFramesClosed(
        context,
        compositeLoop('half', [sampleStep('there'), sampleStep('not-there'), sampleStep('there')]),
      );
    },
  },
  {
    id: 'CMP-13',
    section: '4',
    level: 'IMPLIED',
    title: 'a loop that is used twice in a composite is called twice',
    async run(context) {
      await context.register(sampleLoop('twice', 'tool', { tool: context.profile.tool.echo }));
      await context.register(compositeLoop('both', [sampleStep('twice'), sampleStep('twice')]));
      const run = await context.runExpectingSuccess('both', {});
      assertSameJson(new Set(run.callIdsOf('twice')).size, 2, 'the number of call ids of two calls');
    },
  },
  {
    id: 'CMP-14',
    section: '5, 7',
    level: 'IMPLIED',
    title: 'concurrent children each have their own frame and lifecycle, and end before their parent',
    async run(context) {
      await context.register(
        echoLoop(context, 'tool'),
        promptLoop(context, 'prompt'),
        compositeLoop('inner', [sampleStep('tool')]),
      );
      const ids = ['tool', 'prompt', 'inner', 'tool'];
      let canRunConcurrently = true;
      await context.registerCode('parallel', async (_, scope) => {
        canRunConcurrently = scope.all !== undefined;
        return scope.all?.(ids.map((loopId, n) => ({ loopId, input: { n } }))) ?? [];
      });
      const run = await context.runOutsideLsem('parallel', {});
      if (!canRunConcurrently) throw new NotApplicableError('bodies in code cannot call loops concurrently (all)');
      const outputs = run.result.output;
      const [first, last] = Array.isArray(outputs) ? [outputs[0], outputs.at(-1)] : [];
      assertSameJson([first, last], [{ n: 0 }, { n: 3 }], 'the first and the last output, in the order of the calls');
      assertFrames(run);
      const started = run.payloads('child.started').map((payload) => ownProperty(payload, 'childCallId'));
      assertSameJson(started.length, ids.length, 'the number of frames');
      const childIds = started.filter(isNonEmptyString);
      assertSameJson(new Set(childIds).size, childIds.length, 'the number of children in the frames');
      const types = run.lifecycle();
      assertThat(
        closesChildFrames(run.eventsOf(run.rootCallId)),
        `the parent of concurrent children has the events ${describeValue(types)}`,
      );
      for (const [callId, call] of eventsByCall(run.events)) {
        if (callId === run.rootCallId) continue;
        assertThat(
          followsLifecycle(call),
          () => `a concurrent child does not follow the diagram: ${describeValue(lifecycleOf(call))}`,
        );
      }
    },
  },
]);
