/** Runs `work` on every item, at most `atOnceMax` at a time. The results stand in the order of the items; the first rejection ends it. */
export const inParallel = async <T, R>(
  items: readonly T[],
  atOnceMax: number,
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> => {
  const results: Array<{ readonly index: number; readonly result: R }> = [];
  const left = items.entries();
  const takeTurns = async (): Promise<void> => {
    for (const [index, item] of left) results.push({ index, result: await work(item) });
  };
  await Promise.all(Array.from({ length: Math.min(atOnceMax, items.length) }, takeTurns));
  return results.sort((a, b) => a.index - b.index).map(({ result }) => result);
};
