// A process of the campaign of receipts: runs turns with three effects each, sealed, until it is killed or done.

import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { builtinTools, Host, Registry, systemClock, systemIds } from 'rondo/host';
import { openSqlite } from 'rondo/sqlite';

const [file = '', url = '', count = '0'] = process.argv.slice(2);
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const RAW_KEY_BYTES = 32;

/** Fixed keys, one for each role. */
const receiptKeys = {
  signer: async (/** @type {string} */ role) => {
    const seed = Buffer.alloc(RAW_KEY_BYTES, role === 'receipt' ? 1 : 2);
    const key = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: 'der', type: 'pkcs8' });
    const publicKey = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-RAW_KEY_BYTES);
    return { kid: `${role}-1`, publicKey, sign: async (/** @type {Uint8Array} */ bytes) => sign(null, bytes, key) };
  },
  list: async () => ({ keys: [] }),
};

const report = async (/** @type {unknown} */ _input, /** @type {any} */ { idempotencyKey }) => {
  const response = await fetch(`${url}/${encodeURIComponent(idempotencyKey)}`);
  return response.text();
};
const ANYTHING = { version: '1.0.0', inputSchema: true, outputSchema: true };
const builtin = builtinTools(/** @type {never} */ ({ report }));
const implementations = new Map([[builtin.scheme, builtin]]);
const registry = new Registry(implementations);
const step = { loopId: 'report', inputMapping: '$.input' };
registry.add({
  ...{ ...ANYTHING, id: 'report', name: 'report', kind: 'tool' },
  tool: { implementation: 'builtin:report', safety: 'keyed' },
});
registry.add({ ...ANYTHING, id: 'work', name: 'work', kind: 'composite', composite: { steps: [step, step, step] } });

const store = await openSqlite(file);
const providers = new Map();
const parts = { store, clock: systemClock, ids: systemIds, registry, implementations, providers, receiptKeys };
const host = new Host(/** @type {never} */ (parts));
process.stdout.write('started\n');
const grant = { allowedTools: ['report'], limits: { effects: 3 } };
const runTurn = (/** @type {number} */ n) =>
  host.run(/** @type {never} */ ({ loop: 'work', input: { n }, key: `k${n}`, sessionId: `s${n % 4}`, grant }));
// The newest turns first: the older ones have usually ended.
for (let n = Number(count) - 1; n >= 0; n -= 3) {
  const results = await Promise.all([n, n - 1, n - 2].map(runTurn));
  for (const { status, turnId } of results) if (status !== 'ok') throw new Error(`${turnId} ended as ${status}.`);
}
await host.close();
await store.close();
