/**
 * Checkpoints: signed states of the log of a store, as C2SP signed notes. The text names the log, the number of its
 * receipts and its root, and lists the exported sessions with the hash of their last receipt. So a checkpoint is also
 * the signed table of contents of its bundle, and its scope says of which part of the store.
 */
import { decodeBase64, encodeBase64 } from '../../base/base64.js';
import { isSignatureValid } from '../../base/ed25519.js';
import { LoopError } from '../../base/errors.js';
import { isConsistent } from '../../base/merkle.js';
import { sha256 } from '../../base/sha256.js';
import type { KeyProblem, TrustedKeys } from '../../base/trusted-keys.js';
import type {
  Checkpoint,
  CheckpointScope,
  CheckpointSession,
  NoteSigner,
  VerdictScope,
} from '../../protocol/receipt.js';

const ORIGIN = /^rondo\/[A-Za-z0-9_.-]{1,100}$/;
const SIZE = /^(?:0|[1-9][0-9]{0,15})$/;
const SCOPE_LINE =
  /^scope (store|sessions) (0|[1-9][0-9]{0,15})(?: unsealed (0|[1-9][0-9]{0,14}) removed (0|[1-9][0-9]{0,14}))?$/;
const SESSION_LINE = /^session (\S{1,4000}) (0|[1-9][0-9]{0,15}) ([0-9a-f]{64}) (open|closed)$/;
const SIGNATURE_LINE = /^— (\S{1,200}) (\S{1,200})$/u;
const MAX_SIGNATURES = 4;
/** The type of an Ed25519 key in the hash of a key. */
const ED25519_TYPE = Buffer.from([1]);
const KEY_HASH_BYTES = 4;

function keyHashOf(kid: string, publicKey: Uint8Array): Buffer {
  return sha256(Buffer.concat([Buffer.from(`${kid}\n`), ED25519_TYPE, publicKey])).subarray(0, KEY_HASH_BYTES);
}

/** Returns the text of a checkpoint that is signed. Throws VALUE_INVALID if it cannot be written. */
export function checkpointText({ origin, size, root, scope, sessions }: Checkpoint): string {
  const scopeLines = scope === undefined ? [] : [scopeLine(scope)];
  const lines = sessions.map(
    ({ id, count, head, isClosed }) => `session ${encodeId(id)} ${count} ${head} ${isClosed ? 'closed' : 'open'}`,
  );
  const text = `${[origin, size, encodeBase64(Buffer.from(root, 'hex')), ...scopeLines, ...lines].join('\n')}\n`;
  if (parseText(text) === undefined) throw new LoopError('VALUE_INVALID', 'The checkpoint has an invalid member.');
  return text;
}

function scopeLine({ isWhole, asOf, gaps }: CheckpointScope): string {
  const gapsText = gaps === undefined ? '' : ` unsealed ${gaps.unsealed} removed ${gaps.removed}`;
  return `scope ${isWhole ? 'store' : 'sessions'} ${asOf}${gapsText}`;
}

/** Returns the signed note of a checkpoint. */
export async function createCheckpoint(checkpoint: Checkpoint, signers: readonly NoteSigner[]): Promise<string> {
  const text = checkpointText(checkpoint);
  const lines = signers.map(async (signer) => {
    const signature = await signer.sign(Buffer.from(text));
    return `— ${signer.kid} ${encodeBase64(Buffer.concat([keyHashOf(signer.kid, signer.publicKey), signature]))}\n`;
  });
  return `${text}\n${(await Promise.all(lines)).join('')}`;
}

/** A checkpoint of which the signatures were verified, or why it is refused. */
export type CheckpointResult =
  | { readonly checkpoint: Checkpoint }
  | { readonly problem: KeyProblem | 'checkpoint_malformed' | 'checkpoint_signature' };

/** Reads a signed note and verifies its signatures, all of which must be valid under a trusted key. */
export function verifyCheckpoint(note: string, keys: TrustedKeys): CheckpointResult {
  const end = note.lastIndexOf('\n\n');
  const text = note.slice(0, end + 1);
  const checkpoint = end === -1 || !note.endsWith('\n') ? undefined : parseText(text);
  const lines = note.slice(end + 2, -1).split('\n');
  if (checkpoint === undefined || lines.length > MAX_SIGNATURES) return { problem: 'checkpoint_malformed' };
  const kids = new Set<string>();
  for (const line of lines) {
    const [, kid = '', encoded = ''] = SIGNATURE_LINE.exec(line) ?? [];
    const signature = decodeBase64(encoded);
    if (kid === '' || signature === undefined || kids.has(kid)) return { problem: 'checkpoint_malformed' };
    kids.add(kid);
    const key = keys.forCheckpoint(kid, checkpoint.size);
    if (typeof key === 'string') return { problem: key };
    const isHashRight = keyHashOf(kid, key.bytes).equals(signature.subarray(0, KEY_HASH_BYTES));
    // guard: checkpoint-signature-verified
    if (!isHashRight || !isSignatureValid(Buffer.from(text), signature.subarray(KEY_HASH_BYTES), key))
      return { problem: 'checkpoint_signature' };
  }
  return { checkpoint };
}

/** Reads a signed note without verifying its signatures; undefined if it is none. */
export function readCheckpoint(note: string): Checkpoint | undefined {
  const end = note.lastIndexOf('\n\n');
  return end === -1 ? undefined : parseText(note.slice(0, end + 1));
}

/** Parses the text of a checkpoint; undefined unless it is its only form. */
function parseText(text: string): Checkpoint | undefined {
  const [origin = '', sizeText = '', rootText = '', ...rest] = text.split('\n');
  const size = Number(sizeText);
  const root = decodeBase64(rootText);
  if (!ORIGIN.test(origin) || !SIZE.test(sizeText) || !Number.isSafeInteger(size)) return undefined;
  if (root?.length !== 32 || rest.pop() !== '') return undefined;
  const scope = parseScope(rest[0] ?? '');
  if (scope !== undefined && scope.asOf > size) return undefined;
  const sessions = (scope === undefined ? rest : rest.slice(1)).map(parseSession);
  const ids = new Set(sessions.map((session) => session?.id));
  // guard: session-listed-once
  if (ids.has(undefined) || ids.size !== sessions.length) return undefined;
  const state = { origin, size, root: root.toString('hex'), ...(scope !== undefined && { scope }) };
  return { ...state, sessions: sessions as readonly CheckpointSession[] };
}

function parseScope(line: string): CheckpointScope | undefined {
  const [, kind, asOf, unsealed, removed] = SCOPE_LINE.exec(line) ?? [];
  if (kind === undefined) return undefined;
  const scope = { isWhole: kind === 'store', asOf: Number(asOf) };
  return unsealed === undefined ? scope : { ...scope, gaps: { unsealed: Number(unsealed), removed: Number(removed) } };
}

/** Returns the scope of a verdict about some sessions, or about a whole store. */
export function verdictScope(
  sessions: readonly { readonly id: string }[],
  isWhole: boolean,
  asOf: number,
): VerdictScope {
  const [first] = sessions;
  // guard: scope-of-a-part-named
  if (isWhole) return { asOf };
  return sessions.length === 1 && first !== undefined
    ? { session: first.id, asOf }
    : { sessions: sessions.map(({ id }) => id), asOf };
}

/**
 * Returns the scope of a verdict about the bundle of a checkpoint. One without a scope speaks of its sessions only, and so
 * does one of an earlier version, which does not say what the whole store lacked.
 */
export function scopeOf({ scope, sessions, size }: Checkpoint): VerdictScope {
  // guard: whole-store-states-its-gaps
  const isWhole = scope?.isWhole === true && scope.gaps !== undefined;
  return verdictScope(sessions, isWhole, scope?.asOf ?? size);
}

function parseSession(line: string): CheckpointSession | undefined {
  const [, encodedId = '', count = '', head = '', state = ''] = SESSION_LINE.exec(line) ?? [];
  const id = decodeId(encodedId);
  if (state === '' || id === undefined || !Number.isSafeInteger(Number(count))) return undefined;
  return { id, count: Number(count), head, isClosed: state === 'closed' };
}

/** Ids are percent-encoded, because they may contain spaces and newlines. */
function encodeId(id: string): string {
  return encodeURIComponent(Buffer.from(id).toString());
}

function decodeId(encoded: string): string | undefined {
  try {
    const id = decodeURIComponent(encoded);
    return encodeURIComponent(id) === encoded ? id : undefined;
  } catch {
    return undefined;
  }
}

/**
 * How two checkpoints relate: `consistent` if the larger log begins with the smaller one, `split` if it does not, and
 * `unrelated` if they are of different logs. `proof` is the consistency proof. Without a valid proof, logs of different
 * sizes count as split: their store can always give one.
 */
export function compareCheckpoints(
  first: Checkpoint,
  second: Checkpoint,
  proof: readonly string[],
): 'consistent' | 'split' | 'unrelated' {
  if (first.origin !== second.origin) return 'unrelated';
  const [smaller, larger] = first.size <= second.size ? [first, second] : [second, first];
  // Every log begins with the empty one.
  if (smaller.size === 0 && larger.size > 0) return proof.length === 0 ? 'consistent' : 'split';
  if (smaller.size === 0) return smaller.root === larger.root ? 'consistent' : 'split';
  // guard: split-view-reported
  return isConsistent(smaller, larger, proof) ? 'consistent' : 'split';
}
