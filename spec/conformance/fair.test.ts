// The suite fails only because of the runtime, requires nothing beyond LSEM, and reports known failures as such.

import { expect } from 'vitest';
import { assertSameJson, describeValue } from '../../src/conformance/assertions.js';
import type { LsemDriver, LsemResult, LsemRuntime } from '../../src/conformance/driver.js';
import { timestampMs } from '../../src/conformance/events.js';
import { containsText, firstDifference, jsonCopy } from '../../src/conformance/json.js';
import { RecordedRun } from '../../src/conformance/recorded-run.js';
import { renderConformance } from '../../src/conformance/render.js';
import { type ConformanceReport, conformanceVerdict } from '../../src/conformance/report.js';
import { checkConformance } from '../../src/conformance/run-suite.js';
import type { TraceEvent } from '../../src/protocol/trace.js';
import { verifies } from '../verifies.js';
import { mini } from './mini.js';
import { Mini, type Tools } from './mini-runtime.js';

type RunFunction = LsemRuntime['run'];

/** Returns the driver of the mini runtime with a wrapped `run`. */
function driverRunning(run: (own: RunFunction) => RunFunction): LsemDriver {
  const driver = mini();
  return {
    ...driver,
    async open() {
      const runtime = await driver.open();
      const own: RunFunction = (loopId, input, onEvent) => runtime.run(loopId, input, onEvent);
      return { register: (definition) => runtime.register(definition), run: run(own) };
    },
  };
}

const driverEmitting = (emit: (event: TraceEvent, on: (event: TraceEvent) => void) => void): LsemDriver =>
  driverRunning((own) => (loopId, input, on) => own(loopId, input, on && ((event) => emit(event, on))));

/** Returns a driver of a subclass of the mini runtime. */
function driverOf(Kind: new (tools: Tools) => Mini): LsemDriver {
  const driver = mini();
  const { code: _, agent: __, plan: _plan, ...profile } = driver.profile;
  const tools = new Map([
    ['echo', (input: unknown) => input],
    [
      'fail',
      () => {
        throw new Error('this tool always fails');
      },
    ],
  ]);
  const { custom: ___, ...tool } = profile.tool;
  return { ...driver, profile: { ...profile, tool }, open: () => new Kind(tools) };
}

function rowOf(report: ConformanceReport, id: string): string {
  const row = report.checks.find((check) => check.id === id);
  return `${row?.status}: ${row?.note ?? ''}`;
}

const failedRows = ({ checks }: ConformanceReport): readonly string[] =>
  checks.filter(({ status }) => status === 'fail').map(({ id, note }) => `${id} ${note}`);

/** Calls a function with an almost full stack, and with a little more stack if that overflows. */
function onFullStack(act: () => void): void {
  try {
    onFullStack(act);
  } catch {
    act();
  }
}

const nested = (depth: number): unknown => {
  let value: unknown = 'innermost';
  for (let n = 0; n < depth; n++) value = n % 2 === 0 ? { in: value } : [value];
  return value;
};

verifies('lsem.suite.text', 'a runtime that emits events deep in its own stack passes every check', async () => {
  const report = await checkConformance(
    driverEmitting((event, on) => onFullStack(() => on(event))),
    { only: ['TRC-01', 'TRC-19', 'TRC-21', 'LIF-11'] },
  );
  expect(failedRows(report)).toEqual([]);
  expect(report.summary.passed).toBe(4);
});

verifies('lsem.suite.text', 'a payload with 10,000 nested levels passes every check', async () => {
  const details = nested(10_000);
  const deep = (event: TraceEvent): TraceEvent =>
    event.type === 'call.errored' ? { ...event, payload: { ...Object(event.payload), details } } : event;
  const driver = driverRunning((own) => async (loopId, input, on) => {
    const result = await own(loopId, input, on && ((event) => on(deep(event))));
    return { ...result, trace: result.trace.map(deep) };
  });
  expect(failedRows(await checkConformance(driver))).toEqual([]);
});

verifies('lsem.suite.text', 'values of any depth are copied, compared, searched and printed', () => {
  const [one, other] = [nested(100_000), nested(100_000)];
  expect(firstDifference(jsonCopy(one), other)).toBeUndefined();
  expect(firstDifference(nested(10_000), nested(10_002))?.pointer.length).toBeGreaterThan(10_000);
  expect(containsText(one, 'innermost')).toBe(true);
  expect(describeValue(one).length).toBeLessThan(300);
  expect(() => assertSameJson(nested(10_000), nested(10_002), 'deep')).toThrow('deep');
  const round: Record<string, unknown> = {};
  round.self = round;
  expect(() => jsonCopy(round)).toThrow('refers to itself');
  expect(describeValue(round)).toContain('…');
  const value = {
    a: undefined,
    b: [undefined, Number.NaN, () => 1],
    c: new Date(0),
    d: JSON.parse('{"__proto__": 1}'),
  };
  expect(jsonCopy(value)).toEqual(JSON.parse(JSON.stringify(value)));
  expect(Object.keys(jsonCopy({ b: 1, a: { d: 1, c: [1, 2] } }) as object)).toEqual(['b', 'a']);
});

verifies('lsem.suite.text', 'an event object that the runtime reuses is recorded as it was when it was passed', () => {
  const recording = new RecordedRun('loop');
  const event = { callId: 'c', ts: 't', type: 'call.started', payload: { loopId: 'a' } };
  recording.addEvent(event);
  Object.assign(event, { type: 'call.completed' });
  Object.assign(event.payload, { loopId: 'b' });
  recording.addEvent(event);
  expect(recording.streamedEvents.map(({ type }) => type)).toEqual(['call.started', 'call.completed']);
  expect(recording.streamedEvents[0]?.payload).toEqual({ loopId: 'a' });
});

verifies('lsem.suite.text', 'frames without a childCallId are matched by their order', async () => {
  const report = await checkConformance(mini({ wrong: 'TRC-10' }), { only: ['TRC-10', 'TRC-11', 'TRC-20'] });
  expect(rowOf(report, 'TRC-10')).toMatch(/^fail: no childCallId in/);
  expect(rowOf(report, 'TRC-20')).toBe('pass: ');
  const closed = await checkConformance(mini({ wrong: 'TRC-11' }), { only: ['TRC-20'] });
  expect(rowOf(closed, 'TRC-20')).toMatch(
    /^fail: the child "tool" \(call "call-\d+"\) in a run of pair has no child.completed/,
  );
});

verifies('lsem.suite.text', 'a registry that replaces definitions, or validates them later, passes', async () => {
  const replacing = class extends Mini {
    override register(given: unknown): void {
      const before = this.loops.get(String(Object(given).id));
      this.loops.delete(String(Object(given).id));
      try {
        super.register(given);
      } catch (thrown) {
        if (before !== undefined) this.loops.set(before.id, before);
        throw thrown;
      }
    }
  };
  const report = await checkConformance(driverOf(replacing));
  expect(failedRows(report)).toEqual([]);
  expect(rowOf(report, 'DEF-03')).toMatch(/^pass: a second definition of an id and version is not refused/);
  const deferring = class extends Mini {
    override register(given: unknown): void {
      try {
        super.register(given);
      } catch (thrown) {
        if (typeof Object(given).id !== 'string' || this.loops.has(Object(given).id)) throw thrown;
      }
    }
  };
  const late = await checkConformance(driverOf(deferring), {
    only: ['DEF-02', 'DEF-04', 'DEF-05', 'DEF-07', 'DEF-10'],
  });
  expect(failedRows(late).filter((row) => !row.startsWith('DEF-10'))).toEqual([]);
  expect(rowOf(late, 'DEF-04')).toContain('failed when it ran');
});

verifies('lsem.suite.text', 'durations that include more than their name suggests are accepted', async () => {
  const lengthened = (event: TraceEvent): TraceEvent =>
    event.type === 'call.output.validated' ? { ...event, payload: { durationMs: 5000 } } : event;
  const driver = driverRunning((own) => async (loopId, input, on) => {
    const result = await own(loopId, input, on && ((event) => on(lengthened(event))));
    return { ...result, trace: result.trace.map(lengthened) };
  });
  expect(failedRows(await checkConformance(driver, { only: ['TRC-12', 'TRC-19'] }))).toEqual([]);
});

verifies(
  'lsem.suite.text',
  'null for absent members, times without a zone and other status words are accepted',
  async () => {
    const worded = (event: TraceEvent): TraceEvent => {
      const { type, payload } = event;
      const ts = event.ts.replace('Z', '');
      if (type === 'call.started') return { ...event, ts, payload: { parentCallId: null, ...Object(payload) } };
      if (type !== 'child.completed') return { ...event, ts };
      const { childCallId, status } = Object(payload);
      return { ...event, ts, payload: { childCallId, status: status === 'ok' ? 'completed' : 'failed' } };
    };
    const driver = driverRunning((own) => async (loopId, input, on) => {
      const result: LsemResult = await own(loopId, input, on && ((event) => on(worded(event))));
      return { output: null, error: null, ...result, trace: result.trace.map(worded) };
    });
    const report = await checkConformance(driver);
    expect(failedRows(report)).toEqual([]);
    expect(rowOf(report, 'LIF-10')).toContain('the statuses of child.completed differ');
    expect(rowOf(report, 'TRC-02')).toContain('has no time zone');
  },
);

verifies(
  'lsem.suite.text',
  'ISO 8601 timestamps are parsed in extended and basic format, with and without a zone',
  () => {
    for (const ts of ['2026-01-02T03:04:05.678Z', '20260102T030405Z', '2026-01-02T03:04:05+02', '2026-01-02T03:04']) {
      expect(timestampMs(ts), ts).toBeTypeOf('number');
    }
    for (const ts of ['2026-13-02T03:04:05Z', '2026-02-30T03:04:05Z', 'Fri, 02 Jan 2026', '1767323045', '2026-01-02']) {
      expect(timestampMs(ts), ts).toBeUndefined();
    }
  },
);

verifies('lsem.suite.known', 'a known failure is reported with its reason and does not fail the suite', async () => {
  const driver = { ...mini({ wrong: 'LIF-13' }), knownFailures: { 'LIF-13': 'until later.' } };
  const report = await checkConformance(driver);
  expect(rowOf(report, 'LIF-13')).toMatch(
    /^known-failure: known failure: until later. Seen: an agent has call.backend/,
  );
  expect(report.summary).toMatchObject({ failed: 0, knownFailures: 1, conformant: true });
  expect(conformanceVerdict(report)).toEqual({ text: 'conformant, except for 1 known failure', good: true });
  const text = renderConformance(report, { color: false });
  expect(text).toContain('  ! LIF-13');
  expect(text).toContain(
    '74 passed, 0 failed, 1 known to fail, 0 not applicable, of 75: conformant, except for 1 known failure',
  );
});

verifies('lsem.suite.known', 'a known failure that passes fails the suite, with advice to remove it', async () => {
  const report = await checkConformance({ ...mini(), knownFailures: { 'LIF-13': 'until later.' } });
  expect(rowOf(report, 'LIF-13')).toBe(
    'fail: known failure no longer fails: remove LIF-13 from knownFailures of the driver (reason given: until later.)',
  );
  expect(report.summary).toMatchObject({ failed: 1, knownFailures: 0, conformant: true });
  expect(conformanceVerdict(report)).toMatchObject({ good: false });
});

verifies(
  'lsem.suite.known',
  'a MUST that is a known failure is not conformant, and an unknown check id is an error',
  async () => {
    const report = await checkConformance({
      ...mini({ wrong: 'TRC-07' }),
      knownFailures: { 'TRC-07': 'a.', 'TRC-19': 'b.' },
    });
    expect(report.summary).toMatchObject({ failed: 0, knownFailures: 2, conformant: false });
    expect(report.points[3]?.status).toBe('known-failure');
    expect(conformanceVerdict(report)).toEqual({ text: 'conformant, except for 2 known failures', good: true });
    const wrong = checkConformance({ ...mini(), knownFailures: { 'LIF-99': 'x' } });
    await expect(wrong).rejects.toThrow('knownFailures of the driver: there is no check LIF-99');
  },
);

verifies(
  'lsem.suite.known',
  'a check that a driver cannot support is not applicable, even if it is a known failure',
  async () => {
    const { agent: _, ...profile } = mini().profile;
    const report = await checkConformance({ ...mini(), profile, knownFailures: { 'LIF-13': 'until later.' } });
    expect(rowOf(report, 'LIF-13')).toMatch(/^not-applicable: the driver has no agents/);
  },
);
