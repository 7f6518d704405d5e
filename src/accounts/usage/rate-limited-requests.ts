import { dayOfTime } from "../../foundation/base/days.ts";
import { Recurring } from "../../foundation/base/recurring.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import type { RateLimitedEntry, UsageStore } from "./usage-store.ts";

/** A request that was refused is in the database after this time at the latest. A crash loses what was not written. */
export const RATE_LIMITED_FLUSH_MS = 5_000;

type Refused = Pick<RateLimitedEntry, "accountId" | "mode" | "keyId">;

/** Counts the requests that the rate limit refuses, in memory, because a refusal must stay cheap. */
export class RateLimitedRequests {
  readonly #runtime: Pick<Runtime, "db" | "clock">;
  readonly #store: UsageStore;
  readonly #writing: Recurring;
  /** One entry for each key and day. */
  #pending = new Map<string, RateLimitedEntry>();

  constructor(runtime: Pick<Runtime, "db" | "clock" | "log">, store: UsageStore) {
    this.#runtime = runtime;
    this.#store = store;
    const name = "counting of rate-limited requests";
    this.#writing = new Recurring(runtime, { name, run: () => this.#flush(), retryMs: RATE_LIMITED_FLUSH_MS });
  }

  count({ accountId, mode, keyId }: Refused): void {
    this.#add({ accountId, mode, keyId, day: dayOfTime(this.#runtime.clock.nowMs()), requests: 1 });
    this.#writing.within(RATE_LIMITED_FLUSH_MS);
  }

  /** Writes what was counted; later requests are not counted. */
  async stop(): Promise<void> {
    await this.#writing.run();
    await this.#writing.stop();
  }

  /** Writes what was counted. When that fails, it is kept for the next time. */
  async #flush(): Promise<null> {
    const pending = this.#pending;
    if (pending.size === 0) return null;
    this.#pending = new Map();
    try {
      await this.#runtime.db.commit((tx) => {
        for (const entry of pending.values()) this.#store.addRateLimited(tx, entry);
      });
    } catch (error) {
      for (const entry of pending.values()) this.#add(entry);
      throw error;
    }
    return null;
  }

  #add(entry: RateLimitedEntry): void {
    const key = `${entry.keyId} ${entry.day}`;
    const requests = (this.#pending.get(key)?.requests ?? 0) + entry.requests;
    this.#pending.set(key, { ...entry, requests });
  }
}
