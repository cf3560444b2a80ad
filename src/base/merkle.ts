/**
 * Merkle trees as in RFC 6962: SHA-256, with the prefix 0x00 for leaves and 0x01 for nodes. A tree commits to a list of
 * leaves. An inclusion proof shows that one leaf is in it, and a consistency proof shows that a longer list begins with
 * a shorter one. Hashes are texts of 64 lower-case hexadecimal digits. The proofs of others are untrusted: their
 * verification never throws.
 */
import { hash } from 'node:crypto';

const HASH_BYTES = 32;
const EMPTY_ROOT = hash('sha256', '', 'hex');
const HASH = /^[0-9a-f]{64}$/;

/** The bytes of a node before they are hashed; reused, because hashing is synchronous. */
const nodeBytes = Buffer.alloc(1 + 2 * HASH_BYTES, 1);

/** Returns the hash of a leaf with this text. */
export function merkleLeaf(text: string): string {
  return hash('sha256', `\0${text}`, 'hex');
}

function hashNode(left: string, right: string): string {
  nodeBytes.write(left, 1, 'hex');
  nodeBytes.write(right, 1 + HASH_BYTES, 'hex');
  return hash('sha256', nodeBytes, 'hex');
}

/** True for a hash of a tree. */
export function isMerkleHash(value: unknown): value is string {
  return typeof value === 'string' && HASH.test(value);
}

/**
 * A tree of which only the right edge is kept: the roots of its complete subtrees, the largest first. It grows by one
 * leaf at a time, and its root is known at every size.
 */
export class MerkleFrontier {
  private readonly subtrees: string[] = [];
  private leafCount = 0;

  /** The number of leaves. */
  get size(): number {
    return this.leafCount;
  }

  /** Adds the hash of the next leaf. */
  append(leaf: string): void {
    let node = leaf;
    for (let rest = this.leafCount; rest % 2 === 1; rest = (rest - 1) / 2)
      node = hashNode(this.subtrees.pop() as string, node);
    this.subtrees.push(node);
    this.leafCount += 1;
  }

  /** Returns the root of the tree. */
  root(): string {
    const [smallest = EMPTY_ROOT, ...larger] = this.subtrees.toReversed();
    return larger.reduce((right, left) => hashNode(left, right), smallest);
  }
}

/** Returns the root of a tree with these leaf hashes. */
export function merkleRoot(leaves: readonly string[]): string {
  let level = leaves;
  if (level.length === 0) return EMPTY_ROOT;
  while (level.length > 1) level = levelAbove(level);
  return level[0] as string;
}

/** Returns the nodes above a level of nodes. A last node without a sibling moves up unchanged. */
function levelAbove(level: readonly string[]): readonly string[] {
  const above: string[] = [];
  for (let i = 0; i + 1 < level.length; i += 2) above.push(hashNode(level[i] as string, level[i + 1] as string));
  if (level.length % 2 === 1) above.push(level[level.length - 1] as string);
  return above;
}

/** Returns the proofs that each of these leaves is in the tree. All of them cost one pass over the tree. */
export function inclusionProofs(leaves: readonly string[], indexes: readonly number[]): readonly string[][] {
  const proofs = indexes.map((): string[] => []);
  const positions = [...indexes];
  for (const index of indexes)
    if (!Number.isSafeInteger(index) || index < 0 || index >= leaves.length)
      throw new RangeError(`A tree of ${leaves.length} leaves has no leaf ${index}.`);
  for (let level = leaves; level.length > 1; level = levelAbove(level)) {
    for (const [i, position] of positions.entries()) {
      const sibling = level[position % 2 === 0 ? position + 1 : position - 1];
      if (sibling !== undefined) proofs[i]?.push(sibling);
      positions[i] = Math.floor(position / 2);
    }
  }
  return proofs;
}

/** Returns the proof that the leaf at an index is in the tree. */
export function inclusionProof(leaves: readonly string[], index: number): readonly string[] {
  return inclusionProofs(leaves, [index])[0] ?? [];
}

/** A node of a tree, with the nodes below it. */
interface KnownNode {
  readonly left: string;
  readonly right: string;
  readonly hash: string;
}

/** The nodes of one tree, each hashed once: the proofs of many leaves share most of them. */
export class NodeCache {
  private readonly nodes = new Map<number, KnownNode>();

  /** Returns the hash of a node by its level and position; undefined if one of the nodes below is no hash. */
  hashOf(level: number, position: number, left: string, right: string): string | undefined {
    const place = position * MAX_LEVELS + level;
    const known = this.nodes.get(place);
    if (known?.left === left && known.right === right) return known.hash;
    if (!areHashes(left, right)) return undefined;
    const hash = hashNode(left, right);
    if (known === undefined) this.nodes.set(place, { left, right, hash });
    return hash;
  }
}

/** A tree of which an index is a safe integer has fewer levels. */
const MAX_LEVELS = 64;

/**
 * True if the proof shows that `leaf` is the leaf at `index` of the tree with this size and root. Pass the same cache for
 * all leaves of a tree.
 */
export function isIncluded(
  leaf: string,
  index: number,
  size: number,
  proof: readonly string[],
  root: string,
  cache: NodeCache = new NodeCache(),
): boolean {
  if (!isSize(index) || !isSize(size) || index >= size || !areHashes(leaf, root)) return false;
  let [position, last, level] = [index, size - 1, 0];
  let node: string | undefined = leaf;
  for (const sibling of proof) {
    // guard: proof-not-longer-than-tree
    if (last === 0) return false;
    const isRight = position % 2 === 1 || position === last;
    // A last node without a sibling moves up unchanged.
    if (isRight)
      for (; position % 2 === 0 && position !== 0; level++) [position, last] = [position / 2, Math.floor(last / 2)];
    [position, last, level] = [Math.floor(position / 2), Math.floor(last / 2), level + 1];
    const [left, right]: readonly [string, string] = isRight ? [sibling, node] : [node, sibling];
    node = cache.hashOf(level, position, left, right);
    if (node === undefined) return false;
  }
  return last === 0 && node === root;
}

/** Returns the proof that the tree of all leaves begins with the tree of the first `size` leaves. */
export function consistencyProof(leaves: readonly string[], size: number): readonly string[] {
  if (!isSize(size) || size > leaves.length)
    throw new RangeError(`A tree of ${leaves.length} leaves does not contain a tree of ${size}.`);
  return size === 0 || size === leaves.length ? [] : subproof(leaves, size, true);
}

function subproof(leaves: readonly string[], size: number, isWhole: boolean): string[] {
  if (size === leaves.length) return isWhole ? [] : [merkleRoot(leaves)];
  let split = 1;
  while (split * 2 < leaves.length) split *= 2;
  if (size <= split) return [...subproof(leaves.slice(0, split), size, isWhole), merkleRoot(leaves.slice(split))];
  return [...subproof(leaves.slice(split), size - split, false), merkleRoot(leaves.slice(0, split))];
}

/** A tree as it is known from outside: its size and its root. */
export interface TreeHead {
  readonly size: number;
  readonly root: string;
}

/** True if the proof shows that the tree `second` begins with the tree `first`. About an empty tree, a proof shows nothing. */
export function isConsistent(first: TreeHead, second: TreeHead, proof: readonly string[]): boolean {
  if (!isSize(first.size) || !isSize(second.size) || first.size > second.size || first.size === 0) return false;
  if (first.size === second.size) return proof.length === 0 && first.root === second.root;
  if (!areHashes(first.root, second.root, ...proof)) return false;
  return matchesBothRoots(first, second, proof);
}

/** Computes both roots from the proof of two trees of different sizes, and compares them. */
function matchesBothRoots(first: TreeHead, second: TreeHead, proof: readonly string[]): boolean {
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
  return last === 0 && firstRoot === first.root && secondRoot === second.root;
}

function isSize(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function areHashes(...hashes: readonly string[]): boolean {
  return hashes.every(isMerkleHash);
}
