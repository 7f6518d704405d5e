import { and, asc, desc, eq, gt, gte, inArray, isNotNull, lt, lte, ne, type SQL, sql } from "drizzle-orm";
import type { IdWindow, Stretch } from "../base/walk.ts";
import type { KeyMode } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import { webhookDeliveries, webhookGone, webhookPauses } from "../db/schema-webhooks.ts";

export const DELIVERY_STATUSES = ["pending", "delivered", "rejected", "failed", "cancelled"] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** Whose webhooks: those of live and of test keys share nothing, neither secrets nor queues nor URLs that are off. */
export interface WebhookOwner {
  readonly accountId: string;
  readonly mode: KeyMode;
}

/** One URL of an owner. */
export interface WebhookEndpoint extends WebhookOwner {
  readonly url: string;
}

/** The pending events of an owner for one URL and about one subject, which are sent one after the other. */
export interface WebhookQueue extends WebhookEndpoint {
  readonly subject: string;
}

/** An event on its way to a URL. Of the pending ones of a queue only the first has a time. */
export interface Delivery extends WebhookQueue {
  readonly id: string;
  /** The event: the header `webhook-id`, and the order within a queue. */
  readonly eventId: string;
  /** Whose URL it is: that of the subject, the default of the account, or both. */
  readonly via: "subject" | "default" | "both";
  readonly type: string;
  readonly body: string;
  readonly status: DeliveryStatus;
  readonly attempts: number;
  /** Attempts that the receiver refused for good. */
  readonly rejections: number;
  readonly dueAtMs: number | null;
  readonly lastAttemptAtMs: number | null;
  readonly lastHttpStatus: number | null;
  readonly lastProblem: string | null;
  /** The beginning of what the receiver answered to a failed attempt. */
  readonly lastAnswer: string | null;
  readonly createdAtMs: number;
  readonly finishedAtMs: number | null;
}

/** How an attempt ended: exactly what changes in the row. */
export interface AttemptEnd extends Pick<
  Delivery,
  | "status"
  | "attempts"
  | "rejections"
  | "dueAtMs"
  | "lastAttemptAtMs"
  | "lastHttpStatus"
  | "lastProblem"
  | "lastAnswer"
  | "finishedAtMs"
> {}

/** What can change in a delivery. */
export type DeliveryChange = Partial<AttemptEnd & Pick<Delivery, "url" | "via">>;

/** A URL that events wait for, and when the earliest of them is due. */
export interface DueEndpoint extends WebhookEndpoint {
  readonly dueAtMs: number;
}

export interface DeliveryFilters {
  readonly status?: DeliveryStatus | readonly DeliveryStatus[] | undefined;
  readonly type?: string | undefined;
  readonly url?: string | undefined;
  readonly subject?: string | undefined;
  /** Of events from this moment on, and before that one. */
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

export const createDeliveryStore = (db: Db) => {
  const table = webhookDeliveries;
  const pendingAt = ({ accountId, mode, url }: WebhookEndpoint): SQL | undefined =>
    and(eq(table.accountId, accountId), eq(table.mode, mode), eq(table.url, url), sql`status = 'pending'`);
  const queueOf = (queue: WebhookQueue): SQL | undefined => and(pendingAt(queue), eq(table.subject, queue.subject));
  const passing = ({ accountId, mode }: WebhookOwner, filters: DeliveryFilters): SQL | undefined => {
    const { status, type, url, subject, sinceMs, untilMs } = filters;
    return and(
      ...[eq(table.accountId, accountId), eq(table.mode, mode)],
      status === undefined ? undefined : inArray(table.status, typeof status === "string" ? [status] : [...status]),
      type === undefined ? undefined : eq(table.type, type),
      url === undefined ? undefined : eq(table.url, url),
      subject === undefined ? undefined : eq(table.subject, subject),
      sinceMs === undefined ? undefined : gte(table.createdAtMs, sinceMs),
      untilMs === undefined ? undefined : lt(table.createdAtMs, untilMs),
    );
  };
  const goneOf = ({ accountId, mode }: WebhookOwner, url: string): SQL | undefined =>
    and(eq(webhookGone.accountId, accountId), eq(webhookGone.mode, mode), eq(webhookGone.url, url));
  const pauseOf = ({ accountId, mode, url }: WebhookEndpoint): SQL | undefined =>
    and(eq(webhookPauses.accountId, accountId), eq(webhookPauses.mode, mode), eq(webhookPauses.url, url));

  const firstOf = db.orm
    .select({ id: table.id, dueAtMs: table.dueAtMs })
    .from(table)
    .where(
      and(
        eq(table.accountId, sql.placeholder("accountId")),
        eq(table.mode, sql.placeholder("mode")),
        eq(table.url, sql.placeholder("url")),
        eq(table.subject, sql.placeholder("subject")),
        sql`status = 'pending'`,
      ),
    )
    .orderBy(asc(table.eventId))
    .limit(1)
    .prepare();
  const setTime = db.orm
    .update(table)
    .set({ dueAtMs: sql`${sql.placeholder("dueAtMs")}` })
    .where(eq(table.id, sql.placeholder("id")))
    .prepare();
  const byId = db.orm
    .select()
    .from(table)
    .where(eq(table.id, sql.placeholder("id")))
    .prepare();

  // One step of a loose index scan: however many events wait for a URL, it costs one look.
  const endpointAfter = db.sqlite.prepare<DueEndpoint, [string, string, string]>(
    `SELECT account_id AS accountId, mode, url, due_at_ms AS dueAtMs FROM webhook_deliveries
      WHERE due_at_ms IS NOT NULL AND (account_id, mode, url) > (?, ?, ?)
      ORDER BY account_id, mode, url, due_at_ms LIMIT 1`,
  );

  // Asked before every attempt.
  const pauseEnd = db.sqlite.prepare<{ untilMs: number }, [string, string, string]>(
    "SELECT until_ms AS untilMs FROM webhook_pauses WHERE account_id = ? AND mode = ? AND url = ?",
  );
  const pausedUntil = ({ accountId, mode, url }: WebhookEndpoint): number =>
    pauseEnd.get(accountId, mode, url)?.untilMs ?? 0;

  const goneSince = (owner: WebhookOwner, url: string): number | undefined =>
    db.orm.select().from(webhookGone).where(goneOf(owner, url)).get()?.atMs;

  return {
    insert: (_tx: Tx, delivery: Delivery): void =>
      void db.orm.insert(table).values(delivery).onConflictDoNothing().run(),
    find: (id: string): Delivery | undefined => byId.get({ id }),
    change: (_tx: Tx, id: string, change: DeliveryChange): void =>
      void db.orm
        .update(table)
        .set({ ...change })
        .where(eq(table.id, id))
        .run(),
    /** Gives the first of a queue its time (not before a pause ends), where it has none, and only the first: to be called after every change of the queue. */
    wakeQueue(_tx: Tx, queue: WebhookQueue, dueAtMs: number): void {
      const { accountId, mode, url, subject } = queue;
      const first = firstOf.get({ accountId, mode, url, subject });
      if (first === undefined || first.dueAtMs !== null) return;
      const others = and(queueOf(queue), isNotNull(table.dueAtMs), ne(table.id, first.id));
      db.orm.update(table).set({ dueAtMs: null }).where(others).run();
      setTime.run({ id: first.id, dueAtMs: Math.max(dueAtMs, pausedUntil(queue)) });
    },

    /** The URL behind another one (null: the first) that events wait for, and when the earliest of them is due. */
    endpointAfter: (after: WebhookEndpoint | null): DueEndpoint | undefined =>
      endpointAfter.get(after?.accountId ?? "", after?.mode ?? "", after?.url ?? "") ?? undefined,
    /** The first ones of the queues of a URL that are due, in the order of their time. */
    dueHeads: ({ accountId, mode, url }: WebhookEndpoint, nowMs: number, limit: number): Delivery[] =>
      db.orm
        .select()
        .from(table)
        .where(
          and(
            eq(table.accountId, accountId),
            eq(table.mode, mode),
            eq(table.url, url),
            sql`due_at_ms is not null`,
            lte(table.dueAtMs, nowMs),
          ),
        )
        .orderBy(asc(table.dueAtMs))
        .limit(limit)
        .all(),
    /** The pending ones of a queue, in their order. */
    queue: (queue: WebhookQueue, limit: number): Delivery[] =>
      db.orm.select().from(table).where(queueOf(queue)).orderBy(asc(table.eventId)).limit(limit).all(),
    countPending: (endpoint: WebhookEndpoint): number =>
      db.orm
        .select({ count: sql<number>`count(*)` })
        .from(table)
        .where(pendingAt(endpoint))
        .get()?.count ?? 0,
    /** Gives up all that is pending for a URL. */
    failPending: (_tx: Tx, endpoint: WebhookEndpoint, problem: string, atMs: number): void =>
      void db.orm
        .update(table)
        .set({ status: "failed", dueAtMs: null, lastProblem: problem, finishedAtMs: atMs })
        .where(pendingAt(endpoint))
        .run(),

    /** Of an owner: the id so many places behind the newest older than `before`; null when there are no so many. */
    idBehind: (
      { accountId, mode }: { accountId: string; mode: KeyMode },
      before: string | null,
      places: number,
    ): string | null =>
      db.orm
        .select({ id: table.id })
        .from(table)
        .where(
          and(eq(table.accountId, accountId), eq(table.mode, mode), before === null ? undefined : lt(table.id, before)),
        )
        .orderBy(desc(table.id))
        .limit(1)
        .offset(places)
        .get()?.id ?? null,
    /** Newest first, older than the id `before` and not older than `from`. */
    list: (owner: WebhookOwner, filters: DeliveryFilters, page: IdWindow): Delivery[] =>
      db.orm
        .select()
        .from(table)
        .where(
          and(
            passing(owner, filters),
            page.before === null ? undefined : lt(table.id, page.before),
            page.from === undefined ? undefined : gte(table.id, page.from),
          ),
        )
        .orderBy(desc(table.id))
        .limit(page.limit)
        .all(),
    /** The oldest first, behind the id `after`: those among the next `looks` that pass, `limit` at most, and where the look ended. */
    listForward(
      owner: WebhookOwner,
      filters: DeliveryFilters,
      { after, looks, limit }: { after: string | null; looks: number; limit: number },
    ): Stretch<Delivery, string> {
      const behind = after === null ? undefined : gt(table.id, after);
      const everything = db.orm
        .select({ id: table.id })
        .from(table)
        .where(and(passing(owner, {}), behind))
        .orderBy(asc(table.id));
      const upTo =
        everything
          .limit(1)
          .offset(looks - 1)
          .get()?.id ?? null;
      const within = upTo === null ? undefined : lte(table.id, upTo);
      const matching = and(passing(owner, filters), behind, within);
      const rows = db.orm.select().from(table).where(matching).orderBy(asc(table.id)).limit(limit).all();
      const last = rows.at(-1);
      return { rows, end: rows.length === limit && last !== undefined ? last.id : upTo };
    },
    /** Forgets some that were finished before `beforeMs`, and says how many. */
    forget(_tx: Tx, beforeMs: number, limit: number): number {
      const old = db.orm
        .select({ id: table.id })
        .from(table)
        .where(and(isNotNull(table.finishedAtMs), lt(table.finishedAtMs, beforeMs)))
        .limit(limit)
        .all();
      for (const { id } of old) db.orm.delete(table).where(eq(table.id, id)).run();
      return old.length;
    },

    pausedUntil,
    /** Nothing is sent to a URL before `untilMs`. */
    pause(_tx: Tx, endpoint: WebhookEndpoint, untilMs: number): void {
      const { accountId, mode, url } = endpoint;
      const target = [webhookPauses.accountId, webhookPauses.mode, webhookPauses.url];
      const later = sql`max(${webhookPauses.untilMs}, excluded.until_ms)`;
      db.orm
        .insert(webhookPauses)
        .values({ accountId, mode, url, untilMs })
        .onConflictDoUpdate({ target, set: { untilMs: later } })
        .run();
      const early = and(pendingAt(endpoint), isNotNull(table.dueAtMs), lt(table.dueAtMs, untilMs));
      db.orm.update(table).set({ dueAtMs: untilMs }).where(early).run();
    },
    endPause: (_tx: Tx, endpoint: WebhookEndpoint): void =>
      void db.orm.delete(webhookPauses).where(pauseOf(endpoint)).run(),
    /** Purges the pauses that ended before `beforeMs`. */
    purgePauses: (_tx: Tx, beforeMs: number): void =>
      void db.orm.delete(webhookPauses).where(lt(webhookPauses.untilMs, beforeMs)).run(),

    /** When the receiver of a URL answered 410; undefined while events are sent there. */
    goneSince,
    isGone: (owner: WebhookOwner, url: string): boolean => goneSince(owner, url) !== undefined,
    markGone: (_tx: Tx, { accountId, mode, url }: WebhookEndpoint, atMs: number): void =>
      void db.orm.insert(webhookGone).values({ accountId, mode, url, atMs }).onConflictDoNothing().run(),
    clearGone: (_tx: Tx, owner: WebhookOwner, url: string): void =>
      void db.orm.delete(webhookGone).where(goneOf(owner, url)).run(),
  };
};

export type DeliveryStore = ReturnType<typeof createDeliveryStore>;
