// Checks of what hosted loops are outside of their host: a target of signals, and sessions beside those of turns.

import { deepStrictEqual, rejects } from 'node:assert';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineHostedLoop } from '../../src/host/hosted/define-hosted-loop.js';
import { tool } from '../support/host-fixture.js';
import { counter, hostedFixture } from '../support/hosted-fixture.js';
import { type HostLibrary, hostParts, type LibraryParts } from './library.js';

export const hostedProcessParts: LibraryParts = [...hostParts, 'index.js'];

type Library = HostLibrary & typeof import('../../src/index.js');

const properties = { n: { type: 'number' } };
const strict = { ...tool('strict'), inputSchema: { type: 'object', properties, additionalProperties: false } };

const signalled = {
  ...{ id: 'signalled', grant: { allowedTools: ['echo'], limits: {} }, stop: { maxTurns: 1 } },
  signals: { internal: { schema: {} } },
};

type Check = (library: Library) => Promise<void>;

export const hostedProcessChecks = {
  'a signal without a method is not delivered from outside': async ({ createRondo, defineLoop }) => {
    const store = `sqlite:${join(mkdtempSync(join(tmpdir(), 'rondo-')), 'journal.db')}`;
    const echo = defineLoop({ id: 'echo', input: true, output: true, run: async (input: unknown) => input });
    await using rondo = await createRondo({ store, loops: [echo] });
    await rondo.hosted.start(defineHostedLoop({ ...signalled, loop: echo }), { by: 'ada' });
    const delivery = { loop: 'signalled', name: 'internal', payload: null, id: 'd1' };
    await rejects(rondo.hosted.deliver(delivery), ({ code }: { code?: string }) => code === 'SIGNAL_REFUSED');
  },
  'a first input that does not fit the loop is refused': async (library) => {
    const { start } = hostedFixture({ classes: library, definitions: [strict] });
    await rejects(start(counter({ loop: 'strict', input: { m: 1 } })), /\/input\/m: does not fit the loop "strict"/);
  },
  'the lease of a hosted loop is not listed as a turn': async (library) => {
    const store = library.memoryStore();
    const lease = { session: 'rondo:hosted:counter', turn: 'counter', pid: 4711 };
    const leases = { ...store.leases, list: async () => [lease] };
    const { host, start } = hostedFixture({ classes: library, store: { ...store, leases } });
    await start(counter());
    deepStrictEqual(await host.archive.turns(), []);
  },
} as const satisfies { readonly [promise: string]: Check };
