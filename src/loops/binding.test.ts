import { expect } from 'vitest';
import { composite, hostOf, prompt, textProvider, tool } from '../../spec/support/host-fixture.js';
import { errorOf, outputOf } from '../../spec/support/turn-results.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import type { Json } from '../protocol/json.js';
import type { StepsSpec } from '../protocol/loop.js';
import type { TurnResult } from '../protocol/trace.js';
import { crashingStore } from '../testing/crashing-store.js';
import { ManualClock } from '../testing/manual-clock.js';
import { resultLifetimes } from './plan/result-lifetimes.js';

/** A clock that advances by a few milliseconds whenever it is read. */
class TickingClock extends ManualClock {
  private reads = 0;

  override now(): number {
    this.reads += 1;
    return super.now() + 7 * this.reads;
  }
}

type Bound = { readonly [member: string]: Json };

const step = (loopId: string, inputMapping: unknown, outputBinding?: string): object =>
  outputBinding === undefined ? { loopId, inputMapping } : { loopId, inputMapping, outputBinding };

const answers = () => [textProvider(['{"n": 1}', '{"n": 2}'])];
const ask = prompt('ask', 'n?', { backend: { id: 'replies' }, outputSchema: { type: 'object' } });
const inner = composite('inner', [step('ask', {}, 'a'), step('echo', { a: '$.a.trace' })]);

/** The events of a call and of everything below it, from the trace of the turn. */
function eventsBelow({ trace }: TurnResult, callId: string): readonly unknown[] {
  const events = trace.filter((event) => event.callId === callId || event.callId.startsWith(`${callId}/`));
  return JSON.parse(JSON.stringify(events));
}

verifies('lsem.7.binding.result', 'a binding, and steps[i], are the complete LoopResult of the child', async () => {
  const steps = [step('inner', {}, 'first'), step('echo', { bound: '$.first', byIndex: '$.steps[0]' })];
  const host = hostOf([ask, tool('echo'), inner, composite('c', steps)], {
    providers: answers(),
    clock: new TickingClock(1_000_000),
  });
  const result = await host.run({ loop: 'c', input: {} });
  expect(errorOf(result)).toBeUndefined();
  const { bound, byIndex } = outputOf(result) as { readonly bound: Bound; readonly byIndex: Bound };
  const callId = `${result.turnId}/0`;
  const events = eventsBelow(result, callId);
  expect(bound).toEqual({
    callId,
    loopId: 'inner',
    loopVersion: '1.0.0',
    status: 'ok',
    output: { a: expect.any(Array) },
    startedAt: (events[0] as { ts: string }).ts,
    endedAt: (events.at(-1) as { ts: string }).ts,
    durationMs: Date.parse(String(bound.endedAt)) - Date.parse(String(bound.startedAt)),
    trace: events,
  });
  expect(bound.durationMs).toBeGreaterThan(0);
  expect(byIndex).toEqual(bound);
  expect(events[0]).toMatchObject({ type: 'call.started', payload: { parentCallId: result.turnId } });
  expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
});

verifies(
  'lsem.7.binding.result',
  'each member of a result can be read separately, and a successful result has no error',
  async () => {
    const read = { t: '$.first.trace[0].type', d: '$.first.durationMs', s: '$.first.startedAt', e: '$.first.endedAt' };
    const mapping = { ...read, list: '$.steps[*].durationMs', none: 'optional:$.first.error' };
    const host = hostOf([tool('echo'), composite('c', [step('echo', '$.input', 'first'), step('echo', mapping)])]);
    const result = await host.run({ loop: 'c', input: {} });
    const time = '1970-01-01T00:16:40.000Z';
    expect(outputOf(result)).toEqual({ t: 'call.started', d: 0, s: time, e: time, list: [0] });
  },
);

verifies('lsem.7.binding.result', 'a turn that crashed at any append resumes with the same bindings', async () => {
  const mapping = { t: '$.first.trace', d: '$.first.durationMs', s: '$.first.startedAt', e: '$.steps[-1].endedAt' };
  const steps = [step('inner', {}, 'first'), step('echo', mapping, 'second'), step('echo', '$.second')];
  const definitions = [ask, tool('echo'), inner, composite('c', steps)];
  const request = { loop: 'c', input: {}, sessionId: 's', key: 'k' } as const;
  const counting = crashingStore(memoryStore());
  const clean = await hostOf(definitions, { store: counting, providers: answers() }).run(request);
  expect(clean.status).toBe('ok');
  for (let append = 1; append <= counting.appendCount; append++) {
    for (const when of ['before', 'after'] as const) {
      const store = memoryStore();
      const crashing = crashingStore(store, { appendNumber: append, when });
      const first = hostOf(definitions, { store: crashing, providers: answers(), clock: new TickingClock(1_000_000) });
      await first.run(request).catch(() => undefined);
      const later = new TickingClock(9_000_000);
      const second = hostOf(definitions, { store, providers: answers(), clock: later, seed: 2 });
      const result = await second.run(request);
      expect(result, `crash ${when} append ${append}`).toMatchObject({ status: 'ok' });
      const { output } = outputOf(result) as { readonly output: Bound };
      expect(output.t).toEqual(eventsBelow(result, `${result.turnId}/0`));
      expect(await second.replay(result.turnId)).toMatchObject({ matches: true });
    }
  }
});

verifies('lsem.7.binding.result', 'only a path that may read times or the trace makes a composite fold them', () => {
  const needsTimes = (inputMapping: StepsSpec['steps'][number]['inputMapping']): readonly boolean[] =>
    resultLifetimes('c', {
      steps: [
        { loopId: 'a', inputMapping: {}, outputBinding: 'a' },
        { loopId: 'b', inputMapping: {}, outputBinding: 'b' },
        { loopId: 'c', inputMapping },
      ],
    }).needsTimes;
  const cases: readonly [path: string, expected: readonly boolean[]][] = [
    ['$.a.output', [false, false, false]],
    ['$.a.output.durationMs', [false, false, false]],
    ['$.steps[1].status', [false, false, false]],
    ['$.steps[-1].output', [false, false, false]],
    ['$.steps[*].output', [false, false, false]],
    ["$.steps[0:2]['output', 'x']", [true, true, false]],
    ['$.a.output[*].x', [false, false, false]],
    ['$.input[*]', [false, false, false]],
    ['$.input..x', [false, false, false]],
    ['optional:$.a.error', [false, false, false]],
    ['literal:$.a.trace', [false, false, false]],
    ['$.a', [true, false, false]],
    ['$.a.trace', [true, false, false]],
    ["$['a']['durationMs']", [true, false, false]],
    ['$.a.*', [true, false, false]],
    ['$.steps[1]', [false, true, false]],
    ['$.steps[1].endedAt', [false, true, false]],
    ['$.steps[-1].startedAt', [true, true, false]],
    ['$.steps[*].durationMs', [true, true, false]],
    ['$.steps[*]', [true, true, false]],
    ['$.a..x', [true, false, false]],
    ['$.a.output..x', [false, false, false]],
    ['$.steps..output', [true, true, false]],
    ['$.steps', [true, true, false]],
    ['$', [true, true, false]],
    ['$.*', [true, true, false]],
    ['$..durationMs', [true, true, false]],
    ['$.input[?@.n == $.a.durationMs]', [true, true, false]],
  ];
  for (const [path, expected] of cases) expect(needsTimes(path), path).toEqual(expected);
  expect(needsTimes({ x: '$.a.output', y: '$.b.trace' })).toEqual([false, true, false]);
});
