/** Numbers in ascending order. */

/** The index of the last number that is not above this one; -1 if all are. */
export function lastIndexAtMost(ascending: readonly number[], most: number): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ascending[middle] ?? 0) <= most) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
