// Checks of what is sent to hosted loops: signals and handoffs.

import { deepStrictEqual, strictEqual } from 'node:assert';
import type { HostedLoopDocument } from '../../src/protocol/hosted-loop.js';
import type { Json } from '../../src/protocol/json.js';
import type { OutgoingHandoff, ReceivedSignal } from '../../src/views/hosted-loop.js';
import { counter, type HostedFixture, hostedFixture, START } from '../support/hosted-fixture.js';
import { appendTo, rewrite } from '../support/hosted-stops.js';
import { testKeys } from '../support/receipt-keys.js';
import {
  entriesOf,
  FIRST,
  HOUR_MS,
  HOURLY,
  type HostedCheck,
  type HostedLibrary,
  STREAM,
  worked,
} from './hosted-library.js';

const SIGNALS: Partial<HostedLoopDocument> = {
  signals: { any: { schema: true }, go: { schema: { type: 'integer' } } },
};

const listening = (library: HostedLibrary, more: Partial<HostedLoopDocument> = {}): Promise<HostedFixture> =>
  worked(library, { ...SIGNALS, ...more });

/** Sends a signal, and returns what became of it. */
const send = ({ host }: HostedFixture, payload: Json, name = 'any', id = 'a'): Promise<string> =>
  host.hosted.signal({ loop: 'counter', name, payload, id }).then(String, ({ code }) => code);

const received = (id: string, keepUntil = START): { type: string; key: string; value: Json } => ({
  type: 'rondo.hosted.received',
  key: id,
  value: { id, name: 'any', payload: null, at: START, digest: 'd', method: 'operator', keepUntil },
});

/** As many signals as an inbox holds. */
const thousand = () => Array.from({ length: 1000 }, (_, index) => received(`s${index}`));

/** A target that accepts handoffs, and a sender whose first turn has ended. */
async function pair(library: HostedLibrary, acceptsHandoffsFrom = ['counter']): Promise<HostedFixture> {
  const fixture = await worked(library, HOURLY);
  const grant = { allowedTools: ['*'], limits: {} };
  await fixture.start(counter({ id: 'target', grant, acceptsHandoffsFrom, stop: { maxTurns: 9 } }));
  return fixture;
}

/** A sender whose handoff finds a full inbox, an hour later. */
async function handedToFullInbox(library: HostedLibrary, deadline?: string): Promise<HostedFixture> {
  const fixture = hostedFixture({ classes: library });
  await fixture.start(counter({ id: 'target', acceptsHandoffsFrom: ['counter'], stop: { maxTurns: 9 } }));
  await fixture.host.hosted.pause('target', { by: 'ada' });
  await appendTo(fixture, thousand(), 'target');
  const handoffs = [{ target: 'target', input: '$.last.output', reason: 'Continue.' }];
  const stop = { maxTurns: 9, ...(deadline !== undefined && { deadline }) };
  await fixture.start(counter({ ...HOURLY, handoffs, stop }));
  await fixture.work();
  await fixture.clock.advance(HOUR_MS);
  await fixture.work();
  return fixture;
}

async function offer({ host }: HostedFixture, more: Partial<OutgoingHandoff> = {}): Promise<string> {
  const [turn] = await host.hosted.turns('counter');
  const handoff = { target: 'target', receipt: turn?.receipt ?? '', input: null, reason: '', ...more };
  return host.hosted.handoff(handoff).then(String, ({ code }) => code);
}

/** Replaces the end of the first turn by one with handoffs, as if the process had ended directly after it. */
async function withHandoffs(fixture: HostedFixture, handoffs: readonly OutgoingHandoff[]): Promise<void> {
  await rewrite(fixture.store, STREAM, (entries) =>
    entries.map((entry) =>
      entry.type === 'rondo.hosted.ended'
        ? { ...entry, value: { ...(entry.value as object), handoffs } as unknown as Json }
        : entry,
    ),
  );
}

export const hostedInboxChecks = {
  'a signal that is not declared is refused': async (library) => {
    strictEqual(await send(await listening(library), null, 'other'), 'SIGNAL_REFUSED');
  },
  'a signal is authentic by the declared method only': async (library) => {
    const { host } = await listening(library);
    const delivery = { loop: 'counter', name: 'any', payload: null, id: 'a' };
    const sent = host.hosted.signal(delivery, 'hmac-sha256').then(String, ({ code }) => code);
    strictEqual(await sent, 'SIGNAL_REFUSED');
  },
  'a payload that is too large is refused': async (library) => {
    strictEqual(await send(await listening(library), 'x'.repeat(65 * 1024)), 'VALUE_INVALID');
  },
  'a payload that does not fit is refused': async (library) => {
    strictEqual(await send(await listening(library), 'one', 'go'), 'INPUT_VALIDATION_FAILED');
  },
  'a delivery is accepted once': async (library) => {
    const fixture = await listening(library);
    deepStrictEqual([await send(fixture, 1), await send(fixture, 1)], ['accepted', 'duplicate']);
  },
  'a known delivery keeps its content': async (library) => {
    const fixture = await listening(library);
    deepStrictEqual([await send(fixture, 1), await send(fixture, 2)], ['accepted', 'SIGNAL_CONFLICT']);
  },
  'a stopped loop accepts nothing': async (library) => {
    const fixture = await listening(library);
    await fixture.host.hosted.stop('counter', { by: 'ada' });
    strictEqual(await send(fixture, 1), 'HOSTED_LOOP_CONFLICT');
  },
  'an inbox is bounded': async (library) => {
    const fixture = await listening(library);
    await appendTo(fixture, thousand());
    strictEqual(await send(fixture, 1), 'INBOX_FULL');
  },
  'a signal causes one turn': async (library) => {
    const fixture = await listening(library);
    await send(fixture, 1);
    await fixture.work();
    strictEqual(fixture.inputs.length, 1);
  },
  'a delivery id is known for its time': async ({ HostedLoopState }) => {
    const state = new HostedLoopState();
    const kept = START + HOUR_MS;
    for (let n = 0; n <= 10_000; n++) state.apply(received(`s${n}`, kept));
    strictEqual(state.deliveredDigest('s0'), 'd', 'it was forgotten within its time');
    state.apply({ ...received('later'), value: { ...(received('later').value as object), at: kept + 1 } as Json });
    strictEqual(state.deliveredDigest('s0'), undefined, 'it is never forgotten');
  },
  'a signal that is admitted moves the head': async ({ HostedLoopState, projectionOf }) => {
    const state = new HostedLoopState();
    const { value } = received('a');
    const parts = { turn: 1, output: undefined, used: {} };
    const { head } = projectionOf(state, { ...parts, signal: value as unknown as ReceivedSignal });
    strictEqual(head === state.now.head, false);
  },
  'two signals do not share a secret': async (library) => {
    const verify = { method: 'hmac-sha256', secret: 'env:SHARED' } as const;
    const signals = { any: { schema: true, verify } };
    const fixture = await worked(library, { signals });
    const other = fixture.start(counter({ id: 'other', signals }));
    strictEqual(await other.then(String, ({ code }) => code), 'DEFINITION_INVALID');
  },
  'a handoff of a sender that is not declared is refused': async (library) => {
    strictEqual(await offer(await pair(library, ['other'])), 'HANDOFF_REFUSED');
  },
  'a handoff whose receipt does not verify is refused': async (library) => {
    const fixture = await pair(library);
    strictEqual(await offer(fixture, { receipt: 'sha256:0' }), 'HANDOFF_REFUSED');
    await rewrite(fixture.store, FIRST, (entries) =>
      entries.map((entry) => (entry.type === 'call.completed' ? { ...entry, value: { n: 9 } } : entry)),
    );
    strictEqual(await offer(fixture), 'HANDOFF_REFUSED');
  },
  'a handoff asks for no more than its sender may': async (library) => {
    const fixture = await pair(library);
    const outcome = await offer(fixture, { grant: { allowedTools: ['count', 'pay'] } });
    strictEqual(['GRANT_WIDENED', 'HANDOFF_REFUSED'].includes(outcome), true, outcome);
  },
  'a handoff asks for no more than its target may': async (library) => {
    const fixture = await worked(library, { ...HOURLY, grant: { allowedTools: ['*'], limits: {} } });
    await fixture.start(counter({ id: 'target', acceptsHandoffsFrom: ['counter'], stop: { maxTurns: 9 } }));
    strictEqual(await offer(fixture, { grant: { allowedTools: ['count', 'pay'] } }), 'GRANT_WIDENED');
    strictEqual(await offer(fixture, { grant: { allowedTools: ['count'] } }), 'accepted');
  },
  'a delivery id has no spaces': async (library) => {
    strictEqual(await send(await listening(library), null, 'any', 'handoff x'), 'VALUE_INVALID');
  },
  'a full inbox delays no stop': async (library) => {
    const fixture = await handedToFullInbox(library, new Date(START + HOUR_MS / 2).toISOString());
    strictEqual((await fixture.host.hosted.status('counter')).reason, 'deadline');
  },
  'a handoff is delivered before the next turn': async (library) => {
    strictEqual((await handedToFullInbox(library)).inputs.length, 1);
  },
  'a delivered handoff is recorded once': async (library) => {
    const fixture = await pair(library);
    const outgoing = ['one', 'two'].map((target) => ({ target, receipt: 'r', input: null, reason: '' }));
    await withHandoffs(fixture, outgoing);
    const { store, clock, host: options } = fixture;
    const predecessor = { keys: testKeys(), storedEntriesOf: async () => [], logIndexes: async () => new Map() };
    const deliver = async () => {
      const streams = new library.HostedStreams(store, clock, undefined);
      const inbox = new library.HostedInbox({ clock, streams, predecessor, options });
      return inbox.deliverHandoffs(await streams.get('counter'));
    };
    await Promise.all([deliver(), deliver()]);
    const keys = (await entriesOf(store, STREAM)).filter(({ type }) => type === library.HOSTED_HANDED_OFF);
    deepStrictEqual(
      keys.map(({ key }) => key),
      ['handoff r one', 'handoff r two'],
    );
  },
  'a handoff that is not delivered is due, also of a stopped loop': async (library) => {
    const fixture = await pair(library);
    await withHandoffs(fixture, [{ target: 'target', receipt: 'r', input: null, reason: '' }]);
    const value = { reason: 'max_turns', message: '', at: START };
    const streams = new library.HostedStreams(fixture.store, fixture.clock, undefined);
    await streams.decide(await streams.get('counter'), () => [{ type: library.HOSTED_STOPPED, key: 'stop', value }]);
    const restarted = hostedFixture({ classes: library, store: fixture.store, clock: fixture.clock, seed: 3 });
    await restarted.work();
    const recorded = (await entriesOf(fixture.store, STREAM)).filter(({ type }) => type === library.HOSTED_HANDED_OFF);
    strictEqual(recorded.length, 1);
  },
  'a turn whose end is recorded after the stop of its loop hands nothing off': async (library) => {
    const rule = { target: 'target', input: '$.last.output', reason: 'Continue.' };
    const fixture = await worked(library, { ...HOURLY, handoffs: [rule] });
    const value = { reason: 'stopped_by', message: '', at: START };
    await rewrite(fixture.store, STREAM, (entries) => [
      ...entries.slice(
        0,
        entries.findIndex(({ type }) => type === library.HOSTED_ENDED),
      ),
      { seq: 0, at: START, type: library.HOSTED_STOPPED, key: 'stop', value },
    ]);
    const restarted = fixture.restart();
    for (let steps = 0; steps < 2; steps++) await restarted.step();
    const entries = await entriesOf(fixture.store, STREAM);
    deepStrictEqual(
      [library.HOSTED_ENDED, library.HOSTED_HANDED_OFF].map((type) => entries.some((entry) => entry.type === type)),
      [true, false],
    );
  },
} as const satisfies { readonly [promise: string]: HostedCheck };
