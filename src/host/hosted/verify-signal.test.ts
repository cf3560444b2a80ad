import { createHash, createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect } from 'vitest';
import { NOW_MS, NOW_SECONDS, orders, signatureOf, verified } from '../../../spec/support/signal-fixture.js';
import { verifies } from '../../../spec/verifies.js';
import { sharedSecretOf } from './shared-secrets.js';
import { areSameKey, isAuthenticDelivery, readDeliveryHeaders, signDelivery, signingKeyOf } from './verify-signal.js';

/** The example of the Standard Webhooks libraries. */
const VECTOR = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  timestamp: 1_614_265_330,
  body: '{"test": 2432232314}',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
};
const SECRET = VECTOR.secret;

const read = (headers: Readonly<Record<string, string>>) => readDeliveryHeaders((name) => headers[name] ?? null);

/** True if the library accepts headers and a body at a time. */
function accepts(
  headers: object,
  body: string | Uint8Array,
  { nowMs = NOW_MS, secret = SECRET, windowMs = 300_000 } = {},
) {
  const parsed = read(headers as Record<string, string>);
  if (typeof parsed === 'string') return parsed;
  return isAuthenticDelivery(parsed, Buffer.from(body), { key: signingKeyOf(secret), windowMs, nowMs });
}

verifies('hosted.signals', 'the example of Standard Webhooks has its published signature', () => {
  const { secret, id, timestamp, body, signature } = VECTOR;
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const digest = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  expect(`v1,${digest}`).toBe(signature);
  const headers = signDelivery(secret, { id, timestamp, body });
  expect(headers).toEqual({ 'webhook-id': id, 'webhook-timestamp': `${timestamp}`, 'webhook-signature': signature });
  expect(accepts(headers, body, { nowMs: timestamp * 1000 })).toBe(true);
});

verifies('hosted.signals', 'what is signed is accepted, and no other id, time, body or secret', () => {
  const bytes = fc.uint8Array({ maxLength: 200 });
  const id = fc.stringMatching(/^[!-+\-/-~]{1,200}$/);
  fc.assert(
    fc.property(id, bytes, fc.nat(1000), fc.nat(3), (deliveryId, body, at, change) => {
      const headers = signDelivery(SECRET, { id: deliveryId, timestamp: NOW_SECONDS, body });
      expect(accepts(headers, body)).toBe(true);
      const other = Uint8Array.from(body);
      if (other.length > 0) other[at % other.length] = (other[at % other.length] ?? 0) ^ (1 + change);
      expect(accepts(headers, other.length > 0 ? other : Buffer.from('x')), 'another body is accepted').toBe(false);
      expect(accepts({ ...headers, 'webhook-id': `${deliveryId}x`.slice(-200) }, body) === true).toBe(
        `${deliveryId}x`.slice(-200) === deliveryId,
      );
      expect(accepts({ ...headers, 'webhook-timestamp': `${NOW_SECONDS - 1}` }, body), 'another time').toBe(false);
      expect(accepts(headers, body, { secret: `${SECRET}AAAB` }), 'another secret is accepted').toBe(false);
    }),
    { numRuns: 500 },
  );
});

verifies('hosted.signals', 'a delivery is accepted exactly within its time window, in both directions', () => {
  fc.assert(
    fc.property(fc.integer({ min: -1_000_000, max: 1_000_000 }), fc.nat(900_000), (offsetMs, windowMs) => {
      const headers = signDelivery(SECRET, { id: 'evt', timestamp: NOW_SECONDS, body: '1' });
      const nowMs = NOW_MS + offsetMs;
      expect(accepts(headers, '1', { nowMs, windowMs })).toBe(Math.abs(offsetMs) <= windowMs);
    }),
  );
  const headers = signDelivery(SECRET, { id: 'evt', timestamp: NOW_SECONDS, body: '1' });
  expect(accepts(headers, '1', { nowMs: Number.NaN }), 'without a time nothing is accepted').toBe(false);
  expect(accepts(headers, '1', { windowMs: Number.NaN }), 'without a window nothing is accepted').toBe(false);
});

verifies('hosted.signals', 'headers that are absent, doubled, too long or of another form are refused', () => {
  const good = signDelivery(SECRET, { id: 'evt', timestamp: NOW_SECONDS, body: '1' });
  const signature = good['webhook-signature'];
  const times = (count: number) => Array(count).fill(signature).join(' ');
  const cases: readonly (readonly [header: string, value: string, expected: string | boolean])[] = [
    ['webhook-id', '', 'missing'],
    ['webhook-timestamp', '', 'missing'],
    ['webhook-signature', '', 'missing'],
    ['webhook-id', 'evt, evt', 'malformed'],
    ['webhook-id', 'a.b', 'malformed'],
    ['webhook-id', 'é', 'malformed'],
    ['webhook-id', 'a'.repeat(201), 'malformed'],
    ['webhook-timestamp', `${NOW_SECONDS}, ${NOW_SECONDS}`, 'malformed'],
    ...['1.7e9', '+1', '-1', '0', `0${NOW_SECONDS}`, `${NOW_SECONDS}.0`, '0x6553F100', '9'.repeat(13), 'NaN'].map(
      (value) => ['webhook-timestamp', value, 'malformed'] as const,
    ),
    ['webhook-signature', `${signature}, ${signature}`, 'malformed'],
    ['webhook-signature', `${signature}  ${signature}`, 'malformed'],
    ['webhook-signature', signature.slice(3), 'malformed'],
    ['webhook-signature', times(11), 'malformed'],
    ['webhook-signature', times(10), true],
    ['webhook-signature', `v1a,${'A'.repeat(88)} v2,AAAA ${signature}`, true],
    ['webhook-signature', signature.replace('v1,', 'v1a,'), false],
    ['webhook-signature', signature.replace('v1,', 'v0,'), false],
    ['webhook-signature', signature.slice(0, -1), false],
    ['webhook-signature', signature.slice(0, 20), false],
  ];
  for (const [header, value, expected] of cases)
    expect(accepts({ ...good, [header]: value }, '1'), `${header}: ${value}`).toBe(expected);
});

verifies('hosted.signals', 'one signature never fits two deliveries', () => {
  // Signed are the same bytes: id "evt", a body that begins with a time, or id "evt.TIME" and the rest of the body.
  const body = `${NOW_SECONDS}.5`;
  const signature = signatureOf(SECRET, 'evt', NOW_SECONDS, body);
  const shifted = { 'webhook-id': `evt.${NOW_SECONDS}`, 'webhook-timestamp': `${NOW_SECONDS}` };
  expect(signatureOf(SECRET, shifted['webhook-id'], NOW_SECONDS, '5')).toBe(signature);
  expect(accepts({ ...shifted, 'webhook-signature': signature }, '5')).toBe('malformed');
});

verifies(
  'hosted.signals',
  'a secret that is short, not base64 or a public key is refused, and is not in the message',
  () => {
    const cases: readonly (readonly [secret: string, message: RegExp])[] = [
      ['', /0 bytes/],
      ['fifteen letters', /15 bytes; use at least 16/],
      ['whsec_', /0 bytes/],
      [`whsec_${Buffer.alloc(15, 1).toString('base64')}`, /15 bytes/],
      ['whsec_not base64 at all!', /padded base64/],
      [`${SECRET}\n`, /padded base64/],
      [`whpk_${'A'.repeat(44)}`, /asymmetric/],
      [`whsk_${'A'.repeat(88)}`, /asymmetric/],
    ];
    for (const [secret, message] of cases) {
      expect(() => signingKeyOf(secret), secret).toThrow(message);
      expect(() => signingKeyOf(secret), secret).toThrow(/openssl rand/);
      if (secret.length > 6) expect(() => signingKeyOf(secret)).not.toThrow(secret.slice(6));
    }
    expect(signingKeyOf('sixteen letters!')).toHaveLength(16);
    expect(signingKeyOf(SECRET)).toHaveLength(24);
  },
);

verifies('hosted.signals', 'secrets under which signatures are equal are known to be one secret', () => {
  const key = signingKeyOf(SECRET);
  const long = Buffer.alloc(100, 'long');
  // HMAC pads a key with zeros to 64 bytes, and hashes a longer one.
  const equal = [key, Buffer.concat([key, Buffer.alloc(5)])] as const;
  expect(areSameKey(...equal)).toBe(true);
  expect(areSameKey(long, createHash('sha256').update(long).digest())).toBe(true);
  expect(areSameKey(key, Buffer.concat([key, Buffer.from('x')]))).toBe(false);
});

verifies('hosted.signals', 'a delivery that no receiver accepts cannot be signed', () => {
  const delivery = { id: 'evt', timestamp: NOW_SECONDS, body: '1' };
  expect(() => signDelivery(SECRET, { ...delivery, id: 'a.b' })).toThrow(TypeError);
  expect(() => signDelivery(SECRET, { ...delivery, timestamp: NOW_MS / 1001 })).toThrow(/whole seconds/);
  expect(() => signDelivery('short', delivery)).toThrow(/at least 16/);
});

verifies('hosted.signals', 'a secret that several signals refer to is found, across loops', () => {
  const refunds = {
    ...orders,
    id: 'refunds',
    signals: { refunded: verified('env:REFUND_SECRET'), open: { schema: true } },
  };
  expect(sharedSecretOf([orders, refunds])).toBeUndefined();
  const other = { ...refunds, signals: { constructor: verified('env:PAID_SECRET') } };
  expect(sharedSecretOf([orders, other])).toEqual({
    reference: 'env:PAID_SECRET',
    signals: ['orders/paid', 'refunds/constructor'],
  });
});
