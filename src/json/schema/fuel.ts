/**
 * How long one check may take. Schemas that refer to each other can ask the same question again and again, doubling with
 * every level; the number of references that are followed for one value is therefore bounded.
 */

const FUEL = 5_000_000;

let left = FUEL;

/** The check of a value took more steps than any reasonable schema needs. */
export class Exhausted extends Error {}

/** Takes one step of the current check. */
export function spend(): void {
  if (--left < 0) throw new Exhausted('The check takes too many steps.');
}

/** Begins a new check. */
export function refuel(): void {
  left = FUEL;
}
