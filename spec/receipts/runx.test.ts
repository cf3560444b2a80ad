// Receipts of runx: verified by the rules of runx, and exported from ours.

import { expect } from 'vitest';
import { TrustedKeys } from '../../src/base/trusted-keys.js';
import { canonicalJson } from '../../src/json/canonical.js';
import type { Json, JsonObject } from '../../src/protocol/json.js';
import type { ReceiptVerdict } from '../../src/protocol/receipt.js';
import { envelopeHash } from '../../src/views/receipt/envelope.js';
import { runxReceiptBytes, toRunxReceipt } from '../../src/views/receipt/runx/export-runx.js';
import { runxDigestOf, runxIdOf } from '../../src/views/receipt/runx/runx-receipt.js';
import { isRunxReceipt, type RunxVerifyOptions, verifyRunx } from '../../src/views/receipt/runx/verify-runx.js';
import { sealSession, testSigner, trustedKey } from '../support/receipt-fixture.js';
import { verifies } from '../verifies.js';

/** The public identity of the examples of runx. */
const signer = { ...testSigner('runx-demo-key', 0x42), issuerType: 'hosted' } as const;
const keys = TrustedKeys.parse({ kid: signer.kid, public_key_base64: trustedKey(signer).publicKey });
const sealed = await sealSession('a');
const exported = await Promise.all(
  sealed.map(({ predicate, envelope }) => toRunxReceipt({ predicate, hash: envelopeHash(envelope) }, signer)),
);
const receipt = exported[1] as JsonObject;

const verify = (document: Json, options?: RunxVerifyOptions, trusted = keys): ReceiptVerdict =>
  verifyRunx(Buffer.from(JSON.stringify(document, undefined, 2)), trusted, options);

/** Signs a changed receipt again. */
async function signedAgain(changed: JsonObject): Promise<JsonObject> {
  const identified = { ...changed, id: runxIdOf(changed) };
  const digest = runxDigestOf(identified);
  const value = `base64:${Buffer.from(await signer.sign(Buffer.from(digest))).toString('base64url')}`;
  return { ...identified, digest, signature: { alg: 'Ed25519', value } };
}

/** Returns a copy in which the member at a path is replaced. */
function replaced(source: JsonObject, path: string, value: Json): JsonObject {
  const copy = structuredClone(source) as { [name: string]: Json };
  const names = path.split('.');
  const last = names.pop() as string;
  const holder = names.reduce((found, name) => found[name] as { [name: string]: Json }, copy);
  holder[last] = value;
  return copy;
}

verifies('receipt.runx', 'every receipt that is exported is valid by the rules of runx', () => {
  for (const each of exported) {
    const verdict = verifyRunx(runxReceiptBytes(each), keys);
    expect(verdict).toMatchObject({ valid: true, complete: 'unknown', kind: 'runx', reasons: [] });
    expect(isRunxReceipt(runxReceiptBytes(each))).toBe(true);
  }
  expect(receipt).toMatchObject({ schema: 'runx.receipt.v1', canonicalization: 'runx.receipt.c14n.v1' });
  expect(receipt.acts).toMatchObject([{ id: 'a.0/1/0', form: 'observation', closure: { disposition: 'closed' } }]);
  expect(receipt.decisions).toMatchObject([{ choice: 'open', selected_act_id: 'a.0/1/0' }]);
  expect(exported.map((each) => (each.seal as JsonObject).disposition)).toEqual([
    'deferred',
    'closed',
    'deferred',
    'closed',
    'closed',
  ]);
});

verifies('receipt.runx', 'the digest leaves out the unsigned members, and the id the lineage as well', () => {
  expect(verify({ ...receipt, metadata: { note: 'local' } }).valid).toBe(true);
  const linked = replaced(receipt, 'lineage.children', [{ type: 'receipt', uri: 'runx:receipt:x' }]);
  expect(runxIdOf(linked)).toBe(receipt.id);
  expect(runxDigestOf(linked)).not.toBe(receipt.digest);
  expect(canonicalJson({ b: 1e21, a: [5e-324, -0] })).toBe('{"a":[5e-324,0],"b":1e+21}');
});

verifies('receipt.runx', 'each finding has the code of runx', async () => {
  const findings: readonly [code: string, document: Json][] = [
    ['seal_digest_mismatch', replaced(receipt, 'seal.summary', 'changed')],
    ['seal_digest_mismatch', replaced(receipt, 'id', 'sha256:0')],
    ['signature_invalid', replaced(receipt, 'signature.value', `base64:${Buffer.alloc(64).toString('base64url')}`)],
    ['signature_malformed', replaced(receipt, 'signature.value', 'base64:AAAA')],
    ['signature_malformed', replaced(receipt, 'signature.value', (receipt.digest as string).replace('sha256', 'sig'))],
    ['signature_unsupported_algorithm', replaced(receipt, 'signature.alg', 'none')],
    ['signature_key_missing', replaced(receipt, 'issuer.kid', 'unknown')],
    ['signature_key_hash_mismatch', replaced(receipt, 'issuer.public_key_sha256', 'sha256:00')],
    ['signature_unsupported_issuer', replaced(receipt, 'issuer.type', 'verifier')],
    ['signature_unsupported_issuer', replaced(receipt, 'issuer.type', 'local')],
    ['empty_envelope_field', await signedAgain(replaced(receipt, 'created_at', ''))],
    ['hash_commitment_invalid', await signedAgain(replaced(receipt, 'idempotency.intent_key', 'md5:0'))],
    ['hash_commitment_invalid', await signedAgain(replaced(receipt, 'subject.commitments.0.value', 'x'))],
    ['authority_attenuation_invalid', await signedAgain(replaced(receipt, 'authority.attenuation.subset_proof', {}))],
    [
      'authority_attenuation_invalid',
      await signedAgain(replaced(receipt, 'authority.attenuation.parent_authority_ref', { type: 'grant', uri: 'x' })),
    ],
    [
      'child_receipt_ref_invalid',
      await signedAgain(replaced(receipt, 'lineage.children', [{ type: 'act', uri: 'x' }])),
    ],
    [
      'effect_grant_evidence_missing',
      await signedAgain(replaced(receipt, 'signals', [{ type: 'signal', uri: 'x', proof_kind: 'effect_evidence' }])),
    ],
    ['act_form_details_invalid', await signedAgain(replaced(receipt, 'acts.0.form', 'revision'))],
    ['act_form_details_invalid', await signedAgain(replaced(receipt, 'acts.0.verification', {}))],
    ['decision_selected_act_missing', await signedAgain(replaced(receipt, 'decisions.0.selected_act_id', 'x'))],
    ['seal_criterion_unbound', await signedAgain(replaced(receipt, 'seal.criteria.0.criterion_id', 'x'))],
    ['receipt_parse_error', { ...receipt, extra: 1 }],
    ['receipt_parse_error', { ...receipt, schema: 'runx.receipt.v2' }],
    ['receipt_parse_error', replaced(receipt, 'acts.0.extra', 1)],
    ['receipt_parse_error', replaced(receipt, 'seal.disposition', 'won')],
    ['receipt_parse_error', 'receipt'],
  ];
  for (const [code, document] of findings) {
    const { valid, reasons } = verify(document);
    expect([valid, reasons.includes(code)], `${code}: ${reasons.join(', ')}`).toEqual([false, true]);
  }
  expect(verifyRunx(Buffer.from('{"schema":'), keys).reasons).toEqual(['receipt_parse_error']);
  const twice = Buffer.from(JSON.stringify(receipt).replace('{', '{"schema":"runx.receipt.v1",'));
  expect(verifyRunx(twice, keys).reasons).toEqual(['receipt_parse_error']);
});

verifies('receipt.runx', 'a receipt at another address than that of its content is invalid', async () => {
  const moved = { ...receipt, id: `sha256:${'0'.repeat(64)}` };
  const digest = runxDigestOf(moved);
  const value = `base64:${Buffer.from(await signer.sign(Buffer.from(digest))).toString('base64url')}`;
  const verdict = verify({ ...moved, digest, signature: { alg: 'Ed25519', value } });
  expect(verdict).toMatchObject({ valid: false, reasons: [] });
  expect(verdict.checks).toContainEqual({ name: 'content_address', ok: false });
});

verifies(
  'receipt.runx',
  'a signature of local development counts only with the option, and a limited key not at all',
  () => {
    const local = replaced(receipt, 'issuer', {
      type: 'local',
      kid: 'runtime-skeleton',
      public_key_sha256: 'sha256:x',
    });
    const identified = { ...local, id: runxIdOf(local) };
    const digest = runxDigestOf(identified);
    const signed = { ...identified, digest, signature: { alg: 'Ed25519', value: `sig:${digest}` } };
    expect(verify(signed).reasons).toEqual(['signature_unsupported_issuer']);
    expect(verify(signed, { allowLocalDevelopmentSignatures: true }).valid).toBe(true);
    const forged = replaced(signed, 'signature.value', 'sig:sha256:0');
    expect(verify(forged, { allowLocalDevelopmentSignatures: true }).reasons).toEqual(['signature_invalid']);
    const hosted = replaced(receipt, 'signature.value', `sig:${receipt.digest as string}`);
    expect(verify(hosted, { allowLocalDevelopmentSignatures: true }).reasons).toEqual(['signature_malformed']);
    expect(() => verify(signed, { allowLocal: true } as never)).toThrow('allowLocal');
    for (const limit of [{ revoked: true }, { until: 9 }, { role: 'checkpoint' }] as const)
      expect(verify(receipt, {}, new TrustedKeys([trustedKey(signer, limit)])).reasons).toEqual([
        'signature_key_missing',
      ]);
  },
);
