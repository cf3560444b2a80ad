/**
 * Values that cross the journal. `snapshot` checks and copies in one walk: what is journaled is plain JSON of
 * bounded depth and size, and nobody who keeps a reference can change it afterwards.
 * A value over `INLINE` goes to the blobs by digest.
 */
import type { Json } from '../protocol/json.js';
import { LoopError } from './errors.js';

const DEPTH = 256;
const SIZE = 64 * 1024 * 1024;
const INLINE = 4096;

let weight = 0;

/** Whether the value of the last snapshot is too large to sit inside its entry. */
export function heavy(): boolean {
  return weight > INLINE;
}

class Flaw {
  readonly path: string;
  readonly reason: string;

  constructor(path: string, reason: string) {
    this.path = path;
    this.reason = reason;
  }
}

function refuse(path: string | undefined, reason: string): never {
  throw new Flaw(path ?? '', reason);
}

function under(path: string | undefined, step: string | number): string | undefined {
  return path === undefined ? undefined : `${path}[${JSON.stringify(step)}]`;
}

function copyList(list: readonly unknown[], depth: number, path: string | undefined): Json[] {
  const copy: Json[] = [];
  for (let i = 0; i < list.length; i++) {
    if (list[i] === undefined) refuse(under(path, i), 'a list may not hold undefined');
    copy.push(copyOf(list[i], depth, under(path, i)));
  }
  return copy;
}

function copyFields(object: object, depth: number, path: string | undefined): { [key: string]: Json } {
  const proto = Object.getPrototypeOf(object);
  if (proto !== null && Object.getPrototypeOf(proto) !== null) {
    refuse(path, `an instance of ${proto.constructor?.name ?? 'a class'} is not JSON; convert it first`);
  }
  const copy: { [key: string]: Json } = {};
  const source = object as { readonly [key: string]: unknown };
  for (const key of Object.keys(object)) {
    if (key === '__proto__') refuse(under(path, key), 'this key is forbidden');
    const value = source[key];
    if (value === undefined) continue;
    weight += key.length + 4;
    copy[key] = copyOf(value, depth, under(path, key));
  }
  return copy;
}

/** Walks without building paths; a flaw makes the caller walk again with them. */
function copyOf(value: unknown, depth: number, path: string | undefined): Json {
  if (weight > SIZE) refuse(path, `the value is larger than ${SIZE} bytes`);
  weight += 8;
  switch (typeof value) {
    case 'string':
      weight += value.length;
      return value;
    case 'number':
      return Number.isFinite(value) ? value : refuse(path, `${value} is not a JSON number`);
    case 'boolean':
      return value;
    case 'object':
      if (value === null) return null;
      if (depth >= DEPTH) refuse(path, `it is cyclic, or nested deeper than ${DEPTH}`);
      return Array.isArray(value) ? copyList(value, depth + 1, path) : copyFields(value, depth + 1, path);
    default:
      return refuse(path, `a ${typeof value} is not JSON`);
  }
}

function explain(value: unknown, what: string): LoopError {
  try {
    weight = 0;
    copyOf(value, 0, '');
  } catch (flaw) {
    if (flaw instanceof Flaw) {
      const path = flaw.path.length > 200 ? `${flaw.path.slice(0, 200)}…` : flaw.path;
      const place = path === '' ? what : `${what}, at ${path}`;
      return new LoopError('VALUE_INVALID', `Cannot record ${place}: ${flaw.reason}.`, { path, reason: flaw.reason });
    }
  }
  return new LoopError('VALUE_INVALID', `Cannot record ${what}: it changed while it was read.`);
}

/** A private copy of a JSON value, or a LoopError that says where it is not one. Undefined stays undefined. */
export function snapshot(value: unknown, what: string, key?: string): Json | undefined {
  weight = 0;
  if (value === undefined) return undefined;
  try {
    return copyOf(value, 0, undefined);
  } catch (flaw) {
    if (flaw instanceof Flaw) throw explain(value, key === undefined ? what : `the value of ${what} at ${key}`);
    throw flaw;
  }
}

/** Whether two JSON values are the same; the order of keys does not matter. */
export function same(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, i) => same(item, b[i]));
  }
  const left = a as { readonly [key: string]: Json };
  const right = b as { readonly [key: string]: Json };
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length && keys.every((k) => Object.hasOwn(right, k) && same(left[k], right[k]))
  );
}
