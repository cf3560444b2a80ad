/** The payload of each event, as the table of section 6 has it. */
import { ownProperty } from '../../base/own-property.js';
import { type Check, checksOf } from '../check.js';
import { payloadFault } from '../events.js';
import { CheckFailure, demand, demandSame, isAmount, isText, show } from '../failure.js';
import type { Recording } from '../recording.js';
import { composite, echo, failing, NAMED, NOTHING, prompt, runAll, step } from '../samples.js';
import type { Stage } from '../stage.js';

/** The payload of the one event of a type in the outermost call, held against the table. */
function fitting(run: Recording, type: string): unknown {
  const payload = run.payload(type);
  const fault = payloadFault({ callId: run.root, ts: '', type, payload });
  if (fault !== undefined) throw new CheckFailure(fault);
  return payload;
}

/** A loop of each kind that succeeds. */
async function oneOfEach(stage: Stage): Promise<readonly Recording[]> {
  await stage.register(echo(stage, 'tool'), prompt(stage, 'prompt'), composite('composite', [step('tool')]));
  const runs: Recording[] = [];
  for (const id of ['tool', 'prompt', 'composite']) runs.push(await stage.succeed(id, {}));
  return runs;
}

const QUESTION = ['Say something.'] as const;

/** The promptLength of a prompt that is asked with this system prompt. */
async function lengthWith(stage: Stage, id: string, system: string): Promise<number> {
  await stage.register(prompt(stage, id, { prompt: stage.needSystemPrompt(QUESTION, system) }));
  const length = ownProperty((await stage.succeed(id, {})).payload('call.backend.requested'), 'promptLength');
  return isAmount(length) ? length : Number.NaN;
}

export const payloadChecks: readonly Check[] = checksOf(4, [
  {
    id: 'TRC-04',
    section: '6',
    level: 'MUST',
    title: 'call.started names loop and version, and the parent of a child only',
    async run(stage) {
      await stage.register(
        echo(stage, 'inner', { version: '0.3.1' }),
        composite('outer', [step('inner')], { version: '2.0.0-rc.1' }),
      );
      const run = await stage.succeed('outer', {});
      const root = fitting(run, 'call.started');
      demandSame(ownProperty(root, 'loopId'), 'outer', "the root's loopId");
      demandSame(ownProperty(root, 'loopVersion'), '2.0.0-rc.1', "the root's loopVersion");
      demandSame(ownProperty(root, 'parentCallId') ?? undefined, undefined, "the root's parentCallId");
      const child = run.payload('call.started', run.callOf('inner'));
      demandSame(ownProperty(child, 'loopVersion'), '0.3.1', "the child's loopVersion");
      demandSame(ownProperty(child, 'parentCallId'), run.root, "the child's parentCallId");
    },
  },
  {
    id: 'TRC-05',
    section: '6',
    level: 'MUST',
    title: 'call.input.validated has a durationMs',
    async run(stage) {
      for (const run of await oneOfEach(stage)) fitting(run, 'call.input.validated');
    },
  },
  {
    id: 'TRC-06',
    section: '6',
    level: 'MUST',
    title: 'call.backend.requested names backend and model that are used, and the length of the rendered prompt',
    async run(stage) {
      const { prompt: spec, backend } = stage.profile;
      const pieces = ['Say ', { variable: 'word' }, ', then ', { variable: 'word' }, '.'];
      await stage.register(prompt(stage, 'say', { prompt: spec.call(stage.profile, pieces) }));
      for (const word of ['loop', 'a rather longer text than that']) {
        const payload = fitting(await stage.succeed('say', { word }), 'call.backend.requested');
        demandSame(ownProperty(payload, 'backendId'), backend.answering.id, 'backendId');
        demandSame(ownProperty(payload, 'model'), backend.answering.model, 'model');
        demandSame(ownProperty(payload, 'promptLength'), `Say ${word}, then ${word}.`.length, 'promptLength');
      }
    },
  },
  {
    id: 'TRC-07',
    section: '6',
    level: 'MUST',
    title: 'call.backend.responded has a durationMs and both counts of tokens',
    async run(stage) {
      await stage.register(prompt(stage, 'prompt'));
      fitting(await stage.succeed('prompt', {}), 'call.backend.responded');
    },
  },
  {
    id: 'TRC-08',
    section: '6',
    level: 'MUST',
    title: 'call.tool.invoked has a toolName that tells tools apart',
    async run(stage) {
      await stage.register(echo(stage, 'tool'), failing(stage, 'failing'));
      const one = ownProperty(fitting(await stage.succeed('tool', {}), 'call.tool.invoked'), 'toolName');
      const other = ownProperty(fitting(await stage.fail('failing', {}), 'call.tool.invoked'), 'toolName');
      demand(one !== other, `two tools have the same toolName: ${show(one)}`);
    },
  },
  {
    id: 'TRC-09',
    section: '6',
    level: 'MUST',
    title: 'call.tool.returned has a durationMs',
    async run(stage) {
      await stage.register(echo(stage, 'tool'));
      fitting(await stage.succeed('tool', {}), 'call.tool.returned');
    },
  },
  {
    id: 'TRC-10',
    section: '6',
    level: 'MUST',
    title: 'child.started has childCallId, loopId and a stepIndex that counts the steps',
    async run(stage) {
      await stage.register(echo(stage, 'a'), echo(stage, 'b'), composite('three', [step('a'), step('b'), step('a')]));
      const run = await stage.succeed('three', {});
      const started = run.payloads('child.started');
      for (const payload of started)
        demand(isText(ownProperty(payload, 'childCallId')), `no childCallId in ${show(payload)}`);
      demandSame(
        started.map((payload) => ownProperty(payload, 'loopId')),
        ['a', 'b', 'a'],
        'the loopIds of the steps',
      );
      const indexes = started.map((payload) => ownProperty(payload, 'stepIndex'));
      const from = indexes[0] === 1 ? 1 : 0;
      demandSame(indexes, [from, from + 1, from + 2], 'the stepIndexes of the steps');
      if (from === 1) stage.note('stepIndex begins at 1: LSEM does not say where');
    },
  },
  {
    id: 'TRC-11',
    section: '6',
    level: 'MUST',
    title: 'child.completed has a status, and the childCallId of child.started and of the child itself',
    async run(stage) {
      await stage.register(echo(stage, 'a'), echo(stage, 'b'), composite('two', [step('a'), step('b')]));
      const run = await stage.succeed('two', {});
      const calls = [run.callOf('a'), run.callOf('b')];
      for (const type of ['child.started', 'child.completed']) {
        const named = run.payloads(type).map((payload) => ownProperty(payload, 'childCallId'));
        demandSame(named, calls, `the childCallIds of ${type}`);
      }
      for (const payload of run.payloads('child.completed')) {
        demand(isText(ownProperty(payload, 'status')), `no status in ${show(payload)}`);
      }
    },
  },
  {
    id: 'TRC-12',
    section: '6',
    level: 'MUST',
    title: 'call.output.validated has a durationMs, call.completed a totalDurationMs',
    async run(stage) {
      for (const run of await oneOfEach(stage)) {
        fitting(run, 'call.output.validated');
        fitting(run, 'call.completed');
      }
    },
  },
  {
    id: 'TRC-13',
    section: '6',
    level: 'MUST',
    title: 'call.errored has a code and a message, whatever went wrong',
    async run(stage) {
      await stage.register(
        echo(stage, 'input', { inputSchema: NAMED }),
        echo(stage, 'output', { outputSchema: NOTHING }),
        failing(stage, 'tool'),
        prompt(stage, 'backend', { backend: stage.profile.backend.failing }),
        composite('child', [step('tool')]),
      );
      for (const id of ['input', 'output', 'tool', 'backend', 'child']) {
        fitting(await stage.fail(id, {}), 'call.errored');
      }
    },
  },
  {
    id: 'TRC-19',
    section: '6',
    level: 'MUST',
    title: 'no event of any call of any run lacks a member of its payload',
    census: true,
    async run(stage) {
      await runAll(stage);
      for (const event of stage.history.flatMap((run) => run.events)) {
        const fault = payloadFault(event);
        demand(fault === undefined, fault ?? '');
      }
    },
  },
  {
    id: 'TRC-22',
    section: '6',
    level: 'IMPLIED',
    title: 'promptLength counts a system prompt wholly or not at all',
    async run(stage) {
      const [short, long] = ['Be brief.', 'Be brief, and say nothing that you do not know for certain.'];
      const [few, many] = [await lengthWith(stage, 'short', short), await lengthWith(stage, 'long', long)];
      await stage.register(prompt(stage, 'none', { prompt: stage.profile.prompt(QUESTION) }));
      const alone = ownProperty((await stage.succeed('none', {})).payload('call.backend.requested'), 'promptLength');
      const seen = `without one it is ${show(alone)}, with ${short.length} characters ${few}, with ${long.length} ${many}`;
      const counted = many - few === long.length - short.length && few - Number(alone) >= short.length;
      const left = many === few && few === alone;
      demand(counted || left, `promptLength counts part of a system prompt: ${seen}`);
      stage.note(counted ? 'promptLength counts the system prompt' : 'promptLength leaves the system prompt out');
    },
  },
]);
