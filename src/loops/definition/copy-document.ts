/**
 * Makes a private copy of a document: plain JSON of bounded depth and size, copied from own properties only. Later
 * changes of the original do not affect it. Members that are undefined are left out. The first value that is not JSON
 * is reported with its JSON pointer.
 */
import { toLoopError } from '../../base/errors.js';
import type { Json } from '../../protocol/json.js';
import { appendPointer, type DefinitionIssues } from './shape.js';

const MAX_DEPTH = 200;
/** Upper bound on the size of the document as compact JSON, estimated while copying. */
const MAX_JSON_CHARS = 1024 * 1024;

class NotJsonError extends Error {}

class JsonCopier {
  /** The path of the value that is being copied, or of the value that failed. */
  readonly path: (string | number)[] = [];
  private chars = 0;

  copy(value: unknown): Json {
    switch (typeof value) {
      case 'string':
        return this.copyText(value);
      case 'number':
        this.addChars(2);
        if (!Number.isFinite(value)) throw new NotJsonError(`${value} is not a JSON number`);
        return value === 0 ? 0 : value;
      case 'boolean':
        this.addChars(4);
        return value;
      case 'object':
        this.addChars(3);
        if (value === null) return null;
        if (this.path.length >= MAX_DEPTH) throw new NotJsonError(`is cyclic, or nested deeper than ${MAX_DEPTH}`);
        return Array.isArray(value) ? this.copyArray(value) : this.copyObject(value);
      default:
        throw new NotJsonError(`${value === undefined ? 'undefined' : `a ${typeof value}`} is not JSON`);
    }
  }

  private copyText(value: string): string {
    this.addChars(value.length + 3);
    if (/\p{Surrogate}/u.test(value)) throw new NotJsonError('contains a lone surrogate (half of a character)');
    return value;
  }

  private copyArray(source: readonly unknown[]): Json[] {
    const copied: Json[] = [];
    for (let index = 0; index < source.length; index++) copied.push(this.copyMember(index, source[index]));
    return copied;
  }

  private copyObject(source: object): Json {
    if (source instanceof Date)
      throw new NotJsonError('is a date, which JSON does not support; write it as text, in quotes');
    const proto: unknown = Object.getPrototypeOf(source);
    // The prototype of a plain object has a null prototype, also in another realm. Anything else is a class instance.
    if (proto !== null && Object.getPrototypeOf(proto) !== null)
      throw new NotJsonError('is an instance of a class, not JSON');
    const copied: { [name: string]: Json } = {};
    for (const name of Object.keys(source)) {
      const value = (source as { readonly [name: string]: unknown })[name];
      if (value === undefined) continue;
      if (name === '__proto__') throw new NotJsonError('has the key "__proto__", which is forbidden');
      this.copyText(name);
      copied[name] = this.copyMember(name, value);
    }
    return copied;
  }

  private copyMember(name: string | number, value: unknown): Json {
    this.path.push(name);
    const copied = this.copy(value);
    this.path.pop();
    return copied;
  }

  private addChars(count: number): void {
    this.chars += count;
    if (this.chars <= MAX_JSON_CHARS) return;
    this.path.length = 0;
    throw new NotJsonError(`is larger than ${MAX_JSON_CHARS} characters of JSON`);
  }
}

/** Returns the copy, or adds an issue and returns undefined. */
export function copyDocument(value: unknown, issues: DefinitionIssues): Json | undefined {
  const copier = new JsonCopier();
  try {
    return copier.copy(value);
  } catch (thrown) {
    const path = copier.path.reduce<string>(appendPointer, '');
    issues.add(
      path,
      thrown instanceof NotJsonError ? thrown.message : `cannot be read: ${toLoopError(thrown).message}`,
    );
    return undefined;
  }
}
