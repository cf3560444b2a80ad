// Checks of verdicts, of the log of a host and of the files beside the keys: each holds on the intact library and fails
// when its guard is broken.

import { deepStrictEqual, rejects, strictEqual } from 'node:assert';
import { chmodSync, cpSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LengthWitness, LogWitness } from '../../src/host/host-options.js';
import type { Store } from '../../src/journal/store.js';
import { bundleBytes } from '../../src/views/receipt/bundle.js';
import { bundleOf, receiptSigner, sealSession, trustedKey, trustedKeys } from '../support/receipt-fixture.js';
import { testKeys } from '../support/receipt-keys.js';
import { type HostLibrary, hostParts, type LibraryParts } from './library.js';

/** A rotation that notes the order of what it does. */
function notedRotation() {
  const order: string[] = [];
  const note = async (what: string): Promise<true> => {
    order.push(what);
    return true;
  };
  const keys = {
    rotate: () => note('published'),
    endOverlap: () => note('ended'),
    revoke: (_kid: string, at: number | true) => note(`revoked ${at}`),
  };
  return { order, deps: { keys, checkpoint: async () => 0, sleep: () => note('waited') } };
}

export const verdictParts: LibraryParts = [
  ...hostParts,
  'views/receipt/verify-bundle.js',
  'views/receipt/sealed-receipts.js',
  'views/turns.js',
  'views/budget.js',
  'adapters/keys/index.js',
  'host/receipts/key-rotation.js',
  'base/trusted-keys.js',
];

type VerdictLibrary = HostLibrary &
  typeof import('../../src/views/receipt/verify-bundle.js') &
  typeof import('../../src/views/receipt/sealed-receipts.js') &
  typeof import('../../src/views/turns.js') &
  typeof import('../../src/views/budget.js') &
  typeof import('../../src/adapters/keys/index.js') &
  typeof import('../../src/host/receipts/key-rotation.js') &
  typeof import('../../src/base/trusted-keys.js');

type VerdictCheck = (library: VerdictLibrary) => Promise<void>;

/** A witness in memory. */
export function memoryWitness(): LogWitness {
  let kept: string | undefined;
  return {
    read: async () => kept,
    write: async (note) => {
      kept = note;
    },
  };
}

/** Lengths in memory, which can be lowered. */
function lengthsInMemory(): LengthWitness {
  const kept = new Map<string, number>();
  return {
    read: async (stream) => kept.get(stream) ?? 0,
    has: async (stream) => kept.has(stream),
    areIntact: async () => true,
    write: async (stream, length) => void kept.set(stream, length),
  };
}

/** Returns a host with receipts on a store. */
function sealingHost(
  { Host, Registry, ManualClock, seededIds, defineLoop }: VerdictLibrary,
  store: Store,
  logWitness: LogWitness,
  lengthWitness?: LengthWitness,
) {
  const registry = new Registry();
  registry.add(defineLoop({ id: 'pay', input: true, output: true, tool: () => 'paid' }));
  const clock = new ManualClock(1_000_000);
  const witnesses = { logWitness, ...(lengthWitness !== undefined && { lengthWitness }) };
  return new Host({ store, clock, ids: seededIds(1), registry, receiptKeys: testKeys(), ...witnesses });
}

/** Runs a turn, closes its session, and removes the log, as one could who can change the store. */
async function hostWithoutLog(library: VerdictLibrary) {
  const [store, witness] = [library.memoryStore(), memoryWitness()];
  const host = sealingHost(library, store, witness);
  await host.run({ loop: 'pay', input: {}, sessionId: 'ada' });
  await host.receipts?.close('ada');
  await store.journal.remove('rondo:receipts');
  return { store, witness, host: sealingHost(library, store, witness) };
}

async function inDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'rondo-keys-'));
  try {
    await work(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const noteOf = (size: number): string => `rondo/x\n${size}\nroot\n\n— k sig\n`;

export const verdictChecks = {
  'a bundle without a checkpoint is not complete': async ({ verifyBundle }) => {
    const bundle = await bundleOf([await sealSession('a')], { hasCheckpoint: false });
    const { valid, complete, reasons } = verifyBundle(bundleBytes(bundle), trustedKeys).verdict;
    deepStrictEqual(
      { valid, complete, reasons },
      { valid: true, complete: 'unknown', reasons: ['checkpoint_missing'] },
    );
  },
  'a document without a position in the log needs a current key': async ({ TrustedKeys }) => {
    const keyOf = (limits: object): unknown =>
      new TrustedKeys([trustedKey(receiptSigner, limits)]).forUnlogged(receiptSigner.kid);
    for (const current of [{}, { from: 7 }, { role: 'receipt' }]) strictEqual(typeof keyOf(current), 'object');
    for (const limits of [{ until: 7 }, { from: 1, until: 7 }, { revoked: 7 }])
      strictEqual(keyOf(limits), 'key_needs_log_proof');
    strictEqual(keyOf({ revoked: true }), 'key_revoked');
    strictEqual(keyOf({ role: 'checkpoint' }), 'key_role');
  },
  'what a body records is no receipt': async ({ receiptsIn }) => {
    const value = { turn: 't', sequence: 0, final: true, state: 'ok', hash: '', to: 9, envelope: {} };
    const entry = { seq: 1, at: 1, type: 'rondo.receipt.sealed', value };
    strictEqual(receiptsIn([{ ...entry, key: '#receipt/0' }]).length, 1);
    strictEqual(receiptsIn([{ ...entry, key: 't/0' }]).length, 0);
  },
  'what a body records does not end its turn': async ({ Turns }) => {
    const turns = new Turns();
    const at = { at: 1 };
    turns.apply({ ...at, seq: 0, type: 'rondo.turn.opened', key: '#t', value: { sealed: true } });
    turns.apply({ ...at, seq: 1, type: 'call.started', key: 't', name: 'pay' });
    turns.apply({ ...at, seq: 2, type: 'call.completed', key: 't', value: 1 });
    const receipt = { ...at, type: 'rondo.receipt.sealed', value: { turn: 't', final: true } };
    turns.apply({ ...receipt, seq: 3, key: 't/0' });
    strictEqual(turns.get('t')?.endedEntry, undefined);
    turns.apply({ ...receipt, seq: 4, key: '#receipt/0' });
    strictEqual(turns.get('t')?.endedEntry?.seq, 2);
  },
  'what a body records is not the origin of its session': async ({ forkedEntryOf }) => {
    const entry = { seq: 1, at: 1, type: 'rondo.session.forked', value: { session: 'prod', turn: 'prod.1', at: 3 } };
    strictEqual(forkedEntryOf([{ ...entry, key: 't/0' }]), undefined);
    strictEqual(forkedEntryOf([{ ...entry, key: '#fork' }])?.seq, 1);
  },
  'a negative use counts as more than any limit': async ({ Budget }) => {
    for (const amount of [-1000, Number.NaN, '1', null]) {
      const budget = new Budget();
      const value = { turn: 't', amounts: { effects: amount } };
      budget.apply({ type: 'rondo.budget.reserved', key: 't/0#0', value });
      const accounts = [{ id: '', limits: { effects: 5 } }];
      strictEqual(budget.exceededBy(accounts, { effects: 1 })?.limit, 5, `${amount}`);
    }
  },
  'a list of keys that others can change is refused': (library) =>
    inDirectory(async (directory) => {
      const keys = new library.KeyDirectory(join(directory, 'keys'));
      await keys.signer('receipt');
      chmodSync(join(directory, 'keys', 'keys.json'), 0o666);
      await rejects(keys.list(), /changed by others/);
    }),
  'a directory of keys that is a link is refused': (library) =>
    inDirectory(async (directory) => {
      const place = join(directory, 'keys');
      await new library.KeyDirectory(place).signer('receipt');
      renameSync(place, join(directory, 'elsewhere'));
      symlinkSync(join(directory, 'elsewhere'), place);
      await rejects(new library.KeyDirectory(place).list(), /a link to one/);
    }),
  'keys in the place of those in use are refused': ({ KeyDirectory }) =>
    inDirectory(async (directory) => {
      const place = join(directory, 'keys');
      const keys = new KeyDirectory(place);
      await keys.signer('receipt');
      renameSync(place, join(directory, 'elsewhere'));
      await new KeyDirectory(place).signer('receipt');
      await rejects(keys.signer('receipt'), { code: 'KEYS_UNUSABLE' });
    }),
  'a list of keys that was removed is not begun again': ({ KeyDirectory }) =>
    inDirectory(async (directory) => {
      const keys = new KeyDirectory(directory);
      await keys.signer('receipt');
      rmSync(join(directory, 'keys.json'));
      await rejects(keys.signer('receipt'), { code: 'KEYS_UNUSABLE' });
    }),
  'keys that a store lost are not made again': ({ KeyDirectory }) =>
    inDirectory(async (directory) => {
      const keys = new KeyDirectory(join(directory, 'keys'));
      keys.signFor({ assertKey: () => {}, hasReceipts: async () => true });
      await rejects(keys.signer('receipt'), { code: 'KEYS_UNUSABLE' });
    }),
  'a directory of keys that was copied has no valid mark': ({ KeyDirectory, KeyOrigin }) =>
    inDirectory(async (directory) => {
      const [keys, copy] = [join(directory, 'keys'), join(directory, 'copy')];
      const originOf = (place: string) => new KeyOrigin(place, join(directory, 'secret'));
      await new KeyDirectory(keys, undefined, originOf(keys)).signer('receipt');
      cpSync(keys, copy, { recursive: true });
      const list = (await new KeyDirectory(keys).list()).keys;
      deepStrictEqual([await originOf(keys).isMarked(list), await originOf(copy).isMarked(list)], [true, false]);
    }),
  'a mark is for the keys that were created there': ({ KeyDirectory, KeyOrigin }) =>
    inDirectory(async (directory) => {
      const [own, foreign] = [join(directory, 'keys'), join(directory, 'foreign')];
      const origin = new KeyOrigin(own, join(directory, 'secret'));
      const keys = new KeyDirectory(own, undefined, origin);
      for (const each of [keys, new KeyDirectory(foreign)]) await each.signer('receipt');
      strictEqual(await origin.isMarked((await keys.list()).keys), true);
      cpSync(foreign, own, { recursive: true });
      strictEqual(await origin.isMarked((await new KeyDirectory(own).list()).keys), false);
    }),
  'a new key does not vouch for the others': ({ KeyDirectory, KeyOrigin }) =>
    inDirectory(async (directory) => {
      const keys = new KeyDirectory(join(directory, 'keys'));
      const { kid } = await keys.signer('receipt');
      await keys.revoke(kid, 3);
      const origin = new KeyOrigin(join(directory, 'keys'), join(directory, 'secret'));
      await new KeyDirectory(join(directory, 'keys'), undefined, origin).signer('receipt');
      strictEqual(await origin.isMarked((await keys.list()).keys), false);
    }),
  'the kept checkpoint is not replaced by an older one': (library) =>
    inDirectory(async (directory) => {
      const file = new library.CheckpointFile(join(directory, 'keys', 'journal.db.checkpoint'));
      strictEqual(await file.read(), undefined);
      for (const size of [3, 10, 4]) await file.write(noteOf(size));
      strictEqual(await file.read(), noteOf(10));
    }),
  'a replaced key counts while running processes may sign with it': async ({ rotateKey }) => {
    const { deps, order } = notedRotation();
    await rotateKey(deps, 'receipt');
    deepStrictEqual(order, ['published', 'waited', 'ended']);
  },
  'a key that signs is replaced before it is revoked': async ({ revokeKey }) => {
    const { deps, order } = notedRotation();
    await revokeKey(deps, 'k', 'receipt');
    deepStrictEqual(order, ['published', 'waited', 'ended', 'revoked 0']);
  },
  'a replaced key does not count longer after a later rotation': ({ KeyDirectory }) =>
    inDirectory(async (directory) => {
      const keys = new KeyDirectory(directory);
      const { kid } = await keys.signer('receipt');
      await keys.rotate('receipt', 1);
      for (const size of [1, 500]) await keys.endOverlap('receipt', size);
      strictEqual((await keys.list()).keys.find((key) => key.kid === kid)?.until, 65);
    }),
  'the time of keys that several stores use is not cut': ({ KeyDirectory }) =>
    inDirectory(async (directory) => {
      const keys = new KeyDirectory(directory);
      await keys.signer('receipt');
      for (const name of ['a', 'b']) writeFileSync(join(directory, `${name}.store-key`), '');
      strictEqual(await keys.endOverlap('receipt', 1), false);
    }),
  'nothing is signed about a log that was removed or made anew': async (library) => {
    const { store, witness, host } = await hostWithoutLog(library);
    const { receipts } = host;
    if (receipts === undefined) throw new Error('no receipts');
    const { valid, reasons } = await receipts.verify(undefined);
    deepStrictEqual({ valid, reasons }, { valid: false, reasons: ['log_rewritten'] });
    const refused = { code: 'LOG_REWRITTEN' };
    await rejects(receipts.export(), refused);
    await rejects(receipts.close('ada'), refused);
    await rejects(receipts.checkpoint(), refused);
    // Without the checkpoint that is kept outside of the store, a new log is begun.
    await sealingHost(library, store, memoryWitness()).receipts?.checkpoint();
    await rejects(sealingHost(library, store, witness).receipts?.checkpoint() ?? Promise.resolve(), refused);
  },
  'a kept length that is less than the checkpoint says is noticed': async (library) => {
    const [store, witness, kept] = [library.memoryStore(), memoryWitness(), lengthsInMemory()];
    const hostWith = () => sealingHost(library, store, witness, kept);
    const host = hostWith();
    for (const sessionId of ['ada', 'bob']) await host.run({ loop: 'pay', input: {}, sessionId });
    await host.receipts?.export();
    await host.close();
    const verdictOf = async () => (await hostWith().receipts?.verify(undefined))?.reasons.includes('witness_missing');
    strictEqual(await verdictOf(), false);
    await kept.write('rondo:receipts', 2);
    strictEqual(await verdictOf(), true);
  },
  'a checkpoint is kept after the length of its log': async (library) => {
    const [store, kept] = [library.memoryStore(), lengthsInMemory()];
    const first = sealingHost(library, store, memoryWitness());
    await first.run({ loop: 'pay', input: {}, sessionId: 'ada' });
    await first.close();
    let known = -1;
    const witness: LogWitness = {
      read: async () => undefined,
      write: async () => {
        known = await kept.read('rondo:receipts');
      },
    };
    await sealingHost(library, store, witness, kept).receipts?.export();
    strictEqual(known, 2);
  },
  'an emptied length is noticed': ({ StreamLengths }) =>
    inDirectory(async (directory) => {
      const lengths = new StreamLengths(join(directory, 'lengths'));
      await lengths.write('g', 7);
      strictEqual(await lengths.areIntact(), true);
      for (const name of readdirSync(join(directory, 'lengths'))) writeFileSync(join(directory, 'lengths', name), '');
      strictEqual(await lengths.areIntact(), false);
    }),
  'what belongs to a session that is removed while it is verified is no flaw': async (library) => {
    const store = library.memoryStore();
    await sealingHost(library, store, memoryWitness()).run({ loop: 'pay', input: {}, sessionId: 'ada' });
    const blobs = Object.create(store.blobs) as Store['blobs'];
    blobs.get = async (session, digest) => {
      await store.journal.remove(session);
      return store.blobs.get(session, digest);
    };
    const verifier = sealingHost(library, { ...store, blobs }, memoryWitness());
    strictEqual((await verifier.receipts?.verify(['ada']))?.valid, true);
  },
  'a log that was removed is not begun again': async (library) => {
    const { host, store } = await hostWithoutLog(library);
    strictEqual((await host.run({ loop: 'pay', input: {}, sessionId: 'bob' })).status, 'ok');
    await host.receipts?.flush();
    const log: unknown[] = [];
    for await (const entries of store.journal.read('rondo:receipts', 0)) log.push(...entries);
    deepStrictEqual(log, []);
  },
} as const satisfies Record<string, VerdictCheck>;
