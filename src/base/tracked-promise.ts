/**
 * Promises that know whether they were used: awaited, chained, or passed to a combinator such as `Promise.all`. Each of
 * these reads the property `constructor` of a promise, which is a getter here. The getter returns `Promise`, so using a
 * tracked promise takes no additional microtask.
 */

const IS_USED = Symbol('is used');

interface TrackedPromise<T> extends Promise<T> {
  [IS_USED]: boolean;
}

const trackedPrototype: object = Object.create(Promise.prototype, {
  constructor: {
    get(this: TrackedPromise<unknown>) {
      this[IS_USED] = true;
      return Promise;
    },
  },
});

/** Makes a native promise a tracked one and returns it. */
export function trackUse<T>(promise: Promise<T>): Promise<T> {
  const tracked = promise as TrackedPromise<T>;
  tracked[IS_USED] = false;
  return Object.setPrototypeOf(tracked, trackedPrototype);
}

/** True if a tracked promise was used. */
export function isUsed(promise: Promise<unknown>): boolean {
  return (promise as TrackedPromise<unknown>)[IS_USED];
}
