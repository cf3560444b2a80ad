// Checks of signals over HTTP: each holds on the intact library and fails when its guard is broken.

import { deepStrictEqual, doesNotMatch, match, ok, strictEqual, throws } from 'node:assert';
import type { HostedLoopDocument, HostedSignal } from '../../src/protocol/hosted-loop.js';
import {
  NOW_MS,
  NOW_SECONDS,
  orders,
  PAID_SECRET,
  type RequestParts,
  receiver,
  signatureOf,
  verified,
} from '../support/signal-fixture.js';
import type { LibraryParts } from './library.js';

export const signalParts: LibraryParts = [
  'base/errors.js',
  'host/hosted/verify-signal.js',
  'surfaces/signals/index.js',
  'surfaces/signals/signal-secrets.js',
];

type SignalLibrary = typeof import('../../src/base/errors.js') &
  typeof import('../../src/host/hosted/verify-signal.js') &
  typeof import('../../src/surfaces/signals/index.js') &
  typeof import('../../src/surfaces/signals/signal-secrets.js');

type SignalCheck = (library: SignalLibrary) => Promise<void>;
type ReceiverOptions = Parameters<typeof receiver>[1];

const create = ({ signalHandler }: SignalLibrary, options?: ReceiverOptions) => receiver(signalHandler, options);

/** Sends one request. Returns the status and how much was delivered. */
async function outcomeOf(library: SignalLibrary, parts: RequestParts, options?: ReceiverOptions) {
  const { send, delivered } = create(library, options);
  return [(await send(parts)).status, delivered.length];
}

const declaring = (signals: Readonly<Record<string, HostedSignal>>): ReceiverOptions => ({
  definition: async (): Promise<HostedLoopDocument> => ({ ...orders, signals }),
});

/** Returns how the library reads headers of which one is replaced. */
function readWith({ readDeliveryHeaders }: SignalLibrary, name: string, value: string): unknown {
  const headers: Record<string, string> = {
    'webhook-id': 'evt',
    'webhook-timestamp': `${NOW_SECONDS}`,
    'webhook-signature': signatureOf(PAID_SECRET, 'evt', NOW_SECONDS, '1'),
  };
  headers[name] = value;
  return readDeliveryHeaders((header) => headers[header] ?? null);
}

const zeros = `whsec_${Buffer.alloc(32).toString('base64')}`;

export const signalChecks = {
  'a delivery with a wrong signature is not parsed and not delivered': async (library) => {
    deepStrictEqual(await outcomeOf(library, { secret: 'another secret of a sender' }), [401, 0]);
  },
  'a signature covers the body': async (library) => {
    deepStrictEqual(await outcomeOf(library, { signedBody: '{"amount":1}' }), [401, 0]);
    deepStrictEqual(await outcomeOf(library, {}), [202, 1]);
  },
  'a signature of other bytes is no signature': async ({ isAuthenticDelivery, signingKeyOf }) => {
    const check = { key: signingKeyOf(PAID_SECRET), nowMs: NOW_MS };
    const delivery = { id: 'evt', timestamp: NOW_SECONDS, signatures: [Buffer.alloc(32)] };
    strictEqual(isAuthenticDelivery(delivery, Buffer.from('1'), check), false);
  },
  'a late delivery is refused': async (library) => {
    deepStrictEqual(await outcomeOf(library, { timestamp: NOW_SECONDS - 301 }), [401, 0]);
  },
  'an early delivery is refused': async (library) => {
    deepStrictEqual(await outcomeOf(library, { timestamp: NOW_SECONDS + 301 }), [401, 0]);
  },
  'a delivery id has no separator of signed parts or of headers': async (library) => {
    for (const id of ['a.b', 'a,a', 'a a', 'a'.repeat(201)])
      strictEqual(readWith(library, 'webhook-id', id), 'malformed');
  },
  'the time of a delivery has one form': async (library) => {
    for (const time of [`0${NOW_SECONDS}`, `${NOW_SECONDS}.0`, '1e9'])
      strictEqual(readWith(library, 'webhook-timestamp', time), 'malformed');
  },
  'a delivery has a bounded number of signatures': async (library) => {
    strictEqual(readWith(library, 'webhook-signature', Array(11).fill('v1,AAAA').join(' ')), 'malformed');
  },
  'a header of signatures that occurs twice is refused': async (library) => {
    const signature = signatureOf(PAID_SECRET, 'evt', NOW_SECONDS, '1');
    strictEqual(readWith(library, 'webhook-signature', `${signature}, ${signature}`), 'malformed');
  },
  'a short secret is refused': async ({ signingKeyOf }) => {
    throws(() => signingKeyOf('fifteen letters'), /at least 16/);
    throws(() => signingKeyOf(`whsec_${Buffer.alloc(15).toString('base64')}`), /at least 16/);
  },
  'a public key is no secret': async ({ signingKeyOf }) => {
    throws(() => signingKeyOf(`whpk_${'A'.repeat(44)}`), /asymmetric/);
  },
  'a signal that does not exist cannot be signed': async (library) => {
    deepStrictEqual(await outcomeOf(library, { path: '/signals/orders/absent', secret: zeros }), [401, 0]);
  },
  'a signal without verification is refused': async (library) => {
    const { send, errors, delivered } = create(library);
    strictEqual((await send({ path: '/signals/orders/internal' })).status, 401);
    deepStrictEqual([errors, delivered], [[], []]);
  },
  'an unknown method of verification is refused': async (library) => {
    const paid: HostedSignal = { schema: true, verify: { method: 'none' as never, secret: 'env:PAID_SECRET' } };
    deepStrictEqual(await outcomeOf(library, {}, declaring({ paid })), [401, 0]);
  },
  'a reference that names no variable is not looked up': async (library) => {
    const asked: string[] = [];
    const secret = (reference: string): string => {
      asked.push(reference);
      return PAID_SECRET;
    };
    const options = { ...declaring({ paid: verified('file:/run/secret') }), secret };
    deepStrictEqual(await outcomeOf(library, {}, options), [401, 0]);
    deepStrictEqual(asked, []);
  },
  'a document cannot name a variable that is no secret': async ({ environmentSecret }) => {
    throws(() => environmentSecret('env:PATH'), /does not end with _SECRET/);
    throws(() => environmentSecret('env:OPENAI_API_KEY'), /does not end with _SECRET/);
  },
  'two signals of a loop with one secret are refused': async (library) => {
    const signals = { paid: verified('env:PAID_SECRET'), refunded: verified('env:PAID_SECRET') };
    deepStrictEqual(await outcomeOf(library, {}, declaring(signals)), [401, 0]);
  },
  'the document of another loop is not used': async (library) => {
    const definition = async (): Promise<HostedLoopDocument> => orders;
    deepStrictEqual(await outcomeOf(library, { path: '/signals/others/paid' }, { definition }), [401, 0]);
  },
  'an unusable secret is reported once': async (library) => {
    const { send, errors } = create(library, declaring({ paid: verified('env:ABSENT_SECRET') }));
    for (let n = 0; n < 3; n++) await send();
    strictEqual(errors.length, 1);
  },
  'a request that is not JSON is refused': async (library) => {
    deepStrictEqual(await outcomeOf(library, { headers: { 'content-type': 'text/plain' } }), [415, 0]);
  },
  'a body is not read beyond its limit': async (library) => {
    let bytes = 0;
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        bytes += 100;
        controller.enqueue(new Uint8Array(100));
        if (bytes >= 5000) controller.close();
      },
    });
    deepStrictEqual(await outcomeOf(library, { body }, { maxBytes: 150 }), [413, 0]);
    ok(bytes < 1000, `${bytes} bytes were read`);
  },
  'a longer path is another route': async (library) => {
    deepStrictEqual(await outcomeOf(library, { path: '/signals/orders/paid/more' }), [404, 0]);
  },
  'a path with an invalid loop id is refused before it is looked up': async (library) => {
    const asked: string[] = [];
    const definition = async (loop: string): Promise<undefined> => {
      asked.push(loop);
      return undefined;
    };
    deepStrictEqual(await outcomeOf(library, { path: '/signals/..%2Forders/paid' }, { definition }), [400, 0]);
    deepStrictEqual(asked, []);
  },
  'an internal error is not disclosed': async (library) => {
    const failure = new library.LoopError('EXECUTION_FAILED', 'hidden');
    const { send, errors } = create(library, { deliver: () => Promise.reject(failure) });
    const { response, status } = await send();
    strictEqual(status, 500);
    const text = await response.text();
    match(text, /INTERNAL/);
    doesNotMatch(text, /hidden|EXECUTION_FAILED/);
    deepStrictEqual(errors, [failure]);
  },
} as const satisfies { readonly [promise: string]: SignalCheck };
