/**
 * Receipts of runx (`runx.receipt.v1`) as documents: their shape, and the two hashes that identify them. The digest covers
 * everything but itself, the signature and the unsigned metadata; the id leaves out the lineage as well, so that parents
 * and children can refer to each other.
 */
import {
  anyOf,
  flag,
  listOf,
  matching,
  members,
  oneOf,
  optional,
  recordOf,
  type Shape,
  text,
} from '../../../base/document-shape.js';
import { sha256 } from '../../../base/sha256.js';
import { canonicalJson } from '../../../json/canonical.js';
import type { Json, JsonObject } from '../../../protocol/json.js';

/** The value of `schema`. */
export const RUNX_SCHEMA = 'runx.receipt.v1';

const MAX_ITEMS = 10_000;

const word = text(100_000);
const time = matching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z$/, 'an ISO 8601 time in UTC');
const nothing: Shape = (value) => (value === null ? undefined : ': must be null');
/** A part whose members runx defines elsewhere, and which no rule of verification reads. */
const anyObject: Shape = recordOf(() => undefined, MAX_ITEMS);

const reference = members({
  schema: optional(oneOf('runx.reference.v1')),
  type: matching(/^[a-z_]{1,60}$/, 'the type of a reference'),
  uri: word,
  provider: optional(word),
  locator: optional(word),
  label: optional(word),
  observed_at: optional(time),
  proof_kind: optional(oneOf('effect_evidence', 'effect_finality', 'credential_resolution')),
});
const references = listOf(reference, MAX_ITEMS);
const nullable = (shape: Shape): Shape => anyOf(shape, nothing);

const disposition = oneOf('closed', 'deferred', 'superseded', 'declined', 'blocked', 'failed', 'killed', 'timed_out');
const closure = members({ disposition, reason_code: word, summary: word, closed_at: time });
const criterion = members({
  criterion_id: word,
  status: oneOf('verified', 'failed', 'pending', 'not_applicable', 'unknown'),
  evidence_refs: references,
  verification_refs: references,
  summary: optional(word),
});
const intent = members({
  purpose: word,
  legitimacy: word,
  success_criteria: listOf(members({ criterion_id: word, statement: word, required: flag }), MAX_ITEMS),
  constraints: listOf(word, MAX_ITEMS),
  derived_from: references,
});

const act = members({
  id: word,
  form: oneOf('revision', 'reply', 'review', 'observation', 'verification'),
  intent,
  summary: word,
  criterion_bindings: listOf(criterion, MAX_ITEMS),
  by: optional(members({ provider: nullable(word), model: nullable(word), prompt_version: nullable(word) })),
  source_refs: references,
  target_refs: references,
  artifact_refs: references,
  context_ref: optional(reference),
  closure,
  revision: optional(anyObject),
  verification: optional(anyObject),
});

const decision = members({
  decision_id: word,
  choice: oneOf('open', 'continue', 'spawn_child', 'escalate', 'defer', 'close', 'decline', 'monitor'),
  inputs: members({
    signal_refs: references,
    target_ref: nullable(reference),
    opportunity_refs: references,
    selection_ref: nullable(reference),
  }),
  proposed_intent: intent,
  selected_act_id: nullable(word),
  selected_harness_ref: nullable(reference),
  justification: members({ summary: word, evidence_refs: references }),
  closure: nullable(closure),
  artifact_refs: references,
});

const authority = members({
  actor_ref: reference,
  grant_refs: references,
  scope_refs: references,
  authority_proof_refs: references,
  attenuation: members({ parent_authority_ref: nullable(reference), subset_proof: nullable(anyObject) }),
  mandate_ref: optional(reference),
  terms: listOf(anyObject, MAX_ITEMS),
  enforcement: members({
    profile_hash: word,
    execution_boundary: optional(word),
    redaction_refs: references,
    setup_refs: references,
    teardown_refs: references,
  }),
});

const subject = members({
  kind: word,
  ref: reference,
  input_context: optional(members({ source: word, preview: word, value_hash: word })),
  commitments: listOf(
    members({
      scope: oneOf('input', 'output', 'stdout', 'stderr', 'error'),
      algorithm: word,
      value: word,
      canonicalization: word,
    }),
    MAX_ITEMS,
  ),
  paid_invocation: optional(anyObject),
});

/** The shape of a receipt of runx. */
export const runxReceiptShape: Shape = members({
  schema: oneOf(RUNX_SCHEMA),
  id: word,
  created_at: text(40),
  canonicalization: word,
  class: optional(oneOf('executed', 'mediated')),
  issuer: members({ type: oneOf('local', 'hosted', 'ci', 'verifier'), kid: word, public_key_sha256: word }),
  signature: members({ alg: word, value: word }),
  digest: word,
  idempotency: members({ intent_key: word, trigger_fingerprint: word, content_hash: word }),
  subject,
  authority,
  signals: references,
  decisions: listOf(decision, MAX_ITEMS),
  acts: listOf(act, MAX_ITEMS),
  seal: members({
    disposition,
    reason_code: word,
    summary: word,
    closed_at: time,
    last_observed_at: time,
    criteria: listOf(criterion, MAX_ITEMS),
  }),
  lineage: optional(
    members({
      parent: optional(reference),
      previous: optional(reference),
      children: references,
      sync: listOf(anyObject, MAX_ITEMS),
      resume_ref: optional(reference),
    }),
  ),
  evidence: optional(listOf(anyObject, MAX_ITEMS)),
  metadata: optional(anyObject),
});

function hashWithout(receipt: JsonObject, omitted: ReadonlySet<string>): string {
  const kept = Object.fromEntries(Object.entries(receipt).filter(([name]) => !omitted.has(name)));
  return `sha256:${sha256(canonicalJson(kept as Json)).toString('hex')}`;
}

const NOT_IN_DIGEST: ReadonlySet<string> = new Set(['signature', 'digest', 'metadata']);
const NOT_IN_ID: ReadonlySet<string> = new Set([...NOT_IN_DIGEST, 'id', 'lineage']);

/** Returns the digest of a receipt, which is what is signed. */
export function runxDigestOf(receipt: JsonObject): string {
  return hashWithout(receipt, NOT_IN_DIGEST);
}

/** Returns the id of a receipt: the address of its content. */
export function runxIdOf(receipt: JsonObject): string {
  return hashWithout(receipt, NOT_IN_ID);
}

/** Returns the hash of a public key as it is written in a receipt. */
export function runxKeyHash(publicKey: Uint8Array): string {
  return `sha256:${sha256(publicKey).toString('hex')}`;
}
