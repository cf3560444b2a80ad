// Governed tool steps against ungoverned ones, and sealed turns against bare signatures and turns without receipts.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqlite } from '../src/adapters/sqlite/index.js';
import { encodeBase64 } from '../src/base/base64.js';
import { isSignatureValid, privateKeyOf, signBytesSync } from '../src/base/ed25519.js';
import { localSigner } from '../src/base/local-signer.js';
import { TrustedKeys } from '../src/base/trusted-keys.js';
import type { ReceiptKeys } from '../src/host/host-options.js';
import { builtinTools, Host, memoryStore, Registry, type Store, systemClock, systemIds } from '../src/host-entry.js';
import type { Grant } from '../src/protocol/grant.js';
import type { ReceiptBundle } from '../src/protocol/receipt.js';
import { bundleBytes } from '../src/views/receipt/bundle.js';
import { verifyBundle } from '../src/views/receipt/verify-bundle.js';
import { median } from './measure.js';
import { atMost, note, section } from './table.js';

const ROUNDS = 5;
const STEPS = 200;
const TURNS = 1000;
const CONCURRENT = 64;
const ANYTHING = { version: '1.0.0', inputSchema: true, outputSchema: true } as const;
const GRANT: Grant = { allowedTools: ['act'], limits: { effects: 1_000_000 } };
const RECEIPTS = 10_000;
const KEY = privateKeyOf(Buffer.alloc(32, 1));
const KEYS = { receipt: KEY, checkpoint: privateKeyOf(Buffer.alloc(32, 2)) };
const receiptKeys: ReceiptKeys = {
  signer: async (role) => localSigner(role, KEYS[role]),
  list: async () => ({
    keys: Object.entries(KEYS).map(([kid, key]) => ({ kid, publicKey: encodeBase64(key.publicKey.bytes) })),
  }),
};

/** A host with a tool, and a loop that calls it `steps` times. */
function hostOn(store: Store, steps: number, isSealed = false): Host {
  const builtin = builtinTools({ act: () => 1 });
  const implementations = new Map([[builtin.scheme, builtin]]);
  const registry = new Registry(implementations);
  registry.add({
    ...{ ...ANYTHING, id: 'act', name: 'act', kind: 'tool' },
    tool: { implementation: 'builtin:act', safety: 'once' },
  });
  const step = { loopId: 'act', inputMapping: '$.input' };
  const composite = { steps: Array.from({ length: steps }, () => step) };
  registry.add({ ...ANYTHING, id: 'work', name: 'work', kind: 'composite', composite });
  const parts = { store, clock: systemClock, ids: systemIds, registry, implementations, providers: new Map() };
  return new Host({ ...parts, ...(isSealed && { receiptKeys }) });
}

/**
 * Runs work on a new store, in memory or on SQLite, and returns its time in microseconds. `prepare` returns the work:
 * what it does itself, such as a first turn that links the loop, is not measured.
 */
async function timeOn(isDurable: boolean, prepare: (store: Store) => Promise<() => Promise<unknown>>): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'rondo-bench-'));
  const store = isDurable ? await openSqlite(join(directory, 'store.db')) : memoryStore();
  const work = await prepare(store);
  const start = process.hrtime.bigint();
  await work();
  const time = Number(process.hrtime.bigint() - start) / 1000;
  await store.close();
  rmSync(directory, { recursive: true });
  return time;
}

async function runTurn(host: Host, grant?: Grant): Promise<void> {
  const { status } = await host.run({ loop: 'work', input: { n: 1 }, ...(grant && { grant }) });
  if (status !== 'ok') throw new Error(`A turn of the benchmark ended as ${status}.`);
}

/** Returns the median ratio of two measurements that take turns, after one round to warm up, and their medians. */
async function compare(first: () => Promise<number>, second: () => Promise<number>) {
  const rounds: [number, number][] = [];
  for (let round = 0; round <= ROUNDS; round++) rounds.push([await first(), await second()]);
  const measured = rounds.slice(1);
  return {
    ratio: median(measured.map(([a, b]) => a / b)),
    first: median(measured.map(([a]) => a)),
    second: median(measured.map(([, b]) => b)),
  };
}

/** Measures what a grant adds to a tool step. */
async function benchSteps(isDurable: boolean): Promise<void> {
  const perStep = (grant?: Grant) => async (): Promise<number> =>
    (await timeOn(isDurable, async (store) => {
      const host = hostOn(store, STEPS);
      await runTurn(host, grant);
      return () => runTurn(host, grant);
    })) / STEPS;
  const { ratio, first, second } = await compare(perStep(GRANT), perStep());
  const figures = `governed ${first.toFixed(1)} us, ungoverned ${second.toFixed(1)} us`;
  if (isDurable) atMost('a governed tool step on SQLite with fsync', ratio, 1.5, 'x ungoverned');
  else note(`a governed tool step in memory: ${ratio.toFixed(2)} x ungoverned`);
  note(figures);
}

/**
 * Measures what sealing adds to a turn, against what a bare signature adds to a turn without receipts. A signature in a
 * loop of its own takes about half of that, because its code and tables stay in the caches.
 */
async function benchSealing(): Promise<void> {
  const bytes = Buffer.alloc(1500, 7);
  const turns = (kind: 'plain' | 'signed' | 'sealed') => (): Promise<number> =>
    timeOn(false, async (store) => {
      const host = hostOn(store, 1, kind === 'sealed');
      await runTurn(host);
      return async () => {
        for (let n = 0; n < TURNS; n++) {
          await runTurn(host);
          if (kind === 'signed') signBytesSync(bytes, KEY);
        }
      };
    });
  const rounds: (readonly [number, number, number])[] = [];
  for (let round = 0; round <= ROUNDS; round++)
    rounds.push([await turns('plain')(), await turns('signed')(), await turns('sealed')()]);
  const added = (of: 1 | 2): number => median(rounds.slice(1).map((times) => (times[of] - times[0]) / TURNS));
  const alone: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const start = process.hrtime.bigint();
    for (let n = 0; n < 1000; n++) signBytesSync(bytes, KEY);
    alone.push(Number(process.hrtime.bigint() - start) / 1e6);
  }
  atMost('sealing a turn', added(2) / added(1), 2.5, 'x a bare signature in its place');
  note(`sealing ${added(2).toFixed(0)} us, a signature of 1,500 bytes in its place ${added(1).toFixed(0)} us`);
  note(`a signature in a loop of its own ${median(alone).toFixed(0)} us`);
}

/** Measures concurrent durable turns with and without receipts. */
async function benchThroughput(): Promise<void> {
  const turns = (isSealed: boolean) => (): Promise<number> =>
    timeOn(true, async (store) => {
      const host = hostOn(store, 5, isSealed);
      const lane = async (): Promise<void> => {
        for (let n = 0; n < 10; n++) await runTurn(host);
      };
      await runTurn(host);
      return () => Promise.all(Array.from({ length: CONCURRENT }, lane));
    });
  const { ratio, first, second } = await compare(turns(true), turns(false));
  const rate = (time: number): string => Math.round((CONCURRENT * 10) / (time / 1e6)).toLocaleString('en');
  atMost(`${CONCURRENT} concurrent durable turns, sealed: lost throughput`, (1 - 1 / ratio) * 100, 15, '%');
  note(`sealed ${rate(first)} turns/s, without receipts ${rate(second)} turns/s`);
}

/** Measures the verification of a file of receipts, with and without its log proofs. */
async function benchVerification(): Promise<void> {
  const host = hostOn(memoryStore(), 1, true);
  for (let n = 0; n < RECEIPTS; n++) await runTurn(host);
  const exported = (await host.receipts?.export()) ?? Buffer.alloc(0);
  const { receipts } = JSON.parse(exported.toString()) as ReceiptBundle;
  const plain = bundleBytes({
    format: 'rondo.receipts.v1',
    receipts: receipts.map(({ envelope }) => ({ envelope })),
  });
  const keys = new TrustedKeys((await receiptKeys.list()).keys);
  const message = Buffer.alloc(1500, 7);
  const signature = signBytesSync(message, KEY);
  const bare = cpuMs(() => {
    for (let n = 0; n < RECEIPTS; n++) isSignatureValid(message, signature, KEY.publicKey);
  });
  const verify = (bytes: Buffer) => (): void => {
    if (!verifyBundle(bytes, keys).verdict.valid) throw new Error('The receipts are not valid.');
  };
  atMost('verifying 10,000 receipts', cpuMs(verify(plain)) / bare, 2, 'x the bare signatures');
  atMost('the same with log proofs', cpuMs(verify(exported)) / bare, 2, 'x the bare signatures');
}

/** Returns the processor time of the fastest of three runs, in milliseconds. */
function cpuMs(work: () => void): number {
  const times = [1, 2, 3].map(() => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  return Math.min(...times);
}

/** Measures grants and receipts. */
export async function benchGoverned(): Promise<void> {
  section('Grants and receipts');
  await benchSteps(false);
  await benchSteps(true);
  await benchSealing();
  await benchThroughput();
  await benchVerification();
}
