import { isoTime } from "../../foundation/base/clock.ts";
import { type KeyMode, newId } from "../../foundation/base/secrets.ts";
import type { Tx } from "../../foundation/db/open.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import type { Delivery, DeliveryStore, WebhookOwner } from "./delivery-store.ts";
import { eventData, type EventRow, type EventStore } from "./event-store.ts";
import type { WebhookSecrets } from "./secret-store.ts";

/** Events relayed in one transaction. */
export const EVENTS_AT_ONCE_MAX = 100;
/** With this many pending deliveries to one URL, its endpoint has been down for long: further events are not sent. */
const PENDING_MAX = 100_000;

export interface OutboxRelayOptions {
  readonly store: DeliveryStore;
  readonly events: EventStore;
  readonly secrets: WebhookSecrets;
  /** The URL that receives every event of an account and mode; null when none is set. */
  readonly defaultUrl: (owner: WebhookOwner) => string | null;
  /** Pending deliveries to one URL; default: 100,000. */
  readonly pendingMax?: number;
}

interface EventContent {
  readonly createdAtMs: number;
  readonly mode: KeyMode;
  readonly data: object;
}

/** The request body of an event (Standard Webhooks 1.0). Its `data` includes the mode. */
export const eventBody = (type: string, { createdAtMs, mode, data }: EventContent): string =>
  JSON.stringify({ type, timestamp: isoTime(createdAtMs), data: { ...data, mode } });

interface Refusal {
  readonly host: string;
  readonly problem: string;
}

/** Creates the deliveries of new events in the outbox. */
export class OutboxRelay {
  readonly #pendingMax: number;

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock" | "log">,
    private readonly options: OutboxRelayOptions,
  ) {
    this.#pendingMax = options.pendingMax ?? PENDING_MAX;
  }

  /** Relays the oldest new events in one transaction and returns how many; `EVENTS_AT_ONCE_MAX` when there may be more. */
  async relay(): Promise<number> {
    const { db, clock, log } = this.runtime;
    const { events } = this.options;
    const waiting = events.waiting(EVENTS_AT_ONCE_MAX);
    if (waiting.length === 0) return 0;
    const refused = await db.commit((tx) => {
      const pendingCounts = new Map<string, number>();
      return waiting.flatMap((event) => {
        const refusals = this.#deliveriesOf(event).map((delivery) => this.#insert(tx, delivery, pendingCounts));
        events.markDelivered(tx, event.id, clock.nowMs());
        return refusals.filter((refusal) => refusal !== null);
      });
    });
    for (const first of refused.slice(0, 1)) log.error("events are not sent", { ...first, events: refused.length });
    return waiting.length;
  }

  /** One delivery per URL. The first has the id of the event, so that a repetition after a crash inserts nothing twice. */
  #deliveriesOf(event: EventRow): Delivery[] {
    const defaultUrl = this.options.defaultUrl(event);
    const { id: eventId, accountId, mode, type, subject, createdAtMs, url } = event;
    const delivery = {
      ...{ eventId, accountId, mode, type, subject, createdAtMs },
      body: eventBody(type, { ...event, data: eventData(event) }),
      ...({ status: "pending", attempts: 0, rejections: 0, dueAtMs: null, finishedAtMs: null } as const),
      ...{ lastAttemptAtMs: null, lastHttpStatus: null, lastProblem: null, lastAnswer: null },
    };
    const deliveries: Delivery[] = [];
    if (url !== null) deliveries.push({ ...delivery, id: eventId, url, via: url === defaultUrl ? "both" : "subject" });
    if (defaultUrl !== null && url !== defaultUrl)
      deliveries.push({ ...delivery, id: url === null ? eventId : newId(), url: defaultUrl, via: "default" });
    return deliveries;
  }

  #insert(tx: Tx, delivery: Delivery, pendingCounts: Map<string, number>): Refusal | null {
    const { store, secrets } = this.options;
    const nowMs = this.runtime.clock.nowMs();
    const problem = this.#problemOf(delivery, pendingCounts);
    if (problem === null) store.insert(tx, delivery);
    else store.insert(tx, { ...delivery, status: "failed", lastProblem: problem, finishedAtMs: nowMs });
    secrets.ensure(tx, delivery);
    store.wakeQueue(tx, delivery, nowMs);
    return problem === null ? null : { host: new URL(delivery.url).host, problem };
  }

  /** Why a delivery is not sent; null when it is. */
  #problemOf(delivery: Delivery, pendingCounts: Map<string, number>): string | null {
    const { store } = this.options;
    const { accountId, mode, url } = delivery;
    const goneAtMs = store.goneSince(delivery, url);
    if (goneAtMs !== undefined)
      return `Not sent: the receiver responded 410 on ${isoTime(goneAtMs)}. To resume, set the URL again or redeliver.`;
    const key = `${accountId} ${mode} ${url}`;
    const pending = pendingCounts.get(key) ?? store.countPending(delivery);
    pendingCounts.set(key, Math.min(this.#pendingMax, pending + 1));
    return pending < this.#pendingMax ? null : `Not sent: ${this.#pendingMax} events are already waiting for this URL.`;
  }
}
