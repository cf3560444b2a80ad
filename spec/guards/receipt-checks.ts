// Checks of receipts: each holds on the intact library and fails when its guard is broken. Documents are made by the
// intact library, and verified by the one that is checked.

import { deepStrictEqual, ok, rejects, strictEqual, throws } from 'node:assert';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { canonicalJson } from '../../src/json/canonical.js';
import type { Json, JsonObject } from '../../src/protocol/json.js';
import type { ReceiptBundle, ReceiptPredicate, TrustedKey } from '../../src/protocol/receipt.js';
import { envelopeHash } from '../../src/views/receipt/envelope.js';
import { toRunxReceipt } from '../../src/views/receipt/runx/export-runx.js';
import { runxDigestOf, runxIdOf } from '../../src/views/receipt/runx/runx-receipt.js';
import {
  bundleOf,
  checkpointSigner,
  receiptSigner,
  type SealedReceipt,
  sealHostedTurns,
  sealSession,
  testSigner,
  trustedKey,
} from '../support/receipt-fixture.js';
import type { LibraryParts } from './library.js';

export const receiptParts: LibraryParts = [
  'views/receipt/verify-bundle.js',
  'views/receipt/verify-turn-entries.js',
  'views/receipt/checkpoint.js',
  'views/receipt/runx/verify-runx.js',
  'adapters/keys/index.js',
  'base/trusted-keys.js',
  'base/merkle.js',
  'base/ed25519.js',
  'base/base64.js',
  'json/i-json.js',
  'json/strict-json.js',
];

type ReceiptLibrary = typeof import('../../src/views/receipt/verify-bundle.js') &
  typeof import('../../src/views/receipt/verify-turn-entries.js') &
  typeof import('../../src/views/receipt/checkpoint.js') &
  typeof import('../../src/views/receipt/runx/verify-runx.js') &
  typeof import('../../src/adapters/keys/index.js') &
  typeof import('../../src/base/trusted-keys.js') &
  typeof import('../../src/base/merkle.js') &
  typeof import('../../src/base/ed25519.js') &
  typeof import('../../src/base/base64.js') &
  typeof import('../../src/json/i-json.js') &
  typeof import('../../src/json/strict-json.js');

type ReceiptCheck = (library: ReceiptLibrary) => Promise<void>;

const KEYS = [trustedKey(receiptSigner), trustedKey(checkpointSigner)];
const toBytes = (bundle: ReceiptBundle): Buffer => Buffer.from(`${canonicalJson(bundle as unknown as Json)}\n`);

/** Asserts that the verdict about a bundle has exactly these reasons. */
function assertReasons(
  library: ReceiptLibrary,
  bytes: Uint8Array,
  reasons: readonly string[],
  keys: readonly TrustedKey[] = KEYS,
): void {
  const { verdict } = library.verifyBundle(bytes, new library.TrustedKeys(keys));
  deepStrictEqual(verdict.reasons, reasons);
}

/** A check that a session whose receipts say something else gets these reasons. */
function changed(
  reasons: readonly string[],
  change: (predicate: ReceiptPredicate) => object,
  rearrange = (list: readonly SealedReceipt[]): readonly SealedReceipt[] => list,
): ReceiptCheck {
  return async (library) => {
    const sealed = await sealSession('a', { change: (each) => ({ ...each, ...change(each) }) as ReceiptPredicate });
    assertReasons(library, toBytes(await bundleOf([rearrange(sealed)], { hasCheckpoint: false })), reasons);
  };
}

/** A check that a bundle with a checkpoint, changed after it was made, gets these reasons. */
function altered(
  reasons: readonly string[],
  alter: (bundle: ReceiptBundle) => object,
  keys?: readonly TrustedKey[],
): ReceiptCheck {
  return async (library) => {
    const bundle = await bundleOf([await sealSession('a')], { disclosed: 2 });
    assertReasons(library, toBytes({ ...bundle, ...alter(bundle) }), reasons, keys);
  };
}

/** A check of a key with limits, at the position of the receipts in the log. */
const limited = (reason: string, limits: Partial<TrustedKey>): ReceiptCheck =>
  altered([reason], () => ({}), [trustedKey(receiptSigner, limits), trustedKey(checkpointSigner)]);

const refusedText =
  (text: string): ReceiptCheck =>
  async (library) => {
    throws(() => library.parseStrictJson(Buffer.from(text)), /refused/);
  };

const notCanonical =
  (text: string): ReceiptCheck =>
  async (library) => {
    throws(() => library.parseCanonicalJson(Buffer.from(text), {}), /refused/);
  };

const inSecond =
  (change: (predicate: ReceiptPredicate) => object) =>
  (predicate: ReceiptPredicate): object =>
    predicate.sequence === 1 ? change(predicate) : {};

/** The place of a turn in a hosted loop. The second one names a receipt that the first does not have. */
const hostedTurn = (turn: 1 | 2): object => ({
  hosted: { head: 'a'.repeat(64), loop: 'l', turn, ...(turn === 2 && { previous: `sha256:${'b'.repeat(64)}` }) },
});

const closed = { state: 'closed', final: true, turn: '', effects: [], approvals: [] };

/** The checks of documents and keys. */
const documentChecks = {
  'base64 has one form': async (library) => strictEqual(library.decodeBase64('AB=='), undefined),
  'a key of small order is not trusted': async (library) => {
    throws(() => library.publicKeyOf(Buffer.alloc(32)), /small order/);
  },
  'a key in another than its canonical form is not trusted': async (library) => {
    const bytes = Buffer.alloc(32, 255);
    bytes[0] = 0xf0;
    throws(() => library.publicKeyOf(bytes), /canonical form/);
  },
  'a proof is not longer than its tree is high': async (library) => {
    const [left, right] = [library.merkleLeaf('a'), library.merkleLeaf('b')];
    strictEqual(library.isIncluded(right, 0, 1, [left], library.merkleRoot([left, right])), false);
  },
  'a text with half a surrogate pair is not signed': async (library) => {
    throws(() => library.signableJson('\ud800'), /cannot be signed/);
  },
  'a member __proto__ is not signed': async (library) => {
    throws(() => library.signableJson(JSON.parse('{"__proto__":1}')), /cannot be signed/);
  },
  'a number that a double does not hold is refused': refusedText('9007199254740993'),
  'half of a surrogate pair is refused': refusedText('"\\ud800"'),
  'a member that occurs twice is refused': refusedText('{"a":1,"a":1}'),
  'a member __proto__ is refused': refusedText('{"__proto__":1}'),
  'a canonical document has no white space': notCanonical('{"a": 1}'),
  'a canonical document has its members in order': notCanonical('{"b":1,"a":1}'),
  'a canonical document has canonical numbers': notCanonical('1.0'),
  'a canonical document has canonical texts': notCanonical('"\\u0041"'),
  'a key of another role does not count': limited('key_role', { role: 'checkpoint' }),
  'a revoked key does not count': async (library) => {
    const bundle = await bundleOf([await sealSession('a')], { hasCheckpoint: false });
    assertReasons(library, toBytes(bundle), ['key_revoked'], [trustedKey(receiptSigner, { revoked: true })]);
  },
  'a key does not count before its range': limited('key_not_yet_valid', { from: 3 }),
  'a key does not count after its range': limited('key_expired', { until: 3 }),
  'a key with a range counts only at a proved position': async (library) => {
    const bundle = await bundleOf([await sealSession('a')], { hasCheckpoint: false });
    assertReasons(library, toBytes(bundle), ['key_needs_log_proof'], [trustedKey(receiptSigner, { until: 99 })]);
  },
  'a private key that others can read is refused': async (library) => {
    const directory = mkdtempSync(join(tmpdir(), 'rondo-keys-'));
    try {
      const keys = new library.KeyDirectory(directory);
      const { kid } = await keys.signer('receipt');
      chmodSync(join(directory, `${kid}.key`), 0o640);
      await rejects(keys.signer('receipt'), /read by others/);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  },
  'a signer that is described in part is refused': async (library) => {
    throws(() => library.signerFromEnv({ RUNX_RECEIPT_SIGN_KID: 'k' }), /not set/);
  },
} as const satisfies Record<string, ReceiptCheck>;

/** The checks of bundles. */
const bundleChecks = {
  'an unknown member is refused': altered(['bundle_malformed'], () => ({ extra: 1 })),
  'a missing member is refused': altered(['bundle_malformed'], ({ receipts }) => ({
    receipts: receipts.map(({ envelope: { payloadType: _, ...envelope }, ...rest }) => ({ ...rest, envelope })),
  })),
  'an empty list of entries is refused': altered(['bundle_malformed'], () => ({ entries: [] })),
  'a bundle of wrong receipts is not read to its end': async (library) => {
    const bundle = await bundleOf(await Promise.all(Array.from({ length: 50 }, (_, i) => sealSession(`s${1000 + i}`))));
    const { verdict } = library.verifyBundle(toBytes(bundle), new library.TrustedKeys([trustedKey(checkpointSigner)]));
    deepStrictEqual([verdict.valid, verdict.subject.receipts], [false, 100]);
  },
  'an envelope without a signature is refused': altered(['bundle_malformed'], ({ receipts }) => ({
    receipts: receipts.map((each) => ({ ...each, envelope: { ...each.envelope, signatures: [] } })),
  })),
  'the signature of a checkpoint is verified': altered(['checkpoint_signature'], ({ checkpoint = '' }) => ({
    checkpoint: checkpoint.replace('rondo/test', 'rondo/tess'),
  })),
  'the signature of a receipt is verified': async (library) => {
    const forger = { ...testSigner('x', 7), kid: receiptSigner.kid };
    const bundle = await bundleOf([await sealSession('a', { signers: [forger] })]);
    assertReasons(library, toBytes(bundle), ['signature_invalid']);
  },
  'the position of a receipt in the log is proved': altered(['proof_invalid'], ({ receipts }) => ({
    receipts: receipts.map((each) => ({ ...each, proof: { index: each.proof?.index ?? 0, size: 5, hashes: [] } })),
  })),
  'a checkpoint lists a session once': async (library) => {
    const line = `session a 5 ${'a'.repeat(64)} open\n`;
    const text = `rondo/test\n0\n${Buffer.alloc(32).toString('base64')}\n${line}${line}`;
    const keyed = await library.createCheckpoint(
      { origin: 'rondo/test', size: 0, root: '0'.repeat(64), sessions: [] },
      [checkpointSigner],
    );
    const keyHash = Buffer.from(keyed.split(' ').at(-1)?.trim() ?? '', 'base64').subarray(0, 4);
    const signature = Buffer.concat([keyHash, await checkpointSigner.sign(Buffer.from(text))]).toString('base64');
    const note = `${text}\n— ${checkpointSigner.kid} ${signature}\n`;
    deepStrictEqual(library.verifyCheckpoint(note, new library.TrustedKeys(KEYS)), { problem: 'checkpoint_malformed' });
  },
  'two views of a log are reported': async (library) => {
    const state = (content: string) => ({
      origin: 'rondo/a',
      size: 1,
      root: library.merkleLeaf(content),
      sessions: [],
    });
    strictEqual(library.compareCheckpoints(state('a'), state('b'), []), 'split');
  },
  'a disclosed entry is one of its receipt': altered(['entry_not_in_receipt'], ({ entries = [] }) => ({
    entries: entries.slice(0, 1).map((each) => ({ ...each, entry: '{}' })),
  })),
  'a session that the checkpoint does not list is refused': async (library) => {
    const [a, b] = await Promise.all([sealSession('a'), sealSession('b')]);
    const both = await bundleOf([a, b]);
    const { checkpoint = '' } = await bundleOf([a]);
    assertReasons(library, toBytes({ ...both, checkpoint }), ['proof_invalid', 'session_not_listed']);
  },
  'a cut tail is noticed': altered(['receipts_missing'], ({ receipts }) => ({ receipts: receipts.slice(0, -1) })),
  'receipts are in order': async (library) => {
    const [a, b] = (await sealSession('a')) as [SealedReceipt, SealedReceipt];
    const bytes = toBytes(await bundleOf([[b, a]], { hasCheckpoint: false }));
    const { verdict } = library.verifyBundle(bytes, new library.TrustedKeys(KEYS));
    ok(verdict.reasons.includes('receipts_out_of_order'));
  },
  'a gap is noticed': changed(
    ['receipts_missing'],
    () => ({}),
    (list) => list.filter((_, i) => i !== 1),
  ),
  'receipts are chained': changed(
    ['chain_broken'],
    inSecond(() => ({ previous: 'a'.repeat(64) })),
  ),
  'turns of a hosted loop are chained': changed(['chain_broken'], ({ sequence, turn }) =>
    turn === '' ? {} : hostedTurn(sequence < 2 ? 1 : 2),
  ),
  'a missing turn of a hosted loop is noticed': async (library) => {
    const [first = [], , third = []] = await sealHostedTurns(3);
    const bundle = await bundleOf([first, third], { hasCheckpoint: false });
    assertReasons(library, toBytes(bundle), ['receipts_missing']);
  },
  'a turn of a hosted loop has one session': changed(['chain_broken'], ({ turn }) =>
    turn === '' ? {} : hostedTurn(1),
  ),
  'nothing follows the end of a session': changed(['receipt_after_closed'], ({ sequence }) =>
    sequence === 2 ? closed : {},
  ),
  'nothing follows the end of a turn': changed(['receipt_after_final'], ({ sequence }) =>
    sequence === 0 ? { state: 'error', final: true } : {},
  ),
  'an effect refers to entries of its receipt': changed(
    ['effect_leaf'],
    inSecond(({ effects }) => ({ effects: effects.map((each) => ({ ...each, end: 7 })) })),
  ),
  'a denied effect was not started': changed(
    ['denied_effect_executed'],
    inSecond(({ approvals }) => ({ approvals: approvals.map((each) => ({ ...each, approved: false })) })),
  ),
  'the executed arguments are the approved ones': changed(
    ['arguments_mismatch'],
    inSecond(({ approvals }) => ({ approvals: approvals.map((each) => ({ ...each, arguments: 'b'.repeat(64) })) })),
  ),
} as const satisfies Record<string, ReceiptCheck>;

/** A check that a receipt that differs from the journal is refused. */
const compared =
  (mismatch: string, change: (predicate: ReceiptPredicate) => object): ReceiptCheck =>
  async (library) => {
    const sealed = await sealSession('a');
    const { predicate, salt } = sealed[1] as SealedReceipt;
    const entries = sealed.flatMap((receipt) => receipt.entries);
    deepStrictEqual(
      library.verifyTurnEntries({ ...predicate, ...change(predicate) } as ReceiptPredicate, entries, salt),
      [mismatch],
    );
  };

const runxSigner = { ...testSigner('runx-demo-key', 0x42), issuerType: 'hosted' } as const;

/** A check of a receipt of runx that is changed and signed again. */
const runx =
  (
    reasons: readonly string[],
    change: (receipt: JsonObject) => object,
    value?: (digest: string) => string,
  ): ReceiptCheck =>
  async (library) => {
    const { predicate, envelope } = (await sealSession('a'))[1] as SealedReceipt;
    const original = await toRunxReceipt({ predicate, hash: envelopeHash(envelope) }, runxSigner);
    const edited = { ...original, ...change(original) } as JsonObject;
    const identified = { ...edited, id: runxIdOf(edited) };
    const digest = runxDigestOf(identified);
    const signed = `base64:${Buffer.from(await runxSigner.sign(Buffer.from(digest))).toString('base64url')}`;
    const signature = { alg: 'Ed25519', value: value?.(digest) ?? signed };
    const verdict = library.verifyRunx(
      Buffer.from(JSON.stringify({ ...identified, digest, signature })),
      new library.TrustedKeys([trustedKey(runxSigner)]),
    );
    deepStrictEqual(verdict.reasons, reasons);
    ok(!verdict.valid);
  };

/** All checks, by their promise. */
export const receiptChecks = {
  ...documentChecks,
  ...bundleChecks,
  'the root of a receipt is that of the entries': compared('root_mismatch', ({ journal }) => ({
    journal: { ...journal, root: 'c'.repeat(64) },
  })),
  'the definition of a receipt is that of the entries': compared('loop_mismatch', ({ loop }) => ({
    loop: { ...loop, definition: 'd2' },
  })),
  'the effects of a receipt are those of the entries': compared('effects_mismatch', () => ({ effects: [] })),
  'a signature of local development needs its option': runx(
    ['signature_unsupported_issuer'],
    ({ issuer }) => ({ issuer: { ...(issuer as JsonObject), type: 'local' } }),
    (digest) => `sig:${digest}`,
  ),
  'only a hosted or ci issuer signs receipts of runx': runx(['signature_unsupported_issuer'], ({ issuer }) => ({
    issuer: { ...(issuer as JsonObject), type: 'verifier' },
  })),
  'the signature of a receipt of runx is verified': runx(
    ['signature_invalid'],
    () => ({}),
    () => `base64:${Buffer.alloc(64).toString('base64url')}`,
  ),
} as const satisfies Record<string, ReceiptCheck>;
