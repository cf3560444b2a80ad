// Trust: a signature counts only under a key that the verifier chose, in its role and its range of the log.

import { generateKeyPairSync, sign } from 'node:crypto';
import { expect } from 'vitest';
import { TrustedKeys } from '../../src/base/trusted-keys.js';
import { canonicalJson } from '../../src/json/canonical.js';
import type { Json } from '../../src/protocol/json.js';
import type { NoteSigner, ReceiptBundle, TrustedKey } from '../../src/protocol/receipt.js';
import { bundleBytes } from '../../src/views/receipt/bundle.js';
import { createEnvelope, signedBytesOf } from '../../src/views/receipt/envelope.js';
import { verifyBundle } from '../../src/views/receipt/verify-bundle.js';
import {
  bundleOf,
  checkpointSigner,
  receiptSigner,
  sealSession,
  testSigner,
  trustedKey,
} from '../support/receipt-fixture.js';
import { verifies } from '../verifies.js';

const other = testSigner('other', 9);
const [receiptKey, checkpointKey] = [trustedKey(receiptSigner), trustedKey(checkpointSigner)];
const sessions = [await sealSession('a', { turns: 3 })];
const bundle = await bundleOf(sessions);

const reasonsOf = (changed: ReceiptBundle, keys: readonly TrustedKey[]): readonly string[] => {
  const { verdict, receipts } = verifyBundle(
    Buffer.from(`${canonicalJson(changed as unknown as Json)}\n`),
    new TrustedKeys(keys),
  );
  expect([verdict.valid, receipts.length > 0]).toEqual([verdict.reasons.length === 0, verdict.valid]);
  return verdict.reasons;
};

interface Case {
  readonly title: string;
  readonly reason: string;
  readonly keys?: readonly TrustedKey[];
  readonly bundle?: ReceiptBundle;
}

/** Changes the envelope of one receipt after it was signed. */
function withEnvelope(at: number, change: (envelope: Record<string, unknown>) => object): ReceiptBundle {
  const receipts = bundle.receipts.map(({ envelope }, i) => ({
    envelope: i === at ? { ...envelope, ...change(envelope as unknown as Record<string, unknown>) } : envelope,
  }));
  return { format: bundle.format, receipts } as unknown as ReceiptBundle;
}

const signatureOf = (at: number): { readonly keyid: string; readonly sig: string } =>
  bundle.receipts[at]?.envelope.signatures[0] as { keyid: string; sig: string };

/** Returns the case of an envelope that was changed after it was signed. */
function envelopeCase(
  at: number,
  title: string,
  reason: string,
  change: (envelope: Record<string, unknown>) => object,
  keys = [receiptKey],
): Case {
  return { title, reason, keys, bundle: withEnvelope(at, change) };
}

/** Cases of the members of the envelope at a position, and of several signatures. */
function envelopeCases(at: number): readonly Case[] {
  const { keyid, sig } = signatureOf(at);
  const both = [receiptKey, trustedKey(other)];
  const [good, bad] = [
    { keyid, sig },
    { keyid: 'other', sig },
  ];
  const signatures =
    (...list: readonly object[]) =>
    (): object => ({ signatures: list });
  return [
    envelopeCase(at, 'no signature', 'bundle_malformed', signatures()),
    envelopeCase(at, 'five signatures', 'bundle_malformed', signatures(good, good, good, good, good)),
    envelopeCase(at, 'signatures that are no list', 'bundle_malformed', () => ({ signatures: good })),
    envelopeCase(at, 'another payload type', 'bundle_malformed', () => ({ payloadType: 'application/json' })),
    envelopeCase(at, 'an algorithm beside the signatures', 'bundle_malformed', () => ({ alg: 'none' })),
    envelopeCase(at, 'a key beside the signatures', 'bundle_malformed', () => ({ publicKey: receiptKey.publicKey })),
    envelopeCase(at, 'the same signature twice', 'signature_duplicate', signatures(good, good)),
    envelopeCase(at, 'a second signature of an unknown key', 'key_unknown', signatures(good, { keyid: 'x', sig })),
    envelopeCase(at, 'a bad second signature', 'signature_invalid', signatures(good, bad), both),
    envelopeCase(at, 'a bad first signature', 'signature_invalid', signatures(bad, good), both),
  ];
}

/** Cases of a single signature at a position. */
function signatureCases(at: number): readonly Case[] {
  const { keyid, sig } = signatureOf(at);
  const signed = (title: string, signature: object, reason = 'bundle_malformed', keys = [receiptKey]): Case =>
    envelopeCase(at, title, reason, () => ({ signatures: [signature] }), keys);
  const invalid = (title: string, bytes: Uint8Array | string): Case => {
    const changed = typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('base64');
    return signed(title, { keyid, sig: changed }, 'signature_invalid');
  };
  const payload = Buffer.from(bundle.receipts[at]?.envelope.payload ?? '', 'base64');
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const flipped = Buffer.from(sig, 'base64');
  flipped[at] = (flipped[at] ?? 0) ^ 1;
  return [
    signed('an algorithm in the signature', { keyid, sig, alg: 'none' }),
    signed('the algorithm Ed25519 in the signature', { keyid, sig, alg: 'Ed25519' }),
    signed('a key in the signature', { keyid, sig, key: receiptKey.publicKey }),
    signed('a certificate in the signature', { keyid, sig, cert: 'MIIB' }),
    signed('a signature without key id', { sig }),
    signed('an empty key id', { keyid: '', sig }),
    signed('the key id of another key', { keyid: 'other', sig }, 'signature_invalid', [receiptKey, trustedKey(other)]),
    signed('an unknown key id', { keyid: 'unknown', sig }, 'key_unknown'),
    signed('the public key as key id', { keyid: receiptKey.publicKey, sig }, 'key_unknown'),
    invalid('an empty signature', ''),
    invalid('a signature of zeros', Buffer.alloc(64)),
    invalid('a changed signature', flipped),
    invalid('a signature without padding', sig.replaceAll('=', '')),
    invalid('a signature in base64url', Buffer.from(sig, 'base64').toString('base64url')),
    invalid('a signature of the payload without its type', sign(null, payload, receiptSigner.key.object)),
    invalid(
      'another algorithm',
      sign('sha256', signedBytesOf(payload), { key: privateKey, dsaEncoding: 'ieee-p1363' }),
    ),
    invalid('the signature of another receipt', signatureOf((at + 1) % bundle.receipts.length).sig),
  ];
}

const keyed = (
  title: string,
  reason: string,
  limits: Partial<TrustedKey>,
  checkpointLimits: Partial<TrustedKey> = {},
): Case => ({
  ...{ title, reason },
  keys: [trustedKey(receiptSigner, limits), trustedKey(checkpointSigner, checkpointLimits)],
});
const unproved: ReceiptBundle = {
  format: bundle.format,
  receipts: bundle.receipts.map(({ envelope }) => ({ envelope })),
};
const ranges: readonly Case[] = [0, 1, 2, 3, 4].flatMap((at) => [
  keyed(`a key that is valid from ${at + 1} on`, 'key_not_yet_valid', { from: at + 1 }),
  keyed(`a key that is valid up to ${at}`, 'key_expired', { until: at }),
  keyed(`a key that is revoked at ${at}`, 'key_revoked', { revoked: at }),
  keyed(`a checkpoint key that is revoked at ${at}`, 'key_revoked', {}, { revoked: at }),
  keyed(`a checkpoint key that was valid up to ${at}`, 'key_expired', {}, { until: at }),
  keyed(`a checkpoint key that is valid from ${at + 8}`, 'key_not_yet_valid', {}, { from: at + 8 }),
  { ...keyed(`a key from ${at} without a proved position`, 'key_needs_log_proof', { from: at }), bundle: unproved },
  {
    ...keyed(`a key until ${at + 5} without a proved position`, 'key_needs_log_proof', { until: at + 5 }),
    bundle: unproved,
  },
  {
    ...keyed(`a key revoked at ${at + 5} without a proved position`, 'key_needs_log_proof', { revoked: at + 5 }),
    bundle: unproved,
  },
]);
const roles: readonly Case[] = [
  keyed('a key that is revoked', 'key_revoked', { revoked: true }),
  keyed('a checkpoint key that is revoked', 'key_revoked', {}, { revoked: true }),
  keyed('a checkpoint key that signs receipts', 'key_role', { role: 'checkpoint' }),
  keyed('a receipt key that signs checkpoints', 'key_role', {}, { role: 'receipt' }),
  { title: 'no keys', reason: 'key_unknown', keys: [] },
  { title: 'only the checkpoint key', reason: 'key_unknown', keys: [checkpointKey] },
  { title: 'only the receipt key', reason: 'key_unknown', keys: [receiptKey] },
  {
    title: 'other keys under the same ids',
    reason: 'signature_invalid',
    keys: [{ ...receiptKey, publicKey: trustedKey(other).publicKey }, checkpointKey],
  },
];

/** Payloads of another type, or with what a verifier must not use, that are signed correctly. */
async function signedPayloads(): Promise<readonly Case[]> {
  const payload = Buffer.from(bundle.receipts[0]?.envelope.payload ?? '', 'base64').toString();
  const changes: { readonly [title: string]: (text: string) => string } = {
    'another statement type': (text) => text.replace('in-toto.io/Statement/v1', 'in-toto.io/Statement/v0.1'),
    'another predicate type': (text) => text.replace('urn:rondo:receipt:1', 'urn:rondo:receipt:2'),
    'a key in the predicate': (text) => text.replace('"predicate":{', `"predicate":{"key":"${receiptKey.publicKey}",`),
    'an algorithm in the predicate': (text) => text.replace('"predicate":{', '"predicate":{"alg":"none",'),
    'another subject': (text) => text.replace('"name":"a.0"}]', '"name":"a.1"}]'),
    'another subject digest': (text) => text.replace(/"sha256":"[0-9a-f]{2}/, '"sha256":"zz'),
    'two subjects': (text) => text.replace('"subject":[', '"subject":[{"digest":{"sha256":""},"name":"x"},'),
    'no predicate': () => '{}',
    'a text': () => '"receipt"',
  };
  const cases = Object.entries(changes).map(async ([title, change]): Promise<Case> => {
    const changed = change(payload);
    expect(changed, title).not.toBe(payload);
    const envelope = await createEnvelope(Buffer.from(changed), [receiptSigner]);
    return {
      title,
      reason: 'statement_malformed',
      keys: [receiptKey],
      bundle: { format: bundle.format, receipts: [{ envelope }] },
    };
  });
  return Promise.all(cases);
}

verifies('receipt.trust', 'more than 300 forms of a false signature, key, type or role are refused', async () => {
  // Receipts of one and of two signers, each at every position.
  const positions = bundle.receipts.map((_, at) => at);
  const cases = [
    ...positions.flatMap(envelopeCases),
    ...positions.flatMap(signatureCases),
    ...ranges,
    ...roles,
    ...(await signedPayloads()),
  ];
  const twice: readonly NoteSigner[] = [receiptSigner, other];
  const pairs = await Promise.all(positions.map((at) => pairCases(at, twice)));
  const all = [...cases, ...pairs.flat()];
  expect(all.length).toBeGreaterThanOrEqual(300);
  for (const { title, reason, keys = [receiptKey, checkpointKey], bundle: changed = bundle } of all)
    expect(reasonsOf(changed, keys), title).toContain(reason);
});

/** Receipts with two signatures, of which one does not count. */
async function pairCases(at: number, signers: readonly NoteSigner[]): Promise<readonly Case[]> {
  const sealed = await sealSession('a', { turns: 3, signers });
  const both = await bundleOf([sealed]);
  const limits: readonly [string, Partial<TrustedKey> | undefined][] = [
    ['key_unknown', undefined],
    ['key_revoked', { revoked: true }],
    ['key_revoked', { revoked: at }],
    ['key_expired', { until: at }],
    ['key_not_yet_valid', { from: at + 1 }],
    ['key_role', { role: 'checkpoint' }],
  ];
  const [first, second] = signers as [NoteSigner, NoteSigner];
  return limits.flatMap(([reason, limit]) =>
    [[first, second] as const, [second, first] as const].map(([good, bad]): Case => {
      const limited = limit === undefined ? [] : [trustedKey(bad, limit)];
      return {
        title: `two signatures, one ${reason}`,
        reason,
        bundle: both,
        keys: [trustedKey(good), ...limited, checkpointKey],
      };
    }),
  );
}

verifies('receipt.trust', 'a receipt counts under rotated keys at its proved position in the log', async () => {
  const sealed = await sealSession('a', { signers: [receiptSigner, other] });
  const both = await bundleOf([sealed]);
  expect(reasonsOf(both, [receiptKey, trustedKey(other), checkpointKey])).toEqual([]);
  expect(reasonsOf(bundle, [trustedKey(receiptSigner, { from: 0, until: 7, revoked: 7 }), checkpointKey])).toEqual([]);
  const rotatedCheckpoint = trustedKey(checkpointSigner, { until: 7 });
  expect(reasonsOf(bundle, [receiptKey, rotatedCheckpoint])).toEqual([]);
});

verifies('receipt.keys', 'a keys file with an untrustworthy, malformed or repeated key is refused', () => {
  const small = Buffer.alloc(32);
  small[0] = 1;
  const entry = (more: object): unknown => ({ keys: [{ ...receiptKey, ...more }] });
  const wrong: readonly unknown[] = [
    ...[null, [], {}, { keys: {} }, { keys: [1] }, { keys: [], more: 1 }, entry({ alg: 'Ed25519' })],
    ...[entry({ publicKey: small.toString('base64') }), entry({ publicKey: Buffer.alloc(32, 255).toString('base64') })],
    ...[entry({ publicKey: 'AAAA' }), entry({ publicKey: receiptKey.publicKey.slice(0, -1) }), entry({ kid: 'a b' })],
    ...[
      entry({ role: 'admin' }),
      entry({ from: -1 }),
      entry({ until: 1.5 }),
      entry({ revoked: false }),
      entry({ from: '2026' }),
    ],
    ...[{ keys: [receiptKey, receiptKey] }, { keys: [receiptKey, { ...receiptKey, kid: 'second' }] }],
    ...[{ keys: [receiptKey, { ...trustedKey(other), kid: receiptKey.kid }] }],
    ...[
      { kid: 'k', public_key_base64: 'AAAA' },
      { kid: 'k', public_key_base64: receiptKey.publicKey, more: 1 },
    ],
  ];
  for (const document of wrong)
    expect(() => TrustedKeys.parse(document), JSON.stringify(document)).toThrow(
      expect.objectContaining({ code: 'KEYS_UNUSABLE' }),
    );
  const runx = TrustedKeys.parse({ kid: 'receipt-1', public_key_base64: receiptKey.publicKey });
  expect(runx.forReceipt('receipt-1', undefined)).toMatchObject({ bytes: receiptSigner.publicKey });
});

verifies('receipt.time', 'no time, of a receipt or of this machine, changes a verdict', async () => {
  const times: readonly ((sequence: number) => string)[] = [
    () => '2016-01-01T00:00:00.000Z',
    () => '2036-12-31T23:59:59.999Z',
    (sequence) => `20${40 - sequence}-01-01T00:00:00Z`,
    () => '+275760-09-13T00:00:00.000Z',
    () => '1970-01-01T00:00:00Z',
  ];
  for (const at of times) {
    const timed = await bundleOf([await sealSession('a', { at })]);
    expect(reasonsOf(timed, [receiptKey, checkpointKey])).toEqual([]);
    expect(reasonsOf(timed, [trustedKey(receiptSigner, { until: 4 }), checkpointKey])).toEqual(['key_expired']);
    const [head, ...tail] = timed.receipts;
    if (head === undefined) throw new Error('no receipts');
    const text = Buffer.from(head.envelope.payload, 'base64').toString();
    const later = Buffer.from(text.replace(/"at":"[^"]*"/, '"at":"2026-05-05T00:00:00Z"')).toString('base64');
    const changed = { ...timed, receipts: [{ ...head, envelope: { ...head.envelope, payload: later } }, ...tail] };
    expect(reasonsOf(changed, [receiptKey, checkpointKey])).toContain('signature_invalid');
  }
});

verifies('receipt.time', 'a verdict is the same whatever the clock says', () => {
  const { now } = Date;
  const tenYearsMs = 10 * 365 * 86_400_000;
  const verdicts = [-tenYearsMs, 0, tenYearsMs].map((shift) => {
    Date.now = () => now() + shift;
    try {
      return verifyBundle(bundleBytes(bundle), new TrustedKeys([receiptKey, checkpointKey])).verdict;
    } finally {
      Date.now = now;
    }
  });
  expect(new Set(verdicts.map((verdict) => JSON.stringify(verdict))).size).toBe(1);
});
