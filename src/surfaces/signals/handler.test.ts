import { expect } from 'vitest';
import {
  NOW_SECONDS,
  orders,
  PAID_SECRET,
  type RequestParts,
  receiver,
  requestOf,
  SHIPPED_SECRET,
  secrets,
  signatureOf,
  verified,
} from '../../../spec/support/signal-fixture.js';
import { verifies } from '../../../spec/verifies.js';
import { Fault, LoopError } from '../../base/errors.js';
import type { HostedLoopDocument } from '../../protocol/hosted-loop.js';
import { signalHandler } from './handler.js';

const create = (options?: Parameters<typeof receiver>[1]) => receiver(signalHandler, options);
const failing = (thrown: unknown) => create({ deliver: () => Promise.reject(thrown) });

verifies('hosted.signals', 'an authentic delivery is accepted, and its second delivery has no effect', async () => {
  const { send, delivered } = create();
  expect(await send()).toMatchObject({ status: 202, code: 'accepted' });
  const again = await send({ timestamp: NOW_SECONDS + 60 });
  expect(again).toMatchObject({ status: 200, code: 'duplicate' });
  expect(again.response.headers.get('cache-control')).toBe('no-store');
  expect(delivered[0]).toEqual({ loop: 'orders', name: 'paid', payload: { amount: 40 }, id: 'evt_1' });
});

verifies('hosted.signals', 'every refusal of a delivery that is not authentic is the same', async () => {
  const { send, delivered } = create();
  const wrong: readonly RequestParts[] = [
    { secret: SHIPPED_SECRET },
    { signedBody: '{"amount":41}' },
    { timestamp: NOW_SECONDS - 301 },
    { timestamp: NOW_SECONDS + 301 },
    { headers: { 'webhook-signature': undefined } },
    { headers: { 'webhook-id': undefined } },
    { headers: { 'webhook-timestamp': undefined } },
    { headers: { 'webhook-id': 'evt_2' } },
    { headers: { 'webhook-signature': `v1,${Buffer.alloc(32).toString('base64')}` } },
    { path: '/signals/orders/internal' },
    { path: '/signals/orders/absent' },
    { path: '/signals/orders/constructor' },
    { path: '/signals/orders/__proto__' },
    { path: '/signals/orders/shipped' },
    { path: '/signals/other/paid' },
    { path: '/signals/orders/absent', secret: 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=' },
    { body: 'not JSON', signedBody: 'other' },
  ];
  const answers = new Set<string>();
  for (const parts of wrong) {
    const { response } = await send(parts);
    answers.add(`${response.status} ${JSON.stringify([...response.headers])} ${await response.text()}`);
  }
  expect([...answers]).toHaveLength(1);
  expect([...answers][0]).toMatch(/^401 .*www-authenticate.*SIGNAL_REFUSED/);
  expect(delivered).toEqual([]);
});

verifies('hosted.signals', 'each kind of bad request has its status, and none of them is delivered', async () => {
  const { send, delivered, errors } = create({ maxBytes: 1000 });
  const cases: readonly (readonly [status: number, parts: RequestParts])[] = [
    [404, { path: '/' }],
    [404, { path: '/signals' }],
    [404, { path: '/signals/orders' }],
    [404, { path: '/signals/orders/' }],
    [404, { path: '/signals/orders/paid/' }],
    [404, { path: '/signals/orders/paid/more' }],
    [404, { path: '/signals//paid' }],
    [404, { path: '/api/signals/orders/paid' }],
    [404, { path: '/signalsorders/paid' }],
    [400, { path: '/signals/or%2Fders/paid' }],
    [400, { path: `/signals/${'a'.repeat(61)}/paid` }],
    [400, { path: `/signals/orders/${'a'.repeat(65)}` }],
    [400, { path: '/signals/.orders/paid' }],
    [400, { path: '/signals/orders/p%61id' }],
    [400, { path: '/signals/orders/%ff' }],
    [405, { method: 'GET' }],
    [405, { method: 'PUT' }],
    [405, { method: 'OPTIONS' }],
    [415, { headers: { 'content-type': undefined } }],
    [415, { headers: { 'content-type': 'text/plain' } }],
    [415, { headers: { 'content-type': 'application/json, text/plain' } }],
    [400, { headers: { 'webhook-id': 'evt_1, evt_1' } }],
    [400, { headers: { 'webhook-timestamp': 'soon' } }],
    [400, { body: '' }],
    [400, { body: '{"a":1' }],
    [400, { body: '{"a":1}{}' }],
    [400, { body: '{"a":1,"a":2}' }],
    [400, { body: '{"__proto__":{"isAdmin":true}}' }],
    [400, { body: Buffer.from([0x22, 0xff, 0x22]) }],
    [400, { body: `${'['.repeat(33)}${']'.repeat(33)}` }],
    [400, { body: '12345678901234567890' }],
    [413, { body: `"${'a'.repeat(999)}"` }],
  ];
  for (const [status, parts] of cases) {
    const { response } = await send(parts);
    expect(response.status, JSON.stringify(parts)).toBe(status);
    expect(response.headers.get('content-type')).toBe('application/problem+json');
    expect(response.headers.get('allow')).toBe(status === 405 ? 'POST' : null);
  }
  expect(delivered).toEqual([]);
  expect(errors).toEqual([]);
  expect(await send({ body: `"${'a'.repeat(998)}"` })).toMatchObject({ status: 202 });
  expect(await send({ id: 'e2', headers: { 'content-type': 'Application/JSON; charset=utf-8' } })).toMatchObject({
    status: 202,
  });
});

verifies('hosted.signals', 'a body is not read beyond the limit, whatever its declared length is', async () => {
  const { send, delivered } = create({ maxBytes: 100 });
  let chunks = 0;
  let isCancelled = false;
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      chunks += 1;
      controller.enqueue(new Uint8Array(40));
    },
    cancel: () => {
      isCancelled = true;
    },
  });
  const { status } = await send({ body, headers: { 'content-length': '10' } });
  expect({ status, isCancelled, delivered: delivered.length }).toEqual({
    status: 413,
    isCancelled: true,
    delivered: 0,
  });
  expect(chunks, 'bytes beyond the limit were read').toBeLessThan(6);
});

verifies('hosted.signals', 'a body that ends early, and one that was read before, are not delivered', async () => {
  const { send, handler, delivered, errors } = create();
  const cut = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(new Error('cut off')) });
  expect(await send({ body: cut })).toMatchObject({ status: 400 });
  expect(errors).toEqual([]);
  const used = requestOf();
  await used.text();
  expect((await handler(used)).status).toBe(500);
  expect(errors).toMatchObject([{ message: expect.stringMatching(/before body parsers/) }]);
  expect(delivered).toEqual([]);
});

verifies('hosted.signals', 'the errors of a delivery have their status; internal ones disclose nothing', async () => {
  const cases: readonly (readonly [thrown: unknown, status: number, code: string, isReported: boolean])[] = [
    [new LoopError('INPUT_VALIDATION_FAILED', 'amount must be a number'), 422, 'INPUT_VALIDATION_FAILED', false],
    [new LoopError('VALUE_INVALID', 'too deep'), 422, 'VALUE_INVALID', false],
    [new LoopError('SIGNAL_CONFLICT', 'hidden'), 409, 'SIGNAL_CONFLICT', false],
    [new LoopError('HOSTED_LOOP_CONFLICT', 'hidden'), 409, 'HOSTED_LOOP_CONFLICT', false],
    [new LoopError('HOSTED_LOOP_NOT_FOUND', 'hidden'), 404, 'HOSTED_LOOP_NOT_FOUND', false],
    [new LoopError('SIGNAL_REFUSED', 'hidden'), 403, 'SIGNAL_REFUSED', false],
    [new LoopError('INBOX_FULL', 'hidden'), 503, 'INBOX_FULL', false],
    [new Fault('STORE_FULL', 'hidden'), 503, 'UNAVAILABLE', true],
    [new Fault('STORE_DAMAGED', 'hidden'), 500, 'INTERNAL', true],
    [new LoopError('EXECUTION_FAILED', 'hidden'), 500, 'INTERNAL', true],
    [new LoopError('YOUR_OWN', 'hidden'), 500, 'INTERNAL', true],
    [new Error('hidden'), 500, 'INTERNAL', true],
    [undefined, 500, 'INTERNAL', true],
  ];
  for (const [thrown, status, code, isReported] of cases) {
    const { send, errors } = failing(thrown);
    const answer = await send();
    expect(answer, code).toMatchObject({ status, code });
    expect(await answer.response.text()).not.toContain('hidden');
    expect(answer.response.headers.get('retry-after')).toBe(status === 503 ? '30' : null);
    expect(errors).toEqual(isReported ? [thrown] : []);
  }
  const { send } = failing(new LoopError('INPUT_VALIDATION_FAILED', 'amount must be a number'));
  expect(await (await send()).response.json()).toMatchObject({ detail: 'amount must be a number' });
});

verifies('hosted.signals', 'before a delivery is authentic, an error of the target discloses nothing', async () => {
  const cases: readonly (readonly [thrown: unknown, status: number, reports: number])[] = [
    [new LoopError('HOSTED_LOOP_NOT_FOUND', 'hidden'), 401, 0],
    [new LoopError('INPUT_VALIDATION_FAILED', 'hidden'), 401, 1],
    [new Error('hidden'), 401, 1],
    [new Fault('STORE_OWNED', 'hidden'), 503, 2],
    [new Fault('STORE_DAMAGED', 'hidden'), 500, 2],
  ];
  for (const [thrown, status, reports] of cases) {
    const { send, errors } = create({ definition: () => Promise.reject(thrown) });
    const answer = await send();
    expect(answer.status).toBe(status);
    expect(await answer.response.text()).not.toContain('hidden');
    await send();
    expect(errors).toHaveLength(reports);
  }
});

verifies('hosted.signals', 'a receiver that throws, or answers something else, is an internal error', async () => {
  const { send } = create({
    deliver: async () => 'stored' as never,
    onError: () => {
      throw new Error('a broken logger');
    },
  });
  expect(await send()).toMatchObject({ status: 500, code: 'INTERNAL' });
});

function loopWith(signals: HostedLoopDocument['signals'], id = 'orders'): HostedLoopDocument {
  const { signals: _, ...others } = orders;
  return { ...others, id, ...(signals !== undefined && { signals }) };
}

verifies(
  'hosted.signals',
  'a signal without a usable secret accepts nothing, and the operator learns why once',
  async () => {
    const cases: readonly (readonly [document: HostedLoopDocument, message: RegExp | undefined])[] = [
      [loopWith({ paid: verified('env:ABSENT_SECRET') }), /env:ABSENT_SECRET of the signal orders\/paid is not set/],
      [loopWith({ paid: verified('env:EMPTY_SECRET') }), /is not set/],
      [loopWith({ paid: verified('env:SHORT_SECRET') }), /env:SHORT_SECRET of .* at least 16/],
      [loopWith({ paid: verified('PAID_SECRET') }), /must be "env:NAME"/],
      [loopWith({ paid: verified('file:/etc/passwd') }), /must be "env:NAME"/],
      [loopWith({ paid: verified(7 as never) }), /must be "env:NAME"/],
      [
        loopWith({ paid: { schema: true, verify: { method: 'none' as never, secret: 'env:PAID_SECRET' } } }),
        /unknown method/,
      ],
      [loopWith({ paid: verified('env:PAID_SECRET'), refunded: verified('env:PAID_SECRET') }), /"paid" and "refunded"/],
      [loopWith({ paid: verified('env:PAID_SECRET'), refunded: verified('env:COPY_SECRET') }), /same secret/],
      [loopWith({ paid: { schema: true } }), undefined],
      [loopWith({}), undefined],
      [loopWith(undefined), undefined],
      [loopWith({ paid: verified('env:PAID_SECRET') }, 'others'), undefined],
    ];
    const more: Record<string, string> = { ...secrets, 'env:SHORT_SECRET': 'short', 'env:EMPTY_SECRET': '' };
    more['env:COPY_SECRET'] =
      `whsec_${Buffer.concat([Buffer.from(PAID_SECRET.slice(6), 'base64'), Buffer.alloc(3)]).toString('base64')}`;
    for (const [document, message] of cases) {
      const { send, delivered, errors } = create({ definition: async () => document, secret: (name) => more[name] });
      for (let n = 0; n < 3; n++) expect((await send()).status, String(message)).toBe(401);
      expect(delivered).toEqual([]);
      expect(errors).toHaveLength(message === undefined ? 0 : 1);
      if (message !== undefined)
        expect(errors[0]).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringMatching(message) });
      expect(String(errors[0])).not.toContain('short');
    }
  },
);

verifies('hosted.signals', 'by default only variables whose names end with _SECRET are read', async () => {
  const names = ['SIGNAL_TEST_SECRET', 'SIGNAL_TEST_KEY', 'SIGNAL_TEST_TOKEN', 'signal_test_secret', 'SECRET'];
  for (const name of names) process.env[name] = PAID_SECRET;
  try {
    for (const name of names) {
      const definition = async () => loopWith({ paid: verified(`env:${name}`) });
      const { send, errors } = create({ definition, secret: undefined as never });
      expect((await send()).status, name).toBe(name === 'SIGNAL_TEST_SECRET' ? 202 : 401);
      if (name !== 'SIGNAL_TEST_SECRET') expect(String(errors[0])).toMatch(/does not end with _SECRET: rename it/);
    }
  } finally {
    for (const name of names) delete process.env[name];
  }
});

verifies('hosted.signals', 'the window of the signal itself applies', async () => {
  const { send, delivered } = create();
  const parts = { path: '/signals/orders/needs.more', secret: secrets['env:MORE_SECRET'] ?? '' };
  expect(await send({ ...parts, timestamp: NOW_SECONDS - 1 })).toMatchObject({ status: 202 });
  expect(await send({ ...parts, timestamp: NOW_SECONDS - 2 })).toMatchObject({ status: 401 });
  expect(delivered).toMatchObject([{ name: 'needs.more' }]);
});

verifies('hosted.signals', 'the path above the loops can be changed', async () => {
  for (const [basePath, path] of [
    ['', '/orders/paid'],
    ['/api/v1/signals', '/api/v1/signals/orders/paid'],
  ] as const) {
    const { send } = create({ basePath });
    expect(await send({ path: `${path}?from=provider` })).toMatchObject({ status: 202 });
    expect(await send({ path: '/x/y/z' })).toMatchObject({ status: 404 });
  }
});

verifies('hosted.signals', 'an option that is unknown or not valid is refused', () => {
  const { handler } = create();
  expect(handler).toBeTypeOf('function');
  expect(() => create({ maxBites: 1 } as never)).toThrow(/no option "maxBites"; it has basePath/);
  for (const basePath of ['/', 'signals', '/signals/', '//x', '/../x', '/a?b', '/a b', 7 as never])
    expect(() => create({ basePath }), basePath).toThrow(TypeError);
  for (const maxBytes of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])
    expect(() => create({ maxBytes })).toThrow(/positive integer/);
});

verifies('hosted.signals', 'a delivery is accepted while its sender changes its secret', async () => {
  const { send } = create();
  const body = '{"amount":40}';
  const signatures = ['an earlier secret of a sender', PAID_SECRET].map((secret) =>
    signatureOf(secret, 'evt_1', NOW_SECONDS, body),
  );
  expect(await send({ headers: { 'webhook-signature': signatures.join(' ') } })).toMatchObject({ status: 202 });
});
