/**
 * The private copy of a document. It is plain JSON of bounded depth and size, made from own properties only; whoever
 * keeps the original cannot change it. What is not JSON is told with its place.
 */
import { outcomeOf } from '../../base/errors.js';
import type { Json } from '../../protocol/json.js';
import { type Flaws, pointer } from './shape.js';

const DEPTH = 200;
/** Characters of the document written as compact JSON. */
const SIZE = 1024 * 1024;

class Refusal extends Error {}

class Copier {
  readonly trail: (string | number)[] = [];
  private size = 0;

  copy(value: unknown): Json {
    switch (typeof value) {
      case 'string':
        return this.text(value);
      case 'number':
        this.weigh(2);
        if (!Number.isFinite(value)) throw new Refusal(`${value} is not a JSON number`);
        return value === 0 ? 0 : value;
      case 'boolean':
        this.weigh(4);
        return value;
      case 'object':
        this.weigh(3);
        if (value === null) return null;
        if (this.trail.length >= DEPTH) throw new Refusal(`is cyclic, or nested deeper than ${DEPTH}`);
        return Array.isArray(value) ? this.list(value) : this.fields(value);
      default:
        throw new Refusal(`${value === undefined ? 'undefined' : `a ${typeof value}`} is not JSON`);
    }
  }

  private text(value: string): string {
    this.weigh(value.length + 3);
    if (/\p{Surrogate}/u.test(value)) throw new Refusal('holds half of a character (a lone surrogate)');
    return value;
  }

  private list(source: readonly unknown[]): Json[] {
    const copied: Json[] = [];
    for (let index = 0; index < source.length; index++) copied.push(this.member(index, source[index]));
    return copied;
  }

  private fields(source: object): Json {
    if (source instanceof Date) throw new Refusal('is a date, which JSON does not know; write it as text, in quotes');
    const proto: unknown = Object.getPrototypeOf(source);
    // An object of another realm has a prototype whose own prototype is null; anything further is a class.
    if (proto !== null && Object.getPrototypeOf(proto) !== null)
      throw new Refusal('is an instance of a class, not JSON');
    const copied: { [name: string]: Json } = {};
    for (const name of Object.keys(source)) {
      const value = (source as { readonly [name: string]: unknown })[name];
      if (value === undefined) continue;
      if (name === '__proto__') throw new Refusal('has the key "__proto__", which is forbidden');
      this.text(name);
      copied[name] = this.member(name, value);
    }
    return copied;
  }

  private member(name: string | number, value: unknown): Json {
    this.trail.push(name);
    const copied = this.copy(value);
    this.trail.pop();
    return copied;
  }

  private weigh(more: number): void {
    this.size += more;
    if (this.size <= SIZE) return;
    this.trail.length = 0;
    throw new Refusal(`is larger than ${SIZE} characters of JSON`);
  }
}

/** The copy, or undefined after a flaw was added. */
export function privateCopy(value: unknown, flaws: Flaws): Json | undefined {
  const copier = new Copier();
  try {
    return copier.copy(value);
  } catch (thrown) {
    const path = copier.trail.reduce<string>(pointer, '');
    flaws.add(path, thrown instanceof Refusal ? thrown.message : `cannot be read: ${outcomeOf(thrown).message}`);
    return undefined;
  }
}
