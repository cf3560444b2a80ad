import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { isSignatureValid, newKeySeed, privateKeyOf, publicKeyOf, signBytes, signBytesSync } from './ed25519.js';

const file = new URL('../../../shared/data/ed25519/ed25519_test.json', import.meta.url);
const hasVectors = existsSync(file);

interface Group {
  readonly publicKey: { readonly pk: string };
  readonly tests: readonly {
    readonly tcId: number;
    readonly msg: string;
    readonly sig: string;
    readonly result: string;
  }[];
}

const hex = (text: string): Buffer => Buffer.from(text, 'hex');

verifies('receipt.keys', 'all 151 Wycheproof vectors have the listed result', (context) => {
  context.skip(!hasVectors, 'needs ../shared/data');
  const { testGroups } = JSON.parse(readFileSync(file, 'utf8')) as { testGroups: Group[] };
  const outcomes = testGroups.flatMap(({ publicKey, tests }) =>
    tests.map(({ tcId, msg, sig, result }) => {
      const isValid = isSignatureValid(hex(msg), hex(sig), publicKeyOf(hex(publicKey.pk)));
      return { tcId, isRight: isValid === (result === 'valid') };
    }),
  );
  expect(outcomes).toHaveLength(151);
  expect(outcomes.filter(({ isRight }) => !isRight)).toEqual([]);
});

const P = 2n ** 255n - 19n;
const mod = (n: bigint): bigint => ((n % P) + P) % P;
const power = (base: bigint, exponent: bigint): bigint => {
  let [result, square] = [1n, mod(base)];
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = mod(result * square);
    square = mod(square * square);
  }
  return result;
};
const inverse = (n: bigint): bigint => power(n, P - 2n);
const D = mod(-121665n * inverse(121666n));

/** Returns the y coordinates of all points whose order divides 8, computed from the equation of the curve. */
function smallOrderY(): Set<bigint> {
  const found = new Set([0n, 1n, P - 1n]);
  // A point of order 8 doubles to one of order 4, whose y is 0. So x² = -y², and the equation of the curve,
  // -x² + y² = 1 + d·x²·y², becomes d·y⁴ + 2·y² - 1 = 0.
  const root = squareRoot(mod(1n + D));
  for (const s of [root, mod(-root)]) {
    const ySquared = mod((s - 1n) * inverse(D));
    const y = squareRoot(ySquared);
    if (mod(y * y) === ySquared) for (const each of [y, mod(-y)]) found.add(each);
  }
  return found;
}

function squareRoot(n: bigint): bigint {
  const candidate = power(n, (P + 3n) / 8n);
  if (mod(candidate * candidate) === mod(n)) return candidate;
  return mod(candidate * power(2n, (P - 1n) / 4n));
}

/** Returns the encoding of a y coordinate with the sign bit of x. */
function encode(y: bigint, sign: number): Buffer {
  const bytes = hex(y.toString(16).padStart(64, '0')).reverse();
  bytes[31] = (bytes[31] ?? 0) | (sign << 7);
  return bytes;
}

verifies('receipt.keys', 'every key of small order is refused, with either sign', () => {
  const points = [...smallOrderY()];
  expect(points).toHaveLength(5);
  for (const y of points)
    for (const sign of [0, 1]) expect(() => publicKeyOf(encode(y, sign)), `y = ${y}`).toThrow('small order');
});

verifies('receipt.keys', 'every key that is not in its canonical form is refused', () => {
  for (let y = P; y < 2n ** 255n; y++)
    for (const sign of [0, 1]) expect(() => publicKeyOf(encode(y, sign)), `y = ${y}`).toThrow('canonical form');
  for (const length of [0, 31, 33, 64]) expect(() => publicKeyOf(Buffer.alloc(length, 7))).toThrow('needs 32');
});

verifies(
  'receipt.keys',
  'a signature is valid for its bytes and its key only, and both ways of signing agree',
  async () => {
    const key = privateKeyOf(Buffer.alloc(32, 0x42));
    const other = privateKeyOf(newKeySeed());
    const message = Buffer.from('a receipt');
    const signature = await signBytes(message, key);
    expect(Buffer.from(key.publicKey.bytes).toString('base64')).toBe('IVL40Zt5HSRFMkLhXy6rbLfP+ntqXtMAl5YOBpiB2xI=');
    expect(Buffer.from(signBytesSync(message, key))).toEqual(Buffer.from(signature));
    expect(isSignatureValid(message, signature, key.publicKey)).toBe(true);
    expect(isSignatureValid(message, signature, other.publicKey)).toBe(false);
    expect(isSignatureValid(Buffer.from('another'), signature, key.publicKey)).toBe(false);
    expect(isSignatureValid(message, Buffer.concat([signature, signature]), key.publicKey)).toBe(false);
    expect(() => privateKeyOf(Buffer.alloc(31))).toThrow('32 bytes');
  },
);
