import type { Runtime } from "../../foundation/db/runtime.ts";
import type { Delivery } from "./delivery-store.ts";
import type { DeliveryResult } from "./send.ts";

/** With this many failing URLs, others are not logged until one of them works or was not tried for a day. */
export const FAILING_URLS_MAX = 1_000;
const FORGOTTEN_AFTER_MS = 24 * 60 * 60 * 1000;

/** The URL as the log may name it: its path or password may be a token. */
export const loggedHost = (url: string): string => new URL(url).host;

/**
 * Logs one line when a URL begins to fail and one when it works again, not one for each attempt. After a restart a URL that still
 * fails is logged again.
 */
export class FailingUrls {
  /** Account, mode and URL → the last failed attempt, on the monotonic clock; the longest untried first. */
  readonly #failing = new Map<string, number>();

  constructor(private readonly runtime: Pick<Runtime, "clock" | "log">) {}

  /** Notes how an attempt ended. A URL that was disabled (410) has a line of its own. */
  note({ accountId, mode, url, type }: Delivery, result: DeliveryResult): void {
    const { log } = this.runtime;
    const key = `${accountId} ${mode} ${url}`;
    const fields = { host: loggedHost(url), account_id: accountId, type };
    if (result.delivered || result.gone) {
      const wasFailing = this.#failing.delete(key);
      if (wasFailing && result.delivered) log.warn("webhook endpoint works again", fields);
      return;
    }
    // The receiver works, and asked to wait.
    if (result.rateLimited && result.retryAfterMs !== null) return;
    if (this.#begins(key))
      log.warn("webhook endpoint fails; events are kept and retried", { ...fields, problem: result.problem });
  }

  /** Whether the URL was not known to fail, and there is room to remember it. */
  #begins(key: string): boolean {
    const nowMs = this.runtime.clock.monotonicMs();
    const isNew = !this.#failing.delete(key);
    const [longest] = this.#failing;
    if (this.#failing.size >= FAILING_URLS_MAX && longest !== undefined) {
      const [oldest, atMs] = longest;
      if (nowMs - atMs < FORGOTTEN_AFTER_MS) return false;
      this.#failing.delete(oldest);
    }
    this.#failing.set(key, nowMs);
    return isNew;
  }
}
