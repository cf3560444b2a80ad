// The log of a store: checkpoints, and two views of one log.

import { expect } from 'vitest';
import { consistencyProof, merkleLeaf, merkleRoot } from '../../src/base/merkle.js';
import type { Checkpoint } from '../../src/protocol/receipt.js';
import {
  checkpointText,
  compareCheckpoints,
  createCheckpoint,
  verifyCheckpoint,
} from '../../src/views/receipt/checkpoint.js';
import { checkpointSigner, receiptSigner, trustedKeys } from '../support/receipt-fixture.js';
import { verifies } from '../verifies.js';

const leaves = (count: number, fork = ''): string[] =>
  Array.from({ length: count }, (_, i) => merkleLeaf(`${i}${i > 3 ? fork : ''}`));
const stateOf = (tree: readonly string[], origin = 'rondo/shop'): Checkpoint => ({
  ...{
    origin,
    size: tree.length,
    root: merkleRoot(tree),
    scope: { isWhole: false, asOf: tree.length, gaps: { unsealed: 2, removed: 1 } },
  },
  sessions: [{ id: 'a b\n/é', count: 3, head: 'a'.repeat(64), isClosed: false }],
});

verifies('receipt.log', 'a signed checkpoint is read back as it was', async () => {
  const checkpoint = stateOf(leaves(5));
  const note = await createCheckpoint(checkpoint, [checkpointSigner]);
  expect(note.split('\n').slice(0, 2)).toEqual(['rondo/shop', '5']);
  expect(verifyCheckpoint(note, trustedKeys)).toEqual({ checkpoint });
  expect(() => checkpointText({ ...checkpoint, origin: 'rondo/a b' })).toThrow('invalid');
});

verifies('receipt.log', 'every change of a checkpoint is refused', async () => {
  const note = await createCheckpoint(stateOf(leaves(5)), [checkpointSigner]);
  for (let at = 0; at < note.length; at++) {
    for (const other of ['0', 'A', ' ', '\n', '']) {
      const changed = `${note.slice(0, at)}${other}${note.slice(at + 1)}`;
      if (changed !== note) expect(verifyCheckpoint(changed, trustedKeys), changed).toHaveProperty('problem');
    }
  }
  const [text = '', signature = ''] = note.split('\n\n');
  for (const changed of [
    '',
    '\n\n',
    text,
    `${text}\n\n`,
    `${note}\n`,
    `${note}${signature}`,
    `${text}\n\n${signature}${signature}`,
    `${text}\n\n${signature}— x AAAA\n`,
  ])
    expect(verifyCheckpoint(changed, trustedKeys), changed).toHaveProperty('problem');
  const byReceiptKey = await createCheckpoint(stateOf(leaves(5)), [receiptSigner]);
  expect(verifyCheckpoint(byReceiptKey, trustedKeys)).toEqual({ problem: 'key_role' });
});

verifies('receipt.log', 'two checkpoints of one log are consistent, and a split view is reported', () => {
  const [small, large, forked] = [leaves(6), leaves(11), leaves(11, ' changed')];
  const proof = consistencyProof(large, 6);
  expect(compareCheckpoints(stateOf(small), stateOf(large), proof)).toBe('consistent');
  expect(compareCheckpoints(stateOf(large), stateOf(small), proof)).toBe('consistent');
  expect(compareCheckpoints(stateOf(small), stateOf(forked), consistencyProof(forked, 6))).toBe('split');
  expect(compareCheckpoints(stateOf(large), stateOf(forked), [])).toBe('split');
  expect(compareCheckpoints(stateOf(small), stateOf(large), [])).toBe('split');
  expect(compareCheckpoints(stateOf(large), stateOf(large), [])).toBe('consistent');
  expect(compareCheckpoints(stateOf([]), stateOf(large), [])).toBe('consistent');
  expect(compareCheckpoints(stateOf(small), stateOf(large, 'rondo/other'), proof)).toBe('unrelated');
});
