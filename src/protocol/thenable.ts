/** Structural checks for promises and async iterables, which user code may return in place of plain values. */

/** True for an object or a function, which can have members of its own. */
export function isObjectOrFunction(value: unknown): value is object | ((...args: never) => unknown) {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

/** True if the value has a `then` method. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return isObjectOrFunction(value) && typeof (value as Partial<PromiseLike<T>>).then === 'function';
}

/** True if the value can be consumed with `for await`. */
export function isAsyncIterable<T>(value: AsyncIterable<T> | T): value is AsyncIterable<T> {
  return isObjectOrFunction(value) && Symbol.asyncIterator in value;
}
