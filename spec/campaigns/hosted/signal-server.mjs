// The server of the campaign of signals: the handler of `rondo/signals` behind `node:http`, on a store that workers share.

import { createServer } from 'node:http';
import { systemClock, systemIds } from 'rondo/host';
import { nodeListener, signalHandler } from 'rondo/signals';
import { openSqlite } from 'rondo/sqlite';
import { hostedHost } from './hosted-host.mjs';

const [file = ''] = process.argv.slice(2);
const store = await openSqlite(file);
const host = hostedHost({ store, clock: systemClock, ids: systemIds, perform: () => undefined });
const handler = signalHandler(
  {
    definition: (loop) => host.hosted.definition(loop),
    deliver: (delivery) => host.hosted.signal(delivery, 'hmac-sha256'),
    now: () => systemClock.now(),
  },
  { onError: (thrown) => process.send?.({ kind: 'error', message: String(thrown) }) },
);
const server = createServer(nodeListener(handler));
server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  process.send?.({ kind: 'listening', port });
});
process.once('disconnect', () => process.exit(0));
