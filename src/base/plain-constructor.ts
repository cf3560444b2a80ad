/**
 * Constructors of plain objects. V8 does not pretenure these objects: it does not allocate them in the old generation.
 */

/** The same members without `readonly`, for assignment in a constructor. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * Returns a constructor of plain objects, whose prototype is `Object.prototype`, for objects that a large turn creates
 * by the thousand. V8 pretenures object literals: if enough objects of one literal survive garbage collections, it
 * allocates all later ones in the old generation, where they keep everything they reference alive long after the turn.
 * Whether that happens depends on the timing of collections; it can take up to half of the run time. V8 does not
 * pretenure the objects of constructors.
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
