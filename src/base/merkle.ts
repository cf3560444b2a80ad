/**
 * Merkle trees as in RFC 6962: SHA-256, with the prefix 0x00 for leaves and 0x01 for nodes. A tree commits to a list of
 * leaves. An inclusion proof shows that one leaf is in it, and a consistency proof shows that a longer list begins with
 * a shorter one. The proofs of others are untrusted: their verification never throws.
 */
import { sha256 } from './sha256.js';

const HASH_BYTES = 32;

/** The bytes of a node before they are hashed; reused, because hashing is synchronous. */
const nodeBytes = Buffer.alloc(1 + 2 * HASH_BYTES, 1);

/** Returns the hash of a leaf with this content: bytes, or the UTF-8 form of a text. */
export function merkleLeaf(content: Uint8Array | string): Buffer {
  if (typeof content === 'string') return sha256(`\0${content}`);
  const bytes = Buffer.allocUnsafe(1 + content.length);
  bytes[0] = 0;
  bytes.set(content, 1);
  return sha256(bytes);
}

function hashNode(left: Uint8Array, right: Uint8Array): Buffer {
  nodeBytes.set(left, 1);
  nodeBytes.set(right, 1 + HASH_BYTES);
  return sha256(nodeBytes);
}

/**
 * A tree of which only the right edge is kept: the roots of its complete subtrees, the largest first. It grows by one
 * leaf at a time, and its root is known at every size.
 */
export class MerkleFrontier {
  private readonly subtrees: Uint8Array[];
  private leafCount: number;

  /** Continues a tree of `size` leaves from its complete subtrees; without arguments, starts an empty one. */
  constructor(size = 0, hashes: readonly Uint8Array[] = []) {
    if (!Number.isSafeInteger(size) || size < 0 || hashes.length !== countOnes(size))
      throw new TypeError(`A tree of ${size} leaves does not have ${hashes.length} complete subtrees.`);
    if (hashes.some(({ length }) => length !== HASH_BYTES)) throw new TypeError('A hash of a tree has 32 bytes.');
    this.leafCount = size;
    this.subtrees = hashes.map((each) => Buffer.from(each));
  }

  /** The number of leaves. */
  get size(): number {
    return this.leafCount;
  }

  /** The roots of the complete subtrees, the largest first: with the size, everything that is needed to continue. */
  get hashes(): readonly Uint8Array[] {
    return this.subtrees;
  }

  /** Adds the hash of the next leaf. */
  append(leaf: Uint8Array): void {
    let node: Uint8Array = leaf;
    for (let rest = this.leafCount; rest % 2 === 1; rest = (rest - 1) / 2)
      node = hashNode(this.subtrees.pop() as Uint8Array, node);
    this.subtrees.push(node);
    this.leafCount += 1;
  }

  /** Returns the root of the tree. */
  root(): Buffer {
    let root = this.subtrees.at(-1);
    if (root === undefined) return sha256('');
    for (let i = this.subtrees.length - 2; i >= 0; i--) root = hashNode(this.subtrees[i] as Uint8Array, root);
    return Buffer.from(root);
  }
}

function countOnes(size: number): number {
  let ones = 0;
  for (let rest = size; rest > 0; rest = Math.floor(rest / 2)) ones += rest % 2;
  return ones;
}

/** Returns the root of a tree with these leaf hashes. */
export function merkleRoot(leaves: readonly Uint8Array[]): Buffer {
  let level = leaves;
  if (level.length === 0) return sha256('');
  while (level.length > 1) level = levelAbove(level);
  return Buffer.from(level[0] as Uint8Array);
}

/** Returns the nodes above a level of nodes. A last node without a sibling moves up unchanged. */
function levelAbove(level: readonly Uint8Array[]): readonly Uint8Array[] {
  const above: Uint8Array[] = [];
  for (let i = 0; i + 1 < level.length; i += 2)
    above.push(hashNode(level[i] as Uint8Array, level[i + 1] as Uint8Array));
  if (level.length % 2 === 1) above.push(level[level.length - 1] as Uint8Array);
  return above;
}

/** Returns the proofs that each of these leaves is in the tree. All of them cost one pass over the tree. */
export function inclusionProofs(leaves: readonly Uint8Array[], indexes: readonly number[]): readonly Buffer[][] {
  const proofs = indexes.map((): Buffer[] => []);
  const positions = [...indexes];
  for (const index of indexes)
    if (!Number.isSafeInteger(index) || index < 0 || index >= leaves.length)
      throw new RangeError(`A tree of ${leaves.length} leaves has no leaf ${index}.`);
  for (let level = leaves; level.length > 1; level = levelAbove(level)) {
    for (const [i, position] of positions.entries()) {
      const sibling = level[position % 2 === 0 ? position + 1 : position - 1];
      if (sibling !== undefined) proofs[i]?.push(Buffer.from(sibling));
      positions[i] = Math.floor(position / 2);
    }
  }
  return proofs;
}

/** Returns the proof that the leaf at an index is in the tree. */
export function inclusionProof(leaves: readonly Uint8Array[], index: number): readonly Buffer[] {
  return inclusionProofs(leaves, [index])[0] ?? [];
}

/** True if the proof shows that `leaf` is the leaf at `index` of the tree with this size and root. */
export function isIncluded(
  leaf: Uint8Array,
  index: number,
  size: number,
  proof: readonly Uint8Array[],
  root: Uint8Array,
): boolean {
  if (!isSize(index) || !isSize(size) || index >= size || !areHashes(leaf, root, ...proof)) return false;
  let [position, last] = [index, size - 1];
  let node = leaf;
  for (const sibling of proof) {
    // guard: proof-not-longer-than-tree
    if (last === 0) return false;
    if (position % 2 === 1 || position === last) {
      node = hashNode(sibling, node);
      while (position % 2 === 0 && position !== 0) [position, last] = [position / 2, Math.floor(last / 2)];
    } else node = hashNode(node, sibling);
    [position, last] = [Math.floor(position / 2), Math.floor(last / 2)];
  }
  return last === 0 && Buffer.compare(node, root) === 0;
}

/** Returns the proof that the tree of all leaves begins with the tree of the first `size` leaves. */
export function consistencyProof(leaves: readonly Uint8Array[], size: number): readonly Buffer[] {
  if (!isSize(size) || size > leaves.length)
    throw new RangeError(`A tree of ${leaves.length} leaves does not contain a tree of ${size}.`);
  return size === 0 || size === leaves.length ? [] : subproof(leaves, size, true);
}

function subproof(leaves: readonly Uint8Array[], size: number, isWhole: boolean): Buffer[] {
  if (size === leaves.length) return isWhole ? [] : [merkleRoot(leaves)];
  let split = 1;
  while (split * 2 < leaves.length) split *= 2;
  if (size <= split) return [...subproof(leaves.slice(0, split), size, isWhole), merkleRoot(leaves.slice(split))];
  return [...subproof(leaves.slice(split), size - split, false), merkleRoot(leaves.slice(0, split))];
}

/** A tree as it is known from outside: its size and its root. */
export interface TreeHead {
  readonly size: number;
  readonly root: Uint8Array;
}

/** True if the proof shows that the tree `second` begins with the tree `first`. About an empty tree, a proof shows nothing. */
export function isConsistent(first: TreeHead, second: TreeHead, proof: readonly Uint8Array[]): boolean {
  if (!isSize(first.size) || !isSize(second.size) || first.size > second.size || first.size === 0) return false;
  if (first.size === second.size) return proof.length === 0 && Buffer.compare(first.root, second.root) === 0;
  if (!areHashes(first.root, second.root, ...proof)) return false;
  return matchesBothRoots(first, second, proof);
}

/** Computes both roots from the proof of two trees of different sizes, and compares them. */
function matchesBothRoots(first: TreeHead, second: TreeHead, proof: readonly Uint8Array[]): boolean {
  let [position, last] = [first.size - 1, second.size - 1];
  while (position % 2 === 1) [position, last] = [(position - 1) / 2, Math.floor(last / 2)];
  // A tree that is one complete subtree of the other is not part of the proof.
  const nodes = position === 0 ? [first.root, ...proof] : proof;
  const [start, ...rest] = nodes;
  if (start === undefined) return false;
  let [firstRoot, secondRoot] = [start, start];
  for (const node of rest) {
    if (last === 0) return false;
    if (position % 2 === 1 || position === last) {
      [firstRoot, secondRoot] = [hashNode(node, firstRoot), hashNode(node, secondRoot)];
      while (position % 2 === 0 && position !== 0) [position, last] = [position / 2, Math.floor(last / 2)];
    } else secondRoot = hashNode(secondRoot, node);
    [position, last] = [Math.floor(position / 2), Math.floor(last / 2)];
  }
  return last === 0 && Buffer.compare(firstRoot, first.root) === 0 && Buffer.compare(secondRoot, second.root) === 0;
}

function isSize(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function areHashes(...hashes: readonly Uint8Array[]): boolean {
  return hashes.every(({ length }) => length === HASH_BYTES);
}
