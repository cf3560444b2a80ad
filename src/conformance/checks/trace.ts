/** What holds for every event, and for the trace as a whole (sections 2 and 6). */
import { ownProperty } from '../../base/own-property.js';
import type { TraceEvent } from '../../protocol/trace.js';
import {
  assertSameJson,
  assertThat,
  describeValue,
  isNonEmptyString,
  isNullish,
  isSameJson,
  messageOf,
  NotApplicableError,
} from '../assertions.js';
import { type ConformanceCheck, checksOf } from '../check.js';
import type { CheckContext } from '../check-context.js';
import { assertFrames } from '../child-frames.js';
import type { SuiteToolContext } from '../driver.js';
import { coreTypes, eventsByCall, followsLifecycle, isCoreType, timestampMs } from '../events.js';
import type { RecordedRun } from '../recorded-run.js';
import {
  compositeLoop,
  echoLoop,
  failingLoop,
  NAMED_OBJECT_SCHEMA,
  promptLoop,
  runSampleLoops,
  sampleLoop,
  sampleStep,
} from '../sample-loops.js';

const PARALLEL_CALLS = 1000;

/** The times of one call do not go back; what is no time is another check's business. */
function assertTimesInOrder(loopId: string, call: readonly TraceEvent[]): void {
  let before = Number.NEGATIVE_INFINITY;
  for (const { ts, type } of call) {
    const instant = typeof ts === 'string' ? timestampMs(ts) : undefined;
    if (instant === undefined) continue;
    assertThat(
      instant >= before,
      () => `${type} of ${loopId} is earlier than the event before it: ${describeValue(ts)}`,
    );
    before = instant;
  }
}

/** Runs a body inside a child of a composite, where its call is not the root. */
async function runInChild(stage: CheckContext, body: (voice: SuiteToolContext) => void): Promise<RecordedRun> {
  const tool = stage.requireCustomTool((input, voice) => {
    body(voice);
    return input;
  });
  await stage.register(sampleLoop('speaker', 'tool', { tool }), compositeLoop('around', [sampleStep('speaker')]));
  return stage.run('around', {});
}

export const traceChecks: readonly ConformanceCheck[] = checksOf(4, [
  {
    id: 'TRC-01',
    section: '6',
    level: 'MUST',
    title: 'every event has a callId, a ts and a type',
    coversAllRuns: true,
    async run(stage) {
      await runSampleLoops(stage);
      const events = stage.recordedRuns.flatMap((run) => run.events);
      assertThat(events.length > 0, 'not one event was emitted');
      for (const event of events) {
        for (const member of ['callId', 'ts', 'type']) {
          assertThat(
            isNonEmptyString(ownProperty(event, member)),
            () => `an event has ${describeValue(ownProperty(event, member))} for ${member}: ${describeValue(event)}`,
          );
        }
      }
    },
  },
  {
    id: 'TRC-02',
    section: '6',
    level: 'MUST',
    title: 'every ts is an ISO 8601 timestamp',
    coversAllRuns: true,
    async run(stage) {
      await runSampleLoops(stage);
      for (const { loopId, events } of stage.recordedRuns) {
        for (const { ts, type } of events) {
          if (typeof ts !== 'string') continue;
          assertThat(
            timestampMs(ts) !== undefined,
            () => `${type} of ${loopId} has ts ${describeValue(ts)}, not ISO 8601`,
          );
          if (!/Z$|[+-]\d\d(?::?\d\d)?$/.test(ts)) stage.addNote(`a ts names no zone, as in ${describeValue(ts)}`);
        }
      }
    },
  },
  {
    id: 'TRC-03',
    section: '6',
    level: 'MUST',
    title: 'a callId belongs to one call, of a thousand at once and of those after them',
    async run(stage) {
      await stage.register(echoLoop(stage, 'inner'), compositeLoop('outer', [sampleStep('inner')]));
      const many = Array.from({ length: PARALLEL_CALLS }, (_, n) => stage.run('inner', { n }));
      const runs = await Promise.all(many);
      for (let n = 0; n < 5; n++) runs.push(await stage.run('outer', { n }));
      const started = runs.flatMap((run) => run.events.filter(({ type }) => type === 'call.started'));
      assertSameJson(started.length, PARALLEL_CALLS + 10, 'how many calls were started');
      assertSameJson(new Set(started.map(({ callId }) => callId)).size, started.length, 'how many ids they have');
      for (const [n, run] of runs.slice(0, PARALLEL_CALLS).entries()) {
        assertSameJson(run.result.output, { n }, 'the output of one call among a thousand');
      }
    },
  },
  {
    id: 'TRC-14',
    section: '6',
    level: 'MUST',
    title: 'a body can log, with level and message, on its own call',
    async run(stage) {
      const run = await runInChild(stage, (voice) => {
        voice.log('info', 'first line');
        voice.log('warn', 'second line');
      });
      const lines = run.payloads('log', run.callIdOf('speaker'));
      const seen = lines.map((line) => [ownProperty(line, 'level'), ownProperty(line, 'message')]);
      assertSameJson(
        seen,
        [
          ['info', 'first line'],
          ['warn', 'second line'],
        ],
        "the log lines on the body's own call",
      );
      assertSameJson(run.events.filter(({ type }) => type === 'log').length, 2, 'how many log lines there are in all');
      assertThat(run.hasSucceeded, 'the call that logged did not succeed');
    },
  },
  {
    id: 'TRC-15',
    section: '6',
    level: 'MAY',
    title: "an event of a vendor's type passes, and disturbs nobody",
    async run(stage) {
      let problem: unknown;
      const run = await runInChild(stage, (voice) => {
        try {
          if (voice.emit === undefined) problem = new NotApplicableError('bodies cannot emit events of their own');
          else voice.emit('suite.cache.hit', { key: 'k' });
        } catch (thrown) {
          problem = thrown;
        }
      });
      if (problem instanceof NotApplicableError) throw problem;
      assertThat(problem === undefined, `a vendor's event was refused: ${messageOf(problem)}`);
      assertSameJson(run.payloads('suite.cache.hit', run.callIdOf('speaker')), [{ key: 'k' }], "the vendor's event");
      assertThat(
        run.hasSucceeded && followsLifecycle(run.eventsOf(run.rootCallId)),
        "a vendor's event disturbed the calls around it",
      );
    },
  },
  {
    id: 'TRC-16',
    section: '6',
    level: 'IMPLIED',
    title: 'no body can emit an event of a type that LSEM defines',
    async run(stage) {
      let able = true;
      const run = await runInChild(stage, (voice) => {
        able = voice.emit !== undefined;
        for (const type of coreTypes.filter((core) => core !== 'log')) {
          try {
            voice.emit?.(type, { forged: true });
          } catch {
            // Refusing it is one way to keep it out.
          }
        }
      });
      if (!able) stage.addNote('bodies cannot emit events of their own, so there is nothing to forge with');
      const forged = run.events.filter(
        ({ type, payload }) => isCoreType(type) && ownProperty(payload, 'forged') === true,
      );
      assertSameJson(
        forged.map(({ type }) => type),
        [],
        'the core events that a body forged',
      );
      for (const call of eventsByCall(run.events).values()) {
        assertThat(
          followsLifecycle(call),
          `forging left a call with the events ${describeValue(call.map(({ type }) => type))}`,
        );
      }
    },
  },
  {
    id: 'TRC-17',
    section: '2',
    level: 'IMPLIED',
    title: 'a result carries the full trace: what was emitted, in order',
    async run(stage) {
      await stage.register(
        echoLoop(stage, 'tool', { inputSchema: NAMED_OBJECT_SCHEMA }),
        promptLoop(stage, 'prompt'),
        failingLoop(stage, 'failing'),
        compositeLoop('inner', [sampleStep('prompt')]),
        compositeLoop('well', [sampleStep('inner'), sampleStep('prompt')]),
        compositeLoop('badly', [sampleStep('prompt'), sampleStep('failing')]),
      );
      for (const id of ['tool', 'prompt', 'failing', 'well', 'badly']) {
        const run = await stage.run(id, {});
        assertThat(run.trace.length > 0, `the result of ${id} carries no trace`);
        if (run.streamedEvents.length === 0)
          stage.addNote(`no event was handed over while ${id} ran: judged by its result`);
        if (isSameJson(run.trace, run.events)) continue;
        assertSameJson(run.trace, run.eventsOf(run.rootCallId), `the trace in the result of ${id}`);
        stage.addNote('the trace in a result holds the events of the call itself, not those of its children');
      }
    },
  },
  {
    id: 'TRC-18',
    section: '2',
    level: 'IMPLIED',
    title: 'a success has an output and no error, a failure an error and no output',
    async run(stage) {
      await stage.register(
        echoLoop(stage, 'fine', { inputSchema: NAMED_OBJECT_SCHEMA }),
        failingLoop(stage, 'failing'),
        promptLoop(stage, 'mute', { backend: stage.profile.backend.failing }),
        compositeLoop('well', [sampleStep('fine', { name: `${stage.profile.path.input}.name` })]),
        compositeLoop('badly', [
          sampleStep('fine', { name: `${stage.profile.path.input}.name` }),
          sampleStep('failing'),
        ]),
      );
      for (const id of ['fine', 'well']) {
        const run = await stage.runExpectingSuccess(id, { name: 'n' });
        assertSameJson(run.result.output, { name: 'n' }, `the output of ${id}`);
      }
      for (const id of ['failing', 'mute', 'badly']) {
        const { output } = (await stage.runExpectingFailure(id, { name: 'n' })).result;
        assertThat(isNullish(output), `${id} failed and has the output ${describeValue(output)}`);
      }
    },
  },
  {
    id: 'TRC-20',
    section: '5',
    level: 'IMPLIED',
    title: 'the events of a child stand within its frame on the trace of its parent, and no call goes back in time',
    async run(stage) {
      for (const run of await runSampleLoops(stage)) {
        assertFrames(run);
        for (const call of eventsByCall(run.events).values()) assertTimesInOrder(run.loopId, call);
      }
    },
  },
  {
    id: 'TRC-21',
    section: '6',
    level: 'IMPLIED',
    title: 'a type that LSEM does not define stands in a namespace of its own',
    coversAllRuns: true,
    async run(stage) {
      await runSampleLoops(stage);
      for (const { type } of stage.recordedRuns.flatMap((run) => run.events)) {
        const apart = isCoreType(type) || (/^[^.\s]+\.\S+$/.test(type) && !/^(?:call|child|log)\./.test(type));
        assertThat(apart, () => `${describeValue(type)} is neither a type of LSEM nor in a namespace of its own`);
      }
    },
  },
]);
