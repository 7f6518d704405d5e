import { z } from "zod";
import { isoTime } from "../../foundation/base/clock.ts";
import { inSteps } from "../../foundation/base/in-steps.ts";
import { newId, type Owner } from "../../foundation/base/secrets.ts";
import { readById, walk, type WalkPage } from "../../foundation/base/walk.ts";
import type { Tx } from "../../foundation/db/open.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import { DeliveryActions } from "./delivery-actions.ts";
import type { Delivery, DeliveryFilters, DeliveryStore } from "./delivery-store.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { Endpoints } from "./endpoints.ts";
import { eventData, type EventFilters, type EventRow, type EventStore, eventBody } from "./event-store.ts";
import { formatOf, maskUrl } from "../channels/channels.ts";
import type { DeliveryResult, LoadEventDocs, Sender } from "./send.ts";
import type { WebhookSecrets } from "./secret-store.ts";
import { csvLine } from "../../foundation/http/csv.ts";

/** The type of a test event by default. */
export const TEST_TYPE = "webhook.test";
/** The `message` of a `webhook.test` event. */
export const TEST_MESSAGE =
  "This is a test event. Use it to check that the URL is reachable and the signature is valid.";

/** How long finished deliveries and events are kept. */
const KEPT_MS = 30 * 24 * 60 * 60 * 1000;
const PURGED_AT_ONCE_MAX = 500;
/** Limits the disk space of one account and mode. */
const EVENTS_KEPT_MAX = 100_000;

/** Deliveries examined, and read, between two yields. */
const EXAMINED_AT_ONCE = 5_000;
const READ_AT_ONCE = 100;

/** The result of a test call. */
export interface WebhookTestResult extends DeliveryResult {
  readonly id: string;
  readonly elapsedMs: number;
}

/** The webhooks of callers. A caller sees the deliveries and events of its account and mode. */
export class Webhooks {
  readonly actions: DeliveryActions;
  readonly endpoints: Endpoints;
  readonly secrets: WebhookSecrets;

  constructor(
    private readonly runtime: Runtime,
    private readonly deps: {
      store: DeliveryStore;
      events: EventStore;
      secrets: WebhookSecrets;
      dispatcher: Dispatcher;
      send: Sender;
      loadDocs: LoadEventDocs;
      /** Events kept for one account and mode; default: 100,000. */
      eventsMax?: number;
    },
  ) {
    this.actions = new DeliveryActions(runtime, deps.store, deps.dispatcher);
    this.secrets = deps.secrets;
    this.endpoints = new Endpoints(runtime, deps.store);
  }

  /** Filters with the URL that a masked one stands for. */
  resolve(owner: Owner, filters: DeliveryFilters): DeliveryFilters {
    return filters.url === undefined ? filters : { ...filters, url: this.endpoints.resolve(owner, filters.url) };
  }

  /** Newest first. */
  list(owner: Owner, given: DeliveryFilters) {
    const { store } = this.deps;
    const filters = this.resolve(owner, given);
    return readById<Delivery>(
      (page) => store.list(owner, filters, page),
      (before, offset) => store.idBehind(owner, before, offset),
    );
  }

  /** A page of deliveries, newest first. It may have fewer rows than `limit` and still a next one. */
  page(
    owner: Owner,
    filters: DeliveryFilters,
    window: { before: string | null; limit: number },
  ): Promise<WalkPage<Delivery, string | null>> {
    const read = this.list(owner, filters);
    const keyOf = ({ id }: Delivery) => id;
    const { accountId: account } = owner;
    return walk({ read, keyOf, step: EXAMINED_AT_ONCE, rowsAtOnce: READ_AT_ONCE }, { ...window, account });
  }

  /** The events of an owner, oldest first, whether or not they were sent. */
  feed(owner: Owner, filters: EventFilters): ReturnType<EventStore["window"]> {
    return this.deps.events.window(owner, filters);
  }

  /** Sends one event to a URL, without storing it: `webhook.test`, or the documented example of another type. */
  async test(owner: Owner, url: string, type: string): Promise<WebhookTestResult> {
    const { store, send, loadDocs } = this.deps;
    const { db, clock } = this.runtime;
    const id = newId();
    const { accountId, mode } = owner;
    const example = z.looseObject({}).parse((await loadDocs()).find((event) => event.type === type)?.example);
    const body = eventBody(type, { createdAtMs: clock.nowMs(), mode, data: { ...example, test: true } });
    const startedMs = clock.monotonicMs();
    const signing = this.secrets.current({ accountId, mode }).map(({ secret }) => secret);
    const result = await send({ id, url, body, secrets: signing });
    const elapsedMs = Math.round(clock.monotonicMs() - startedMs);
    if (result.delivered) await db.commit((tx) => store.clearGone(tx, owner, url));
    return { ...result, id, elapsedMs };
  }

  /** Deletes finished deliveries and events after 30 days, and all but the newest 100,000 events of each owner. */
  async purge(isStopping: () => boolean = () => false) {
    const { store, events, eventsMax = EVENTS_KEPT_MAX } = this.deps;
    const { db, clock } = this.runtime;
    const beforeMs = clock.nowMs() - KEPT_MS;
    const purgeAll = (purgeSome: (tx: Tx) => number) => inSteps(() => db.commit(purgeSome), { isStopping });
    await purgeAll((tx) => store.purgePauses(tx, clock.nowMs(), PURGED_AT_ONCE_MAX));
    await purgeAll((tx) => store.purge(tx, beforeMs, PURGED_AT_ONCE_MAX));
    await purgeAll((tx) => events.purgeOld(tx, beforeMs, PURGED_AT_ONCE_MAX));
    for (const owner of events.owners()) {
      const surplus = events.surplusFrom(owner, eventsMax);
      if (surplus === undefined) continue;
      await purgeAll((tx) => events.purgeUpTo(tx, owner, surplus, PURGED_AT_ONCE_MAX));
    }
  }
}

const storedEventSchema = z.object({ type: z.string(), timestamp: z.string(), data: z.unknown() });

/** A delivery as the API shows it. */
export const deliveryView = (delivery: Delivery) => ({
  id: delivery.id,
  event_id: delivery.eventId,
  type: delivery.type,
  subject: delivery.subject === "" ? null : delivery.subject,
  url: maskUrl(delivery.url),
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
  event: storedEventSchema.parse(JSON.parse(delivery.body)),
});

/** An event of the feed as the API shows it. */
export const eventView = (event: EventRow) => ({
  id: event.id,
  type: event.type,
  subject: event.subject === "" ? null : event.subject,
  timestamp: isoTime(event.createdAtMs),
  data: { ...eventData(event), mode: event.mode },
});

const ROWS_AT_ONCE = 250;
const COLUMNS = [
  "id",
  "event_id",
  "type",
  "subject",
  "url",
  "status",
  "attempts",
  "created_at",
  "next_attempt_at",
  "finished_at",
  "last_attempt_at",
  "last_http_status",
  "last_problem",
];

const timeCell = (ms: number | null) => (ms === null ? null : isoTime(ms));

const deliveryLine = (row: Delivery) =>
  csvLine([
    row.id,
    row.eventId,
    row.type,
    row.subject,
    maskUrl(row.url),
    row.status,
    row.attempts,
    isoTime(row.createdAtMs),
    timeCell(row.dueAtMs),
    timeCell(row.finishedAtMs),
    timeCell(row.lastAttemptAtMs),
    row.lastHttpStatus,
    row.lastProblem,
  ]);

/** Every delivery that matches as CSV, newest first. Formulas are defused. */
export async function* writeDeliveries(
  webhooks: Pick<Webhooks, "page">,
  owner: Owner,
  filters: DeliveryFilters,
): AsyncGenerator<Uint8Array, void> {
  yield Buffer.from(csvLine(COLUMNS));
  for (let before: string | null = null; ;) {
    const { rows, next }: Awaited<ReturnType<Webhooks["page"]>> = await webhooks.page(owner, filters, {
      before,
      limit: ROWS_AT_ONCE,
    });
    yield Buffer.from(rows.map(deliveryLine).join(""));
    if (next === null) return;
    before = next;
  }
}
