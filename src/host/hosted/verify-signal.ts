/**
 * Signed deliveries of signals: HMAC-SHA256 over id, time and body, as in Standard Webhooks 1.0. Pure: the key, the bytes
 * and the time are arguments. An id with a full stop is refused, because one signature would then fit two deliveries.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { decodeBase64, encodeBase64 } from '../../base/base64.js';
import { LoopError } from '../../base/errors.js';

/** The headers of a delivery, parsed. */
export interface DeliveryHeaders {
  readonly id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  /** The HMAC-SHA256 signatures, 32 bytes each. Signatures of other schemes are left out. */
  readonly signatures: readonly Uint8Array[];
}

/** Why headers are not those of a delivery: one is absent, or has another form. */
export type DeliveryHeaderProblem = 'missing' | 'malformed';

/** What a signature is verified with. */
export interface SignatureCheck {
  readonly key: Uint8Array;
  /**
   * How far the time of the delivery may be from `nowMs`, in both directions.
   * @default 300_000
   */
  readonly windowMs?: number | undefined;
  /** The current time, in milliseconds since 1970. */
  readonly nowMs: number;
}

/** A delivery to sign. */
export interface DeliveryToSign {
  /** 1 to 200 printable ASCII characters without space, comma and full stop. The receiver accepts each id once. */
  readonly id: string;
  /** The time of the delivery, in seconds since 1970. */
  readonly timestamp: number;
  /** The body, exactly as it is sent. */
  readonly body: string | Uint8Array;
}

/** The headers that a signed delivery is sent with. */
export interface SignedDeliveryHeaders {
  readonly 'webhook-id': string;
  readonly 'webhook-timestamp': string;
  readonly 'webhook-signature': string;
}

const DEFAULT_WINDOW_MS = 300_000;
const MIN_KEY_BYTES = 16;
const SIGNATURE_BYTES = 32;
const MAX_SIGNATURES = 10;
/** No space and no comma: duplicate headers are joined by them. No full stop: it separates the signed parts. */
const DELIVERY_ID = /^[!-+\-/-~]{1,200}$/;
const TIMESTAMP = /^[1-9][0-9]{0,11}$/;
const SIGNATURE = /^v[0-9]{1,3}[a-z]?,[A-Za-z0-9+/]{1,200}={0,2}$/;
const HMAC_SCHEME = 'v1,';
const BASE64_SECRET = 'whsec_';
/** Serialized keys of the asymmetric scheme; `whpk_` is public. */
const ASYMMETRIC_KEY = /^wh[ps]k_/;

/**
 * Returns the key of a secret: the bytes after `whsec_`, or the UTF-8 bytes of other text. Throws CONFIG_INVALID, without
 * the secret in the message, if it is not usable.
 */
export function signingKeyOf(secret: string): Uint8Array {
  // guard: asymmetric-key-no-secret
  if (ASYMMETRIC_KEY.test(secret))
    throw invalidSecret('it is a key of the asymmetric scheme; use a shared secret, "whsec_" and base64');
  const isBase64 = secret.startsWith(BASE64_SECRET);
  const key = isBase64 ? decodeBase64(secret.slice(BASE64_SECRET.length)) : Buffer.from(secret, 'utf8');
  if (key === undefined) throw invalidSecret('"whsec_" is not followed by padded base64');
  // guard: signing-key-long-enough
  if (key.length < MIN_KEY_BYTES) throw invalidSecret(`it has ${key.length} bytes; use at least ${MIN_KEY_BYTES}`);
  return key;
}

function invalidSecret(reason: string): LoopError {
  const advice = 'A new one: printf "whsec_%s" "$(openssl rand -base64 32)"';
  return new LoopError('CONFIG_INVALID', `The secret of a signal cannot be used: ${reason}. ${advice}`);
}

/** True if all signatures under two keys are equal. Keys of different bytes may be one key: HMAC pads and hashes them. */
export function areSameKey(a: Uint8Array, b: Uint8Array): boolean {
  const [one, other] = [a, b].map((key) => createHmac('sha256', key).digest('hex'));
  return one === other;
}

/** Parses the headers of a delivery, of which `get` returns the values. Each one occurs exactly once. */
export function readDeliveryHeaders(get: (name: string) => string | null): DeliveryHeaders | DeliveryHeaderProblem {
  const [id, timestamp, signature] = [get('webhook-id'), get('webhook-timestamp'), get('webhook-signature')];
  if (!id || !timestamp || !signature) return 'missing';
  const items = signature.split(' ', MAX_SIGNATURES + 1);
  // guard: delivery-id-unambiguous
  if (!DELIVERY_ID.test(id)) return 'malformed';
  // guard: delivery-time-strict
  if (!TIMESTAMP.test(timestamp)) return 'malformed';
  // guard: signatures-bounded
  if (items.length > MAX_SIGNATURES) return 'malformed';
  // guard: signature-header-strict
  if (!items.every((item) => SIGNATURE.test(item))) return 'malformed';
  return { id, timestamp: Number(timestamp), signatures: items.flatMap(hmacSignatureOf) };
}

function hmacSignatureOf(item: string): readonly Uint8Array[] {
  const bytes = item.startsWith(HMAC_SCHEME) ? decodeBase64(item.slice(HMAC_SCHEME.length)) : undefined;
  return bytes?.length === SIGNATURE_BYTES ? [bytes] : [];
}

/** True if one of the signatures is that of the id, the time and the body under the key, and the time is in the window. */
export function isAuthenticDelivery(headers: DeliveryHeaders, body: Uint8Array, check: SignatureCheck): boolean {
  const { key, windowMs = DEFAULT_WINDOW_MS, nowMs } = check;
  const expected = signatureOf(key, headers, body);
  const isSigned = headers.signatures.some(
    (signature) =>
      signature.length === expected.length && /* guard: signatures-compared */ timingSafeEqual(signature, expected),
  );
  const ageMs = nowMs - headers.timestamp * 1000;
  // guard: delivery-not-late
  const isLate = !(ageMs <= windowMs);
  // guard: delivery-not-early
  const isEarly = !(ageMs >= -windowMs);
  // guard: delivery-signed
  return isSigned && !isLate && !isEarly;
}

function signatureOf(key: Uint8Array, { id, timestamp }: { id: string; timestamp: number }, body: Uint8Array): Buffer {
  // guard: delivery-body-signed
  return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
}

/**
 * Returns the headers of a signed delivery, for senders and tests. Throws CONFIG_INVALID if the secret cannot be used, and
 * a TypeError if the id or the time cannot be sent.
 *
 * @example
 * const body = JSON.stringify({ amount: 40 });
 * const signed = signDelivery(secret, { id: 'evt_1', timestamp: Math.floor(Date.now() / 1000), body });
 * await fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json', ...signed } });
 */
export function signDelivery(secret: string, { id, timestamp, body }: DeliveryToSign): SignedDeliveryHeaders {
  if (!DELIVERY_ID.test(id))
    throw new TypeError('The id of a delivery has 1 to 200 printable ASCII characters, no space, "," or ".".');
  if (!TIMESTAMP.test(String(timestamp))) throw new TypeError('The time of a delivery is whole seconds since 1970.');
  const bytes = typeof body === 'string' ? Buffer.from(body, 'utf8') : body;
  const signature = encodeBase64(signatureOf(signingKeyOf(secret), { id, timestamp }, bytes));
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `${HMAC_SCHEME}${signature}`,
  };
}
