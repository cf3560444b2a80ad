/**
 * The export of a receipt in the form of runx. The result says no more than the receipt: each effect is an act, each
 * approval a decision, and the entries of the turn are committed to by their root.
 */

import { sha256 } from '../../../base/sha256.js';
import { canonicalJson } from '../../../json/canonical.js';
import type { Json, JsonObject } from '../../../protocol/json.js';
import type {
  NoteSigner,
  ReceiptApproval,
  ReceiptEffect,
  ReceiptPredicate,
  ReceiptState,
} from '../../../protocol/receipt.js';
import { RUNX_SCHEMA, runxDigestOf, runxIdOf, runxKeyHash } from './runx-receipt.js';

/** A signer of receipts in the form of runx. */
export interface RunxReceiptSigner extends NoteSigner {
  readonly issuerType: 'hosted' | 'ci';
}

/** A receipt to export. */
export interface RunxExport {
  readonly predicate: ReceiptPredicate;
  /** The hash of its envelope, in hexadecimal. */
  readonly hash: string;
  /** The id of the exported receipt before it in the session. */
  readonly previousId?: string | undefined;
}

const DISPOSITIONS: { readonly [state in ReceiptState]: string } = {
  ok: 'closed',
  error: 'failed',
  cancelled: 'killed',
  stopped: 'blocked',
  paused: 'deferred',
  refused: 'declined',
  closed: 'closed',
};

const EFFECT_STATES: { readonly [state in ReceiptEffect['state']]: readonly [status: string, disposition: string] } = {
  done: ['verified', 'closed'],
  failed: ['failed', 'failed'],
  unknown: ['unknown', 'deferred'],
  denied: ['not_applicable', 'declined'],
};

/** Exports a receipt and signs it. Its time must be one of runx, which knows years of four digits only. */
export async function toRunxReceipt(source: RunxExport, signer: RunxReceiptSigner): Promise<JsonObject> {
  const { kid, issuerType, publicKey } = signer;
  const body = {
    ...bodyOf(source),
    issuer: { type: issuerType, kid, public_key_sha256: runxKeyHash(publicKey) },
  };
  const identified: JsonObject = { ...body, id: runxIdOf(body) };
  const digest = runxDigestOf(identified);
  const signature = Buffer.from(await signer.sign(Buffer.from(digest))).toString('base64url');
  return { ...identified, digest, signature: { alg: 'Ed25519', value: `base64:${signature}` } };
}

/** Returns the file of a receipt in the form of runx: compact canonical JSON. */
export function runxReceiptBytes(receipt: JsonObject): Buffer {
  return Buffer.from(canonicalJson(receipt));
}

function bodyOf({ predicate, hash, previousId }: RunxExport): JsonObject {
  const { session, turn, sequence, at, state, loop, effects, approvals, journal, reason, code } = predicate;
  const summary = `turn ${turn === '' ? 'none' : turn} of session ${session}: ${state}`;
  return {
    schema: RUNX_SCHEMA,
    canonicalization: 'runx.receipt.c14n.v1',
    class: 'executed',
    created_at: at,
    idempotency: {
      intent_key: hashOf([session, turn]),
      trigger_fingerprint: hashOf([session, turn, sequence]),
      content_hash: `sha256:${journal.root}`,
    },
    subject: {
      kind: 'rondo.turn',
      ref: { ...referenceTo('harness', `${session}/${sequence}`), locator: `sha256:${hash}` },
      commitments: [
        { scope: 'output', algorithm: 'sha256', value: `sha256:${journal.root}`, canonicalization: 'rondo.entries.v1' },
      ],
    },
    authority: authorityOf(predicate),
    signals: [],
    decisions: approvals.map((approval, i) => decisionOf(approval, i, effects)),
    acts: effects.map((effect) => actOf(effect, at)),
    seal: {
      disposition: DISPOSITIONS[state],
      reason_code: code ?? state,
      summary: reason === undefined || reason === '' ? `${summary}; loop ${loop.id}` : `${summary}; ${reason}`,
      closed_at: at,
      last_observed_at: at,
      criteria: effects.map((effect) => criterionOf(effect)),
    },
    lineage: {
      children: [],
      sync: [],
      ...(previousId !== undefined && { previous: referenceTo('receipt', previousId) }),
    },
  };
}

function authorityOf({ principal, grant, loop }: ReceiptPredicate): Json {
  return {
    actor_ref: referenceTo('principal', principal ?? 'anonymous'),
    grant_refs: grant === undefined ? [] : [{ ...referenceTo('grant', grant.id), locator: grant.digest }],
    scope_refs: [],
    authority_proof_refs: [],
    attenuation: { parent_authority_ref: null, subset_proof: null },
    terms: [],
    enforcement: {
      profile_hash: hashOf([loop.id, loop.version, loop.definition]),
      redaction_refs: [],
      setup_refs: [],
      teardown_refs: [],
    },
  };
}

function actOf(effect: ReceiptEffect, at: string): Json {
  const { key, name, kind, state } = effect;
  const summary = `${kind} ${name}: ${state}`;
  return {
    id: key,
    form: 'observation',
    intent: intentOf(`Perform the effect ${name} at ${key}`, [key]),
    summary,
    criterion_bindings: [criterionOf(effect)],
    source_refs: [],
    target_refs: [],
    artifact_refs: [],
    closure: { disposition: EFFECT_STATES[state][1], reason_code: state, summary, closed_at: at },
  };
}

function criterionOf({ key, state }: ReceiptEffect): Json {
  return { criterion_id: key, status: EFFECT_STATES[state][0], evidence_refs: [], verification_refs: [] };
}

function decisionOf(approval: ReceiptApproval, index: number, effects: readonly ReceiptEffect[]): Json {
  const { id, tool, by, approved, effect } = approval;
  return {
    decision_id: `${id}#${index}`,
    choice: approved ? 'open' : 'decline',
    inputs: { signal_refs: [], target_ref: null, opportunity_refs: [], selection_ref: null },
    proposed_intent: intentOf(`Call ${tool} with the arguments ${approval.arguments}`, []),
    selected_act_id: effects.some(({ key }) => key === effect) ? effect : null,
    selected_harness_ref: null,
    justification: { summary: `${approved ? 'approved' : 'denied'} by ${by}`, evidence_refs: [] },
    closure: null,
    artifact_refs: [],
  };
}

function intentOf(purpose: string, criteria: readonly string[]): Json {
  return {
    purpose,
    legitimacy: 'The journal of the session records it',
    success_criteria: criteria.map((id) => ({
      criterion_id: id,
      statement: 'the effect ended without error',
      required: true,
    })),
    constraints: [],
    derived_from: [],
  };
}

function referenceTo(type: string, id: string): { readonly type: string; readonly uri: string } {
  return { type, uri: `runx:${type}:${id}` };
}

function hashOf(parts: readonly Json[]): string {
  return `sha256:${sha256(canonicalJson(parts)).toString('hex')}`;
}
