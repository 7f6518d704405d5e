import { and, asc, desc, eq, gt, gte, inArray, isNotNull, lte, type SQL, sql } from "drizzle-orm";
import { z } from "zod";
import type { WalkPage, FiltersOf } from "../../foundation/base/walk.ts";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { outbox } from "../../foundation/db/schema.ts";
import type { Delivery, DeliveryStore } from "./delivery-store.ts";
import { statements } from "../../foundation/db/statements.ts";
import { isoTime } from "../../foundation/base/clock.ts";
import { type KeyMode, newId, type Owner } from "../../foundation/base/secrets.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import type { WebhookSecrets } from "./secret-store.ts";

/** An event in the outbox (`foundation/db/outbox.ts`). `data` is JSON text. */
export type EventRow = Readonly<typeof outbox.$inferSelect>;

const dataSchema = z.looseObject({});

/** The `data` of an event. */
export const eventData = ({ data }: Pick<EventRow, "data">): object => dataSchema.parse(JSON.parse(data));

export type EventFilters = FiltersOf<Pick<EventRow, "type" | "subject"> & { sinceMs: number }>;

const table = outbox;
const belongsTo = ({ accountId, mode }: Owner) => and(eq(table.accountId, accountId), eq(table.mode, mode));

const prepare = ({ orm, sqlite }: Db) =>
  statements({
    waiting: () =>
      orm
        .select()
        .from(table)
        .where(sql`delivered_at_ms is null`)
        .orderBy(asc(table.id))
        .limit(sql.placeholder("limit"))
        .prepare(),
    markDelivered: () =>
      sqlite.prepare<unknown, [number, string]>("UPDATE outbox SET delivered_at_ms = ? WHERE id = ?"),
  });

/** Reads the outbox: for the relay, and as the event feed of each account and mode. */
export class EventStore {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(private readonly db: Db) {
    this.#statements = prepare(db);
  }

  /** Events without deliveries, oldest first. */
  waiting(limit: number): EventRow[] {
    return this.#statements.waiting.all({ limit });
  }

  /** The deliveries of an event are created. */
  markDelivered(_tx: Tx, id: string, atMs: number) {
    this.#statements.markDelivered.run(atMs, id);
  }

  /** Examines the next `looks` events of an owner after an id, oldest first, and returns up to `wanted` that match. */
  window(owner: Owner, { sinceMs, type, subject }: EventFilters) {
    return (after: string | null, looks: number, wanted: number): WalkPage<EventRow, string> => {
      const behind = and(
        belongsTo(owner),
        after === null ? undefined : gt(table.id, after),
        subject === undefined ? undefined : eq(table.subject, subject),
      );
      const ids = this.db.orm.select({ id: table.id }).from(table).where(behind).orderBy(asc(table.id));
      const upTo =
        ids
          .limit(1)
          .offset(looks - 1)
          .get()?.id ?? null;
      const matching = and(
        behind,
        upTo === null ? undefined : lte(table.id, upTo),
        sinceMs === undefined ? undefined : gte(table.createdAtMs, sinceMs),
        type === undefined ? undefined : eq(table.type, type),
      );
      const rows = this.db.orm.select().from(table).where(matching).orderBy(asc(table.id)).limit(wanted).all();
      const last = rows.at(-1);
      return { rows, next: rows.length === wanted && last !== undefined ? last.id : upTo };
    };
  }

  /** Accounts and modes that have events. */
  owners(): Owner[] {
    return this.db.orm.selectDistinct({ accountId: table.accountId, mode: table.mode }).from(table).all();
  }

  /** The newest event of an owner that is not among the newest `kept`; undefined when there are not that many. */
  surplusFrom(owner: Owner, kept: number): string | undefined {
    const ids = this.db.orm.select({ id: table.id }).from(table).where(belongsTo(owner)).orderBy(desc(table.id));
    return ids.limit(1).offset(kept).get()?.id;
  }

  /** Deletes up to `limit` events of an owner up to an id and returns how many. Events not relayed yet are kept. */
  purgeUpTo(_tx: Tx, owner: Owner, id: string, limit: number): number {
    return this.#purge(and(belongsTo(owner), lte(table.id, id)), limit, Number.POSITIVE_INFINITY);
  }

  /** Deletes some of the `limit` oldest events, those of before a time, and returns how many. Events not relayed yet are kept. */
  purgeOld(_tx: Tx, beforeMs: number, limit: number): number {
    return this.#purge(undefined, limit, beforeMs);
  }

  #purge(condition: SQL | undefined, limit: number, beforeMs: number) {
    const relayed = and(condition, isNotNull(table.deliveredAtMs));
    const { id, createdAtMs: at } = table;
    const rows = this.db.orm
      .select({ id, createdAtMs: at })
      .from(table)
      .where(relayed)
      .orderBy(asc(id))
      .limit(limit)
      .all();
    const ids = rows.filter(({ createdAtMs }) => createdAtMs < beforeMs).map((row) => row.id);
    this.db.orm.delete(table).where(inArray(table.id, ids)).run();
    return ids.length;
  }
}

/** Events relayed in one transaction: some 15 ms. */
export const EVENTS_AT_ONCE_MAX = 250;
/** With this many pending deliveries to one URL, its endpoint has been down for long: further events are not sent. */
const PENDING_MAX = 100_000;

export interface OutboxRelayDeps {
  readonly store: DeliveryStore;
  readonly events: EventStore;
  readonly secrets: WebhookSecrets;
  /** The URL that receives every event of an account and mode; null when none is set. */
  readonly defaults: { findDefaults(owner: Owner): { readonly webhookUrl: string | null } };
  /** Pending deliveries to one URL; default: 100,000. */
  readonly pendingMax?: number;
}

/** The request body of an event (Standard Webhooks 1.0). Its `data` includes the mode. */
export const eventBody = (
  type: string,
  {
    createdAtMs,
    mode,
    data,
  }: {
    createdAtMs: number;
    mode: KeyMode;
    data: object;
  },
): string => JSON.stringify({ type, timestamp: isoTime(createdAtMs), data: { ...data, mode } });

/** Creates the deliveries of new events in the outbox. */
export class OutboxRelay {
  readonly #pendingMax: number;

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock" | "log">,
    private readonly deps: OutboxRelayDeps,
  ) {
    this.#pendingMax = deps.pendingMax ?? PENDING_MAX;
  }

  /** Relays the oldest new events in one transaction and returns how many; `EVENTS_AT_ONCE_MAX` when there may be more. */
  async relay(): Promise<number> {
    const { db, clock, log } = this.runtime;
    const { events, store, secrets } = this.deps;
    const waiting = events.waiting(EVENTS_AT_ONCE_MAX);
    if (waiting.length === 0) return 0;
    const refused = await db.commit((tx) => {
      const endpoints = new RelayedEndpoints(this.deps, this.#pendingMax);
      const nowMs = clock.nowMs();
      const judged = waiting
        .flatMap((event) => deliveriesOf(event, endpoints.defaultUrl(event)))
        .map((delivery) => ({ delivery, problem: endpoints.problemOf(delivery) }));
      store.insert(
        tx,
        judged.map(({ delivery, problem }) =>
          problem === null ? delivery : { ...delivery, status: "failed", lastProblem: problem, finishedAtMs: nowMs },
        ),
      );
      const owners = new Map(judged.map(({ delivery }) => [ownerKey(delivery), delivery]));
      for (const owner of owners.values()) secrets.ensure(tx, owner);
      store.wakeQueues(
        tx,
        judged.map(({ delivery }) => delivery),
        nowMs,
      );
      for (const { id } of waiting) events.markDelivered(tx, id, nowMs);
      return judged.flatMap(({ delivery: { url }, problem }) =>
        problem === null ? [] : [{ host: new URL(url).host, problem }],
      );
    });
    for (const first of refused.slice(0, 1)) log.error("events are not sent", { ...first, events: refused.length });
    return waiting.length;
  }
}

const ownerKey = ({ accountId, mode }: Owner) => `${accountId} ${mode}`;

/** What the events of one transaction have in common, read once: default URLs, and whether a URL takes further events. */
class RelayedEndpoints {
  readonly #defaultUrls = new Map<string, string | null>();
  readonly #endpoints = new Map<string, { readonly goneAtMs: number | undefined; pending: number }>();

  constructor(
    private readonly deps: Pick<OutboxRelayDeps, "store" | "defaults">,
    private readonly pendingMax: number,
  ) {}

  defaultUrl(owner: Owner): string | null {
    const key = ownerKey(owner);
    const known = this.#defaultUrls.get(key);
    if (known !== undefined) return known;
    const url = this.deps.defaults.findDefaults(owner).webhookUrl;
    this.#defaultUrls.set(key, url);
    return url;
  }

  /** Why a delivery is not sent; null when it is, which counts. */
  problemOf(delivery: Delivery): string | null {
    const endpoint = this.#endpointOf(delivery);
    const { goneAtMs } = endpoint;
    if (goneAtMs !== undefined)
      return `Not sent: the receiver responded on ${isoTime(goneAtMs)} that the URL is gone. To resume, set the URL again or redeliver.`;
    if (endpoint.pending >= this.pendingMax)
      return `Not sent: ${this.pendingMax} events are already waiting for this URL.`;
    endpoint.pending++;
    return null;
  }

  #endpointOf(delivery: Delivery) {
    const { store } = this.deps;
    const key = `${ownerKey(delivery)} ${delivery.url}`;
    const known = this.#endpoints.get(key);
    if (known !== undefined) return known;
    const endpoint = { goneAtMs: store.goneSince(delivery, delivery.url), pending: store.countPending(delivery) };
    this.#endpoints.set(key, endpoint);
    return endpoint;
  }
}

/** One delivery per URL. The first has the id of the event, so that a repetition after a crash inserts nothing twice. */
const deliveriesOf = (event: EventRow, defaultUrl: string | null): Delivery[] => {
  const { id: eventId, accountId, mode, type, subject, createdAtMs, url } = event;
  const delivery = {
    eventId,
    accountId,
    mode,
    type,
    subject,
    createdAtMs,
    body: eventBody(type, { ...event, data: eventData(event) }),
    status: "pending" as const,
    attempts: 0,
    rejections: 0,
    dueAtMs: null,
    finishedAtMs: null,
    lastAttemptAtMs: null,
    lastHttpStatus: null,
    lastProblem: null,
    lastAnswer: null,
  };
  const deliveries: Delivery[] = [];
  if (url !== null) deliveries.push({ ...delivery, id: eventId, url, via: url === defaultUrl ? "both" : "subject" });
  if (defaultUrl !== null && url !== defaultUrl)
    deliveries.push({ ...delivery, id: url === null ? eventId : newId(), url: defaultUrl, via: "default" });
  return deliveries;
};
