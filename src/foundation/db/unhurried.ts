import type { Clock } from "../base/clock.ts";
import { wait } from "../base/wait.ts";
import type { Db, Tx } from "./open.ts";

/**
 * A database with a pause after each commit, as long as the commit took, for much work beside a server. A server in another
 * process tries to write now and then only, and would hardly ever find the database free; in the same process, everything
 * else has half of the time.
 */
export const unhurried = (db: Db, clock: Clock): Db => ({
  ...db,
  async commit<T>(work: (tx: Tx) => T): Promise<T> {
    const startedMs = clock.monotonicMs();
    const value = await db.commit(work);
    await wait(clock, clock.monotonicMs() - startedMs);
    return value;
  },
});
