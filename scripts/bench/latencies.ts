/** What is requested again and again, by name. */
export type Requests = Readonly<Record<string, () => Promise<Response>>>;

const PAUSE_MS = 5;

/** How long each request takes while `work` goes on, in milliseconds: one after the other, the names beside each other. */
export const latenciesDuring = async (
  requests: Requests,
  work: Promise<unknown>,
): Promise<ReadonlyMap<string, readonly number[]>> => {
  let isOver = false;
  const ended = work.finally(() => {
    isOver = true;
  });
  const times = new Map(Object.keys(requests).map((name) => [name, [] as number[]]));
  const watch = async (name: string, request: () => Promise<Response>): Promise<void> => {
    while (!isOver) {
      const startedMs = performance.now();
      const response = await request();
      await response.arrayBuffer();
      if (response.status !== 200) throw new Error(`${name} was answered with ${response.status}`);
      times.get(name)?.push(performance.now() - startedMs);
      await Bun.sleep(PAUSE_MS);
    }
  };
  await Promise.all([ended, ...Object.entries(requests).map(([name, request]) => watch(name, request))]);
  return times;
};
