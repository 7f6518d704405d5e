import type { Tx } from "../../foundation/db/open.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import type { AttemptEnd, Delivery, DeliveryAttempt, DeliveryStore } from "./delivery-store.ts";
import { DELIVERY_ATTEMPTS_MAX, waitAfter, type DeliveryResult } from "./send.ts";

/** A delivery is rejected after this many permanent refusals; the next of its queue is sent. */
export const REJECTIONS_MAX = 3;

interface Attempt {
  readonly delivery: Delivery;
  readonly result: DeliveryResult;
}

/** Stores the result of an attempt and what follows for its queue: next delivery, retry, rejection, failure, or the end (410). */
export class AttemptRecorder {
  readonly #failing: FailingUrls;
  /** Stores an attempt, with others in one transaction, and returns the change. */
  readonly #commit: (attempt: Attempt) => Promise<AttemptEnd | null>;

  constructor(
    private readonly runtime: Runtime,
    private readonly store: DeliveryStore,
  ) {
    this.#failing = new FailingUrls(runtime);
    this.#commit = runtime.db.commitsOf((tx, attempts) => this.#write(tx, attempts));
  }

  async record(delivery: Delivery, result: DeliveryResult) {
    const { log } = this.runtime;
    const change = await this.#commit({ delivery, result });
    const { id, url, type } = delivery;
    const fields = { id, type, host: loggedHost(url), problem: result.problem };
    this.#failing.note(delivery, result);
    if (result.gone) log.warn("webhook endpoint is gone: its URL is disabled", fields);
    else if (change?.status === "failed") log.warn(`webhook failed after ${DELIVERY_ATTEMPTS_MAX} attempts`, fields);
    else if (change?.status === "rejected") log.warn("webhook rejected by its receiver; later ones are sent", fields);
    else if (!result.delivered) log.debug("webhook not delivered; trying again", fields);
  }

  #write(tx: Tx, attempts: readonly Attempt[]): ReadonlyArray<AttemptEnd | null> {
    const { clock } = this.runtime;
    const rows: Array<Omit<DeliveryAttempt, "id">> = [];
    const finished: Delivery[] = [];
    const changes = attempts.map(({ delivery: { id, url }, result }) => {
      const delivery = this.store.find(id);
      const change = delivery === undefined ? null : this.#end(tx, { delivery, result }, url);
      if (delivery !== undefined && change !== null) {
        rows.push({ ...delivery, deliveryId: id, url, atMs: clock.nowMs(), ...attemptOf(result) });
        if (change.status !== "pending") finished.push(delivery);
      }
      return change;
    });
    this.store.insertAttempts(tx, rows);
    for (const { delivery, result } of attempts) {
      if (result.gone) this.#disableUrl(tx, delivery);
      else if (result.rateLimited && result.retryAfterMs !== null)
        this.store.pause(tx, delivery, clock.nowMs() + result.retryAfterMs);
    }
    this.store.wakeQueues(tx, finished, clock.nowMs());
    return changes;
  }

  /** Returns the change; null when the delivery was cancelled or moved meanwhile, and this attempt did not deliver it. */
  #end(tx: Tx, { delivery, result }: Attempt, url: string): AttemptEnd | null {
    const isSame = delivery.status === "pending" && delivery.url === url;
    if (!isSame && !result.delivered) return null;
    const change = this.#changeOf(delivery, result);
    this.store.endAttempt(tx, delivery.id, change);
    const { db, clock } = this.runtime;
    const { mode, createdAtMs } = delivery;
    db.note(tx, { kind: "webhook", mode, status: change.status, ageMs: clock.nowMs() - createdAtMs });
    return change;
  }

  #changeOf(before: Delivery, result: DeliveryResult): AttemptEnd {
    const nowMs = this.runtime.clock.nowMs();
    const attempts = before.attempts + 1;
    const rejections = before.rejections + (result.rejected ? 1 : 0);
    const attempt = {
      attempts,
      rejections,
      lastAttemptAtMs: nowMs,
      lastHttpStatus: result.httpStatus,
      lastProblem: result.problem,
      lastAnswer: result.response,
    };
    const finished = { ...attempt, dueAtMs: null, finishedAtMs: nowMs };
    if (result.delivered) return { ...finished, status: "delivered" };
    if (rejections >= REJECTIONS_MAX) return { ...finished, status: "rejected" };
    const waitMs = result.gone ? null : waitAfter(attempts, this.runtime.random);
    if (waitMs === null) return { ...finished, status: "failed" };
    const dueAtMs = nowMs + Math.max(waitMs, result.retryAfterMs ?? 0);
    return { ...attempt, status: "pending", dueAtMs, finishedAtMs: null };
  }

  #disableUrl(tx: Tx, delivery: Delivery) {
    const nowMs = this.runtime.clock.nowMs();
    this.store.markGone(tx, delivery, nowMs);
    this.store.failPending(
      tx,
      delivery,
      "Not sent: the receiver responded to an earlier event that the URL is gone.",
      nowMs,
    );
  }
}

const attemptOf = ({ httpStatus, problem, response }: DeliveryResult) => ({ httpStatus, problem, answer: response });

/** With this many failing URLs, others are not logged until one of them works or was not tried for a day. */
export const FAILING_URLS_MAX = 1_000;
const FORGOTTEN_AFTER_MS = 24 * 60 * 60 * 1000;

/** The URL as the log may name it: its path or password may be a token. */
const loggedHost = (url: string) => new URL(url).host;

/**
 * Logs one line when a URL begins to fail and one when it works again, not one for each attempt. After a restart a URL that still
 * fails is logged again.
 */
export class FailingUrls {
  /** Account, mode and URL → the last failed attempt, on the monotonic clock; the longest untried first. */
  readonly #failing = new Map<string, number>();

  constructor(private readonly runtime: Pick<Runtime, "clock" | "log">) {}

  /** Notes how an attempt ended. A URL that was disabled (410) has a line of its own. */
  note({ accountId, mode, url, type }: Delivery, result: DeliveryResult) {
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
  #begins(key: string) {
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
