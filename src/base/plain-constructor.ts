/** What a constructor assigns to: the same members, before anybody may rely on them not to change. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * Makes a constructor of plain objects, for objects that a large turn keeps by the thousand. V8 counts how many objects of each
 * literal survive a collection, and above some share it allocates all of them in the old generation. There they keep alive what they
 * refer to, long after the turn. This happens in some processes and not in others, and costs up to half of the time. V8 does not count
 * the objects of constructors.
 */
export function plainConstructor<T extends object, A extends readonly unknown[]>(
  assign: (this: T, ...values: A) => void,
): new (
  ...values: A
) => T {
  assign.prototype = Object.prototype;
  return assign as unknown as new (
    ...values: A
  ) => T;
}
