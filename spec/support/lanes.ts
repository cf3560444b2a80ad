// Independent tasks that start processes, side by side.

/** The number of tasks at a time: the tests run on machines with two cores. */
const LANES = 2;

/** Performs a task for each item, two at a time. Returns the results in the order of the items. */
export async function inLanes<Item, Result>(
  items: readonly Item[],
  task: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const remaining = items.entries();
  const work = async (): Promise<void> => {
    for (const [index, item] of remaining) results[index] = await task(item);
  };
  await Promise.all(Array.from({ length: LANES }, work));
  return results;
}
