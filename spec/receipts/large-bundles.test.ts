// Bundles of any size: they are read part by part, and no further than necessary.

import { expect } from 'vitest';
import { signableJson } from '../../src/json/i-json.js';
import type { ReceiptBundle } from '../../src/protocol/receipt.js';
import { bundleBytes } from '../../src/views/receipt/bundle.js';
import { verifyBundle, verifyBundleParts } from '../../src/views/receipt/verify-bundle.js';
import { bundleOf, sealSession, trustedKeys } from '../support/receipt-fixture.js';
import { verifies } from '../verifies.js';

const bundle = await bundleOf(await Promise.all([sealSession('a'), sealSession('b')]), { disclosed: 2 });
const whole = bundleBytes(bundle);

function* partsOf(bytes: Buffer, size: number): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

verifies('receipt.bounded', 'a verdict does not depend on the parts in which a bundle is read', () => {
  const { verdict } = verifyBundle(whole, trustedKeys);
  expect(verdict).toMatchObject({ valid: true, complete: true, subject: { receipts: 10 } });
  for (const size of [1, 7, 100, 4096, whole.length])
    expect(verifyBundleParts(partsOf(whole, size), trustedKeys).verdict, `parts of ${size}`).toEqual(verdict);
});

verifies('receipt.bounded', 'no part of a bundle is left out, added, or put in another place', () => {
  const text = whole.toString();
  const [, rest = ''] = text.split('"receipts":[');
  const wrong = [
    '',
    text.slice(0, -1),
    `${text}\n`,
    text.slice(0, text.length - rest.length),
    `${text.slice(0, text.length - rest.length)},${rest}`,
    text.replace(/\]\}\n$/, ',]}\n'),
    text.replace(/\]\}\n$/, '],"receipts":[]}\n'),
    text.replace(/\]\}\n$/, '],"signed":true}\n'),
    text.replace('},{"envelope":', '}{"envelope":'),
    text.replace('},{"envelope":', '},{},{"envelope":'),
    text.replace('},{"envelope":', '}, {"envelope":'),
    text.replace('"receipts":[', '"receipts":[{},'),
    text.replace('{"checkpoint":', '{"alg":1,"checkpoint":'),
  ];
  for (const changed of wrong)
    for (const size of [5, whole.length])
      expect(verifyBundleParts(partsOf(Buffer.from(changed), size), trustedKeys).verdict.reasons, changed).toEqual([
        'bundle_malformed',
      ]);
  const none: ReceiptBundle = { format: 'rondo.receipts.v1', receipts: [] };
  expect(verifyBundle(bundleBytes(none), trustedKeys).verdict.reasons).toEqual(['bundle_empty']);
});

verifies('receipt.tampering', 'an empty list of entries, which nothing signs, is refused', () => {
  const { entries: _, ...rest } = bundle;
  expect(verifyBundle(bundleBytes(rest), trustedKeys).verdict).toMatchObject({ valid: true });
  for (const changed of [
    { ...rest, entries: [] },
    { ...bundle, entries: [] },
  ])
    expect(verifyBundle(bundleBytes(changed), trustedKeys).verdict.reasons).toEqual(['bundle_malformed']);
});

verifies('receipt.bounded', 'copies of receipts are not read to their end', () => {
  const { receipts } = bundle;
  const start = whole.subarray(0, whole.indexOf('"receipts":[') + 12);
  let read = 0;
  function* copies(): Generator<Buffer> {
    yield start;
    for (; read < 150_000; read += receipts.length)
      yield Buffer.from(`${read === 0 ? '' : ','}${signableJson(receipts).slice(1, -1)}`);
    yield Buffer.from(']}\n');
  }
  const { verdict } = verifyBundleParts(copies(), trustedKeys);
  expect(verdict).toMatchObject({ valid: false, reasons: ['receipts_out_of_order'] });
  expect(read, 'the whole file was read').toBeLessThan(100);
});
