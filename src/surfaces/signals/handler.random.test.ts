// 10,000 generated requests: only authentic ones are delivered, each with exactly the body that was signed.

import fc from 'fast-check';
import { expect } from 'vitest';
import { repetitions } from '../../../spec/support/repetitions.js';
import {
  NOW_MS,
  NOW_SECONDS,
  PAID_SECRET,
  type RequestParts,
  receiver,
  SHIPPED_SECRET,
  signatureOf,
} from '../../../spec/support/signal-fixture.js';
import { verifies } from '../../../spec/verifies.js';
import { signalHandler } from './handler.js';

const MAX_BYTES = 2000;
const REQUESTS = repetitions(10_000);
const BATCH = 10;

/** A request and whether its delivery must be accepted. */
interface Generated {
  readonly kind: string;
  readonly parts: RequestParts;
  readonly isAuthentic: boolean;
}

const ids = fc.stringMatching(/^[!-+\-/-~]{1,40}$/);
const bodies = fc
  .jsonValue({ maxDepth: 4 })
  .map((value) => JSON.stringify(value))
  .filter((text) => text.length < 900 && !text.includes('"__proto__"'));
const base = fc
  .record({ id: ids, body: bodies, offset: fc.integer({ min: -300, max: 300 }) })
  .map(({ id, body, offset }): RequestParts & { body: string; id: string; timestamp: number } => ({
    id,
    body,
    timestamp: NOW_SECONDS + offset,
  }));
type Base = typeof base extends fc.Arbitrary<infer T> ? T : never;

const signed = ({ id, timestamp, body }: Base, secret = PAID_SECRET) => signatureOf(secret, id, timestamp, body);

/** A kind of request: `make` changes an authentic one. */
function kind<T>(
  name: string,
  isAuthentic: boolean,
  extra: fc.Arbitrary<T>,
  make: (parts: Base, extra: T) => RequestParts,
) {
  return fc
    .tuple(base, extra)
    .map(([parts, more]): Generated => ({ kind: name, isAuthentic, parts: { ...parts, ...make(parts, more) } }));
}

const withSignature = (signature: string) => ({ headers: { 'webhook-signature': signature } });
const none = fc.constant(undefined);
const otherPath = fc.oneof(
  fc.constantFrom('/signals/orders/shipped', '/signals/orders/internal', '/signals/other/paid', '/signals/orders/PAID'),
  fc.constantFrom('/signals/orders/__proto__', '/signals/orders/toString', '/signals/orders', '/', '/signals//paid'),
  fc.constantFrom(
    '/signals/orders/paid/',
    '/signals/orders%2Fpaid',
    '/signals/orders/paid%00',
    '/signals/orders;x/paid',
  ),
  fc.string().map((text) => `/signals/orders/${encodeURIComponent(`x${text}`)}`),
);
const noise = fc.string({
  minLength: 1,
  maxLength: 60,
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
});

const requests = fc.oneof(
  kind('authentic', true, none, () => ({})),
  kind('authentic among signatures of other secrets', true, fc.nat(8), (parts, before) => {
    const others = Array(before).fill(signed(parts, SHIPPED_SECRET));
    return withSignature([...others, signed(parts)].join(' '));
  }),
  kind('forged', false, fc.uint8Array({ minLength: 0, maxLength: 64 }), (_, bytes) =>
    withSignature(`v1,${Buffer.from(bytes).toString('base64')}`),
  ),
  kind('cut signature', false, fc.integer({ min: 1, max: 46 }), (parts, length) =>
    withSignature(signed(parts).slice(0, length)),
  ),
  kind('longer signature', false, fc.constantFrom('=', 'A', 'AAAA', ',v1', '.'), (parts, more) =>
    withSignature(signed(parts) + more),
  ),
  kind('one bit of the signature', false, fc.nat(255), (parts, bit) => {
    const bytes = Buffer.from(signed(parts).slice(3), 'base64');
    bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    return withSignature(`v1,${bytes.toString('base64')}`);
  }),
  kind('wrong secret', false, fc.oneof(fc.constant(SHIPPED_SECRET), fc.string()), (_, secret) => ({ secret })),
  kind('other scheme', false, fc.constantFrom('v1a', 'v2', 'v0', 'V1', ''), (parts, scheme) =>
    withSignature(signed(parts).replace('v1', scheme)),
  ),
  kind('late', false, fc.integer({ min: 301, max: 10_000_000 }), (_, age) => ({ timestamp: NOW_SECONDS - age })),
  kind('early', false, fc.integer({ min: 301, max: 10_000_000 }), (_, ahead) => ({ timestamp: NOW_SECONDS + ahead })),
  kind(
    'other time format',
    false,
    fc.constantFrom(`${NOW_MS}`, `0${NOW_SECONDS}`, `${NOW_SECONDS}.0`, '1.7e9', 'now'),
    (_, timestamp) => ({ timestamp }),
  ),
  kind('changed body', false, bodies, ({ body }, other) => ({
    body: other === body ? `${other} ` : other,
    signedBody: body,
  })),
  kind('changed id', false, ids, (parts, id) => ({
    headers: { 'webhook-id': id === parts.id ? `${id}x` : id, 'webhook-signature': signed(parts) },
  })),
  kind('changed time', false, fc.integer({ min: 1, max: 20 }), (parts, by) => ({
    headers: { 'webhook-timestamp': `${parts.timestamp + by}`, 'webhook-signature': signed(parts) },
  })),
  kind('oversized, with a false length', false, fc.integer({ min: 1, max: 3000 }), (_, more) => ({
    body: `"${'a'.repeat(MAX_BYTES - 2 + more)}"`,
    headers: { 'content-length': '5' },
  })),
  kind('other path', false, otherPath, (_, path) => ({ path })),
  kind('other method', false, fc.constantFrom('GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'), (_, method) => ({
    method,
  })),
  kind(
    'other content type',
    false,
    fc.constantFrom('text/plain', 'application/x-www-form-urlencoded', 'application/jsonp'),
    (_, type) => ({ headers: { 'content-type': type } }),
  ),
  kind(
    'absent header',
    false,
    fc.constantFrom('webhook-id', 'webhook-timestamp', 'webhook-signature', 'content-type'),
    (_, name) => ({ headers: { [name]: undefined } }),
  ),
  kind(
    'doubled header',
    false,
    fc.constantFrom('webhook-id', 'webhook-timestamp', 'webhook-signature'),
    (parts, name) => {
      const values = {
        'webhook-id': parts.id,
        'webhook-timestamp': `${parts.timestamp}`,
        'webhook-signature': signed(parts),
      };
      return { headers: { [name]: `${values[name]}, ${values[name]}` } };
    },
  ),
  kind(
    'noise in a header',
    false,
    fc.tuple(fc.constantFrom('webhook-timestamp', 'webhook-signature'), noise),
    (_, [name, text]) => ({ headers: { [name]: text } }),
  ),
  kind(
    'invalid JSON',
    false,
    fc.constantFrom('', '{', '{"a":1,}', "{'a':1}", 'NaN', '[1] 2', '\ufeff1', '{"a":1,"a":2}', '1e999'),
    (_, body) => ({ body }),
  ),
  kind('__proto__', false, bodies, (_, value) => ({ body: `{"a":[{"__proto__":${value}}]}` })),
  kind('too deep', false, fc.integer({ min: 33, max: 400 }), (_, depth) => ({
    body: '['.repeat(depth) + ']'.repeat(depth),
  })),
);

verifies(
  'hosted.signals',
  `of ${REQUESTS} generated requests, exactly the authentic ones are delivered, as they were signed`,
  async () => {
    const kinds = new Map<string, number>();
    const check = async (batch: readonly Generated[]): Promise<void> => {
      const { send, delivered, errors } = receiver(signalHandler, { maxBytes: MAX_BYTES });
      const expected: object[] = [];
      const known = new Set<string>();
      for (const { kind: name, parts, isAuthentic } of batch) {
        kinds.set(name, (kinds.get(name) ?? 0) + 1);
        const id = String(parts.id);
        const { status } = await send(parts);
        const success = known.has(id) ? 200 : 202;
        if (isAuthentic) expect(status, name).toBe(success);
        else expect([400, 401, 404, 405, 413, 415], `${name} is accepted: ${JSON.stringify(parts)}`).toContain(status);
        if (!isAuthentic) continue;
        known.add(id);
        expected.push({ loop: 'orders', name: 'paid', payload: JSON.parse(String(parts.body)), id });
      }
      expect(delivered).toEqual(expected);
      expect(errors).toEqual([]);
    };
    // Each batch is sent twice, the second time in reverse order.
    const batches = fc.array(requests, { minLength: BATCH, maxLength: BATCH });
    const checked = fc.asyncProperty(batches, (batch) => check([...batch, ...batch.toReversed()]));
    await fc.assert(checked, { numRuns: REQUESTS / BATCH });
    expect([...kinds.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(2 * REQUESTS);
    expect(kinds.size, 'not every kind was generated').toBe(24);
  },
);
