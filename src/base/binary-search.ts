/** Binary search in sorted arrays. */

/** Returns the index of the last number that is at most `limit`, or -1 if all are greater. */
export function lastIndexAtMost(ascending: readonly number[], limit: number): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ascending[middle] ?? 0) <= limit) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
