/** How composites run their steps and pass values between them (section 7). */
import { ownProperty } from '../../base/own-property.js';
import { type Check, checksOf } from '../check.js';
import { callsIn, followsLifecycle, framesChildren, lifecycleOf } from '../events.js';
import { demand, demandSame, isText, NotApplicable, show } from '../failure.js';
import { demandFrames } from '../frames.js';
import { mentions } from '../json.js';
import type { Recording } from '../recording.js';
import { composite, type Definition, echo, failing, loop, prompt, type Step, step } from '../samples.js';
import type { Stage } from '../stage.js';

/** A composite that cannot work is refused, or its run fails with every frame closed. */
async function failsInOrder(stage: Stage, definition: Definition, input: unknown = {}): Promise<void> {
  if ((await stage.refusal(definition)) !== undefined) return;
  const run = await stage.fail(definition.id, input);
  demandClosed(run);
}

function demandClosed(run: Recording): void {
  for (const call of callsIn(run.events).values()) {
    const types = lifecycleOf(call);
    const frames = types.filter((type) => type.startsWith('child.')).join(' ');
    const closed = /^(?:child\.started child\.completed ?)*$/.test(frames);
    demand(closed, () => `${run.loopId} left a frame open: ${show(types.slice(-8))}`);
    demandSame(types.at(-1)?.startsWith('call.'), true, `whether the calls of ${run.loopId} came to their end`);
  }
  demandSame(run.lifecycle().at(-1), 'call.errored', `the last event of ${run.loopId}`);
}

/** What the only step of a composite gets through this mapping; `last` is an echo. */
async function mapped(stage: Stage, id: string, inputMapping: Step['inputMapping'], input: unknown): Promise<unknown> {
  await stage.register(composite(id, [step('last', inputMapping)]));
  return (await stage.succeed(id, input)).result.output;
}

/** What the step that read too early got: in the output under `got`, or as the output itself. */
function seenBy(run: Recording): unknown {
  const { output } = run.result;
  return ownProperty(output, 'got') ?? ownProperty(output, 'seen');
}

const shelf = {
  plain: 'a',
  list: ['b', { name: 'c' }],
  deep: { er: { est: 'd' } },
  'with.dot': 'e',
  'with space': 'f',
  'with-dash': { "it's": 'g' },
} as const;

/** Paths below the input, and what they lead to. */
const paths: readonly (readonly [path: string, value: unknown])[] = [
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
  ['.deep', shelf.deep],
  ['.list', shelf.list],
];

export const compositionChecks: readonly Check[] = checksOf(5, [
  {
    id: 'CMP-01',
    section: '7',
    level: 'MUST',
    title: 'steps run in the order of the list, each after the one before is completed',
    async run(stage) {
      await stage.register(echo(stage, 'a'), prompt(stage, 'b'), echo(stage, 'c'));
      await stage.register(composite('abc', [step('a'), step('b'), step('c')]));
      const run = await stage.succeed('abc', {});
      const order = run.events.filter(({ type }) => type === 'child.completed' || type === 'call.started').slice(1);
      const seen = order.map(({ type, payload }) =>
        type === 'call.started' ? ownProperty(payload, 'loopId') : 'completed',
      );
      demandSame(seen, ['a', 'completed', 'b', 'completed', 'c', 'completed'], 'the order of the steps');
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
      await stage.register(echo(stage, 'last'));
      const got = await mapped(stage, 'map', inputMapping, { person });
      demandSame(got, { name: 'n', zip: 7, person }, 'what the step got');
    },
  },
  {
    id: 'CMP-03',
    section: '7',
    level: 'MUST',
    title: 'what a step is bound to can be read by every later step, beside the input',
    async run(stage) {
      const { path } = stage.profile;
      await stage.register(echo(stage, 'echo'));
      const steps = [
        step('echo', { mark: `${path.input}.one` }, 'first'),
        step('echo', { mark: `${path.input}.two` }, 'second'),
        step('echo', { a: path.binding('first'), b: path.binding('second'), c: `${path.input}.three` }),
      ];
      await stage.register(composite('bind', steps));
      const { output } = (await stage.succeed('bind', { one: 'mark-1', two: 'mark-2', three: 'mark-3' })).result;
      for (const [member, mark] of Object.entries({ a: 'mark-1', b: 'mark-2', c: 'mark-3' })) {
        demand(
          mentions(ownProperty(output, member), mark),
          `the last step should find ${mark} in ${member}: saw ${show(ownProperty(output, member))}`,
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
      await stage.register(echo(stage, 'echo'));
      const alone = (await stage.succeed('echo', {})).result.status;
      const first = path.binding('first');
      const inputMapping = { output: `${first}.output`, mark: `${first}.output.mark`, status: `${first}.status` };
      await stage.register(
        composite('bind', [step('echo', { mark: path.input }, 'first'), step('echo', inputMapping)]),
      );
      const { output } = (await stage.succeed('bind', 'm')).result;
      demandSame(output, { output: { mark: 'm' }, mark: 'm', status: alone }, 'what the second step got');
    },
  },
  {
    id: 'CMP-05',
    section: '7',
    level: 'IMPLIED',
    title: 'what a step is bound to cannot be read by that step or an earlier one, not even of another run',
    async run(stage) {
      const { input, binding } = stage.profile.path;
      await stage.register(echo(stage, 'echo'));
      const early = [
        step('echo', { seen: binding('later') }, 'first'),
        step('echo', { mark: input }, 'later'),
        step('echo', { got: binding('first') }),
      ];
      const own = [step('echo', { seen: binding('mine'), mark: input }, 'mine')];
      for (const [id, steps] of Object.entries({ early, own })) {
        if ((await stage.refusal(composite(id, steps))) !== undefined) continue;
        for (const mark of ['mark-1', 'mark-2']) {
          const run = await stage.run(id, mark);
          if (!run.succeeded) demandClosed(run);
          else
            demand(
              !mentions(seenBy(run), 'mark-'),
              `${id} read a binding before its step ended: ${show(run.result.output)}`,
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
      await stage.register(echo(stage, 'echo'));
      const steps = [step('echo', { a: `${input}.a` }, 'a'), step('echo', { b: `${input}.b` }, 'b')];
      await stage.register(composite('two', steps));
      demandSame(
        (await stage.succeed('two', { a: 1, b: [2] })).result.output,
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
      await stage.register(echo(stage, 'before'), failing(stage, 'failing'), echo(stage, 'after'));
      await stage.register(composite('three', [step('before'), step('failing'), step('after')]));
      const run = await stage.fail('three', {});
      const ends = ['child.started', 'child.completed', 'child.started', 'child.completed', 'call.errored'];
      demandSame(run.lifecycle().slice(2), ends, 'the events of the composite');
      const [good, bad] = run.payloads('child.completed').map((payload) => ownProperty(payload, 'status'));
      demand(good !== bad, `the child that failed has the status ${show(bad)}, as the one that succeeded`);
      demandSame(run.callsOf('after'), [], 'the calls of the step after the failure');
    },
  },
  {
    id: 'CMP-08',
    section: '7',
    level: 'IMPLIED',
    title: 'a mapping that leads nowhere fails before the child starts, or closes the frame it opened',
    async run(stage) {
      const inputSchema = { type: 'object', required: ['got'], properties: { got: { type: 'object' } } };
      await stage.register(echo(stage, 'needy', { inputSchema }), echo(stage, 'after'));
      const nowhere = [`${stage.profile.path.input}.absent.deeper`, stage.profile.path.binding('nobody'), '$[', ''];
      for (const [index, got] of nowhere.entries()) {
        await failsInOrder(stage, composite(`lost-${index}`, [step('needy', { got }), step('after')]), {
          absent: null,
        });
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
      await stage.register(echo(stage, 'last'));
      for (const [index, [path, value]] of paths.entries()) {
        const got = await mapped(stage, `map-${index}`, { got: `${input}${path}` }, shelf);
        demandSame(got, { got: value }, `what ${input}${path} leads to`);
      }
      const root = show(await mapped(stage, 'map', { got: '$' }, { mark: 'at-root' }));
      demand(root.includes('at-root'), `the root $ should hold the input: saw ${root}`);
    },
  },
  {
    id: 'CMP-10',
    section: '7',
    level: 'IMPLIED',
    title: 'in composites within composites each call names its parent, three levels deep',
    async run(stage) {
      await stage.register(echo(stage, 'leaf'));
      const chain = ['leaf', 'one', 'two', 'three'];
      for (const [index, id] of chain.slice(1).entries()) {
        await stage.register(composite(id, [step(chain[index] ?? ''), step('leaf')]));
      }
      const run = await stage.succeed('three', {});
      for (const [index, id] of ['one', 'two'].entries()) {
        const parent = ownProperty(run.payload('call.started', run.callOf(id)), 'parentCallId');
        demandSame(parent, run.callOf(chain[index + 2] ?? ''), `the parent of ${id}`);
      }
      const parents = run.callsOf('leaf').map((id) => ownProperty(run.payload('call.started', id), 'parentCallId'));
      demandSame(
        parents,
        ['one', 'one', 'two', 'three'].map((id) => run.callOf(id)),
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
      await failsInOrder(stage, composite('self', [step('self')]));
      await stage.fresh();
      if ((await stage.refusal(composite('ping', [step('pong')]))) !== undefined) {
        return stage.note('two composites cannot name each other: one was refused when registered');
      }
      if ((await stage.refusal(composite('pong', [step('ping')]))) !== undefined) return;
      demandClosed(await stage.fail('ping', {}));
    },
  },
  {
    id: 'CMP-12',
    section: '7',
    level: 'IMPLIED',
    title: 'a step whose loop is not there is found when registered, or fails within its frame',
    async run(stage) {
      await stage.register(echo(stage, 'there'));
      await failsInOrder(stage, composite('half', [step('there'), step('not-there'), step('there')]));
    },
  },
  {
    id: 'CMP-13',
    section: '4',
    level: 'IMPLIED',
    title: 'a loop that is used twice in a composite makes two calls',
    async run(stage) {
      await stage.register(loop('twice', 'tool', { tool: stage.profile.tool.echo }));
      await stage.register(composite('both', [step('twice'), step('twice')]));
      const run = await stage.succeed('both', {});
      demandSame(new Set(run.callsOf('twice')).size, 2, 'how many call ids the two calls have');
    },
  },
  {
    id: 'CMP-14',
    section: '5, 7',
    level: 'IMPLIED',
    title: 'children that run side by side each have a frame and a lifecycle of their own, and end before their parent',
    async run(stage) {
      await stage.register(echo(stage, 'tool'), prompt(stage, 'prompt'), composite('inner', [step('tool')]));
      const ids = ['tool', 'prompt', 'inner', 'tool'];
      let able = true;
      await stage.registerCode('parallel', async (_, scope) => {
        able = scope.all !== undefined;
        return scope.all?.(ids.map((loopId, n) => ({ loopId, input: { n } }))) ?? [];
      });
      const run = await stage.runBeyond('parallel', {});
      if (!able) throw new NotApplicable('bodies in code cannot call loops side by side (all)');
      const outputs = run.result.output;
      const [first, last] = Array.isArray(outputs) ? [outputs[0], outputs.at(-1)] : [];
      demandSame([first, last], [{ n: 0 }, { n: 3 }], 'the first and the last output, in the order of the calls');
      demandFrames(run);
      const started = run.payloads('child.started').map((payload) => ownProperty(payload, 'childCallId'));
      demandSame(started.length, ids.length, 'how many frames there are');
      const named = started.filter(isText);
      demandSame(new Set(named).size, named.length, 'how many children the frames name');
      const types = run.lifecycle();
      demand(framesChildren(run.of(run.root)), `the parent of parallel children has the events ${show(types)}`);
      for (const [callId, call] of callsIn(run.events)) {
        if (callId === run.root) continue;
        demand(followsLifecycle(call), () => `a parallel child went another way: ${show(lifecycleOf(call))}`);
      }
    },
  },
]);
