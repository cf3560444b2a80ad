// Checks of the trace of code bodies and of the conformance suite; each fails when its guard is broken.

import { expect } from 'vitest';
import type { LsemDriver } from '../../src/conformance/driver.js';
import type { Entry } from '../../src/protocol/entry.js';
import { mini } from '../conformance/mini.js';
import type { LibraryParts } from './library.js';

export const conformanceParts: LibraryParts = [
  'views/trace.js',
  'conformance/run-suite.js',
  'conformance/report.js',
  'conformance/events.js',
  'conformance/recorded-run.js',
];

type ConformanceLibrary = typeof import('../../src/views/trace.js') &
  typeof import('../../src/conformance/run-suite.js') &
  typeof import('../../src/conformance/report.js') &
  typeof import('../../src/conformance/events.js') &
  typeof import('../../src/conformance/recorded-run.js');

function typesOf({ traceOf }: ConformanceLibrary, bodyKind: string, kind: string): readonly string[] {
  const drafts = [
    { type: 'call.started', key: 't', name: 'write', version: '1.0.0', bodyKind },
    { type: 'effect.requested', key: 't/0', kind, name: 'write', value: {} },
    { type: 'effect.returned', key: 't/0', value: {} },
  ];
  return traceOf(
    't',
    drafts.map((draft, seq) => ({ ...draft, seq, at: seq }) as Entry),
  ).map(({ type }) => type);
}

const statusIn = async (library: ConformanceLibrary, driver: LsemDriver, id: string): Promise<string | undefined> =>
  (await library.checkConformance(driver, { only: [id] })).checks.find((row) => row.id === id)?.status;

export const conformanceChecks = {
  'an effect of a code body is not traced as a tool': async (library: ConformanceLibrary) => {
    expect(typesOf(library, 'code', 'tool')).not.toContain('call.tool.invoked');
  },
  'a model call of a code body is not traced as a backend': async (library: ConformanceLibrary) => {
    expect(typesOf(library, 'code', 'model')).not.toContain('call.backend.requested');
  },
  'a known failure that passes fails the run': async (library: ConformanceLibrary) => {
    const driver = { ...mini(), knownFailures: { 'LIF-13': 'until later.' } };
    expect(await statusIn(library, driver, 'LIF-13')).toBe('fail');
  },
  'a known failure does not count as a pass': async (library: ConformanceLibrary) => {
    const known = { 'TRC-07': 'a.', 'TRC-19': 'b.' };
    const report = await library.checkConformance({ ...mini({ wrong: 'TRC-07' }), knownFailures: known });
    expect(report.points[3]?.status).toBe('known-failure');
  },
  'an object without the methods of a runtime is rejected': async (library: ConformanceLibrary) => {
    const driver = { ...mini(), open: () => 7 as never };
    expect(await statusIn(library, driver, 'DEF-07')).toBe('fail');
  },
  'a deeply nested event is accepted': async (library: ConformanceLibrary) => {
    let details: unknown = 1;
    for (let depth = 0; depth < 100_000; depth++) details = [details];
    expect(library.toTraceEvent({ callId: 'c', ts: 't', type: 'call.errored', payload: { details } }).type).toBe(
      'call.errored',
    );
  },
  'a reused event object is recorded as it was': async (library: ConformanceLibrary) => {
    const recording = new library.RecordedRun('loop');
    const event = { callId: 'c', ts: 't', type: 'call.started' };
    recording.addEvent(event);
    event.type = 'call.completed';
    expect(recording.streamedEvents[0]?.type).toBe('call.started');
  },
  'events after the end of a call are awaited': async (library: ConformanceLibrary) => {
    expect((await library.checkConformance(mini({ wrong: 'LIF-06' }))).summary.failed).toBe(1);
  },
} as const;
