/**
 * Makes a constructor of plain objects, for objects that a large turn keeps by the thousand. V8 counts how many objects of each
 * literal survive a collection; from some share on it allocates all of them in the old generation, where they keep what they refer to
 * alive after the turn. Whether it does so differs from process to process, and costs up to half of the time. It
 * does not count the objects of constructors.
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
