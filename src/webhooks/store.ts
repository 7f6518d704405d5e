import { and, asc, desc, eq, gt, gte, isNotNull, isNull, lt, lte, ne, or, type SQL, sql } from "drizzle-orm";
import type { IdWindow } from "../base/walk.ts";
import type { KeyMode } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import { webhookDeliveries, webhookGone, webhookSecrets } from "../db/schema-webhooks.ts";

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
  "status" | "attempts" | "dueAtMs" | "lastAttemptAtMs" | "lastHttpStatus" | "lastProblem" | "finishedAtMs"
> {}

export interface WebhookSecret extends WebhookOwner {
  readonly id: string;
  readonly secret: string;
  readonly createdAtMs: number;
  readonly validUntilMs: number | null;
}

export interface DeliveryFilters {
  readonly status?: DeliveryStatus | undefined;
  readonly type?: string | undefined;
  readonly url?: string | undefined;
}

export const createWebhookStore = (db: Db) => {
  const table = webhookDeliveries;
  const pendingAt = ({ accountId, mode, url }: WebhookEndpoint): SQL | undefined =>
    and(eq(table.accountId, accountId), eq(table.mode, mode), eq(table.url, url), sql`status = 'pending'`);
  const queueOf = (queue: WebhookQueue): SQL | undefined => and(pendingAt(queue), eq(table.subject, queue.subject));
  const goneOf = ({ accountId, mode }: WebhookOwner, url: string): SQL | undefined =>
    and(eq(webhookGone.accountId, accountId), eq(webhookGone.mode, mode), eq(webhookGone.url, url));
  const secretsOf = ({ accountId, mode }: WebhookOwner): SQL | undefined =>
    and(eq(webhookSecrets.accountId, accountId), eq(webhookSecrets.mode, mode));

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

  const goneSince = (owner: WebhookOwner, url: string): number | undefined =>
    db.orm.select().from(webhookGone).where(goneOf(owner, url)).get()?.atMs;

  return {
    insert: (_tx: Tx, delivery: Delivery): void =>
      void db.orm.insert(table).values(delivery).onConflictDoNothing().run(),
    find: (id: string): Delivery | undefined => byId.get({ id }),
    endAttempt: (_tx: Tx, id: string, end: AttemptEnd): void =>
      void db.orm
        .update(table)
        .set({ ...end })
        .where(eq(table.id, id))
        .run(),
    /** Gives the first of a queue its time, where it has none, and only the first: to be called after every change of the queue. */
    wakeQueue(_tx: Tx, queue: WebhookQueue, dueAtMs: number): void {
      const { accountId, mode, url, subject } = queue;
      const first = firstOf.get({ accountId, mode, url, subject });
      if (first === undefined || first.dueAtMs !== null) return;
      const others = and(queueOf(queue), isNotNull(table.dueAtMs), ne(table.id, first.id));
      db.orm.update(table).set({ dueAtMs: null }).where(others).run();
      setTime.run({ id: first.id, dueAtMs });
    },
    setDue: (_tx: Tx, id: string, dueAtMs: number | null): void => void setTime.run({ id, dueAtMs }),

    /** The first ones of the lines that are due, in the order of their time. */
    dueHeads: (nowMs: number, limit: number): Delivery[] =>
      db.orm
        .select()
        .from(table)
        .where(and(sql`due_at_ms is not null`, lte(table.dueAtMs, nowMs)))
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
    list({ accountId, mode }: WebhookOwner, { status, type, url }: DeliveryFilters, page: IdWindow): Delivery[] {
      const matching = and(
        eq(table.accountId, accountId),
        eq(table.mode, mode),
        page.before === null ? undefined : lt(table.id, page.before),
        page.from === undefined ? undefined : gte(table.id, page.from),
        status === undefined ? undefined : eq(table.status, status),
        type === undefined ? undefined : eq(table.type, type),
        url === undefined ? undefined : eq(table.url, url),
      );
      return db.orm.select().from(table).where(matching).orderBy(desc(table.id)).limit(page.limit).all();
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

    /** When the receiver of a URL answered 410; undefined while events are sent there. */
    goneSince,
    isGone: (owner: WebhookOwner, url: string): boolean => goneSince(owner, url) !== undefined,
    markGone: (_tx: Tx, { accountId, mode, url }: WebhookEndpoint, atMs: number): void =>
      void db.orm.insert(webhookGone).values({ accountId, mode, url, atMs }).onConflictDoNothing().run(),
    clearGone: (_tx: Tx, owner: WebhookOwner, url: string): void =>
      void db.orm.delete(webhookGone).where(goneOf(owner, url)).run(),

    insertSecret: (_tx: Tx, secret: WebhookSecret): void => void db.orm.insert(webhookSecrets).values(secret).run(),
    /** Those that sign at this moment, the newest first. */
    secretsAt: (owner: WebhookOwner, nowMs: number): WebhookSecret[] =>
      db.orm
        .select()
        .from(webhookSecrets)
        .where(and(secretsOf(owner), or(isNull(webhookSecrets.validUntilMs), gt(webhookSecrets.validUntilMs, nowMs))))
        .orderBy(desc(webhookSecrets.id))
        .all(),
    /** The present secrets end at `untilMs`, or earlier where that was so already. */
    endSecrets: (_tx: Tx, owner: WebhookOwner, untilMs: number): void =>
      void db.orm
        .update(webhookSecrets)
        .set({ validUntilMs: untilMs })
        .where(and(secretsOf(owner), or(isNull(webhookSecrets.validUntilMs), gt(webhookSecrets.validUntilMs, untilMs))))
        .run(),
  };
};

export type WebhookStore = ReturnType<typeof createWebhookStore>;
