// Checks of what keeps a hosted loop from running: refused before its start, or repaired by its operator later.

import { deepStrictEqual, rejects } from 'node:assert';
import type { HostedLoopDocument } from '../../src/protocol/hosted-loop.js';
import { prompt } from '../support/host-fixture.js';
import { counter, type HostedFixture, hostedFixture } from '../support/hosted-fixture.js';
import { HOUR_MS, HOURLY, type HostedCheck } from './hosted-library.js';

const PRICE = { inputPerMillion: 1, outputPerMillion: 1 };
const TEXT = { outputSchema: { type: 'string' } } as const;
const SHARED = { id: 'shared', allowedTools: ['count'], limits: {} };

const asking = (more: Partial<HostedLoopDocument> = {}): HostedLoopDocument =>
  counter({ loop: 'ask', input: {}, grant: { allowedTools: [], limits: { costMicros: 1_000_000 } }, ...more });

/** Asserts that a loop is paused until its operator has repaired something. */
async function assertPaused({ host }: HostedFixture, wanted: string): Promise<void> {
  const { status, reason } = await host.hosted.status('counter');
  deepStrictEqual([status, reason], ['paused', wanted]);
}

export const hostedRepairChecks = {
  'a loop without its prices does not start': async (classes) => {
    await rejects(
      hostedFixture({ classes, definitions: [prompt('ask', 'Hi.', TEXT)] }).start(asking()),
      /has no price/,
    );
  },
  'a loop whose first turn has no input does not start': async (classes) => {
    const { input: _, ...document } = counter({ next: { x: '$.last.output.x' } });
    await rejects(hostedFixture({ classes }).start(document), /the first turn does not have/);
  },
  'a loop whose next makes no input of its loop does not start': async (classes) => {
    const inputSchema = { type: 'object', properties: { x: { type: 'integer' } }, required: ['x'] } as const;
    const definitions = [prompt('ask', 'Hi.', { ...TEXT, inputSchema })];
    const document = counter({ loop: 'ask', input: { x: 1 }, next: { y: '$.turn' } });
    await rejects(hostedFixture({ classes, definitions }).start(document), /requires "x", which is not passed/);
  },
  'a loop that stops at an output which its loop never has does not start': async (classes) => {
    const outputSchema = {
      type: 'object',
      properties: { label: { type: 'string' } },
      additionalProperties: false,
    } as const;
    const stop = { maxTurns: 3, terminal: { path: '$.state', equals: 'done' } };
    const definitions = [prompt('ask', 'Hi.', { outputSchema })];
    const starting = hostedFixture({ classes, definitions }).start(counter({ loop: 'ask', input: {}, stop }));
    await rejects(starting, /matches nothing/);
  },
  'a loop with the grant id of another one does not start': async (classes) => {
    const fixture = hostedFixture({ classes });
    await fixture.start(counter({ grant: SHARED }));
    const other = counter({ id: 'other', grant: { ...SHARED, limits: { effects: 1 } } });
    await rejects(fixture.start(other), ({ code }: { code?: string }) => code === 'GRANT_CONFLICT');
  },
  'a loop whose price is gone is paused': async (classes) => {
    const prices: (typeof PRICE | undefined)[] = [PRICE];
    const definitions = [prompt('ask', 'Hi.', TEXT)];
    const fixture = hostedFixture({ classes, definitions, priceOf: () => prices[0] });
    await fixture.start(asking(HOURLY));
    await fixture.work();
    prices.length = 0;
    await fixture.clock.advance(HOUR_MS);
    await fixture.work();
    await assertPaused(fixture, 'price');
    deepStrictEqual((await fixture.host.hosted.status('counter')).turns, 1);
  },
  'a loop whose turn asked a model without a price is paused': async (classes) => {
    const routing = [{ when: { promptLengthOver: 1 }, backend: { id: 'mock' } }];
    const definitions = [{ ...prompt('ask', 'Hello.', TEXT), policy: { routing } }];
    const fixture = hostedFixture({ classes, definitions });
    await fixture.start(asking());
    await fixture.work();
    await assertPaused(fixture, 'price');
  },
  'a loop whose grant id means another grant now is paused': async (classes) => {
    const fixture = hostedFixture({ classes });
    await fixture.start(counter({ grant: SHARED }));
    await fixture.store.journal.remove('rondo:grant:shared');
    const other = fixture.restart();
    await other.start(counter({ id: 'other', ...HOURLY, grant: { ...SHARED, limits: { effects: 1 } } }));
    await other.work();
    await assertPaused(other, 'grant');
  },
  'a loop that does not take the input any more is paused': async (classes) => {
    const fixture = hostedFixture({ classes });
    await fixture.start(counter(HOURLY));
    const { registry } = fixture.host;
    const known = registry.find('count')?.definition;
    registry.remove('count');
    registry.add({ ...known, inputSchema: { type: 'object', required: ['other'] } });
    await fixture.work();
    await assertPaused(fixture, 'definition');
  },
} as const satisfies { readonly [promise: string]: HostedCheck };
