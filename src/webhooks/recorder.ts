import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import { ATTEMPTS_MAX, waitAfter } from "./schedule.ts";
import type { SendEnd } from "./send.ts";
import type { AttemptEnd, Delivery, WebhookStore } from "./store.ts";

export interface RecorderDeps {
  readonly db: Db;
  readonly store: WebhookStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** Writes down how an attempt ended, and what that means for its line: go on, wait, give up, or stop for good (410). */
export const createRecorder = ({ db, store, clock, random, log }: RecorderDeps) => {
  const endOf = ({ attempts: before }: Delivery, end: SendEnd): AttemptEnd => {
    const nowMs = clock.nowMs();
    const attempts = before + 1;
    const tried = { attempts, lastAttemptAtMs: nowMs, lastHttpStatus: end.httpStatus, lastProblem: end.problem };
    if (end.taken) return { ...tried, status: "delivered", dueAtMs: null, finishedAtMs: nowMs };
    const waitMs = end.gone ? null : waitAfter(attempts, random);
    if (waitMs === null) return { ...tried, status: "failed", dueAtMs: null, finishedAtMs: nowMs };
    return { ...tried, status: "pending", dueAtMs: nowMs + waitMs, finishedAtMs: null };
  };

  const stopUrl = (tx: Tx, delivery: Delivery): void => {
    store.markGone(tx, delivery, clock.nowMs());
    store.failPending(tx, delivery, "Not sent: the receiver answered 410 to an earlier event.", clock.nowMs());
  };

  return async (delivery: Delivery, end: SendEnd): Promise<void> => {
    const { id, url, type } = delivery;
    const change = endOf(delivery, end);
    await db.commit((tx) => {
      store.endAttempt(tx, id, change);
      if (end.gone) stopUrl(tx, delivery);
      else if (change.status !== "pending") store.wakeQueue(tx, delivery, clock.nowMs());
    });
    // The rest of the URL may well hold a token.
    const fields = { id, type, host: new URL(url).host, problem: end.problem };
    if (end.gone) log.warn("a webhook's receiver is gone (410): its URL is turned off", fields);
    else if (change.status === "failed") log.warn(`a webhook is given up after ${ATTEMPTS_MAX} attempts`, fields);
    else if (!end.taken) log.debug("a webhook was not taken; it is sent again", fields);
  };
};
