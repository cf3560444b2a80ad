/** The payload of each event, as the table of section 6 has it. */
import { ownProperty } from '../../base/own-property.js';
import {
  assertSameJson,
  assertThat,
  CheckFailure,
  describeValue,
  isNonEmptyString,
  isNonNegativeNumber,
} from '../assertions.js';
import { type ConformanceCheck, checksOf } from '../check.js';
import type { CheckContext } from '../check-context.js';
import { findPayloadProblem } from '../events.js';
import type { RecordedRun } from '../recorded-run.js';
import {
  compositeLoop,
  echoLoop,
  failingLoop,
  NAMED_OBJECT_SCHEMA,
  NEVER_SCHEMA,
  promptLoop,
  runSampleLoops,
  sampleStep,
} from '../sample-loops.js';

/** The payload of the one event of a type in the outermost call, held against the table. */
function validPayload(run: RecordedRun, type: string): unknown {
  const payload = run.payload(type);
  const fault = findPayloadProblem({ callId: run.rootCallId, ts: '', type, payload });
  if (fault !== undefined) throw new CheckFailure(fault);
  return payload;
}

/** A loop of each kind that succeeds. */
async function runOneOfEachKind(stage: CheckContext): Promise<readonly RecordedRun[]> {
  await stage.register(
    echoLoop(stage, 'tool'),
    promptLoop(stage, 'prompt'),
    compositeLoop('composite', [sampleStep('tool')]),
  );
  const runs: RecordedRun[] = [];
  for (const id of ['tool', 'prompt', 'composite']) runs.push(await stage.runExpectingSuccess(id, {}));
  return runs;
}

const PROMPT_PIECES = ['Say something.'] as const;

/** The promptLength of a prompt that is asked with this system prompt. */
async function promptLengthWith(stage: CheckContext, id: string, system: string): Promise<number> {
  await stage.register(promptLoop(stage, id, { prompt: stage.requireSystemPrompt(PROMPT_PIECES, system) }));
  const length = ownProperty(
    (await stage.runExpectingSuccess(id, {})).payload('call.backend.requested'),
    'promptLength',
  );
  return isNonNegativeNumber(length) ? length : Number.NaN;
}

export const payloadChecks: readonly ConformanceCheck[] = checksOf(4, [
  {
    id: 'TRC-04',
    section: '6',
    level: 'MUST',
    title: 'call.started names loop and version, and the parent of a child only',
    async run(stage) {
      await stage.register(
        echoLoop(stage, 'inner', { version: '0.3.1' }),
        compositeLoop('outer', [sampleStep('inner')], { version: '2.0.0-rc.1' }),
      );
      const run = await stage.runExpectingSuccess('outer', {});
      const root = validPayload(run, 'call.started');
      assertSameJson(ownProperty(root, 'loopId'), 'outer', "the root's loopId");
      assertSameJson(ownProperty(root, 'loopVersion'), '2.0.0-rc.1', "the root's loopVersion");
      assertSameJson(ownProperty(root, 'parentCallId') ?? undefined, undefined, "the root's parentCallId");
      const child = run.payload('call.started', run.callIdOf('inner'));
      assertSameJson(ownProperty(child, 'loopVersion'), '0.3.1', "the child's loopVersion");
      assertSameJson(ownProperty(child, 'parentCallId'), run.rootCallId, "the child's parentCallId");
    },
  },
  {
    id: 'TRC-05',
    section: '6',
    level: 'MUST',
    title: 'call.input.validated has a durationMs',
    async run(stage) {
      for (const run of await runOneOfEachKind(stage)) validPayload(run, 'call.input.validated');
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
      await stage.register(promptLoop(stage, 'say', { prompt: spec.call(stage.profile, pieces) }));
      for (const word of ['loop', 'a rather longer text than that']) {
        const payload = validPayload(await stage.runExpectingSuccess('say', { word }), 'call.backend.requested');
        assertSameJson(ownProperty(payload, 'backendId'), backend.answering.id, 'backendId');
        assertSameJson(ownProperty(payload, 'model'), backend.answering.model, 'model');
        assertSameJson(ownProperty(payload, 'promptLength'), `Say ${word}, then ${word}.`.length, 'promptLength');
      }
    },
  },
  {
    id: 'TRC-07',
    section: '6',
    level: 'MUST',
    title: 'call.backend.responded has a durationMs and both counts of tokens',
    async run(stage) {
      await stage.register(promptLoop(stage, 'prompt'));
      validPayload(await stage.runExpectingSuccess('prompt', {}), 'call.backend.responded');
    },
  },
  {
    id: 'TRC-08',
    section: '6',
    level: 'MUST',
    title: 'call.tool.invoked has a toolName that tells tools apart',
    async run(stage) {
      await stage.register(echoLoop(stage, 'tool'), failingLoop(stage, 'failing'));
      const one = ownProperty(
        validPayload(await stage.runExpectingSuccess('tool', {}), 'call.tool.invoked'),
        'toolName',
      );
      const other = ownProperty(
        validPayload(await stage.runExpectingFailure('failing', {}), 'call.tool.invoked'),
        'toolName',
      );
      assertThat(one !== other, `two tools have the same toolName: ${describeValue(one)}`);
    },
  },
  {
    id: 'TRC-09',
    section: '6',
    level: 'MUST',
    title: 'call.tool.returned has a durationMs',
    async run(stage) {
      await stage.register(echoLoop(stage, 'tool'));
      validPayload(await stage.runExpectingSuccess('tool', {}), 'call.tool.returned');
    },
  },
  {
    id: 'TRC-10',
    section: '6',
    level: 'MUST',
    title: 'child.started has childCallId, loopId and a stepIndex that counts the steps',
    async run(stage) {
      await stage.register(
        echoLoop(stage, 'a'),
        echoLoop(stage, 'b'),
        compositeLoop('three', [sampleStep('a'), sampleStep('b'), sampleStep('a')]),
      );
      const run = await stage.runExpectingSuccess('three', {});
      const started = run.payloads('child.started');
      for (const payload of started)
        assertThat(
          isNonEmptyString(ownProperty(payload, 'childCallId')),
          `no childCallId in ${describeValue(payload)}`,
        );
      assertSameJson(
        started.map((payload) => ownProperty(payload, 'loopId')),
        ['a', 'b', 'a'],
        'the loopIds of the steps',
      );
      const indexes = started.map((payload) => ownProperty(payload, 'stepIndex'));
      const from = indexes[0] === 1 ? 1 : 0;
      assertSameJson(indexes, [from, from + 1, from + 2], 'the stepIndexes of the steps');
      if (from === 1) stage.addNote('stepIndex begins at 1: LSEM does not say where');
    },
  },
  {
    id: 'TRC-11',
    section: '6',
    level: 'MUST',
    title: 'child.completed has a status, and the childCallId of child.started and of the child itself',
    async run(stage) {
      await stage.register(
        echoLoop(stage, 'a'),
        echoLoop(stage, 'b'),
        compositeLoop('two', [sampleStep('a'), sampleStep('b')]),
      );
      const run = await stage.runExpectingSuccess('two', {});
      const calls = [run.callIdOf('a'), run.callIdOf('b')];
      for (const type of ['child.started', 'child.completed']) {
        const named = run.payloads(type).map((payload) => ownProperty(payload, 'childCallId'));
        assertSameJson(named, calls, `the childCallIds of ${type}`);
      }
      for (const payload of run.payloads('child.completed')) {
        assertThat(isNonEmptyString(ownProperty(payload, 'status')), `no status in ${describeValue(payload)}`);
      }
    },
  },
  {
    id: 'TRC-12',
    section: '6',
    level: 'MUST',
    title: 'call.output.validated has a durationMs, call.completed a totalDurationMs',
    async run(stage) {
      for (const run of await runOneOfEachKind(stage)) {
        validPayload(run, 'call.output.validated');
        validPayload(run, 'call.completed');
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
        echoLoop(stage, 'input', { inputSchema: NAMED_OBJECT_SCHEMA }),
        echoLoop(stage, 'output', { outputSchema: NEVER_SCHEMA }),
        failingLoop(stage, 'tool'),
        promptLoop(stage, 'backend', { backend: stage.profile.backend.failing }),
        compositeLoop('child', [sampleStep('tool')]),
      );
      for (const id of ['input', 'output', 'tool', 'backend', 'child']) {
        validPayload(await stage.runExpectingFailure(id, {}), 'call.errored');
      }
    },
  },
  {
    id: 'TRC-19',
    section: '6',
    level: 'MUST',
    title: 'no event of any call of any run lacks a member of its payload',
    coversAllRuns: true,
    async run(stage) {
      await runSampleLoops(stage);
      for (const event of stage.recordedRuns.flatMap((run) => run.events)) {
        const fault = findPayloadProblem(event);
        assertThat(fault === undefined, fault ?? '');
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
      const [few, many] = [await promptLengthWith(stage, 'short', short), await promptLengthWith(stage, 'long', long)];
      await stage.register(promptLoop(stage, 'none', { prompt: stage.profile.prompt(PROMPT_PIECES) }));
      const alone = ownProperty(
        (await stage.runExpectingSuccess('none', {})).payload('call.backend.requested'),
        'promptLength',
      );
      const seen = `without one it is ${describeValue(alone)}, with ${short.length} characters ${few}, with ${long.length} ${many}`;
      const counted = many - few === long.length - short.length && few - Number(alone) >= short.length;
      const left = many === few && few === alone;
      assertThat(counted || left, `promptLength counts part of a system prompt: ${seen}`);
      stage.addNote(counted ? 'promptLength counts the system prompt' : 'promptLength leaves the system prompt out');
    },
  },
]);
