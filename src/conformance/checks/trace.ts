/** Checks of all events and of complete traces (sections 2, 5 and 6 of LSEM). */
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

/** Fails if the timestamps of a call decrease. Another check reports invalid timestamps. */
function assertTimesInOrder(loopId: string, call: readonly TraceEvent[]): void {
  let previous = Number.NEGATIVE_INFINITY;
  for (const { ts, type } of call) {
    const instant = typeof ts === 'string' ? timestampMs(ts) : undefined;
    if (instant === undefined) continue;
    assertThat(
      instant >= previous,
      () => `${type} of ${loopId} is earlier than the event before it: ${describeValue(ts)}`,
    );
    previous = instant;
  }
}

/** Runs a body as a custom tool in a step of a composite, so that its call is not the root call. */
async function runInChild(context: CheckContext, body: (toolContext: SuiteToolContext) => void): Promise<RecordedRun> {
  const tool = context.requireCustomTool((input, toolContext) => {
    body(toolContext);
    return input;
  });
  await context.register(sampleLoop('speaker', 'tool', { tool }), compositeLoop('around', [sampleStep('speaker')]));
  return context.run('around', {});
}

/** The checks of events and traces. */
export const traceChecks: readonly ConformanceCheck[] = checksOf(4, [
  {
    id: 'TRC-01',
    section: '6',
    level: 'MUST',
    title: 'every event has a callId, a ts and a type',
    coversAllRuns: true,
    async run(context) {
      await runSampleLoops(context);
      const events = context.suiteRuns.flatMap((run) => run.events);
      assertThat(events.length > 0, 'no event was emitted');
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
    async run(context) {
      await runSampleLoops(context);
      for (const { loopId, events } of context.suiteRuns) {
        for (const { ts, type } of events) {
          if (typeof ts !== 'string') continue;
          assertThat(
            timestampMs(ts) !== undefined,
            () => `${type} of ${loopId} has ts ${describeValue(ts)}, not ISO 8601`,
          );
          if (!/Z$|[+-]\d\d(?::?\d\d)?$/.test(ts))
            context.addNote(`a ts has no time zone, for example ${describeValue(ts)}`);
        }
      }
    },
  },
  {
    id: 'TRC-03',
    section: '6',
    level: 'MUST',
    title: 'a callId belongs to one call, among a thousand concurrent calls and later ones',
    async run(context) {
      await context.register(echoLoop(context, 'inner'), compositeLoop('outer', [sampleStep('inner')]));
      const concurrentRuns = Array.from({ length: PARALLEL_CALLS }, (_, n) => context.run('inner', { n }));
      const runs = await Promise.all(concurrentRuns);
      for (let n = 0; n < 5; n++) runs.push(await context.run('outer', { n }));
      const started = runs.flatMap((run) => run.events.filter(({ type }) => type === 'call.started'));
      assertSameJson(started.length, PARALLEL_CALLS + 10, 'the number of calls');
      assertSameJson(new Set(started.map(({ callId }) => callId)).size, started.length, 'the number of call ids');
      for (const [n, run] of runs.slice(0, PARALLEL_CALLS).entries()) {
        assertSameJson(run.result.output, { n }, 'the output of one call among a thousand');
      }
    },
  },
  {
    id: 'TRC-14',
    section: '6',
    level: 'MUST',
    title: 'a body can log with level and message on its own call',
    async run(context) {
      const run = await runInChild(context, (toolContext) => {
        toolContext.log('info', 'first line');
        toolContext.log('warn', 'second line');
      });
      const lines = run.payloads('log', run.callIdOf('speaker'));
      const messages = lines.map((line) => [ownProperty(line, 'level'), ownProperty(line, 'message')]);
      assertSameJson(
        messages,
        [
          ['info', 'first line'],
          ['warn', 'second line'],
        ],
        "the log lines on the body's own call",
      );
      assertSameJson(run.events.filter(({ type }) => type === 'log').length, 2, 'the total number of log lines');
      assertThat(run.hasSucceeded, 'the call that logged did not succeed');
    },
  },
  {
    id: 'TRC-15',
    section: '6',
    level: 'MAY',
    title: "an event of a vendor's type is emitted and does not affect other events",
    async run(context) {
      let problem: unknown;
      const run = await runInChild(context, (toolContext) => {
        try {
          if (toolContext.emit === undefined) problem = new NotApplicableError('bodies cannot emit events');
          else toolContext.emit('suite.cache.hit', { key: 'k' });
        } catch (thrown) {
          problem = thrown;
        }
      });
      if (problem instanceof NotApplicableError) throw problem;
      assertThat(problem === undefined, `a vendor's event was refused: ${messageOf(problem)}`);
      assertSameJson(run.payloads('suite.cache.hit', run.callIdOf('speaker')), [{ key: 'k' }], "the vendor's event");
      assertThat(
        run.hasSucceeded && followsLifecycle(run.eventsOf(run.rootCallId)),
        "a vendor's event affected other events",
      );
    },
  },
  {
    id: 'TRC-16',
    section: '6',
    level: 'IMPLIED',
    title: 'no body can emit an event of a type that LSEM defines',
    async run(context) {
      let canEmit = true;
      const run = await runInChild(context, (toolContext) => {
        canEmit = toolContext.emit !== undefined;
        for (const type of coreTypes.filter((core) => core !== 'log')) {
          try {
            toolContext.emit?.(type, { forged: true });
          } catch {
            // A runtime may refuse the event.
          }
        }
      });
      if (!canEmit) context.addNote('bodies cannot emit events, so they cannot forge any');
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
          `after a forgery, a call has the events ${describeValue(call.map(({ type }) => type))}`,
        );
      }
    },
  },
  {
    id: 'TRC-17',
    section: '2',
    level: 'IMPLIED',
    title: 'a result contains the full trace: the emitted events, in order',
    async run(context) {
      await context.register(
        echoLoop(context, 'tool', { inputSchema: NAMED_OBJECT_SCHEMA }),
        promptLoop(context, 'prompt'),
        failingLoop(context, 'failing'),
        compositeLoop('inner', [sampleStep('prompt')]),
        compositeLoop('well', [sampleStep('inner'), sampleStep('prompt')]),
        compositeLoop('badly', [sampleStep('prompt'), sampleStep('failing')]),
      );
      for (const id of ['tool', 'prompt', 'failing', 'well', 'badly']) {
        const run = await context.run(id, {});
        assertThat(run.trace.length > 0, `the result of ${id} has no trace`);
        if (run.streamedEvents.length === 0)
          context.addNote(`no event was passed to onEvent while ${id} ran: checked by its result`);
        if (isSameJson(run.trace, run.events)) continue;
        assertSameJson(run.trace, run.eventsOf(run.rootCallId), `the trace in the result of ${id}`);
        context.addNote('the trace in a result contains the events of the call itself, not those of its children');
      }
    },
  },
  {
    id: 'TRC-18',
    section: '2',
    level: 'IMPLIED',
    title: 'a success has an output and no error; a failure has an error and no output',
    async run(context) {
      await context.register(
        echoLoop(context, 'fine', { inputSchema: NAMED_OBJECT_SCHEMA }),
        failingLoop(context, 'failing'),
        promptLoop(context, 'mute', { backend: context.profile.backend.failing }),
        compositeLoop('well', [sampleStep('fine', { name: `${context.profile.path.input}.name` })]),
        compositeLoop('badly', [
          sampleStep('fine', { name: `${context.profile.path.input}.name` }),
          sampleStep('failing'),
        ]),
      );
      for (const id of ['fine', 'well']) {
        const run = await context.runExpectingSuccess(id, { name: 'n' });
        assertSameJson(run.result.output, { name: 'n' }, `the output of ${id}`);
      }
      for (const id of ['failing', 'mute', 'badly']) {
        const { output } = (await context.runExpectingFailure(id, { name: 'n' })).result;
        assertThat(isNullish(output), `${id} failed and has the output ${describeValue(output)}`);
      }
    },
  },
  {
    id: 'TRC-20',
    section: '5',
    level: 'IMPLIED',
    title: "the events of a child are inside its frame on the parent's trace, and timestamps of a call never decrease",
    async run(context) {
      for (const run of await runSampleLoops(context)) {
        assertFrames(run);
        for (const call of eventsByCall(run.events).values()) assertTimesInOrder(run.loopId, call);
      }
    },
  },
  {
    id: 'TRC-21',
    section: '6',
    level: 'IMPLIED',
    title: 'an event type that LSEM does not define has its own namespace',
    coversAllRuns: true,
    async run(context) {
      await runSampleLoops(context);
      for (const { type } of context.suiteRuns.flatMap((run) => run.events)) {
        const isValid = isCoreType(type) || (/^[^.\s]+\.\S+$/.test(type) && !/^(?:call|child|log)\./.test(type));
        assertThat(isValid, () => `${describeValue(type)} is neither a type of LSEM nor in its own namespace`);
      }
    },
  },
]);
