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

const prepare = ({ orm }: Db) =>
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
      orm
        .update(table)
        .set({ deliveredAtMs: sql`${sql.placeholder("atMs")}` })
        .where(eq(table.id, sql.placeholder("id")))
        .prepare(),
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
    this.#statements.markDelivered.run({ id, atMs });
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

/** Events relayed in one transaction. */
export const EVENTS_AT_ONCE_MAX = 100;
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

interface Refusal {
  readonly host: string;
  readonly problem: string;
}

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
    const { events } = this.deps;
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
    const defaultUrl = this.deps.defaults.findDefaults(event).webhookUrl;
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
  }

  #insert(tx: Tx, delivery: Delivery, pendingCounts: Map<string, number>): Refusal | null {
    const { store, secrets } = this.deps;
    const nowMs = this.runtime.clock.nowMs();
    const problem = this.#problemOf(delivery, pendingCounts);
    if (problem === null) store.insert(tx, delivery);
    else store.insert(tx, { ...delivery, status: "failed", lastProblem: problem, finishedAtMs: nowMs });
    secrets.ensure(tx, delivery);
    store.wakeQueue(tx, delivery, nowMs);
    return problem === null ? null : { host: new URL(delivery.url).host, problem };
  }

  /** Why a delivery is not sent; null when it is. */
  #problemOf(delivery: Delivery, pendingCounts: Map<string, number>) {
    const { store } = this.deps;
    const { accountId, mode, url } = delivery;
    const goneAtMs = store.goneSince(delivery, url);
    if (goneAtMs !== undefined)
      return `Not sent: the receiver responded on ${isoTime(goneAtMs)} that the URL is gone. To resume, set the URL again or redeliver.`;
    const key = `${accountId} ${mode} ${url}`;
    const pending = pendingCounts.get(key) ?? store.countPending(delivery);
    pendingCounts.set(key, Math.min(this.#pendingMax, pending + 1));
    return pending < this.#pendingMax ? null : `Not sent: ${this.#pendingMax} events are already waiting for this URL.`;
  }
}
