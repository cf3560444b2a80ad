import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { randomFrom, SEED } from '../../spec/support/approval-fixture.js';
import {
  bundleOf,
  checkpointSigner,
  receiptSigner,
  sealSession,
  trustedKey,
} from '../../spec/support/receipt-fixture.js';
import { verifies } from '../../spec/verifies.js';
import { TrustedKeys } from '../../src/base/trusted-keys.js';
import { canonicalJson } from '../../src/json/canonical.js';
import type { Json } from '../../src/protocol/json.js';
import type { CheckpointScope, KeysDocument, ReceiptBundle, ReceiptPredicate } from '../../src/protocol/receipt.js';
import { bundleBytes } from '../../src/views/receipt/bundle.js';
import { createEnvelope } from '../../src/views/receipt/envelope.js';
import { verifyBundle } from '../../src/views/receipt/verify-bundle.js';
import { verify } from './verify.mjs';

const script = fileURLToPath(new URL('verify.mjs', import.meta.url));
const random = randomFrom(SEED);
const document: KeysDocument = {
  keys: [
    trustedKey(receiptSigner, { role: 'receipt', until: 90 }),
    trustedKey(checkpointSigner, { role: 'checkpoint' }),
  ],
};
const unlimited: KeysDocument = { keys: [trustedKey(receiptSigner), trustedKey(checkpointSigner)] };

/** Returns the verdicts of both verifiers; the completeness of an invalid bundle means nothing. */
function verdictsOf(bytes: Uint8Array, keys: KeysDocument): readonly [string, string] {
  const { valid, complete } = verifyBundle(bytes, new TrustedKeys(keys.keys)).verdict;
  const second = verify(bytes, keys) as { valid: boolean; complete: unknown };
  const shown = (isValid: boolean, completeness: unknown): string =>
    isValid ? `valid, complete: ${completeness}` : 'invalid';
  return [shown(valid, complete), shown(second.valid, second.complete)];
}

/** Returns the scope of an earlier version, or one of a store that lacked something. */
function randomScope(): CheckpointScope | 'none' {
  const gaps = { unsealed: random.below(2), removed: random.below(2) };
  const scope = { isWhole: random.next() < 0.5, asOf: 1 };
  return random.pick<CheckpointScope | 'none'>(['none', scope, { ...scope, gaps }]);
}

/** Makes a random good bundle. */
async function goodBundle(): Promise<ReceiptBundle> {
  const ids = ['a', 'b/ü', 'c c'].slice(0, 1 + random.below(3));
  const sessions = await Promise.all(
    ids.map((id) => sealSession(id, { turns: 1 + random.below(3), isClosed: random.next() < 0.7 })),
  );
  const hasCheckpoint = random.next() < 0.7;
  const dropped = random.next() < 0.2 ? random.pick(sessions.flat()) : undefined;
  return bundleOf(sessions, {
    hasCheckpoint,
    ...(random.next() < 0.4 && { scope: randomScope() }),
    disclosed: random.below(4),
    isIncluded: (receipt) => receipt !== dropped,
  });
}

const values: readonly Json[] = [null, true, 0, 7, -1, 0.5, '', 'x', 'closed', [], {}, 'a'.repeat(64)];

/** Replaces, adds or removes one member somewhere in a value. */
function mutate(source: Json): Json {
  const copy = structuredClone(source) as { [name: string]: Json };
  let holder = copy;
  for (;;) {
    const names = Object.keys(holder);
    const name = random.pick(names.length === 0 ? ['x'] : names);
    const inner = holder[name];
    if (typeof inner === 'object' && inner !== null && Object.keys(inner).length > 0 && random.next() < 0.85) {
      holder = inner as { [name: string]: Json };
      continue;
    }
    const way = random.below(4);
    if (way === 0) delete holder[name];
    else if (way === 1) holder[random.pick(['extra', 'alg', 'key'])] = random.pick(values);
    else holder[name] = typeof inner === 'number' && way === 2 ? inner + 1 : random.pick(values);
    return copy;
  }
}

/** Makes a bad bundle out of a good one, mostly one whose bytes are signed again. */
async function badBundle(good: ReceiptBundle): Promise<Uint8Array> {
  const way = random.below(4);
  if (way === 0) {
    const bytes = Buffer.from(bundleBytes(good));
    const at = random.below(bytes.length);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8));
    return bytes;
  }
  if (way === 1) return Buffer.from(`${canonicalJson(mutate(good as unknown as Json))}\n`);
  const at = random.below(good.receipts.length);
  const receipts = await Promise.all(
    good.receipts.map(async ({ envelope }, i) => {
      if (i !== at) return { envelope };
      const statement = JSON.parse(Buffer.from(envelope.payload, 'base64').toString()) as {
        predicate: ReceiptPredicate;
      };
      const changed =
        way === 2
          ? mutate(statement as unknown as Json)
          : { ...statement, predicate: mutate(statement.predicate as unknown as Json) };
      return { envelope: await createEnvelope(Buffer.from(canonicalJson(changed as Json)), [receiptSigner]) };
    }),
  );
  return Buffer.from(`${canonicalJson({ format: good.format, receipts } as unknown as Json)}\n`);
}

verifies(
  'receipt.second-verifier',
  'it agrees with ours about 100 good and 400 bad bundles',
  async () => {
    const differing: string[] = [];
    let invalid = 0;
    for (let i = 0; i < 100; i++) {
      const good = await goodBundle();
      const keys = good.checkpoint === undefined ? unlimited : document;
      const [ours, theirs] = verdictsOf(bundleBytes(good), keys);
      expect(ours, 'a good bundle is refused').toMatch(/^valid/);
      if (ours !== theirs) differing.push(`good ${i}: ${ours} / ${theirs}`);
      for (let j = 0; j < 4; j++) {
        const bad = await badBundle(good);
        const [ourVerdict, theirVerdict] = verdictsOf(bad, unlimited);
        if (ourVerdict === 'invalid') invalid += 1;
        if (ourVerdict !== theirVerdict)
          differing.push(`${ourVerdict} / ${theirVerdict}: ${Buffer.from(bad).toString()}`);
      }
    }
    expect(differing.slice(0, 2), `the verifiers disagree (seed ${SEED})`).toEqual([]);
    expect(invalid).toBeGreaterThan(250);
  },
  300_000,
);

verifies('receipt.second-verifier', 'it is a script of at most 150 lines that imports only crypto and fs', () => {
  const source = readFileSync(script, 'utf8');
  expect(source.trimEnd().split('\n').length).toBeLessThanOrEqual(150);
  expect([...source.matchAll(/from '([^']+)'/g)].map(([, name]) => name)).toEqual(['node:crypto', 'node:fs']);
});

verifies('example.runs', 'the example of a second verifier prints a verdict and exits with its code', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'rondo-receipts-'));
  try {
    const [file, keys] = [join(directory, 'bundle.json'), join(directory, 'keys.json')];
    const bytes = bundleBytes(await bundleOf([await sealSession('a')]));
    writeFileSync(file, bytes);
    writeFileSync(keys, JSON.stringify(unlimited));
    expect(execFileSync(process.execPath, [script, file, keys], { encoding: 'utf8' })).toBe(
      '{"valid":true,"complete":true,"scope":{"asOf":5}}\n',
    );
    writeFileSync(file, bytes.subarray(1));
    expect(() => execFileSync(process.execPath, [script, file, keys])).toThrow(expect.objectContaining({ status: 3 }));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
