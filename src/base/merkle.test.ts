import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import {
  consistencyProof,
  inclusionProof,
  inclusionProofs,
  isConsistent,
  isIncluded,
  MerkleFrontier,
  merkleLeaf,
  merkleRoot,
} from './merkle.js';

const directory = fileURLToPath(new URL('../../../shared/data/merkle/testdata/', import.meta.url));
const hasCases = existsSync(directory);

interface Case {
  readonly leafIdx: number;
  readonly treeSize: number;
  readonly leafHash: string;
  readonly root: string;
  readonly size1: number;
  readonly size2: number;
  readonly root1: string;
  readonly root2: string;
  readonly proof: readonly string[] | null;
  readonly wantErr: boolean;
}

const hex = (text: string): string => Buffer.from(text ?? '', 'base64').toString('hex');

function casesIn(kind: string): Case[] {
  const files = readdirSync(join(directory, kind), { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => file.endsWith('.json'))
    .map((file) => JSON.parse(readFileSync(join(directory, kind, file), 'utf8')) as Case);
}

const isIncludedIn = ({ leafHash, leafIdx, treeSize, proof, root }: Case): boolean =>
  isIncluded(hex(leafHash), leafIdx, treeSize, (proof ?? []).map(hex), hex(root));

const isConsistentIn = ({ size1, size2, root1, root2, proof }: Case): boolean =>
  isConsistent({ size: size1, root: hex(root1) }, { size: size2, root: hex(root2) }, (proof ?? []).map(hex));

verifies('receipt.log', 'all 98 public cases of inclusion and 98 of consistency have the listed result', (context) => {
  context.skip(!hasCases, 'needs ../shared/data');
  const inclusion = casesIn('inclusion');
  const consistency = casesIn('consistency');
  expect([inclusion.length, consistency.length]).toEqual([98, 98]);
  expect(inclusion.filter((each) => isIncludedIn(each) === each.wantErr)).toEqual([]);
  expect(consistency.filter((each) => isConsistentIn(each) === each.wantErr)).toEqual([]);
});

const leavesOf = (count: number): string[] => Array.from({ length: count }, (_, i) => merkleLeaf(`${i}`));

verifies('receipt.log', 'the frontier has the root of the whole tree at every size', () => {
  const leaves = leavesOf(130);
  const frontier = new MerkleFrontier();
  for (const [i, leaf] of leaves.entries()) {
    expect([frontier.size, frontier.root()]).toEqual([i, merkleRoot(leaves.slice(0, i))]);
    frontier.append(leaf);
  }
});

verifies('receipt.log', 'a proof of inclusion holds for its leaf, index, size and root, and for no other', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 70 }), fc.nat(), fc.nat(), fc.nat(), (size, chosen, other, flipped) => {
      const leaves = leavesOf(size);
      const index = chosen % size;
      const root = merkleRoot(leaves);
      const proof = inclusionProof(leaves, index);
      const leaf = leaves[index] as string;
      expect(isIncluded(leaf, index, size, proof, root)).toBe(true);
      if (other % size !== index) expect(isIncluded(leaf, other % size, size, proof, root)).toBe(false);
      expect(isIncluded(leaf, index, size, [...proof, leaf], root)).toBe(false);
      expect(isIncluded(leaf, index, size, proof.slice(1), root)).toBe(size === 1);
      const [at, digit] = [flipped % Math.max(1, proof.length), flipped % 64];
      const node = proof[at];
      if (node === undefined) return;
      for (const other of [node[digit] === '0' ? '1' : '0', 'G', ''])
        expect(
          isIncluded(leaf, index, size, proof.with(at, node.slice(0, digit) + other + node.slice(digit + 1)), root),
        ).toBe(false);
      expect(isIncluded(leaf.toUpperCase(), index, size, proof, root)).toBe(false);
    }),
  );
  expect(inclusionProofs(leavesOf(9), [0, 8])).toEqual([
    inclusionProof(leavesOf(9), 0),
    inclusionProof(leavesOf(9), 8),
  ]);
  expect(() => inclusionProof(leavesOf(3), 3)).toThrow(RangeError);
});

verifies(
  'receipt.log',
  '1,000 random pairs of checkpoints are consistent exactly if one tree begins with the other',
  () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 90 }), fc.nat(), fc.nat(), (size, chosen, changed) => {
        const leaves = leavesOf(size);
        const firstSize = 1 + (chosen % size);
        const first = { size: firstSize, root: merkleRoot(leaves.slice(0, firstSize)) };
        const second = { size, root: merkleRoot(leaves) };
        const proof = consistencyProof(leaves, firstSize);
        expect(isConsistent(first, second, proof)).toBe(true);
        const forked = leaves.slice(0, firstSize);
        forked[changed % firstSize] = merkleLeaf('another receipt');
        expect(isConsistent({ size: firstSize, root: merkleRoot(forked) }, second, proof)).toBe(false);
      }),
      { numRuns: 1000 },
    );
  },
);
