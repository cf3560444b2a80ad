// Properties of Rondo beyond LSEM: the trace of bodies in code, and exact durations.

import { setTimeout } from 'node:timers/promises';
import { expect } from 'vitest';
import { memoryStore } from '../../src/adapters/memory/index.js';
import { mockProvider } from '../../src/adapters/models/index.js';
import { systemClock, systemIds } from '../../src/adapters/system/index.js';
import { Host } from '../../src/host/host.js';
import { defineLoop } from '../../src/loops/define.js';
import { Registry } from '../../src/loops/registry.js';
import type { TraceEvent } from '../../src/protocol/trace.js';
import { treeOf } from '../../src/views/trace-tree.js';
import { verifies } from '../verifies.js';

function hostOf(): Host {
  const mock = mockProvider();
  const options = { store: memoryStore(), clock: systemClock, ids: systemIds, registry: new Registry() };
  return new Host({ ...options, providers: new Map([[mock.id, mock]]) });
}

const any = { input: true, output: true } as const;
const payloadOf = (events: readonly TraceEvent[], type: string, callId: string): unknown =>
  events.find((event) => event.type === type && event.callId === callId)?.payload;

verifies(
  'lsem.5.body',
  'an effect of a body in code emits no LSEM event, live and in the archive, even with the name of its loop',
  async () => {
    const host = hostOf();
    const effect = (kind: string) =>
      ({ kind, name: 'write', input: null, safety: 'idempotent', perform: () => kind }) as const;
    const loop = defineLoop({
      id: 'write',
      ...any,
      run: async (_, scope) => [await scope.effect(effect('tool')), await scope.effect(effect('model'))],
    });
    const live: TraceEvent[] = [];
    const result = await host.run({ loop, input: null }, { onEvent: (event) => live.push(event) });
    expect(result.status).toBe('ok');
    expect(live.map(({ type }) => type)).toEqual([
      'call.started',
      'call.input.validated',
      'rondo.effect.requested',
      'rondo.effect.returned',
      'rondo.effect.requested',
      'rondo.effect.returned',
      'call.output.validated',
      'call.completed',
    ]);
    expect(payloadOf(live, 'rondo.effect.requested', result.turnId)).toEqual({ kind: 'tool', name: 'write' });
    expect(result.trace).toEqual(live);
    expect(await host.archive.trace(result.turnId)).toEqual(live);
    expect(treeOf(live)?.kind).toBe('composite');
    expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
  },
);

verifies(
  'lsem.6.call.output.validated',
  'durationMs measures only the validation, even after a slow body',
  async () => {
    const slow = defineLoop({ id: 'slow', ...any, tool: async () => setTimeout(120, null), safety: 'idempotent' });
    const outer = defineLoop({ id: 'outer', ...any, run: (_, scope) => scope.call(slow, null) });
    const { trace, turnId } = await hostOf().run({ loop: outer, input: null });
    for (const callId of [turnId, `${turnId}/0`]) {
      expect(payloadOf(trace, 'call.output.validated', callId)).toEqual({ durationMs: expect.closeTo(0, -2) });
      const { totalDurationMs } = payloadOf(trace, 'call.completed', callId) as { totalDurationMs: number };
      expect(totalDurationMs).toBeGreaterThanOrEqual(119);
    }
  },
);
