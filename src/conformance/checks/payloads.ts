/** Checks of payloads: each event has the members in the table of section 6 of LSEM. */
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

/** Returns the payload of the only event of a type in the root call. Fails if it is invalid. */
function validPayload(run: RecordedRun, type: string): unknown {
  const payload = run.payload(type);
  const problem = findPayloadProblem({ callId: run.rootCallId, ts: '', type, payload });
  if (problem !== undefined) throw new CheckFailure(problem);
  return payload;
}

/** Runs a loop of each kind that succeeds. */
async function runOneOfEachKind(context: CheckContext): Promise<readonly RecordedRun[]> {
  await context.register(
    echoLoop(context, 'tool'),
    promptLoop(context, 'prompt'),
    compositeLoop('composite', [sampleStep('tool')]),
  );
  const runs: RecordedRun[] = [];
  for (const id of ['tool', 'prompt', 'composite']) runs.push(await context.runExpectingSuccess(id, {}));
  return runs;
}

const PROMPT_PIECES = ['Say something.'] as const;

/** Runs a prompt with this system prompt and returns its promptLength; NaN if it reports none. */
async function promptLengthWith(context: CheckContext, id: string, system: string): Promise<number> {
  await context.register(promptLoop(context, id, { prompt: context.requirePromptWithSystem(PROMPT_PIECES, system) }));
  const length = ownProperty(
    (await context.runExpectingSuccess(id, {})).payload('call.backend.requested'),
    'promptLength',
  );
  return isNonNegativeNumber(length) ? length : Number.NaN;
}

/** The checks of payloads. */
export const payloadChecks: readonly ConformanceCheck[] = checksOf(4, [
  {
    id: 'TRC-04',
    section: '6',
    level: 'MUST',
    title: 'call.started names the loop, its version and, for a child, the parent',
    async run(context) {
      await context.register(
        echoLoop(context, 'inner', { version: '0.3.1' }),
        compositeLoop('outer', [sampleStep('inner')], { version: '2.0.0-rc.1' }),
      );
      const run = await context.runExpectingSuccess('outer', {});
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
    async run(context) {
      for (const run of await runOneOfEachKind(context)) validPayload(run, 'call.input.validated');
    },
  },
  {
    id: 'TRC-06',
    section: '6',
    level: 'MUST',
    title: 'call.backend.requested has the actual backend and model, and the length of the rendered prompt',
    async run(context) {
      const { prompt: spec, backend } = context.profile;
      const pieces = ['Say ', { variable: 'word' }, ', then ', { variable: 'word' }, '.'];
      await context.register(promptLoop(context, 'say', { prompt: spec.call(context.profile, pieces) }));
      for (const word of ['loop', 'a rather longer text than that']) {
        const payload = validPayload(await context.runExpectingSuccess('say', { word }), 'call.backend.requested');
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
    title: 'call.backend.responded has a durationMs and both token counts',
    async run(context) {
      await context.register(promptLoop(context, 'prompt'));
      validPayload(await context.runExpectingSuccess('prompt', {}), 'call.backend.responded');
    },
  },
  {
    id: 'TRC-08',
    section: '6',
    level: 'MUST',
    title: 'call.tool.invoked has a toolName that distinguishes tools',
    async run(context) {
      await context.register(echoLoop(context, 'tool'), failingLoop(context, 'failing'));
      const one = ownProperty(
        validPayload(await context.runExpectingSuccess('tool', {}), 'call.tool.invoked'),
        'toolName',
      );
      const other = ownProperty(
        validPayload(await context.runExpectingFailure('failing', {}), 'call.tool.invoked'),
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
    async run(context) {
      await context.register(echoLoop(context, 'tool'));
      validPayload(await context.runExpectingSuccess('tool', {}), 'call.tool.returned');
    },
  },
  {
    id: 'TRC-10',
    section: '6',
    level: 'MUST',
    title: 'child.started has a childCallId, a loopId and consecutive stepIndexes',
    async run(context) {
      await context.register(
        echoLoop(context, 'a'),
        echoLoop(context, 'b'),
        compositeLoop('three', [sampleStep('a'), sampleStep('b'), sampleStep('a')]),
      );
      const run = await context.runExpectingSuccess('three', {});
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
      const base = indexes[0] === 1 ? 1 : 0;
      assertSameJson(indexes, [base, base + 1, base + 2], 'the stepIndexes of the steps');
      if (base === 1) context.addNote('stepIndex starts at 1; LSEM does not specify the start');
    },
  },
  {
    id: 'TRC-11',
    section: '6',
    level: 'MUST',
    title: 'child.completed has a status, and the childCallId of child.started and of the child itself',
    async run(context) {
      await context.register(
        echoLoop(context, 'a'),
        echoLoop(context, 'b'),
        compositeLoop('two', [sampleStep('a'), sampleStep('b')]),
      );
      const run = await context.runExpectingSuccess('two', {});
      const calls = [run.callIdOf('a'), run.callIdOf('b')];
      for (const type of ['child.started', 'child.completed']) {
        const childIds = run.payloads(type).map((payload) => ownProperty(payload, 'childCallId'));
        assertSameJson(childIds, calls, `the childCallIds of ${type}`);
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
    async run(context) {
      for (const run of await runOneOfEachKind(context)) {
        validPayload(run, 'call.output.validated');
        validPayload(run, 'call.completed');
      }
    },
  },
  {
    id: 'TRC-13',
    section: '6',
    level: 'MUST',
    title: 'call.errored has a code and a message for every kind of failure',
    async run(context) {
      await context.register(
        echoLoop(context, 'input', { inputSchema: NAMED_OBJECT_SCHEMA }),
        echoLoop(context, 'output', { outputSchema: NEVER_SCHEMA }),
        failingLoop(context, 'tool'),
        promptLoop(context, 'backend', { backend: context.profile.backend.failing }),
        compositeLoop('child', [sampleStep('tool')]),
      );
      for (const id of ['input', 'output', 'tool', 'backend', 'child']) {
        validPayload(await context.runExpectingFailure(id, {}), 'call.errored');
      }
    },
  },
  {
    id: 'TRC-19',
    section: '6',
    level: 'MUST',
    title: 'every event of every run has a complete payload',
    coversAllRuns: true,
    async run(context) {
      await runSampleLoops(context);
      for (const event of context.suiteRuns.flatMap((run) => run.events)) {
        const problem = findPayloadProblem(event);
        assertThat(problem === undefined, problem ?? '');
      }
    },
  },
  {
    id: 'TRC-22',
    section: '6',
    level: 'IMPLIED',
    title: 'promptLength counts a system prompt completely or not at all',
    async run(context) {
      const [short, long] = ['Be brief.', 'Be brief, and say nothing that you do not know for certain.'];
      const shortLength = await promptLengthWith(context, 'short', short);
      const longLength = await promptLengthWith(context, 'long', long);
      await context.register(promptLoop(context, 'none', { prompt: context.profile.prompt(PROMPT_PIECES) }));
      const baseLength = ownProperty(
        (await context.runExpectingSuccess('none', {})).payload('call.backend.requested'),
        'promptLength',
      );
      const lengths = `without one it is ${describeValue(baseLength)}, with ${short.length} characters ${shortLength}, with ${long.length} ${longLength}`;
      const isCounted =
        longLength - shortLength === long.length - short.length && shortLength - Number(baseLength) >= short.length;
      const isIgnored = longLength === shortLength && shortLength === baseLength;
      assertThat(isCounted || isIgnored, `promptLength counts part of a system prompt: ${lengths}`);
      context.addNote(
        isCounted ? 'promptLength includes the system prompt' : 'promptLength does not include the system prompt',
      );
    },
  },
]);
