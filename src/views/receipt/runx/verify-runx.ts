/**
 * The verification of a receipt of runx by its own rules. The reasons of the verdict are the codes of the findings that
 * runx reports. A single receipt cannot prove that it is complete.
 */
import { decodeBase64, decodeBase64Url } from '../../../base/base64.js';
import { isSignatureValid } from '../../../base/ed25519.js';
import { assertKnownKeys, optionKeys } from '../../../base/option-keys.js';
import { ownProperty, ownText } from '../../../base/own-property.js';
import type { TrustedKeys } from '../../../base/trusted-keys.js';
import { parseStrictJson } from '../../../json/strict-json.js';
import type { Json, JsonObject } from '../../../protocol/json.js';
import type { ReceiptVerdict, VerdictCheck } from '../../../protocol/receipt.js';
import { runxDigestOf, runxIdOf, runxKeyHash, runxReceiptShape } from './runx-receipt.js';

/** The codes of findings, as runx writes them. */
export type RunxFinding =
  | 'receipt_parse_error'
  | 'empty_envelope_field'
  | 'hash_commitment_invalid'
  | 'authority_attenuation_invalid'
  | 'child_receipt_ref_invalid'
  | 'effect_grant_evidence_missing'
  | 'act_form_details_invalid'
  | 'decision_selected_act_missing'
  | 'seal_criterion_unbound'
  | 'seal_digest_mismatch'
  | 'signature_key_missing'
  | 'signature_key_hash_mismatch'
  | 'signature_unsupported_issuer'
  | 'signature_unsupported_algorithm'
  | 'signature_malformed'
  | 'signature_invalid';

/** Options of the verification of a receipt of runx. */
export interface RunxVerifyOptions {
  /** True to accept the `sig:` signatures of local development, which prove nothing. @default false */
  readonly allowLocalDevelopmentSignatures?: boolean | undefined;
}

const OPTION_KEYS = optionKeys<RunxVerifyOptions>({ allowLocalDevelopmentSignatures: true });

const MAX_BYTES = 10 * 1024 * 1024;

/** True if a document is meant to be a receipt of runx; it may still be invalid. */
export function isRunxReceipt(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes('"runx.receipt.v1"');
}

/** Verifies a receipt of runx under trusted keys. */
export function verifyRunx(bytes: Uint8Array, keys: TrustedKeys, options: RunxVerifyOptions = {}): ReceiptVerdict {
  assertKnownKeys(options, OPTION_KEYS, 'A verification of a runx receipt has no option');
  const receipt = parse(bytes);
  if (typeof receipt === 'string')
    return verdictOf(['receipt_parse_error'], [{ name: 'form', ok: false, note: receipt }]);
  const digest = runxDigestOf(receipt);
  const structure = structuralFindings(receipt);
  const digestFinding: readonly RunxFinding[] = ownText(receipt, 'digest') === digest ? [] : ['seal_digest_mismatch'];
  const isAllowed = options.allowLocalDevelopmentSignatures === true;
  const signature = signatureFinding(receipt, digest, keys, isAllowed);
  const isAddressed = ownText(receipt, 'id') === runxIdOf(receipt);
  const lineage = { name: 'lineage', ok: true, note: 'unverified: one receipt does not prove its place in a tree' };
  return verdictOf(
    [...structure, ...digestFinding, ...(signature === undefined ? [] : [signature])],
    [
      { name: 'form', ok: structure.length === 0 },
      { name: 'digest', ok: digestFinding.length === 0 },
      { name: 'content_address', ok: isAddressed },
      { name: 'signature', ok: signature === undefined },
      lineage,
    ],
  );
}

function verdictOf(findings: readonly RunxFinding[], checks: readonly VerdictCheck[]): ReceiptVerdict {
  const valid = checks.every(({ ok }) => ok);
  const subject = { sessions: 1, receipts: 1 };
  return { valid, complete: 'unknown', kind: 'runx', trust: 'file', subject, checks, reasons: [...new Set(findings)] };
}

/** Returns the receipt, or why it cannot be read. */
function parse(bytes: Uint8Array): JsonObject | string {
  try {
    const value = parseStrictJson(bytes, { maxBytes: MAX_BYTES, maxDepth: 64 });
    const problem = runxReceiptShape(value);
    return problem === undefined ? (value as JsonObject) : `receipt${problem}`;
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : 'it cannot be read';
  }
}

/** Returns the member at a path, by own properties. */
function at(value: Json | undefined, ...path: readonly string[]): Json | undefined {
  return path.reduce<Json | undefined>((found, name) => ownProperty(found, name), value);
}

function listAt(value: Json | undefined, ...path: readonly string[]): readonly Json[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** Returns what the rules of runx find wrong in the content of a receipt. */
function structuralFindings(receipt: JsonObject): readonly RunxFinding[] {
  const findings: RunxFinding[] = [];
  const isEmpty = (...path: readonly string[]): boolean => at(receipt, ...path) === '';
  if (
    isEmpty('id') ||
    isEmpty('created_at') ||
    isEmpty('canonicalization') ||
    isEmpty('issuer', 'kid') ||
    isEmpty('signature', 'value')
  )
    findings.push('empty_envelope_field');
  if (!hashesOf(receipt).every((hash) => typeof hash === 'string' && hash.startsWith('sha256:')))
    findings.push('hash_commitment_invalid');
  if (!isAttenuationValid(at(receipt, 'authority', 'attenuation'))) findings.push('authority_attenuation_invalid');
  if (listAt(receipt, 'lineage', 'children').some((child) => at(child, 'type') !== 'receipt'))
    findings.push('child_receipt_ref_invalid');
  const evidence = ['signals', 'decisions', 'acts'].map((name) => at(receipt, name));
  if (evidence.some(hasEffectEvidence) && listAt(receipt, 'authority', 'grant_refs').length === 0)
    findings.push('effect_grant_evidence_missing');
  return [...findings, ...actFindings(receipt)];
}

function hashesOf(receipt: JsonObject): readonly (Json | undefined)[] {
  return [
    at(receipt, 'issuer', 'public_key_sha256'),
    at(receipt, 'authority', 'enforcement', 'profile_hash'),
    at(receipt, 'idempotency', 'intent_key'),
    at(receipt, 'idempotency', 'trigger_fingerprint'),
    at(receipt, 'idempotency', 'content_hash'),
    at(receipt, 'digest'),
    ...listAt(receipt, 'subject', 'commitments').map((commitment) => at(commitment, 'value')),
  ];
}

function isAttenuationValid(attenuation: Json | undefined): boolean {
  const [parent, proof] = [at(attenuation, 'parent_authority_ref'), at(attenuation, 'subset_proof')];
  if (parent === null || proof === null) return parent === proof;
  return JSON.stringify(at(proof, 'parent_authority_ref')) === JSON.stringify(parent);
}

/** True if a value contains a reference that is evidence of an effect. */
function hasEffectEvidence(value: Json | undefined): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (ownProperty(value, 'proof_kind') === 'effect_evidence') return true;
  return Object.values(value as JsonObject).some(hasEffectEvidence);
}

function actFindings(receipt: JsonObject): readonly RunxFinding[] {
  const acts = listAt(receipt, 'acts');
  const ids = new Set(acts.map((act) => at(act, 'id')));
  const criteria = new Set(
    acts.flatMap((act) =>
      [...listAt(act, 'criterion_bindings'), ...listAt(act, 'intent', 'success_criteria')].map((each) =>
        at(each, 'criterion_id'),
      ),
    ),
  );
  const findings: RunxFinding[] = [];
  if (!acts.every(hasMatchingDetails)) findings.push('act_form_details_invalid');
  const selected = listAt(receipt, 'decisions').map((decision) => at(decision, 'selected_act_id'));
  if (selected.some((id) => id !== null && !ids.has(id))) findings.push('decision_selected_act_missing');
  const isUnbound = (criterion: Json): boolean => !criteria.has(at(criterion, 'criterion_id'));
  if (acts.length > 0 && listAt(receipt, 'seal', 'criteria').some(isUnbound)) findings.push('seal_criterion_unbound');
  return findings;
}

/** True if an act has an id, and the details of its form and no others. */
function hasMatchingDetails(act: Json): boolean {
  const form = at(act, 'form');
  const has = (details: string): boolean => at(act, details) !== undefined;
  return (
    at(act, 'id') !== '' &&
    has('revision') === (form === 'revision') &&
    has('verification') === (form === 'verification')
  );
}

/** Returns what is wrong with the signature; undefined if it is valid. */
function signatureFinding(
  receipt: JsonObject,
  digest: string,
  keys: TrustedKeys,
  isLocalAllowed: boolean,
): RunxFinding | undefined {
  const value = ownText(at(receipt, 'signature'), 'value');
  const issuer = at(receipt, 'issuer');
  if (at(receipt, 'signature', 'alg') !== 'Ed25519') return 'signature_unsupported_algorithm';
  // guard: development-signature-needs-option
  if (isLocalAllowed && ownText(issuer, 'type') === 'local' && value.startsWith('sig:'))
    return value === `sig:${digest}` ? undefined : 'signature_invalid';
  // guard: runx-issuer-checked
  if (ownText(issuer, 'type') !== 'hosted' && ownText(issuer, 'type') !== 'ci') return 'signature_unsupported_issuer';
  const key = keys.forUnlogged(ownText(issuer, 'kid'));
  if (typeof key === 'string') return 'signature_key_missing';
  if (ownText(issuer, 'public_key_sha256') !== runxKeyHash(key.bytes)) return 'signature_key_hash_mismatch';
  const encoded = value.startsWith('base64:') ? value.slice('base64:'.length) : '';
  const signature = decodeBase64Url(encoded) ?? decodeBase64(encoded);
  if (signature?.length !== 64) return 'signature_malformed';
  // guard: runx-signature-verified
  return isSignatureValid(Buffer.from(digest), signature, key) ? undefined : 'signature_invalid';
}
