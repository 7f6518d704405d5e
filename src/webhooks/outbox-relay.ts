import { type Clock, isoTime } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { newId, type KeyMode } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import type { EventRow, EventStore } from "./event-store.ts";
import type { WebhookSecrets } from "./secrets.ts";
import type { Delivery, WebhookOwner, DeliveryStore } from "./delivery-store.ts";

/** Events that one transaction takes over. */
export const EVENTS_AT_ONCE_MAX = 500;
/** More than so many waiting for one URL of an account: its receiver has been away for long, and hears of no more. */
const PENDING_MAX = 100_000;

export interface OutboxRelayDeps {
  readonly db: Db;
  readonly store: DeliveryStore;
  readonly events: EventStore;
  /** The URL that all events of an account and mode go to, beside that of their subject; null when there is none. */
  readonly defaultUrl: (owner: WebhookOwner) => string | null;
  readonly secrets: WebhookSecrets;
  readonly clock: Clock;
  readonly log: Log;
  /** Events that may wait for one URL of an account. */
  readonly pendingMax?: number;
}

interface EventContent {
  readonly createdAtMs: number;
  readonly mode: KeyMode;
  readonly data: object;
}

/** The request body of an event (Standard Webhooks 1.0). The `data` of every event tells its mode. */
export const bodyOf = (type: string, { createdAtMs, mode, data }: EventContent): string =>
  JSON.stringify({ type, timestamp: isoTime(createdAtMs), data: { ...data, mode } });

interface Refusal {
  readonly host: string;
  readonly problem: string;
}

/** Makes deliveries of the events in the outbox, in one transaction; answers how many events there were. */
export const createOutboxRelay = (deps: OutboxRelayDeps) => {
  const { db, store, events, defaultUrl, secrets, clock, log, pendingMax = PENDING_MAX } = deps;

  /** One delivery for each URL. The first has the id of the event, so that a repeat after a crash inserts nothing twice. */
  const deliveriesOf = (event: EventRow): Delivery[] => {
    const ofAccount = defaultUrl(event);
    const { id: eventId, accountId, mode, type, subject, createdAtMs } = event;
    const made = {
      ...{ eventId, accountId, mode, type, subject, createdAtMs },
      body: bodyOf(type, { ...event, data: JSON.parse(event.data) }),
      ...({ status: "pending", attempts: 0, rejections: 0, dueAtMs: null, finishedAtMs: null } as const),
      ...{ lastAttemptAtMs: null, lastHttpStatus: null, lastProblem: null, lastAnswer: null },
    };
    const own = event.url;
    const via = own !== null && own === ofAccount ? "both" : "subject";
    return [
      ...(own === null ? [] : [{ ...made, id: eventId, url: own, via } as const]),
      ...(ofAccount === null || via === "both"
        ? []
        : [{ ...made, id: own === null ? eventId : newId(), url: ofAccount, via: "default" } as const]),
    ];
  };

  const refusalOf = (delivery: Delivery, counts: Map<string, number>): string | null => {
    const { accountId, mode, url } = delivery;
    const goneAtMs = store.goneSince(delivery, url);
    if (goneAtMs !== undefined) {
      return `Not sent: the receiver answered 410 on ${isoTime(goneAtMs)}. Set the URL again, or redeliver, to go on.`;
    }
    const endpoint = `${accountId} ${mode} ${url}`;
    const pending = counts.get(endpoint) ?? store.countPending(delivery);
    counts.set(endpoint, Math.min(pendingMax, pending + 1));
    return pending < pendingMax ? null : `Not sent: ${pendingMax} events are waiting for this URL already.`;
  };

  const takeOne = (tx: Tx, delivery: Delivery, counts: Map<string, number>): Refusal | null => {
    const nowMs = clock.nowMs();
    const problem = refusalOf(delivery, counts);
    if (problem === null) store.insert(tx, delivery);
    else store.insert(tx, { ...delivery, status: "failed", lastProblem: problem, finishedAtMs: nowMs });
    secrets.ensure(tx, delivery);
    store.wakeQueue(tx, delivery, nowMs);
    return problem === null ? null : { host: new URL(delivery.url).host, problem };
  };

  return async (): Promise<number> => {
    const waiting = events.waiting(EVENTS_AT_ONCE_MAX);
    if (waiting.length === 0) return 0;
    const refused = await db.commit((tx) => {
      const counts = new Map<string, number>();
      const refusals: Refusal[] = [];
      for (const event of waiting) {
        for (const delivery of deliveriesOf(event)) {
          const refusal = takeOne(tx, delivery, counts);
          if (refusal !== null) refusals.push(refusal);
        }
        events.markTaken(tx, event.id, clock.nowMs());
      }
      return refusals;
    });
    for (const fields of refused.slice(0, 1)) log.error("events are not sent", { ...fields, events: refused.length });
    return waiting.length;
  };
};
