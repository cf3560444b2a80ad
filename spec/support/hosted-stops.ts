// What tests of stopped hosted loops share: attempts to make a stopped loop run again, and changes of a store from outside.

import { expect } from 'vitest';
import { HostedStreams } from '../../src/host/hosted/hosted-stream.js';
import type { Store } from '../../src/journal/store.js';
import type { Entry } from '../../src/protocol/entry.js';
import type { HostedLoopDocument, HostedStopReason } from '../../src/protocol/hosted-loop.js';
import type { HostedEntry } from '../../src/views/hosted-loop.js';
import { HOST_CLASSES, type HostClasses } from './host-fixture.js';
import { counter, type HostedFixture, hostedFixture, START } from './hosted-fixture.js';
import { interruptedStore } from './interrupted-store.js';

const DAY_MS = 86_400_000;

/** Members of a document in which every tool call needs an approval. */
export const ASKING: Partial<HostedLoopDocument> = {
  grant: { allowedTools: ['count'], review: { count: 'ask' }, limits: {} },
};

/** Asserts that a loop has stopped with a reason, and that nothing of it runs again, whatever happens. */
export async function expectStopped(fixture: HostedFixture, reason: HostedStopReason): Promise<void> {
  const { host, inputs, clock } = fixture;
  expect(await host.hosted.status('counter')).toMatchObject({ status: 'stopped', reason });
  const before = { calls: inputs.length, turns: await host.hosted.turns('counter') };
  const restarted = fixture.restart();
  const document = (await host.hosted.definition('counter')) as HostedLoopDocument;
  for (const { host: each, work, step } of [fixture, restarted]) {
    const { hosted } = each;
    const start = hosted.start(document, { by: 'eve' });
    await expect(start, 'a stopped loop was started').rejects.toMatchObject({ code: 'HOSTED_LOOP_CONFLICT' });
    await expect(hosted.resume('counter', { by: 'eve' })).rejects.toMatchObject({ code: 'HOSTED_LOOP_CONFLICT' });
    for (const name of Object.keys(document.signals ?? { go: {} })) {
      const delivery = { loop: 'counter', name, payload: null, id: `late-${name}` };
      await expect(hosted.signal(delivery), 'a stopped loop accepted a signal').rejects.toThrow();
    }
    for (const { id } of await each.archive.approvals())
      await each.answer({ id, approved: true, by: 'ada' }).catch(() => undefined);
    await hosted.stop('counter', { by: 'eve', reason: 'again' });
    for (const { turnId } of before.turns) await each.resume(turnId).catch(() => undefined);
    clock.setWallClock(START - DAY_MS);
    await step();
    expect(await work(), 'a stopped loop ran after the clock was set back').toEqual([]);
    await clock.advance(400 * DAY_MS);
    await step();
    expect(await work(), 'a stopped loop ran later').toEqual([]);
    expect(await hosted.status('counter')).toMatchObject({ status: 'stopped', reason });
    expect({ calls: inputs.length, turns: await hosted.turns('counter') }).toEqual(before);
  }
}

/** Asserts that a loop has not stopped and has had this many turns. */
export async function expectGoesOn({ host }: HostedFixture, turns: number): Promise<void> {
  const status = await host.hosted.status('counter');
  expect({ status: status.status, turns: status.turns }).toEqual({ status: 'waiting', turns });
}

/** Appends entries to the stream of a loop, as a process does that ends directly afterwards. */
export async function appendTo(
  { store, clock }: Pick<HostedFixture, 'store' | 'clock'>,
  entries: readonly HostedEntry[],
  loop = 'counter',
): Promise<void> {
  const streams = new HostedStreams(store, clock, undefined);
  await streams.decide(await streams.get(loop), () => entries);
}

/** Replaces the entries of a session, as someone can who may write to the store. */
export async function rewrite(store: Store, session: string, change: (entries: Entry[]) => readonly Entry[]) {
  const { journal } = store;
  const entries: Entry[] = [];
  for await (const batch of journal.read(session, 0)) entries.push(...batch);
  const changed = change(entries).map((entry, seq) => ({ ...entry, seq }));
  await journal.remove(session);
  const { fence } = await journal.claim(session);
  await journal.append({ session, fence, firstSeq: 0, entries: changed });
}

/** Runs a loop that is stopped after its turn was requested, and before its turn starts. */
export async function stoppedWhileStarting(classes: HostClasses = HOST_CLASSES) {
  const { store, arm } = interruptedStore(classes.memoryStore(), 'hosted:counter:1', 'append');
  const counted = { calls: 0 };
  let stopping: Promise<unknown> = Promise.resolve();
  const count = async (): Promise<unknown> => {
    counted.calls += 1;
    await stopping;
    return { n: counted.calls };
  };
  const { host, work, start } = hostedFixture({ classes, store, tools: { count } });
  arm(async () => {
    // Not awaited to its end: the stop waits for the turn that it cancels.
    stopping = host.hosted.stop('counter', { by: 'ada' });
    for (let n = 0; n < 50; n++) await undefined;
  });
  await start(counter());
  await work();
  await stopping;
  return { host, calls: counted.calls };
}
