/**
 * Receipts: signed documents about the turns of a session. A receipt is a DSSE envelope around an in-toto statement
 * whose predicate says what the runtime recorded. A bundle is a file of receipts, and a checkpoint a signed state of the
 * log of all receipts of a store. Types only.
 */
import type { Resolution, Safety } from './entry.js';

/** The media type of the payload of an envelope. */
export type ReceiptPayloadType = 'application/vnd.in-toto+json';

/** A signature of an envelope. */
export interface EnvelopeSignature {
  /** The id of the key. The key itself always comes from the verifier. */
  readonly keyid: string;
  /** 64 bytes in base64. */
  readonly sig: string;
}

/** A signed receipt: a DSSE envelope. */
export interface ReceiptEnvelope {
  /** The bytes of the statement in base64. */
  readonly payload: string;
  readonly payloadType: ReceiptPayloadType;
  /** One to four signatures, all of which must be valid. */
  readonly signatures: readonly EnvelopeSignature[];
}

/** How the part of a turn that a receipt covers ended. `closed` is the state of the last receipt of a session. */
export type ReceiptState = 'ok' | 'error' | 'cancelled' | 'stopped' | 'paused' | 'refused' | 'closed';

/** The loop of a turn. */
export interface ReceiptLoop {
  readonly id: string;
  readonly version: string;
  /** The digest of its definition; empty if it has none. */
  readonly definition: string;
}

/** An answered approval. */
export interface ReceiptApproval {
  readonly id: string;
  readonly tool: string;
  readonly by: string;
  readonly approved: boolean;
  /** The key of the effect that the approval is for. */
  readonly effect: string;
  /** The commitment of the approved arguments. */
  readonly arguments: string;
}

/** `unknown`: there is an intent and no end. `denied`: the effect was refused and not started. */
export type ReceiptEffectState = 'done' | 'failed' | 'unknown' | 'denied';

/** How a person resolved an effect in doubt. `retry` is a decision of its own: it needs no approval besides. */
export interface ReceiptResolution {
  readonly by: string;
  readonly resolution: Resolution;
}

/** An effect of which the receipt covers the intent, the end or the refusal. */
export interface ReceiptEffect {
  readonly key: string;
  readonly name: string;
  readonly kind: string;
  readonly safety: Safety;
  /** How the effect was confined. */
  readonly boundary?: string;
  readonly state: ReceiptEffectState;
  /** The leaf of its last intent; absent if that is in an earlier receipt, or if there is none. */
  readonly intent?: number;
  /** The leaf of its end. */
  readonly end?: number;
  /** The commitment of the executed arguments; present if an approval of the receipt names the effect and it was started. */
  readonly arguments?: string;
  /** How often it was started so far, also again after a crash, if more than once. Repetitions of a pure effect do not count. */
  readonly attempts?: number;
  /** How people resolved the effect so far while it was in doubt, in order. Absent if it was never resolved by hand, and in receipts of earlier versions. */
  readonly resolutions?: readonly ReceiptResolution[];
}

/** The amounts of a budget by limit. */
export interface ReceiptAmounts {
  readonly [limit: string]: number;
}

/** The entries that a receipt covers. */
export interface ReceiptJournal {
  /** The sequence number of the first entry. */
  readonly from: number;
  /** The sequence number of the last entry. */
  readonly to: number;
  readonly count: number;
  /** The Merkle root of the entries, in hexadecimal. */
  readonly root: string;
}

/** What a receipt says. */
export interface ReceiptPredicate {
  readonly session: string;
  /** Empty in the last receipt of a session. */
  readonly turn: string;
  /** The zero-based number of the receipt in its session. */
  readonly sequence: number;
  /** SHA-256 of the canonical bytes of the previous envelope, in hexadecimal; absent in the first receipt. */
  readonly previous?: string;
  /** When the receipt was made: ISO 8601. Information only; nothing depends on it. */
  readonly at: string;
  readonly state: ReceiptState;
  /** True if the turn has ended. */
  readonly final: boolean;
  /** True if the turn had ended and was retried: its earlier final receipt no longer is. */
  readonly reopened?: true;
  readonly reason?: string;
  /** The code of the error with which the turn ended. */
  readonly code?: string;
  readonly loop: ReceiptLoop;
  readonly principal?: string;
  readonly grant?: { readonly id: string; readonly digest: string };
  readonly budget?: { readonly before: ReceiptAmounts; readonly after: ReceiptAmounts };
  readonly approvals: readonly ReceiptApproval[];
  readonly effects: readonly ReceiptEffect[];
  readonly context?: readonly { readonly name: string; readonly digest: string; readonly bytes: number }[];
  readonly journal: ReceiptJournal;
  /**
   * Of a turn of a hosted loop: its number, the head of the projection that it was requested from, the receipt before, and
   * that of the turn which handed off to it.
   */
  readonly hosted?: {
    readonly handoff?: string;
    readonly head: string;
    readonly loop: string;
    readonly previous?: string;
    readonly turn: number;
  };
  /** Of a turn that was forked: where it comes from. */
  readonly origin?: { readonly session: string; readonly turn: string; readonly at: number };
  readonly redacted?: true;
}

/** The payload of a receipt: an in-toto statement. */
export interface ReceiptStatement {
  readonly _type: 'https://in-toto.io/Statement/v1';
  readonly subject: readonly [{ readonly name: string; readonly digest: { readonly sha256: string } }];
  readonly predicateType: 'urn:rondo:receipt:1';
  readonly predicate: ReceiptPredicate;
}

/** The position of a receipt in the log of its store, with the proof for the checkpoint of the bundle. */
export interface LogProof {
  readonly index: number;
  /** The number of receipts in the log: that of the checkpoint. */
  readonly size: number;
  /** In hexadecimal. */
  readonly hashes: readonly string[];
}

/** A receipt in a bundle. */
export interface BundledReceipt {
  readonly envelope: ReceiptEnvelope;
  readonly proof?: LogProof;
}

/** An entry that a bundle discloses. */
export interface DisclosedEntry {
  /** The index of the receipt in the bundle. */
  readonly receipt: number;
  readonly leaf: number;
  /** 16 bytes in base64. */
  readonly salt: string;
  /** The JSON text of the stored entry. */
  readonly entry: string;
  /** In hexadecimal. */
  readonly proof: readonly string[];
}

/** A file of receipts. Its bytes are the canonical JSON of this object and a newline. */
export interface ReceiptBundle {
  readonly format: 'rondo.receipts.v1';
  /** The text of a signed checkpoint. */
  readonly checkpoint?: string;
  readonly receipts: readonly BundledReceipt[];
  readonly entries?: readonly DisclosedEntry[];
}

/** A session in a checkpoint. */
export interface CheckpointSession {
  readonly id: string;
  /** How many receipts the session has. */
  readonly count: number;
  /** SHA-256 of the canonical bytes of its last envelope, in hexadecimal. */
  readonly head: string;
  readonly isClosed: boolean;
}

/** A state of the log of a store. */
export interface Checkpoint {
  /** `rondo/<store id>`. */
  readonly origin: string;
  readonly size: number;
  /** The root of the log, in hexadecimal. */
  readonly root: string;
  /** What its sessions are; absent if it was not made for a bundle. */
  readonly scope?: CheckpointScope;
  readonly sessions: readonly CheckpointSession[];
}

/** The part of a store that the sessions of a checkpoint are. */
export interface CheckpointScope {
  /** True if they are all sessions of the store that have receipts. */
  readonly isWhole: boolean;
  /** The length of the log as of which the sessions were read; less than its size if turns ended meanwhile. */
  readonly asOf: number;
  /**
   * How many turns of this part did what no receipt covers, or sessions after their end, and how many of its sessions
   * were removed. Absent in checkpoints of earlier versions, which do not say.
   */
  readonly gaps?: { readonly unsealed: number; readonly removed: number };
}

/** What a key may sign. */
export type KeyRole = 'receipt' | 'checkpoint';

/** A key of a keys file: whom a verifier trusts, and for what. */
export interface TrustedKey {
  readonly kid: string;
  /** 32 bytes in base64. */
  readonly publicKey: string;
  /** @default both */
  readonly role?: KeyRole;
  /** The first log index at which the key is valid. */
  readonly from?: number;
  /** The first log index at which the key is no longer valid. */
  readonly until?: number;
  /** The first log index at which the key is revoked; true if it is revoked for all. */
  readonly revoked?: number | true;
}

/** The content of a keys file. */
export interface KeysDocument {
  readonly keys: readonly TrustedKey[];
}

/** Signs bytes under a key. */
export interface ReceiptSigner {
  readonly kid: string;
  sign(bytes: Uint8Array): Promise<Uint8Array>;
  /** Signs at once, on the calling thread. Absent if the key is not in this process. */
  signSync?(bytes: Uint8Array): Uint8Array;
}

/** A signer whose public key is known. */
export interface NoteSigner extends ReceiptSigner {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
}

/** One check of a verdict. */
export interface VerdictCheck {
  readonly name: string;
  readonly ok: boolean;
  readonly note?: string;
}

/** What a verdict is about. */
export interface VerdictSubject {
  /** How many sessions were verified. */
  readonly sessions: number;
  /** How many receipts were verified. */
  readonly receipts: number;
  /** How many receipts the log of the store has, of all its sessions: a file may have only some of them. */
  readonly log?: number;
  /** The file that was verified. */
  readonly file?: string;
  /** The session that was verified. */
  readonly session?: string;
  /** The turn that was named; its whole session was verified. */
  readonly turn?: string;
  /** The hosted loop whose turns were verified. */
  readonly hostedLoop?: string;
}

/** The part of a store that a verdict speaks of: one session, several, or the whole store. */
export interface VerdictScope {
  readonly session?: string;
  readonly sessions?: readonly string[];
  /** The length of the log of the store: nothing is said about later receipts. */
  readonly asOf: number;
}

/** What the verification of receipts found. */
export interface ReceiptVerdict {
  readonly valid: boolean;
  /** True if nothing is missing in the scope, false if something is known to be missing. */
  readonly complete: boolean | 'unknown';
  /** What `complete` speaks of; absent if nothing says which part of a store was verified. */
  readonly scope?: VerdictScope;
  readonly kind: 'rondo' | 'runx';
  /** Where the keys come from: a file that the verifier chose, or the store itself. */
  readonly trust: 'file' | 'store';
  readonly subject: VerdictSubject;
  readonly checks: readonly VerdictCheck[];
  /** Stable codes of what is wrong or missing. */
  readonly reasons: readonly string[];
}
