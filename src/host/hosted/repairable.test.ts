/** What keeps a hosted loop from running: refused before it starts, or the loop is paused until its operator repaired it. */
import { expect } from 'vitest';
import { prompt, sequence } from '../../../spec/support/host-fixture.js';
import { counter, type HostedFixture, hostedFixture } from '../../../spec/support/hosted-fixture.js';
import { verifies } from '../../../spec/verifies.js';
import type { ModelPrice } from '../../policy/prices.js';
import type { HostedLoopDocument } from '../../protocol/hosted-loop.js';
import type { HostedLoopPause, HostedLoopStop } from '../worker.js';
import { defineHostedLoop } from './define-hosted-loop.js';

const HOUR_MS = 3_600_000;
const PRICE: ModelPrice = { inputPerMillion: 1, outputPerMillion: 1 };
const TEXT = { outputSchema: { type: 'string' } } as const;
const BY = { by: 'ada' };

const priced = (more: Partial<HostedLoopDocument> = {}): HostedLoopDocument =>
  counter({ loop: 'ask', input: {}, grant: { allowedTools: [], limits: { costMicros: 1_000_000 } }, ...more });

const refusalOf = async (fixture: HostedFixture, document: HostedLoopDocument): Promise<unknown> =>
  fixture.host.hosted.start(document, BY).then(
    () => 'started',
    ({ code, message }) => `${code}: ${message}`,
  );

/** Reports of a worker that did what is due. */
async function reportsOf({ host }: HostedFixture): Promise<readonly (HostedLoopPause | HostedLoopStop)[]> {
  const reports: (HostedLoopPause | HostedLoopStop)[] = [];
  const report = (item: HostedLoopPause | HostedLoopStop): void => void reports.push(item);
  await host.work({ once: true, onResult: () => undefined, onStop: report, onPause: report });
  return reports;
}

verifies('hosted.document', 'a loop whose models have no price does not start with a limit of costs', async () => {
  const definitions = [prompt('ask', 'Hi.', TEXT)];
  const without = hostedFixture({ definitions });
  for (const [path, document] of [
    ['/grant/limits/costMicros', priced()],
    ['/turn/grant/limits/costMicros', counter({ loop: 'ask', turn: { grant: { limits: { costMicros: 1 } } } })],
  ] as const)
    expect(await refusalOf(without, document), 'a loop that can never run was started').toMatch(
      new RegExp(`^DEFINITION_INVALID: ${path}: limits what models cost, and "mock/[^"]*" has no price`),
    );
  expect(await without.host.hosted.list(), 'the id was spent').toEqual([]);
  const withPrice = hostedFixture({ definitions, priceOf: () => PRICE });
  await withPrice.start(priced());
  expect(await withPrice.work()).toMatchObject([{ status: 'ok' }, { status: 'ok' }, { status: 'ok' }]);
});

verifies('hosted.grant', 'a grant id with other content than before starts nothing and spends no id', async () => {
  const fixture = hostedFixture();
  const grant = { id: 'shared', allowedTools: ['count'], limits: { effects: 9 } };
  await fixture.start(counter({ grant }));
  const other = counter({ id: 'other', grant: { ...grant, limits: { effects: 8 } } });
  expect(await refusalOf(fixture, other)).toMatch(/^GRANT_CONFLICT: The grant id "shared" is known/);
  expect((await fixture.host.hosted.list()).map(({ loop }) => loop)).toEqual(['counter']);
  await fixture.start({ ...other, grant });
});

verifies(
  'hosted.document',
  'a first turn that would get no input, or one that its loop refuses, is refused',
  async () => {
    const fixture = hostedFixture({
      definitions: [{ ...prompt('ask', 'Hi.', TEXT), inputSchema: { type: 'object', required: ['n'] } }],
    });
    const signals = { mail: { schema: true } };
    const { input: _, ...noInput } = counter();
    for (const [more, message] of [
      [{ next: { x: '$.last.output.x' } }, '/next/x: is $.last.output.x, which the first turn does not have'],
      [{ next: '$.signal.payload' }, '/next: is $.signal.payload, which the first turn does not have'],
      [{ signals, next: { a: '$.signal.payload', b: '$.last.turnId' } }, '/next/b: is $.last.turnId'],
      [{ loop: 'ask', next: { m: '$.turn' } }, '/next: does not fit the loop "ask"'],
    ] as const)
      expect(await refusalOf(fixture, { ...noInput, ...more })).toContain(message);
    for (const [id, more] of [
      ['a', { next: { x: 'optional:$.last.output.x' } }],
      ['b', { next: { x: '$.last.output[*]' } }],
      ['c', { next: { x: '$.last.output.x' }, input: {} }],
      ['d', { signals, next: { a: '$.signal.payload' } }],
      ['e', { loop: 'ask', next: { n: '$.turn', head: '$.head' } }],
      ['g', { loop: 'ask', next: { n: '$.turn' } }],
      ['f', { acceptsHandoffsFrom: ['x'], next: { a: '$.last.output' } }],
    ] as const)
      expect(await refusalOf(fixture, { ...noInput, ...more, id }), id).toBe('started');
  },
);

verifies(
  'hosted.control',
  'a price that is missing later pauses the loop, and after its repair it goes on',
  async () => {
    const prices = { price: PRICE as ModelPrice | undefined };
    const fixture = hostedFixture({ definitions: [prompt('ask', 'Hi.', TEXT)], priceOf: () => prices.price });
    await fixture.start(priced({ stop: { maxTurns: 2 }, schedule: { everyMs: HOUR_MS } }));
    await fixture.work();
    prices.price = undefined;
    await fixture.clock.advance(HOUR_MS);
    const message = expect.stringContaining('has no price');
    expect(await reportsOf(fixture)).toEqual([{ loop: 'counter', reason: 'price', message }]);
    const { hosted } = fixture.host;
    expect(await hosted.status('counter')).toMatchObject({ status: 'paused', reason: 'price', message, turns: 1 });
    await hosted.resume('counter', BY);
    expect(await reportsOf(fixture), 'a loop that is not repaired ran').toMatchObject([{ reason: 'price' }]);
    prices.price = PRICE;
    await hosted.resume('counter', BY);
    await fixture.clock.advance(1000);
    expect(await reportsOf(fixture)).toMatchObject([{ reason: 'max_turns' }]);
    expect(
      (await hosted.turns('counter')).map(({ status }) => status),
      'a turn was spent',
    ).toEqual(['ok', 'ok']);
  },
);

verifies('hosted.control', 'a turn that asked a model without a price is repeated after the repair', async () => {
  const prices = { price: undefined as ModelPrice | undefined };
  const routing = [{ when: { promptLengthOver: 1 }, backend: { id: 'mock', model: 'large' } }];
  const ask = { ...prompt('ask', 'Hello.', TEXT), policy: { routing } };
  const fixture = hostedFixture({ definitions: [ask], priceOf: () => prices.price });
  await fixture.start(priced({ stop: { maxTurns: 2 } }));
  expect(await reportsOf(fixture)).toMatchObject([
    { reason: 'price', message: expect.stringContaining('"mock/large" has no price') },
  ]);
  const { hosted } = fixture.host;
  expect(await hosted.status('counter'), 'the loop is lost').toMatchObject({ status: 'paused', reason: 'price' });
  prices.price = PRICE;
  await hosted.resume('counter', BY);
  await fixture.clock.advance(1000);
  await fixture.work();
  expect(await hosted.turns('counter')).toMatchObject([
    { status: 'error', code: 'TOOL_NOT_ADMITTED' },
    { status: 'ok', cause: 'retry' },
  ]);
});

verifies('hosted.control', 'an input that the changed loop refuses pauses the loop until it takes it', async () => {
  const fixture = hostedFixture();
  await fixture.start(counter({ next: { n: '$.turn' }, stop: { maxTurns: 2 }, schedule: { everyMs: HOUR_MS } }));
  await fixture.work();
  const { registry, hosted } = fixture.host;
  const known = registry.find('count')?.definition;
  registry.remove('count');
  registry.add({ ...known, inputSchema: { type: 'object', required: ['from'] } });
  await fixture.clock.advance(HOUR_MS);
  const [report] = await reportsOf(fixture);
  expect(report).toMatchObject({ reason: 'definition', message: expect.stringContaining('turn 2 does not fit') });
  registry.remove('count');
  registry.add(known);
  await hosted.resume('counter', BY);
  await fixture.clock.advance(1000);
  await fixture.work();
  expect(fixture.inputs).toEqual([{ from: 0 }, { n: 2 }]);
});

verifies('hosted.control', 'code that fails to make an input pauses the loop, because it can be repaired', async () => {
  let isBroken = true;
  const next = (): object => {
    if (isBroken) throw new Error('no database');
    return { n: 2 };
  };
  const fixture = hostedFixture();
  await fixture.host.hosted.start(defineHostedLoop({ ...counter({ stop: { maxTurns: 2 } }), next }), BY);
  expect(await reportsOf(fixture)).toMatchObject([
    { reason: 'definition', message: expect.stringContaining('no database') },
  ]);
  isBroken = false;
  await fixture.host.hosted.resume('counter', BY);
  await fixture.clock.advance(1000);
  await fixture.work();
  expect(fixture.inputs).toEqual([{ from: 0 }, { n: 2 }]);
});

verifies(
  'hosted.document',
  'a loop that calls a missing one does not start, and is paused if that goes later',
  async () => {
    const more = { loop: 'once', schedule: { everyMs: HOUR_MS }, grant: { allowedTools: ['*'], limits: {} } };
    const missing = hostedFixture({ definitions: [sequence('once', 'other')] });
    expect(await refusalOf(missing, counter(more))).toMatch(
      /^DEFINITION_INVALID: \/loop: runs "once", which calls "other", and there is no such loop/,
    );
    const fixture = hostedFixture({ definitions: [sequence('once', 'count')] });
    await fixture.start(counter(more));
    await fixture.work();
    const { registry, hosted } = fixture.host;
    const known = registry.find('count')?.definition;
    registry.remove('count');
    await fixture.clock.advance(HOUR_MS);
    expect(await reportsOf(fixture), 'a turn was spent').toMatchObject([{ reason: 'definition' }]);
    registry.add(known);
    await hosted.resume('counter', BY);
    await fixture.clock.advance(1000);
    await fixture.work();
    expect((await hosted.turns('counter')).map(({ status }) => status)).toEqual(['ok', 'ok']);
  },
);

verifies('hosted.grant', 'a rule of the grant for a loop that does not exist starts nothing', async () => {
  const grant = { allowedTools: ['count', 'mail.*'], review: { 'mail.send': 'ask' as const }, limits: {} };
  expect(await refusalOf(hostedFixture(), counter({ grant }))).toMatch(
    /^DEFINITION_INVALID: \/grant\/review\/mail\.send: is for "mail\.send", and no registered loop has such an id/,
  );
});

verifies(
  'hosted.durable',
  'a worker without options warns of failed turns and of loops that stopped or paused',
  async () => {
    const warnings: Error[] = [];
    const listener = (warning: Error): void => void warnings.push(warning);
    process.on('warning', listener);
    try {
      const fixture = hostedFixture({ tools: { count: () => Promise.reject(new Error('down')) } });
      await fixture.start(counter());
      await fixture.host.work({ once: true });
      const next = (): never => {
        throw new Error('broken');
      };
      const pausing = hostedFixture();
      await pausing.host.hosted.start(defineHostedLoop({ ...counter(), id: 'pausing', next }), BY);
      await pausing.host.work({ once: true });
      // Warnings are emitted in a later tick.
      await new Promise((resolve) => setImmediate(resolve));
    } finally {
      process.off('warning', listener);
    }
    const texts = warnings.map(({ message }) => message);
    expect(texts, 'a failure was silent').toEqual([
      expect.stringMatching(/^Turn \S+ of "count" failed\. TOOL_FAILED: .*down/),
      expect.stringMatching(/^The hosted loop "counter" stopped: turn_failed\./),
      expect.stringMatching(
        /^The hosted loop "pausing" is paused \(definition\).* rondo host resume pausing\n.*broken$/,
      ),
    ]);
  },
);
