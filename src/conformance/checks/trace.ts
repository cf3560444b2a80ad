/** What holds for every event, and for the trace as a whole (sections 2 and 6). */
import { ownProperty } from '../../base/own-property.js';
import type { TraceEvent } from '../../protocol/trace.js';
import { type Check, checksOf } from '../check.js';
import type { ToolVoice } from '../driver.js';
import { callsIn, coreTypes, followsLifecycle, instantOf, isCore } from '../events.js';
import { demand, demandSame, isNothing, isText, messageOf, NotApplicable, sameJson, show } from '../failure.js';
import { demandFrames } from '../frames.js';
import type { Recording } from '../recording.js';
import { composite, echo, failing, loop, NAMED, prompt, runAll, step } from '../samples.js';
import type { Stage } from '../stage.js';

const PARALLEL = 1000;

/** The times of one call do not go back; what is no time is another check's business. */
function demandOrder(loopId: string, call: readonly TraceEvent[]): void {
  let before = Number.NEGATIVE_INFINITY;
  for (const { ts, type } of call) {
    const instant = typeof ts === 'string' ? instantOf(ts) : undefined;
    if (instant === undefined) continue;
    demand(instant >= before, () => `${type} of ${loopId} is earlier than the event before it: ${show(ts)}`);
    before = instant;
  }
}

/** Runs a body inside a child of a composite, where its call is not the root. */
async function inChild(stage: Stage, body: (voice: ToolVoice) => void): Promise<Recording> {
  const tool = stage.needCustom((input, voice) => {
    body(voice);
    return input;
  });
  await stage.register(loop('speaker', 'tool', { tool }), composite('around', [step('speaker')]));
  return stage.run('around', {});
}

export const traceChecks: readonly Check[] = checksOf(4, [
  {
    id: 'TRC-01',
    section: '6',
    level: 'MUST',
    title: 'every event has a callId, a ts and a type',
    census: true,
    async run(stage) {
      await runAll(stage);
      const events = stage.history.flatMap((run) => run.events);
      demand(events.length > 0, 'not one event was emitted');
      for (const event of events) {
        for (const member of ['callId', 'ts', 'type']) {
          demand(
            isText(ownProperty(event, member)),
            () => `an event has ${show(ownProperty(event, member))} for ${member}: ${show(event)}`,
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
    census: true,
    async run(stage) {
      await runAll(stage);
      for (const { loopId, events } of stage.history) {
        for (const { ts, type } of events) {
          if (typeof ts !== 'string') continue;
          demand(instantOf(ts) !== undefined, () => `${type} of ${loopId} has ts ${show(ts)}, not ISO 8601`);
          if (!/Z$|[+-]\d\d(?::?\d\d)?$/.test(ts)) stage.note(`a ts names no zone, as in ${show(ts)}`);
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
      await stage.register(echo(stage, 'inner'), composite('outer', [step('inner')]));
      const many = Array.from({ length: PARALLEL }, (_, n) => stage.run('inner', { n }));
      const runs = await Promise.all(many);
      for (let n = 0; n < 5; n++) runs.push(await stage.run('outer', { n }));
      const started = runs.flatMap((run) => run.events.filter(({ type }) => type === 'call.started'));
      demandSame(started.length, PARALLEL + 10, 'how many calls were started');
      demandSame(new Set(started.map(({ callId }) => callId)).size, started.length, 'how many ids they have');
      for (const [n, run] of runs.slice(0, PARALLEL).entries()) {
        demandSame(run.result.output, { n }, 'the output of one call among a thousand');
      }
    },
  },
  {
    id: 'TRC-14',
    section: '6',
    level: 'MUST',
    title: 'a body can log, with level and message, on its own call',
    async run(stage) {
      const run = await inChild(stage, (voice) => {
        voice.log('info', 'first line');
        voice.log('warn', 'second line');
      });
      const lines = run.payloads('log', run.callOf('speaker'));
      const seen = lines.map((line) => [ownProperty(line, 'level'), ownProperty(line, 'message')]);
      demandSame(
        seen,
        [
          ['info', 'first line'],
          ['warn', 'second line'],
        ],
        "the log lines on the body's own call",
      );
      demandSame(run.events.filter(({ type }) => type === 'log').length, 2, 'how many log lines there are in all');
      demand(run.succeeded, 'the call that logged did not succeed');
    },
  },
  {
    id: 'TRC-15',
    section: '6',
    level: 'MAY',
    title: "an event of a vendor's type passes, and disturbs nobody",
    async run(stage) {
      let problem: unknown;
      const run = await inChild(stage, (voice) => {
        try {
          if (voice.emit === undefined) problem = new NotApplicable('bodies cannot emit events of their own');
          else voice.emit('suite.cache.hit', { key: 'k' });
        } catch (thrown) {
          problem = thrown;
        }
      });
      if (problem instanceof NotApplicable) throw problem;
      demand(problem === undefined, `a vendor's event was refused: ${messageOf(problem)}`);
      demandSame(run.payloads('suite.cache.hit', run.callOf('speaker')), [{ key: 'k' }], "the vendor's event");
      demand(run.succeeded && followsLifecycle(run.of(run.root)), "a vendor's event disturbed the calls around it");
    },
  },
  {
    id: 'TRC-16',
    section: '6',
    level: 'IMPLIED',
    title: 'no body can emit an event of a type that LSEM defines',
    async run(stage) {
      let able = true;
      const run = await inChild(stage, (voice) => {
        able = voice.emit !== undefined;
        for (const type of coreTypes.filter((core) => core !== 'log')) {
          try {
            voice.emit?.(type, { forged: true });
          } catch {
            // Refusing it is one way to keep it out.
          }
        }
      });
      if (!able) stage.note('bodies cannot emit events of their own, so there is nothing to forge with');
      const forged = run.events.filter(({ type, payload }) => isCore(type) && ownProperty(payload, 'forged') === true);
      demandSame(
        forged.map(({ type }) => type),
        [],
        'the core events that a body forged',
      );
      for (const call of callsIn(run.events).values()) {
        demand(followsLifecycle(call), `forging left a call with the events ${show(call.map(({ type }) => type))}`);
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
        echo(stage, 'tool', { inputSchema: NAMED }),
        prompt(stage, 'prompt'),
        failing(stage, 'failing'),
        composite('inner', [step('prompt')]),
        composite('well', [step('inner'), step('prompt')]),
        composite('badly', [step('prompt'), step('failing')]),
      );
      for (const id of ['tool', 'prompt', 'failing', 'well', 'badly']) {
        const run = await stage.run(id, {});
        demand(run.trace.length > 0, `the result of ${id} carries no trace`);
        if (run.streamed.length === 0) stage.note(`no event was handed over while ${id} ran: judged by its result`);
        if (sameJson(run.trace, run.events)) continue;
        demandSame(run.trace, run.of(run.root), `the trace in the result of ${id}`);
        stage.note('the trace in a result holds the events of the call itself, not those of its children');
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
        echo(stage, 'fine', { inputSchema: NAMED }),
        failing(stage, 'failing'),
        prompt(stage, 'mute', { backend: stage.profile.backend.failing }),
        composite('well', [step('fine', { name: `${stage.profile.path.input}.name` })]),
        composite('badly', [step('fine', { name: `${stage.profile.path.input}.name` }), step('failing')]),
      );
      for (const id of ['fine', 'well']) {
        const run = await stage.succeed(id, { name: 'n' });
        demandSame(run.result.output, { name: 'n' }, `the output of ${id}`);
      }
      for (const id of ['failing', 'mute', 'badly']) {
        const { output } = (await stage.fail(id, { name: 'n' })).result;
        demand(isNothing(output), `${id} failed and has the output ${show(output)}`);
      }
    },
  },
  {
    id: 'TRC-20',
    section: '5',
    level: 'IMPLIED',
    title: 'the events of a child stand within its frame on the trace of its parent, and no call goes back in time',
    async run(stage) {
      for (const run of await runAll(stage)) {
        demandFrames(run);
        for (const call of callsIn(run.events).values()) demandOrder(run.loopId, call);
      }
    },
  },
  {
    id: 'TRC-21',
    section: '6',
    level: 'IMPLIED',
    title: 'a type that LSEM does not define stands in a namespace of its own',
    census: true,
    async run(stage) {
      await runAll(stage);
      for (const { type } of stage.history.flatMap((run) => run.events)) {
        const apart = isCore(type) || (/^[^.\s]+\.\S+$/.test(type) && !/^(?:call|child|log)\./.test(type));
        demand(apart, () => `${show(type)} is neither a type of LSEM nor in a namespace of its own`);
      }
    },
  },
]);
