import { type Clock, isoTime } from "../base/clock.ts";
import type { IdSource } from "../base/walk.ts";
import { AppError } from "../base/errors.ts";
import { newId } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import type { Caller } from "../http/guard.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { EventStore } from "./event-store.ts";
import type { WebhookSecrets } from "./secrets.ts";
import { TEST_MESSAGE } from "./schemas.ts";
import type { Sender, SendEnd } from "./send.ts";
import type { Delivery, DeliveryFilters, WebhookStore } from "./store.ts";
import { bodyOf } from "./take-over.ts";

export interface WebhooksDeps {
  readonly db: Db;
  readonly store: WebhookStore;
  readonly events: EventStore;
  readonly secrets: WebhookSecrets;
  readonly dispatcher: Dispatcher;
  readonly send: Sender;
  readonly clock: Clock;
  /** Events that are kept of one account and mode; 100,000 unless said. */
  readonly eventsMax?: number;
}

/** How long a finished delivery can be looked at. */
const KEPT_MS = 30 * 24 * 60 * 60 * 1000;
const FORGOTTEN_AT_ONCE_MAX = 500;
/** It bounds what one account and mode can fill the disk with. */
const EVENTS_KEPT_MAX = 100_000;

/** What users and the command line do with webhooks. A caller sees the deliveries of its account and mode. */
export const createWebhooks = ({
  db,
  store,
  events,
  secrets,
  dispatcher,
  send,
  clock,
  eventsMax = EVENTS_KEPT_MAX,
}: WebhooksDeps) => {
  const find = (caller: Caller, id: string): Delivery => {
    const delivery = store.find(id);
    if (delivery === undefined || delivery.accountId !== caller.accountId || delivery.mode !== caller.mode) {
      throw new AppError("not_found", { message: "There is no such delivery." });
    }
    return delivery;
  };

  /** Removes rows in small transactions, so that other writes get their turn. */
  const inSteps = async (removeSome: (tx: Tx) => number): Promise<void> => {
    let removed = FORGOTTEN_AT_ONCE_MAX;
    while (removed === FORGOTTEN_AT_ONCE_MAX) removed = await db.commit(removeSome);
  };

  return {
    /** Throws `not_found` for a delivery that is not there, or not the caller's. */
    find,
    /** The deliveries of an account and mode, newest first. */
    list: (owner: Pick<Caller, "accountId" | "mode">, filters: DeliveryFilters): IdSource<Delivery> => ({
      idBehind: (before, places) => store.idBehind(owner, before, places),
      list: (page) => store.list(owner, filters, page),
    }),

    /**
     * Sends an event again, under its old id: a finished one with a new schedule, a waiting one now rather than later.
     * Its place among those for the same URL stays. A URL that was turned off (410) is on again.
     */
    async redeliver(caller: Caller, id: string): Promise<Delivery> {
      find(caller, id);
      const nowMs = clock.nowMs();
      await db.commit((tx) => {
        const delivery = store.find(id);
        if (delivery === undefined) return;
        const { url, status, dueAtMs } = delivery;
        store.clearGone(tx, delivery, url);
        if (status !== "pending") {
          const { lastAttemptAtMs, lastHttpStatus, lastProblem } = delivery;
          const last = { lastAttemptAtMs, lastHttpStatus, lastProblem };
          store.endAttempt(tx, id, { ...last, status: "pending", attempts: 0, dueAtMs: null, finishedAtMs: null });
        } else if (dueAtMs !== null) store.setDue(tx, id, null);
        store.wakeQueue(tx, delivery, nowMs);
      });
      dispatcher.wake();
      return find(caller, id);
    },

    /** Sends a `webhook.test` to a URL, once and now, and says how that went. Nothing is kept of it. */
    async test(caller: Caller, url: string): Promise<SendEnd & { readonly id: string; readonly elapsedMs: number }> {
      const id = newId();
      const data = { message: TEST_MESSAGE };
      const body = bodyOf("webhook.test", { createdAtMs: clock.nowMs(), mode: caller.mode, data });
      const startedMs = clock.monotonicMs();
      const end = await send({ id, url, body, secrets: secrets.current(caller).map(({ secret }) => secret) });
      const elapsedMs = Math.round(clock.monotonicMs() - startedMs);
      if (end.taken) await db.commit((tx) => store.clearGone(tx, caller, url));
      return { ...end, id, elapsedMs };
    },

    /** Purges deliveries that were finished 30 days ago, events of that time, and of an owner's events all but the newest 100,000. */
    async forgetOld(): Promise<void> {
      const beforeMs = clock.nowMs() - KEPT_MS;
      await inSteps((tx) => store.forget(tx, beforeMs, FORGOTTEN_AT_ONCE_MAX));
      await inSteps((tx) => events.purgeOld(tx, beforeMs, FORGOTTEN_AT_ONCE_MAX));
      for (const owner of events.owners()) {
        const surplus = events.surplusFrom(owner, eventsMax);
        if (surplus === undefined) continue;
        await inSteps((tx) => events.purgeUpTo(tx, owner, surplus, FORGOTTEN_AT_ONCE_MAX));
      }
    },

    secrets,
  };
};

export type Webhooks = ReturnType<typeof createWebhooks>;

/** A delivery as the interface shows it. */
export const deliveryView = (delivery: Delivery) => ({
  id: delivery.id,
  type: delivery.type,
  url: delivery.url,
  status: delivery.status,
  attempts: delivery.attempts,
  created_at: isoTime(delivery.createdAtMs),
  next_attempt_at: delivery.dueAtMs === null ? null : isoTime(delivery.dueAtMs),
  finished_at: delivery.finishedAtMs === null ? null : isoTime(delivery.finishedAtMs),
  last_attempt:
    delivery.lastAttemptAtMs === null && delivery.lastProblem === null
      ? null
      : {
          at: delivery.lastAttemptAtMs === null ? null : isoTime(delivery.lastAttemptAtMs),
          http_status: delivery.lastHttpStatus,
          problem: delivery.lastProblem,
        },
  event: JSON.parse(delivery.body) as { type: string; timestamp: string; data: unknown },
});
