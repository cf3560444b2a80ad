/** Returns the median of a list of numbers. @param {readonly number[]} numbers */
export function median(numbers) {
  const sorted = [...numbers].sort();
  const middle = sorted.slice((sorted.length - 1) / 2, sorted.length / 2 + 1);
  return middle.reduce((sum, number) => sum + number, 0) / middle.length;
}
