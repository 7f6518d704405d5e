/** Does `task` for 0 to `count - 1`, so many at a time. The first that rejects ends it all. */
export const inTurns = async (count: number, atOnce: number, task: (n: number) => Promise<void>): Promise<void> => {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await task(next++);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker));
};
