// The parts of the library that the guards of hosted loops belong to, and what their checks share.

import { deepStrictEqual } from 'node:assert';
import type { Store } from '../../src/journal/store.js';
import type { Entry } from '../../src/protocol/entry.js';
import type { HostedLoopDocument, HostedStopReason } from '../../src/protocol/hosted-loop.js';
import { composite } from '../support/host-fixture.js';
import { counter, type HostedFixture, hostedFixture } from '../support/hosted-fixture.js';
import { type HostLibrary, hostParts, type LibraryParts } from './library.js';

export const hostedParts: LibraryParts = [
  ...hostParts,
  'host/hosted/hosted-stream.js',
  'host/hosted/inbox.js',
  'host/hosted/predecessor.js',
  'host/hosted/turn-derivation.js',
  'policy/narrow-grant.js',
  'policy/stop-policy.js',
  'views/hosted-loop.js',
  'views/turns.js',
];

export type HostedLibrary = HostLibrary &
  typeof import('../../src/host/hosted/hosted-stream.js') &
  typeof import('../../src/host/hosted/inbox.js') &
  typeof import('../../src/host/hosted/predecessor.js') &
  typeof import('../../src/host/hosted/turn-derivation.js') &
  typeof import('../../src/policy/narrow-grant.js') &
  typeof import('../../src/policy/stop-policy.js') &
  typeof import('../../src/views/hosted-loop.js') &
  typeof import('../../src/views/turns.js');

/** A check that holds on the intact library and fails when its guard is broken. */
export type HostedCheck = (library: HostedLibrary) => Promise<void>;

export const HOUR_MS = 3_600_000;
export const STREAM = 'rondo:hosted:counter';
export const FIRST = 'hosted:counter:1';
/** A schedule on which only the first turn is due. */
export const HOURLY: Partial<HostedLoopDocument> = { schedule: { everyMs: HOUR_MS }, stop: { maxTurns: 10 } };

/** Starts a loop on a host of this library, and does what is due. */
export async function worked(
  library: HostedLibrary,
  document: Partial<HostedLoopDocument> = {},
  options: Parameters<typeof hostedFixture>[0] = {},
): Promise<HostedFixture> {
  const thrice = composite(
    'thrice',
    [1, 2, 3].map(() => ({ loopId: 'count', inputMapping: '$.input' })),
  );
  const definitions = [thrice, ...(options.definitions ?? [])];
  const fixture = hostedFixture({ ...options, classes: library, definitions });
  await fixture.start(counter(document));
  await fixture.work();
  return fixture;
}

/** Asserts that a loop stopped with a reason, after its tool ran this many times. */
export async function assertStopped(
  { host, inputs }: HostedFixture,
  reason: HostedStopReason,
  calls: number,
): Promise<void> {
  const status = await host.hosted.status('counter');
  deepStrictEqual([status.status, status.reason, inputs.length], ['stopped', reason, calls]);
}

export async function entriesOf(store: Store, session: string): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for await (const batch of store.journal.read(session, 0)) entries.push(...batch);
  return entries;
}
