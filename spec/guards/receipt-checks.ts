// Checks of receipts: each holds on the intact library and fails when its guard is broken.

import { deepStrictEqual, ok, rejects, strictEqual, throws } from 'node:assert';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeBase64 } from '../../src/base/base64.js';
import type { CheckpointSession, ReceiptBundle, ReceiptPredicate, TrustedKey } from '../../src/protocol/receipt.js';
import {
  bundleOf,
  checkpointSigner,
  receiptSigner,
  type SealedReceipt,
  sealSession,
  testSigner,
  trustedKey,
} from '../support/receipt-fixture.js';
import type { LibraryParts } from './library.js';

export const receiptParts: LibraryParts = [
  'base/base64.js',
  'base/document-shape.js',
  'base/ed25519.js',
  'base/merkle.js',
  'base/trusted-keys.js',
  'json/i-json.js',
  'json/strict-json.js',
  'views/receipt/bundle.js',
  'views/receipt/checkpoint.js',
  'views/receipt/verify-bundle.js',
  'views/receipt/verify-turn-entries.js',
  'adapters/keys/index.js',
  'adapters/keys/private-key-file.js',
];

type ReceiptLibrary = typeof import('../../src/base/base64.js') &
  typeof import('../../src/base/document-shape.js') &
  typeof import('../../src/base/ed25519.js') &
  typeof import('../../src/base/merkle.js') &
  typeof import('../../src/base/trusted-keys.js') &
  typeof import('../../src/json/i-json.js') &
  typeof import('../../src/json/strict-json.js') &
  typeof import('../../src/views/receipt/bundle.js') &
  typeof import('../../src/views/receipt/checkpoint.js') &
  typeof import('../../src/views/receipt/verify-bundle.js') &
  typeof import('../../src/views/receipt/verify-turn-entries.js') &
  typeof import('../../src/adapters/keys/index.js') &
  typeof import('../../src/adapters/keys/private-key-file.js');

type ReceiptCheck = (library: ReceiptLibrary) => Promise<void>;

const receiptKey = (limits: Partial<TrustedKey> = {}): TrustedKey =>
  trustedKey(receiptSigner, { role: 'receipt', ...limits });
const checkpointKey = trustedKey(checkpointSigner, { role: 'checkpoint' });

/** Returns the verdict about a bundle, under the keys of the tests or others. */
function verdictOf(
  { verifyBundle, TrustedKeys, bundleBytes }: ReceiptLibrary,
  bundle: ReceiptBundle,
  keys: readonly TrustedKey[] = [receiptKey(), checkpointKey],
) {
  return verifyBundle(bundleBytes(bundle), new TrustedKeys(keys)).verdict;
}

/** Asserts that the verdict about a bundle has this reason. */
const refuses =
  (reason: string, bundle: () => Promise<ReceiptBundle>, keys?: readonly TrustedKey[]): ReceiptCheck =>
  async (library) => {
    ok(verdictOf(library, await bundle(), keys).reasons.includes(reason as never), `${reason} is not reported`);
  };

/** Seals a session whose second receipt states something else. */
async function changed(
  change: (predicate: ReceiptPredicate) => object,
  rearrange: (receipts: readonly SealedReceipt[]) => readonly SealedReceipt[] = (receipts) => receipts,
  at = 1,
): Promise<ReceiptBundle> {
  const sealed = await sealSession('a', {
    change: (predicate) =>
      ({ ...predicate, ...(predicate.sequence === at ? change(predicate) : {}) }) as ReceiptPredicate,
  });
  return bundleOf([rearrange(sealed)], { hasCheckpoint: false });
}

const bundles = async (): Promise<ReceiptBundle> => bundleOf([await sealSession('a'), await sealSession('b')]);
const openBundle = async (): Promise<ReceiptBundle> => bundleOf([await sealSession('a')], { hasCheckpoint: false });

/** Asserts that a text is refused by the strict reader. */
const unreadable =
  (text: string): ReceiptCheck =>
  async ({ parseStrictJson }) => {
    throws(() => parseStrictJson(Buffer.from(text)));
  };

const heads = (sessions: readonly CheckpointSession[]) => ({
  origin: 'rondo/test',
  size: 3,
  root: Buffer.alloc(32),
  sessions,
});

/** Compares a changed receipt with the entries that it covers. */
const comparesEntries =
  (change: (predicate: ReceiptPredicate) => object, found: string): ReceiptCheck =>
  async ({ verifyTurnEntries }) => {
    const [sealed] = (await sealSession('a', { turns: 1 })) as [SealedReceipt];
    const { predicate, entries, salt } = sealed;
    deepStrictEqual(verifyTurnEntries(predicate, entries, salt), []);
    deepStrictEqual(verifyTurnEntries({ ...predicate, ...change(predicate) }, entries, salt), [found]);
  };

export const receiptChecks = {
  'base64 with unused bits or white space is refused': async ({ decodeBase64 }) => {
    for (const text of ['QR==', 'QQ= =', 'QQ', 'QQ==\n']) strictEqual(decodeBase64(text), undefined, text);
  },
  'an unknown member of a document is refused': async ({ members, text }) => {
    ok(members({ a: text(9) })({ a: 'x', b: 1 }) !== undefined);
  },
  'a member that occurs twice is refused': unreadable('{"a":1,"a":1}'),
  'a member __proto__ is refused': unreadable('{"__proto__":1}'),
  'a text with half of a surrogate pair is refused': unreadable('"\\ud800"'),
  'a number that does not survive a double is refused': unreadable('9007199254740993'),
  'a text with half of a surrogate pair is not signed': async ({ signableJson }) => {
    throws(() => signableJson({ a: '\ud800' }));
  },
  'a key __proto__ is not signed': async ({ signableJson }) => {
    throws(() => signableJson(JSON.parse('{"__proto__":1}')));
  },
  'a key that is not canonical is refused': async ({ publicKeyOf }) => {
    // The prime plus 3, which stands for the coordinate 3.
    const bytes = Buffer.alloc(32, 0xff);
    bytes[0] = 0xf0;
    bytes[31] = 0x7f;
    throws(() => publicKeyOf(bytes), /canonical/);
  },
  'a key of small order is refused': async ({ publicKeyOf }) => {
    throws(() => publicKeyOf(Buffer.from([1, ...Array(31).fill(0)])), /small order/);
  },
  'a proof that is longer than its tree is refused': async ({ isIncluded, merkleLeaf, merkleRoot, inclusionProof }) => {
    const leaves = ['a', 'b', 'c'].map((each) => merkleLeaf(Buffer.from(each)));
    const root = merkleRoot(leaves);
    ok(isIncluded(leaves[2] as Buffer, 2, 3, inclusionProof(leaves, 2), root));
    const [leaf, extra] = [leaves[0] as Buffer, leaves[1] as Buffer];
    // The root of a tree of one leaf and a further hash, as if the tree had one leaf.
    strictEqual(isIncluded(leaf, 0, 1, [extra], merkleRoot([extra, leaf])), false);
  },
  'a key for checkpoints signs no receipt': refuses('key_role', openBundle, [
    trustedKey(receiptSigner, { role: 'checkpoint' }),
  ]),
  'a revoked key signs nothing': refuses('key_revoked', openBundle, [receiptKey({ revoked: true })]),
  'a key that is limited to a part of the log needs a proof of the position': refuses(
    'key_needs_log_proof',
    openBundle,
    [receiptKey({ from: 0 })],
  ),
  'a key signs nothing before its start': refuses('key_not_yet_valid', bundles, [
    receiptKey({ from: 2 }),
    checkpointKey,
  ]),
  'a key signs nothing after its end': refuses('key_expired', bundles, [receiptKey({ until: 2 }), checkpointKey]),
  'a bundle in another form is refused': async ({ verifyBundle, TrustedKeys, bundleBytes }) => {
    const bytes = Buffer.concat([bundleBytes(await openBundle()), Buffer.from('\n')]);
    ok(!verifyBundle(bytes, new TrustedKeys([receiptKey()])).verdict.valid);
  },
  'an envelope without signatures is refused': async (library) => {
    const bundle = await openBundle();
    // Nothing refers to the last receipt, so only its missing signature is wrong.
    const last = bundle.receipts.length - 1;
    const receipts = bundle.receipts.map((each, index) =>
      index === last ? { ...each, envelope: { ...each.envelope, signatures: [] } } : each,
    );
    ok(!verdictOf(library, { ...bundle, receipts }).valid, 'an unsigned receipt is valid');
  },
  'a signature of another key is refused': refuses('signature_invalid', async () =>
    bundleOf([await sealSession('a', { signers: [testSigner('receipt-1', 9)] })], { hasCheckpoint: false }),
  ),
  'a receipt that is not in the log is refused': refuses('proof_invalid', async () => {
    const [bundle, other] = [
      await bundles(),
      await bundleOf([await sealSession('a', { turns: 1 }), await sealSession('b')]),
    ];
    return { ...bundle, checkpoint: other.checkpoint ?? '' };
  }),
  'a checkpoint with a signature of another key is refused': refuses('checkpoint_signature', async () => {
    const bundle = await bundles();
    return { ...bundle, checkpoint: (bundle.checkpoint ?? '').replace(/^session a 5/m, 'session a 6') };
  }),
  'a session that is listed twice is refused': async ({ checkpointText }) => {
    const session = { id: 'a', count: 1, head: 'a'.repeat(64), isClosed: false };
    checkpointText(heads([session]));
    throws(() => checkpointText(heads([session, session])));
  },
  'a log that does not continue an earlier one is reported': async ({ compareCheckpoints }) => {
    const first = heads([]);
    strictEqual(compareCheckpoints(first, { ...first, size: 4, root: Buffer.alloc(32, 1) }, []), 'split');
  },
  'receipts in another order are refused': refuses('receipts_out_of_order', () =>
    changed(
      () => ({}),
      ([first, second, ...rest]) => [second, first, ...rest] as SealedReceipt[],
    ),
  ),
  'a gap is noticed': refuses('receipts_missing', () =>
    changed(
      () => ({}),
      (list) => list.filter((_, index) => index !== 1),
    ),
  ),
  'a receipt that does not continue the chain is refused': refuses('chain_broken', () =>
    changed(() => ({ previous: 'a'.repeat(64) })),
  ),
  'nothing follows the terminal receipt': refuses('receipt_after_closed', () =>
    changed(() => ({ state: 'closed', final: true, turn: '', effects: [], approvals: [] }), undefined, 2),
  ),
  'nothing follows the final receipt of a turn': refuses('receipt_after_final', () =>
    changed(() => ({ state: 'error', final: true }), undefined, 0),
  ),
  'a session that the checkpoint does not list is refused': refuses('session_not_listed', async () => {
    const [bundle, fewer] = [await bundles(), await bundleOf([await sealSession('a')])];
    return { ...bundle, checkpoint: fewer.checkpoint ?? '' };
  }),
  'a cut tail is noticed with the checkpoint': refuses('receipts_missing', async () => {
    const sealed = await sealSession('a');
    return bundleOf([sealed], { isIncluded: (receipt) => receipt !== sealed.at(-1) });
  }),
  'an effect outside of the entries is refused': refuses('effect_leaf', () =>
    changed(({ effects }) => ({ effects: effects.map((each) => ({ ...each, end: 7 })) })),
  ),
  'a denied effect that was executed is refused': refuses('denied_effect_executed', () =>
    changed(({ approvals }) => ({ approvals: approvals.map((each) => ({ ...each, approved: false })) })),
  ),
  'an effect with other arguments than approved is refused': refuses('arguments_mismatch', () =>
    changed(({ effects }) => ({ effects: effects.map((each) => ({ ...each, arguments: 'b'.repeat(64) })) })),
  ),
  'a disclosed entry that is not in its receipt is refused': refuses('entry_not_in_receipt', async () => {
    const bundle = await bundleOf([await sealSession('a')], { disclosed: 1 });
    return { ...bundle, entries: (bundle.entries ?? []).map((each) => ({ ...each, entry: `${each.entry} ` })) };
  }),
  'a receipt about other entries is noticed': comparesEntries(
    ({ journal }) => ({ journal: { ...journal, root: 'a'.repeat(64) } }),
    'root_mismatch',
  ),
  'a receipt about another loop is noticed': comparesEntries(
    ({ loop }) => ({ loop: { ...loop, definition: 'other' } }),
    'loop_mismatch',
  ),
  'a receipt without an effect of the journal is noticed': comparesEntries(() => ({ effects: [] }), 'effects_mismatch'),
  'a signer that is configured in part is refused': async ({ signerFromEnv }) => {
    const seed = encodeBase64(Buffer.alloc(32, 1));
    const whole = {
      RUNX_RECEIPT_SIGN_KID: 'k',
      RUNX_RECEIPT_SIGN_ED25519_SEED_BASE64: seed,
      RUNX_RECEIPT_SIGN_ISSUER_TYPE: 'ci',
    };
    ok(signerFromEnv(whole));
    throws(() => signerFromEnv({ ...whole, RUNX_RECEIPT_SIGN_KID: undefined }), /not set/);
  },
  'a key file that others can read is refused': async ({ writePrivateKey, readPrivateKey }) => {
    const directory = mkdtempSync(join(tmpdir(), 'rondo-guard-'));
    try {
      const path = join(directory, 'a.key');
      await writePrivateKey(path, Buffer.alloc(32, 1));
      await readPrivateKey(path);
      chmodSync(path, 0o644);
      await rejects(readPrivateKey(path), /read by others/);
    } finally {
      rmSync(directory, { recursive: true });
    }
  },
} as const satisfies { readonly [promise: string]: ReceiptCheck };
