import { type Clock, isoTime } from "../base/clock.ts";
import type { IdSource } from "../base/walk.ts";
import { AppError } from "../base/errors.ts";
import { newId } from "../base/secrets.ts";
import type { Db } from "../db/open.ts";
import type { Caller } from "../http/guard.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { WebhookSecrets } from "./secrets.ts";
import { TEST_MESSAGE } from "./schemas.ts";
import type { Sender, SendEnd } from "./send.ts";
import type { Delivery, DeliveryFilters, WebhookStore } from "./store.ts";
import { bodyOf } from "./take-over.ts";

export interface WebhooksDeps {
  readonly db: Db;
  readonly store: WebhookStore;
  readonly secrets: WebhookSecrets;
  readonly dispatcher: Dispatcher;
  readonly send: Sender;
  readonly clock: Clock;
}

/** How long a finished delivery can be looked at. */
const KEPT_MS = 30 * 24 * 60 * 60 * 1000;
const FORGOTTEN_AT_ONCE_MAX = 1_000;

/** What users and the command line do with webhooks. A caller sees the deliveries of its account and mode. */
export const createWebhooks = ({ db, store, secrets, dispatcher, send, clock }: WebhooksDeps) => {
  const find = (caller: Caller, id: string): Delivery => {
    const delivery = store.find(id);
    if (delivery === undefined || delivery.accountId !== caller.accountId || delivery.mode !== caller.mode) {
      throw new AppError("not_found", { message: "There is no such delivery." });
    }
    return delivery;
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
          // Where an event behind it was first with a time of its own, this one is now before it: one time a line.
          const [, second] = store.line(delivery, 2);
          if (second !== undefined && second.id !== id && second.dueAtMs !== null) store.setDue(tx, second.id, null);
        } else if (dueAtMs !== null) store.setDue(tx, id, null);
        store.wakeLine(tx, delivery, nowMs);
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

    /** Forgets deliveries that were finished 30 days ago. */
    async forgetOld(): Promise<void> {
      const beforeMs = clock.nowMs() - KEPT_MS;
      await db.commit((tx) => store.forgetUnwantedEvents(tx, beforeMs));
      let forgotten = FORGOTTEN_AT_ONCE_MAX;
      while (forgotten === FORGOTTEN_AT_ONCE_MAX) {
        forgotten = await db.commit((tx) => store.forget(tx, beforeMs, FORGOTTEN_AT_ONCE_MAX));
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
