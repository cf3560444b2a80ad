// What holds of the trace of code bodies and of the conformance suite, as checks that a broken copy must fail.

import { expect } from 'vitest';
import type { LsemDriver } from '../../src/conformance/driver.js';
import type { Entry } from '../../src/protocol/entry.js';
import { mini } from '../conformance/mini.js';
import type { Shelf } from './library.js';

export const judging: Shelf = {
  rings: /^(?:protocol|base|journal|kernel|adapters[/]memory|loops|layers|host|views|testing)[/].*$/,
  parts: [
    'views/trace.js',
    'testing/conformance/judge.js',
    'testing/conformance/report.js',
    'testing/conformance/events.js',
    'testing/conformance/recording.js',
  ],
};

export type Judging = typeof import('../../src/views/trace.js') &
  typeof import('../../src/conformance/judge.js') &
  typeof import('../../src/conformance/report.js') &
  typeof import('../../src/conformance/events.js') &
  typeof import('../../src/conformance/recording.js');

function typesOf({ traceOf }: Judging, form: string, kind: string): readonly string[] {
  const drafts = [
    { type: 'call.started', key: 't', name: 'write', version: '1.0.0', form },
    { type: 'effect.requested', key: 't/0', kind, name: 'write', value: {} },
    { type: 'effect.returned', key: 't/0', value: {} },
  ];
  return traceOf(
    't',
    drafts.map((draft, seq) => ({ ...draft, seq, at: seq }) as Entry),
  ).map(({ type }) => type);
}

const statusIn = async (library: Judging, driver: LsemDriver, id: string): Promise<string | undefined> =>
  (await library.judge(driver, { only: [id] })).checks.find((row) => row.id === id)?.status;

export const conformanceChecks = {
  'an effect of a code body is not told as that of a tool': async (library: Judging) => {
    expect(typesOf(library, 'code', 'tool')).not.toContain('call.tool.invoked');
  },
  'an effect of a code body is not told as that of a prompt': async (library: Judging) => {
    expect(typesOf(library, 'code', 'model')).not.toContain('call.backend.requested');
  },
  'a known failure that is gone turns the run red': async (library: Judging) => {
    const driver = { ...mini(), knownFailures: { 'LIF-13': 'until later.' } };
    expect(await statusIn(library, driver, 'LIF-13')).toBe('fail');
  },
  'a known failure is no pass of what must hold': async (library: Judging) => {
    const known = { 'TRC-07': 'a.', 'TRC-19': 'b.' };
    const report = await library.judge({ ...mini({ wrong: 'TRC-07' }), knownFailures: known });
    expect(report.points[3]?.status).toBe('known-failure');
  },
  'what is no runtime is not taken for one that refuses everything': async (library: Judging) => {
    const driver = { ...mini(), open: () => 7 as never };
    expect(await statusIn(library, driver, 'DEF-07')).toBe('fail');
  },
  'an event that is nested deep is an event': async (library: Judging) => {
    let details: unknown = 1;
    for (let depth = 0; depth < 100_000; depth++) details = [details];
    expect(library.eventOf({ callId: 'c', ts: 't', type: 'call.errored', payload: { details } }).type).toBe(
      'call.errored',
    );
  },
  'an event that is used again is recorded as it was': async (library: Judging) => {
    const recording = new library.Recording('loop');
    const event = { callId: 'c', ts: 't', type: 'call.started' };
    recording.hear(event);
    event.type = 'call.completed';
    expect(recording.streamed[0]?.type).toBe('call.started');
  },
  'what comes when a call is over is waited for': async (library: Judging) => {
    expect((await library.judge(mini({ wrong: 'LIF-06' }))).summary.failed).toBe(1);
  },
} as const;
