import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import { DELIVERY_ATTEMPTS_MAX, waitAfter } from "./schedule.ts";
import type { DeliveryResult } from "./send.ts";
import type { AttemptEnd, Delivery, DeliveryStore } from "./delivery-store.ts";

export interface AttemptRecorderDeps {
  readonly db: Db;
  readonly store: DeliveryStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** An event that its receiver refused so often steps aside: what is behind it is sent. */
export const REJECTIONS_MAX = 3;

/** Writes down how an attempt ended, and what that means for its queue: go on, wait, step aside, give up, or stop for good (410). */
export const createAttemptRecorder = ({ db, store, clock, random, log }: AttemptRecorderDeps) => {
  const endOf = (before: Delivery, end: DeliveryResult): AttemptEnd => {
    const nowMs = clock.nowMs();
    const attempts = before.attempts + 1;
    const rejections = before.rejections + (end.rejected ? 1 : 0);
    const tried = {
      ...{ attempts, rejections, lastAttemptAtMs: nowMs, lastHttpStatus: end.httpStatus },
      ...{ lastProblem: end.problem, lastAnswer: end.answer },
    };
    const finished = { ...tried, dueAtMs: null, finishedAtMs: nowMs };
    if (end.taken) return { ...finished, status: "delivered" };
    if (rejections >= REJECTIONS_MAX) return { ...finished, status: "rejected" };
    const waitMs = end.gone ? null : waitAfter(attempts, random);
    if (waitMs === null) return { ...finished, status: "failed" };
    const dueAtMs = nowMs + Math.max(waitMs, end.retryAfterMs ?? 0);
    return { ...tried, status: "pending", dueAtMs, finishedAtMs: null };
  };

  const stopUrl = (tx: Tx, delivery: Delivery): void => {
    store.markGone(tx, delivery, clock.nowMs());
    store.failPending(tx, delivery, "Not sent: the receiver answered 410 to an earlier event.", clock.nowMs());
  };

  /** The change that an attempt makes in its row; null when somebody cancelled or moved it meanwhile, and it was not taken. */
  const write = (tx: Tx, { id, url }: Delivery, end: DeliveryResult): AttemptEnd | null => {
    const delivery = store.find(id);
    if (delivery === undefined) return null;
    const isSame = delivery.status === "pending" && delivery.url === url;
    if (!isSame && !end.taken) return null;
    const change = endOf(delivery, end);
    store.change(tx, id, change);
    if (change.status !== "pending") store.wakeQueue(tx, delivery, clock.nowMs());
    return change;
  };

  return async (delivery: Delivery, end: DeliveryResult): Promise<void> => {
    const { id, url, type } = delivery;
    const change = await db.commit((tx) => {
      const written = write(tx, delivery, end);
      if (end.gone) stopUrl(tx, delivery);
      else if (end.limited && end.retryAfterMs !== null) {
        store.pause(tx, delivery, clock.nowMs() + end.retryAfterMs);
      }
      return written;
    });
    // The rest of the URL may well hold a token.
    const fields = { id, type, host: new URL(url).host, problem: end.problem };
    if (end.gone) log.warn("a webhook's receiver is gone (410): its URL is turned off", fields);
    else if (change?.status === "failed")
      log.warn(`a webhook is given up after ${DELIVERY_ATTEMPTS_MAX} attempts`, fields);
    else if (change?.status === "rejected") log.warn("a webhook is rejected by its receiver; later ones go on", fields);
    else if (!end.taken) log.debug("a webhook was not taken; it is sent again", fields);
  };
};
