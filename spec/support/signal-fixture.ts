// A receiver of signals in memory, and requests that a sender or an attacker makes.

import { createHmac } from 'node:crypto';
import type { HostedLoopDocument, HostedSignal, HostedSignalDelivery } from '../../src/protocol/hosted-loop.js';
import type { SignalHandlerOptions, SignalTarget, signalHandler } from '../../src/surfaces/signals/index.js';

export const NOW_MS = 1_700_000_000_000;
export const NOW_SECONDS = NOW_MS / 1000;
export const PAID_SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
export const SHIPPED_SECRET = 'a shared text of more than 16 bytes';

/** A signal that is verified with the secret of a reference. */
export const verified = (secret: string, windowMs?: number): HostedSignal => ({
  schema: true,
  verify: { method: 'hmac-sha256', secret, ...(windowMs !== undefined && { windowMs }) },
});

export const orders: HostedLoopDocument = {
  id: 'orders',
  loop: 'order',
  grant: { id: 'orders', allowedTools: [], limits: {} },
  stop: { maxTurns: 3 },
  signals: {
    paid: verified('env:PAID_SECRET'),
    shipped: verified('env:SHIPPED_SECRET'),
    internal: { schema: true },
    'needs.more': verified('env:MORE_SECRET', 1000),
  },
};

export const secrets: Readonly<Record<string, string>> = {
  'env:PAID_SECRET': PAID_SECRET,
  'env:SHIPPED_SECRET': SHIPPED_SECRET,
  'env:MORE_SECRET': 'another text of more than 16 bytes',
};

/** Returns the signature of the specification, computed without the library. */
export function signatureOf(secret: string, id: string, timestamp: number | string, body: string | Buffer): string {
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : Buffer.from(secret);
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`;
}

/** A request of a sender; what is left out is as it should be. */
export interface RequestParts {
  readonly path?: string;
  readonly method?: string;
  readonly body?: string | Buffer | ReadableStream<Uint8Array>;
  readonly signedBody?: string;
  readonly id?: string;
  readonly timestamp?: number | string;
  readonly secret?: string;
  /** Headers that replace the usual ones; undefined removes one. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

/** Returns a request that is authentic for `orders/paid`, apart from the given parts. */
export function requestOf(parts: RequestParts = {}): Request {
  const { path = '/signals/orders/paid', method = 'POST', body = '{"amount":40}' } = parts;
  const { id = 'evt_1', timestamp = NOW_SECONDS, secret = PAID_SECRET } = parts;
  const signed = parts.signedBody ?? (body instanceof ReadableStream ? '' : body);
  const headers = new Headers();
  const all = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatureOf(secret, id, timestamp, signed),
    ...parts.headers,
  };
  for (const [name, value] of Object.entries(all)) if (value !== undefined) headers.set(name, value);
  const hasBody = method !== 'GET' && method !== 'HEAD';
  return new Request(`http://localhost${path}`, { method, headers, ...(hasBody && { body, duplex: 'half' }) });
}

interface ReceiverOptions extends SignalHandlerOptions {
  readonly deliver?: SignalTarget['deliver'];
  readonly definition?: SignalTarget['definition'];
  readonly now?: () => number;
}

/** A handler whose target records deliveries and errors. */
export function receiver(create: typeof signalHandler, options: ReceiverOptions = {}) {
  const delivered: HostedSignalDelivery[] = [];
  const errors: unknown[] = [];
  const { deliver, definition, now = () => NOW_MS, ...others } = options;
  const target: SignalTarget = {
    definition: definition ?? (async (loop) => (loop === 'orders' ? orders : undefined)),
    deliver: async (delivery) => {
      const isKnown = delivered.some(({ loop, id }) => loop === delivery.loop && id === delivery.id);
      delivered.push(delivery);
      return deliver ? deliver(delivery) : isKnown ? 'duplicate' : 'accepted';
    },
    now,
  };
  const handler = create(target, {
    secret: (reference) => secrets[reference],
    onError: (thrown) => void errors.push(thrown),
    ...others,
  });
  const send = async (parts?: RequestParts): Promise<{ status: number; code: unknown; response: Response }> => {
    const response = await handler(requestOf(parts));
    const reply = JSON.parse(await response.clone().text());
    return { status: response.status, code: reply.code ?? reply.status, response };
  };
  return { handler, send, delivered, errors };
}
