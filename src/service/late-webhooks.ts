import type { Runtime } from "../foundation/db/runtime.ts";
import { isDatabaseState } from "../foundation/base/errors.ts";
import type { BacklogStore } from "./metrics/backlog-store.ts";

const HOUR_MS = 60 * 60 * 1000;
/** Anybody may request `/readyz`: the database is read this often at most. */
const CACHE_MS = 10_000;

/** Finds that webhooks are delivered late. */
export class LateWebhooks {
  #readAtMs: number = Number.NEGATIVE_INFINITY;
  #oldestMs: number | null = null;

  constructor(
    private readonly runtime: Pick<Runtime, "clock">,
    private readonly backlog: Pick<BacklogStore, "oldestEventMs">,
  ) {}

  /** A sentence when the oldest event has waited for more than an hour for one of its URLs. */
  findings(): readonly string[] {
    const oldestMs = this.#oldestEventMs();
    const hours = oldestMs === null ? 0 : Math.floor((this.runtime.clock.nowMs() - oldestMs) / HOUR_MS);
    if (hours < 1) return [];
    const days = Math.floor(hours / 24);
    const age = days >= 2 ? `${days} days` : hours === 1 ? "1 hour" : `${hours} hours`;
    return [`The oldest undelivered webhook is ${age} late. The page Webhooks shows which endpoints fail.`];
  }

  #oldestEventMs(): number | null {
    const atMs = this.runtime.clock.monotonicMs();
    if (atMs - this.#readAtMs >= CACHE_MS) {
      this.#readAtMs = atMs;
      this.#read();
    }
    return this.#oldestMs;
  }

  /** A database that cannot be read is a finding of others. */
  #read(): void {
    try {
      this.#oldestMs = this.backlog.oldestEventMs();
    } catch (error) {
      if (!isDatabaseState(error)) throw error;
    }
  }
}
