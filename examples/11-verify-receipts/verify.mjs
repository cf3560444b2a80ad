// Verifies a bundle without Rondo: node verify.mjs BUNDLE KEYS. Exits with 0 if it is valid and nothing is known to be
// missing, else with 3. The forms of documents are in forms.json: `?` marks an optional member, and `*` a list.

import { createPublicKey, hash, verify as verifySignature } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** @typedef {(...values: any[]) => any} Fn */
const forms = JSON.parse(readFileSync(new URL('forms.json', import.meta.url), 'utf8'));
/** @type {Fn} */ const check = (...conditions) => {
  if (!conditions.every(Boolean)) throw new Error('refused');
};
/** @type {Fn} */ const sha256 = (...parts) =>
  hash('sha256', Buffer.concat(parts.map((part) => Buffer.from(part))), 'buffer');
/** @type {Fn} */ const decode = (text) =>
  check(Buffer.from(text, 'base64').toString('base64') === text) ?? Buffer.from(text, 'base64');
/** @type {Fn} */ const canonical = (value) => {
  check(typeof value !== 'string' || !/\p{Surrogate}/u.test(value));
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item)).join(',')}]`;
  const names = Object.keys(value).sort();
  check(!names.includes('__proto__'));
  return `{${names.map((name) => `${canonical(name)}:${canonical(value[name])}`).join(',')}}`;
};
/** @type {Fn} */ const has = (form, v) => {
  if (form.endsWith('*')) return Array.isArray(v) && v.every((item) => has(form.slice(0, -1), item));
  if (form === 'index') return Number.isSafeInteger(v) && v >= 0;
  if (form === 'boolean') return typeof v === 'boolean';
  if (typeof forms[form] === 'string') return typeof v === 'string' && new RegExp(forms[form]).test(v);
  if (v?.constructor !== Object) return false;
  if (form === 'amounts') return Object.values(v).every(Number.isFinite);
  const names = Object.keys(forms[form]).map((name) => [name.replace('?', ''), name]);
  if (!Object.keys(v).every((name) => names.some(([known]) => known === name))) return false;
  return names.every(([name = '', mark = '']) => (name in v ? has(forms[form][mark], v[name]) : mark.endsWith('?')));
};
/** @type {Fn} */ const parse = (bytes, form, end) => {
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  return check(canonical(JSON.parse(text)) + end === text, has(form, JSON.parse(text))) ?? JSON.parse(text);
};
/** @type {Fn} */ const rootOf = (leaf, i, size, proof) => {
  check(i < size, size > 1 || proof.length === 0);
  if (size === 1) return leaf.toString('hex');
  const left = 2 ** Math.ceil(Math.log2(size) - 1);
  const [sibling, rest] = [proof.at(-1) ?? '', proof.slice(0, -1)];
  const node = i < left ? rootOf(leaf, i, left, rest) : rootOf(leaf, i - left, size - left, rest);
  return sha256('\x01', Buffer.from(i < left ? node + sibling : sibling + node, 'hex')).toString('hex');
};
/** @type {Fn} */ const checkSignature = (keys, role, kid, at, bytes, signature, late = 0) => {
  const { publicKey, role: only = role, from, until, revoked } = keys.find((/** @type {any} */ key) => key.kid === kid);
  check(only === role, revoked !== true, at !== undefined || (from ?? until ?? revoked) === undefined);
  check(!(at < from), !(at - late >= until), !(at - late >= revoked), signature.length === 64);
  const key = { kty: 'OKP', crv: 'Ed25519', x: decode(publicKey).toString('base64url') };
  return check(verifySignature(null, bytes, createPublicKey({ key, format: 'jwk' }), signature)) ?? decode(publicKey);
};
/** @type {Fn} */ const readCheckpoint = (note, keys) => {
  const [, text = '', size, root = '', kind, asOf = size, gaps, list = '', signed = ''] = note.match(forms.note) ?? [];
  check(text, decode(root).length === 32, Number(asOf) <= Number(size));
  for (const line of signed.trim().split('\n')) {
    const [, kid = '', encoded] = line.split(' ');
    const [keyHash, signature] = [decode(encoded).subarray(0, 4), decode(encoded).subarray(4)];
    const key = checkSignature(keys, 'checkpoint', kid, Number(size), Buffer.from(text), signature, 1);
    check(sha256(kid, '\n\x01', key).subarray(0, 4).equals(keyHash), signed.split(`— ${kid} `).length === 2);
  }
  const listed = new Map();
  for (const line of list.split('\n').slice(0, -1)) {
    const [, id = '', count, head, state] = line.match(forms.listed) ?? [];
    check(state, encodeURIComponent(decodeURIComponent(id)) === id, !listed.has(decodeURIComponent(id)));
    listed.set(decodeURIComponent(id), { count: Number(count), head, isClosed: state === 'closed' });
  }
  const scope = { sessions: kind === 'store' && gaps ? undefined : [...listed.keys()], asOf: Number(asOf) };
  return { size: Number(size), root: decode(root).toString('hex'), listed, scope, hasGaps: /[1-9]/.test(gaps) };
};
/** @type {Fn} */ const readReceipt = ({ envelope, proof }, checkpoint, keys) => {
  const [payload, digest] = [decode(envelope.payload), sha256(canonical(envelope)).toString('hex')];
  check((proof === undefined) === (checkpoint === undefined), proof?.size === checkpoint?.size);
  if (proof) check(rootOf(sha256('\0', digest), proof.index, proof.size, proof.hashes) === checkpoint.root);
  const head = Buffer.from(`DSSEv1 ${envelope.payloadType.length} ${envelope.payloadType} ${payload.length} `);
  const kids = new Set();
  for (const { keyid, sig } of envelope.signatures) {
    checkSignature(keys, 'receipt', keyid, proof?.index, Buffer.concat([head, payload]), decode(sig));
    check(!kids.has(keyid), kids.add(keyid).size <= 4);
  }
  const { subject, predicate } = parse(payload, 'statement', '');
  const { turn, state, final, journal, sequence, previous, effects, approvals, code } = predicate;
  check(kids.size > 0, subject.length === 1, subject[0]?.name === turn, subject[0]?.digest.sha256 === journal.root);
  check((sequence === 0) === (previous === undefined), (state === 'closed') === (turn === ''));
  check(journal.to - journal.from + 1 >= journal.count, journal.count > 0 || journal.to === journal.from);
  check(state !== 'closed' || (final && effects.length + approvals.length === 0), state !== 'ok' || code === undefined);
  check(predicate.redacted !== false, state === 'paused' ? !final : final || !/^(ok|refused)$/.test(state));
  checkEffects(effects, approvals, journal.count);
  return { ...predicate, digest };
};
/** @type {Fn} */ const checkEffects = (effects, approvals, count) => {
  const byKey = new Map(effects.map((/** @type {any} */ effect) => [effect.key, effect]));
  const approved = new Set(approvals.map((/** @type {any} */ approval) => approval.effect));
  for (const { key, state, intent = -1, end = -1, attempts, arguments: executed } of effects) {
    check(byKey.size === effects.length, intent < count, end < count, intent + end > -2, end === -1 || end > intent);
    check(end >= 0 || state === 'unknown' || state === 'denied', executed === undefined || approved.has(key));
    check(state !== 'denied' || (intent === -1 && attempts === undefined));
  }
  for (const { effect, approved: isApproved, arguments: committed } of approvals) {
    const { state = 'denied', intent, arguments: executed } = byKey.get(effect) ?? {};
    check(isApproved || state === 'denied', executed === committed || (executed ?? intent) === undefined);
  }
};
/** @type {Fn} */ const checkChains = (read) => {
  const sessions = new Map();
  for (const [i, { session, turn, sequence, previous, journal, final, reopened, digest, state }] of read.entries()) {
    const known = sessions.get(session) ?? { next: 0, turns: new Map(), isWhole: true };
    const before = known.turns.get(turn) ?? { to: -1, final: false };
    check(i === 0 || read[i - 1].session <= session, sequence >= known.next, known.state !== 'closed');
    check(sequence > known.next || previous === known.digest, turn === '' || before.final === (reopened ?? false));
    check(turn === '' || journal.count === 0 || journal.from > before.to, reopened !== false);
    known.turns.set(turn, { to: journal.count > 0 ? journal.to : before.to, final });
    const isWhole = known.isWhole && sequence === known.next;
    sessions.set(session, { ...known, digest, state, isWhole, next: sequence + 1 });
  }
  return [sessions, [...sessions.values()]];
};
/** @type {Fn} */ const checkBundle = ({ checkpoint: note, receipts, entries }, keys) => {
  const checkpoint = note === undefined ? undefined : readCheckpoint(note, keys);
  const read = receipts.map((/** @type {any} */ receipt) => readReceipt(receipt, checkpoint, keys));
  const [sessions, ends] = checkChains(read);
  check(ends[0], entries?.length !== 0, !checkpoint || [...sessions.keys()].every((id) => checkpoint.listed.has(id)));
  let isMissing = ends.some((/** @type {any} */ { isWhole }) => !isWhole);
  for (const [id, { count, head, isClosed }] of checkpoint?.listed ?? []) {
    const { next = 0, digest = head, state = isClosed ? 'closed' : '' } = sessions.get(id) ?? {};
    isMissing ||= next < count;
    check(next < count || (next === count && digest === head && (state === 'closed') === isClosed));
  }
  for (const [i, { receipt, leaf, salt, entry, proof }] of (entries ?? []).entries()) {
    const before = entries[i - 1] ?? { receipt: -1 };
    const { count, root } = read[receipt].journal;
    check(receipt > before.receipt || (receipt === before.receipt && leaf > before.leaf));
    check(rootOf(sha256('\0', salt, entry), leaf, count, proof) === root);
  }
  const isClosed = !checkpoint?.hasGaps && ends.every((/** @type {any} */ { state }) => state === 'closed');
  return { complete: !isMissing && ((checkpoint && isClosed) || 'unknown'), scope: checkpoint?.scope };
};
/** @type {Fn} */ export const verify = (bytes, { keys }) => {
  try {
    return { valid: true, ...checkBundle(parse(bytes, 'bundle', '\n'), keys) };
  } catch {
    return { valid: false, complete: 'unknown' };
  }
};
if (process.argv.length === 4) {
  const verdict = verify(readFileSync(process.argv[2] ?? ''), JSON.parse(readFileSync(process.argv[3] ?? '', 'utf8')));
  process.stdout.write(`${JSON.stringify(verdict)}\n`);
  process.exitCode = verdict.valid && verdict.complete !== false ? 0 : 3;
}
