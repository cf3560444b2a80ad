// Tampering: whatever is changed in a bundle, it is refused.

import { expect } from 'vitest';
import { canonicalJson } from '../../src/json/canonical.js';
import type { Json } from '../../src/protocol/json.js';
import { bundleBytes } from '../../src/views/receipt/bundle.js';
import { verifyBundle } from '../../src/views/receipt/verify-bundle.js';
import { randomFrom, SEED } from '../support/approval-fixture.js';
import { bundleOf, sealSession, trustedKeys } from '../support/receipt-fixture.js';
import { repetitions } from '../support/repetitions.js';
import { verifies } from '../verifies.js';

const sessions = await Promise.all([sealSession('a', { turns: 1 }), sealSession('b', { turns: 1, isClosed: false })]);
const bundle = await bundleOf(sessions, { disclosed: 2 });
const bytes = bundleBytes(bundle);
const random = randomFrom(SEED);

/** True if a changed bundle is refused: it is invalid, or reported as incomplete. */
function isRefused(changed: Uint8Array): boolean {
  const { verdict, receipts } = verifyBundle(changed, trustedKeys);
  if (!verdict.valid && receipts.length > 0) throw new Error('receipts of an invalid bundle were returned');
  return !verdict.valid || verdict.complete === false;
}

/** All places of a value: the object or list, and the name or index. */
function placesOf(value: Json, found: [{ [name: string]: Json }, string][] = []): [{ [name: string]: Json }, string][] {
  if (typeof value !== 'object' || value === null) return found;
  const fields = value as { [name: string]: Json };
  for (const name of Object.keys(fields)) {
    found.push([fields, name]);
    placesOf(fields[name] as Json, found);
  }
  return found;
}

/** Values of every type; one of another type or content replaces a member. */
const replacements: readonly Json[] = [null, true, 0, 1, -1, 0.5, '', 'x', [], {}, [1], { a: 1 }];

function withChange(
  source: Json,
  pick: number,
  change: (holder: { [name: string]: Json }, name: string) => void,
): Json {
  const copy = structuredClone(source);
  const places = placesOf(copy as Json);
  const [holder, name] = places[pick % places.length] as [{ [name: string]: Json }, string];
  change(holder, name);
  return copy as Json;
}

const toBytes = (value: Json): Buffer => Buffer.from(`${canonicalJson(value)}\n`);

/** Changes the statement of a random receipt without signing it again. */
function withStatement(change: (text: string) => string): Buffer {
  const copy = structuredClone(bundle) as unknown as { receipts: { envelope: { payload: string } }[] };
  const { envelope } = random.pick(copy.receipts);
  envelope.payload = Buffer.from(change(Buffer.from(envelope.payload, 'base64').toString())).toString('base64');
  return toBytes(copy as unknown as Json);
}

const tamperings: { readonly [kind: string]: () => Uint8Array } = {
  'one bit of the file': () => {
    const copy = Buffer.from(bytes);
    const at = random.below(copy.length);
    copy[at] = (copy[at] ?? 0) ^ (1 << random.below(8));
    return copy;
  },
  'one byte inserted or removed': () => {
    const at = random.below(bytes.length);
    const inserted = random.next() < 0.5 ? Buffer.from([random.below(256)]) : Buffer.alloc(0);
    return Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(inserted.length > 0 ? at : at + 1)]);
  },
  'one member replaced by a value of any type': () =>
    toBytes(
      withChange(bundle as unknown as Json, random.below(1e9), (holder, name) => {
        const others = replacements.filter((each) => canonicalJson(each) !== canonicalJson(holder[name] as Json));
        holder[name] = random.pick(others);
      }),
    ),
  'one member added': () =>
    toBytes(
      withChange(bundle as unknown as Json, random.below(1e9), (holder) => {
        if (Array.isArray(holder)) holder.push(random.pick(replacements));
        else holder[random.pick(['alg', 'key', 'kid', 'note', 'zzz'])] = random.pick(replacements);
      }),
    ),
  'one member of a statement changed': () =>
    withStatement((text) =>
      canonicalJson(
        withChange(JSON.parse(text) as Json, random.below(1e9), (holder, name) => {
          holder[name] = typeof holder[name] === 'number' ? (holder[name] as number) + 1 : random.pick(['y', 7, null]);
        }),
      ),
    ),
  'white space in signed bytes': () =>
    withStatement((text) => {
      const spots = [...text.matchAll(/[,:{}[\]]/g)].map(({ index }) => index + 1);
      const at = random.pick(spots);
      return `${text.slice(0, at)}${random.pick([' ', '\n', '\t'])}${text.slice(at)}`;
    }),
  'two receipts, or two entries, exchanged': () => {
    const copy = structuredClone(bundle) as unknown as { receipts: Json[]; entries: Json[] };
    const list = random.pick([copy.receipts, copy.entries]);
    const i = random.below(list.length - 1);
    [list[i], list[i + 1]] = [list[i + 1] as Json, list[i] as Json];
    return toBytes(copy as unknown as Json);
  },
  'a part of one receipt moved to another': () => {
    const copy = structuredClone(bundle) as unknown as { receipts: { [part: string]: Json }[] };
    const i = random.below(copy.receipts.length - 1);
    const part = random.pick(['envelope', 'proof']);
    (copy.receipts[i] as { [part: string]: Json })[part] = copy.receipts[i + 1]?.[part] as Json;
    return toBytes(copy as unknown as Json);
  },
  'a receipt removed': () => {
    const copy = structuredClone(bundle) as unknown as { receipts: Json[]; entries?: Json[] };
    copy.receipts.splice(random.below(copy.receipts.length), 1);
    delete copy.entries;
    return toBytes(copy as unknown as Json);
  },
  'one character of the checkpoint changed': () => {
    const text = bundle.checkpoint ?? '';
    const at = random.below(text.length);
    const other = random.pick([...'aZ09 \n+/='].filter((each) => each !== text[at]));
    return toBytes({ ...bundle, checkpoint: `${text.slice(0, at)}${other}${text.slice(at + 1)}` } as unknown as Json);
  },
};

const CHANGES = repetitions(5000);

verifies(
  'receipt.tampering',
  `all of ${CHANGES} random changes of a bundle are refused`,
  () => {
    expect(isRefused(bytes)).toBe(false);
    const kinds = Object.entries(tamperings);
    const accepted: string[] = [];
    for (let i = 0; i < CHANGES; i++) {
      const [kind, tamper] = kinds[i % kinds.length] as [string, () => Uint8Array];
      const changed = tamper();
      if (!bytes.equals(changed) && !isRefused(changed)) accepted.push(`${kind}: ${Buffer.from(changed).toString()}`);
    }
    expect(accepted.slice(0, 3), `accepted after a change (seed ${SEED})`).toEqual([]);
  },
  300_000,
);
