/** Constructors of plain objects, which V8 does not pretenure. */

/** The same members without `readonly`, for assignment in a constructor. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * Returns a constructor of plain objects, for objects that a large turn creates by the thousand. V8 pretenures object
 * literals: if enough objects of one literal survive garbage collections, it allocates all later ones in the old
 * generation, where they keep everything they reference alive long after the turn. That depends on the timing of
 * collections, and costs up to half of the time. V8 does not pretenure the objects of constructors.
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
