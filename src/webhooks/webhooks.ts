import { type Clock, isoTime } from "../base/clock.ts";
import type { IdSource } from "../base/walk.ts";
import { newId } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import type { Caller } from "../http/guard.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { createDeliveryActions } from "./delivery-actions.ts";
import type { EventFilters, EventRow, EventStore } from "./event-store.ts";
import type { WebhookSecrets } from "./secrets.ts";
import { formatOf } from "./formats.ts";
import { TEST_MESSAGE, TEST_TYPE } from "./schemas.ts";
import type { Sender, DeliveryResult } from "./send.ts";
import type { Delivery, DeliveryFilters, WebhookOwner, DeliveryStore } from "./delivery-store.ts";
import { bodyOf } from "./outbox-relay.ts";

export interface WebhooksDeps {
  readonly db: Db;
  readonly store: DeliveryStore;
  readonly events: EventStore;
  readonly secrets: WebhookSecrets;
  readonly dispatcher: Dispatcher;
  readonly send: Sender;
  readonly clock: Clock;
  /** The `data` of the documented example of a type of event. */
  readonly exampleOf: (type: string) => Promise<object>;
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
  exampleOf,
  eventsMax = EVENTS_KEPT_MAX,
}: WebhooksDeps) => {
  /** Removes rows in small transactions, so that other writes get their turn. */
  const inSteps = async (removeSome: (tx: Tx) => number): Promise<void> => {
    let removed = FORGOTTEN_AT_ONCE_MAX;
    while (removed === FORGOTTEN_AT_ONCE_MAX) removed = await db.commit(removeSome);
  };

  return {
    /** The deliveries of an account and mode, newest first. */
    list: (owner: Pick<Caller, "accountId" | "mode">, filters: DeliveryFilters): IdSource<Delivery> => ({
      idBehind: (before, places) => store.idBehind(owner, before, places),
      list: (page) => store.list(owner, filters, page),
    }),

    ...createDeliveryActions({ db, store, clock, wake: dispatcher.wake }),

    /** The events of an owner, the oldest first, whether or not anything was sent. */
    feed: (owner: WebhookOwner, filters: EventFilters) => events.window(owner, filters),

    /**
     * Sends an event to a URL, once and now, and says how that went: `webhook.test`, or another type with the data of its documented
     * example. `data.test` is true. Nothing is kept of it.
     */
    async test(owner: WebhookOwner, url: string, type: string): Promise<TestEnd> {
      const id = newId();
      const { accountId, mode } = owner;
      const example = type === TEST_TYPE ? { message: TEST_MESSAGE } : await exampleOf(type);
      const body = bodyOf(type, { createdAtMs: clock.nowMs(), mode, data: { ...example, test: true } });
      const startedMs = clock.monotonicMs();
      const signing = secrets.current({ accountId, mode }).map(({ secret }) => secret);
      const end = await send({ id, url, body, secrets: signing });
      const elapsedMs = Math.round(clock.monotonicMs() - startedMs);
      if (end.taken) await db.commit((tx) => store.clearGone(tx, owner, url));
      return { ...end, id, elapsedMs };
    },

    /** Purges deliveries that were finished 30 days ago, events of that time, and of an owner's events all but the newest 100,000. */
    async forgetOld(): Promise<void> {
      const beforeMs = clock.nowMs() - KEPT_MS;
      await db.commit((tx) => store.purgePauses(tx, clock.nowMs()));
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

/** How a test call ended. */
export interface TestEnd extends DeliveryResult {
  readonly id: string;
  readonly elapsedMs: number;
}

export type Webhooks = ReturnType<typeof createWebhooks>;

/** A delivery as the interface shows it. */
export const deliveryView = (delivery: Delivery) => ({
  id: delivery.id,
  event_id: delivery.eventId,
  type: delivery.type,
  subject: delivery.subject === "" ? null : delivery.subject,
  url: delivery.url,
  format: formatOf(delivery.url),
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
          response_body: delivery.lastAnswer,
        },
  event: JSON.parse(delivery.body) as { type: string; timestamp: string; data: unknown },
});

/** An event of the feed as the interface shows it. */
export const eventView = ({ id, type, subject, createdAtMs, mode, data }: EventRow) => ({
  id,
  type,
  subject: subject === "" ? null : subject,
  timestamp: isoTime(createdAtMs),
  data: { ...(JSON.parse(data) as object), mode },
});
