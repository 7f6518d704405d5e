import type { SQLQueryBindings } from "bun:sqlite";
import {
  and,
  asc,
  desc,
  eq,
  getTableColumns,
  gt,
  gte,
  inArray,
  isNotNull,
  lt,
  lte,
  type SQL,
  sql,
  count,
} from "drizzle-orm";
import type { IdWindow, WalkPage, FiltersOf } from "../../foundation/base/walk.ts";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { webhookAttempts, webhookDeliveries, webhookGone, webhookPauses } from "../../foundation/db/schema-webhooks.ts";
import { prepareRowInsert, selectionOf, statements } from "../../foundation/db/statements.ts";
import type { Owner } from "../../foundation/base/secrets.ts";

/** An endpoint with pending deliveries; `dueAtMs`: of the earliest. */
export interface DueEndpoint extends WebhookEndpoint {
  readonly dueAtMs: number;
}

const table = webhookDeliveries;

/** The columns that an attempt changes. */
export const ATTEMPT_COLUMNS = [
  "status",
  "attempts",
  "rejections",
  "dueAtMs",
  "finishedAtMs",
  "lastAttemptAtMs",
  "lastHttpStatus",
  "lastProblem",
  "lastAnswer",
] as const;

type EndpointTable = typeof table | typeof webhookGone | typeof webhookPauses;
/** That a row belongs to the endpoint that a statement is called with. */
const isGivenEndpoint = ({ accountId, mode, url }: EndpointTable): SQL[] => [
  eq(accountId, sql.placeholder("accountId")),
  eq(mode, sql.placeholder("mode")),
  eq(url, sql.placeholder("url")),
];
const ofEndpoint = isGivenEndpoint(table);

/** The columns of a table in their order, without some. */
const columnsOf = (rows: typeof table | typeof webhookAttempts, without: readonly string[] = []) =>
  Object.entries(getTableColumns(rows)).filter(([name]) => !without.includes(name));
const intoOf = (name: string, columns: ReturnType<typeof columnsOf>) =>
  ({ into: `${name} (${columns.map(([, column]) => column.name).join(", ")})`, columns: columns.length }) as const;

const DELIVERY_COLUMNS = columnsOf(table);
const ATTEMPT_ROW_COLUMNS = columnsOf(webhookAttempts, ["id"]);
const SELECT_DELIVERIES = `SELECT ${selectionOf(table)} FROM webhook_deliveries`;

/** Account, mode, URL and subject. */
type QueueKey = [string, string, string, string];
const IS_OF_QUEUE = "account_id = ? AND mode = ? AND url = ? AND subject = ? AND status = 'pending'";
const FIRST_OF_QUEUE = `SELECT id, due_at_ms AS dueAtMs FROM webhook_deliveries WHERE ${IS_OF_QUEUE} ORDER BY event_id LIMIT 1`;
const QUEUE = `SELECT id FROM webhook_deliveries WHERE ${IS_OF_QUEUE} ORDER BY event_id LIMIT ?`;
const DUE_HEADS = `${SELECT_DELIVERIES} WHERE account_id = ? AND mode = ? AND url = ? AND due_at_ms IS NOT NULL AND due_at_ms <= ? ORDER BY due_at_ms LIMIT ?`;
const CLEAR_DUE_OF_OTHERS = `UPDATE webhook_deliveries SET due_at_ms = NULL WHERE ${IS_OF_QUEUE} AND due_at_ms IS NOT NULL AND id <> ?`;

const prepareQueues = ({ orm, sqlite }: Db) => ({
  firstOfQueue: () => sqlite.prepare<Pick<Delivery, "id" | "dueAtMs">, QueueKey>(FIRST_OF_QUEUE),
  clearDueOfOthers: () => sqlite.prepare<unknown, [...QueueKey, string]>(CLEAR_DUE_OF_OTHERS),
  queue: () => sqlite.prepare<Pick<Delivery, "id">, [...QueueKey, number]>(QUEUE),
  dueHeads: () => sqlite.prepare<Delivery, [string, string, string, number, number]>(DUE_HEADS),
  countPending: () =>
    orm
      .select({ pending: count() })
      .from(table)
      .where(and(...ofEndpoint, sql`status = 'pending'`))
      .prepare(),
});

const END_ATTEMPT = `UPDATE webhook_deliveries SET ${ATTEMPT_COLUMNS.map((name) => `${table[name].name} = ?`).join(", ")} WHERE id = ?`;

const prepareSingle = ({ sqlite }: Db) => ({
  byId: () => sqlite.prepare<Delivery, string>(`${SELECT_DELIVERIES} WHERE id = ?`),
  setDue: () => sqlite.prepare<unknown, [number, string]>("UPDATE webhook_deliveries SET due_at_ms = ? WHERE id = ?"),
  endAttempt: () => sqlite.prepare<unknown, SQLQueryBindings[]>(END_ATTEMPT),
});

const prepareEndpoints = ({ orm, sqlite }: Db) => ({
  gone: () =>
    orm
      .select({ atMs: webhookGone.atMs })
      .from(webhookGone)
      .where(and(...isGivenEndpoint(webhookGone)))
      .prepare(),
  // One step of a loose index scan: its cost does not depend on the number of deliveries to a URL.
  endpointAfter: () =>
    sqlite.prepare<DueEndpoint, [string, string, string]>(
      `SELECT account_id AS accountId, mode, url, due_at_ms AS dueAtMs FROM webhook_deliveries
      WHERE due_at_ms IS NOT NULL AND (account_id, mode, url) > (?, ?, ?)
      ORDER BY account_id, mode, url, due_at_ms LIMIT 1`,
    ),
  pauseEnd: () =>
    sqlite.prepare<{ untilMs: number }, [string, string, string]>(
      "SELECT until_ms AS untilMs FROM webhook_pauses WHERE account_id = ? AND mode = ? AND url = ?",
    ),
  purgePauses: () =>
    sqlite.prepare<unknown, [number, number]>(
      "DELETE FROM webhook_pauses WHERE rowid IN (SELECT rowid FROM webhook_pauses WHERE until_ms < ? LIMIT ?)",
    ),
});

/** The statements of deliveries, prepared once: building them anew takes longer than running them. */
export const prepareDeliveries = (db: Db) =>
  statements({
    ...prepareQueues(db),
    ...prepareSingle(db),
    ...prepareEndpoints(db),
  });

export const DELIVERY_STATUSES = ["pending", "delivered", "summarized", "rejected", "failed", "cancelled"] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** A URL of an owner. */
export interface WebhookEndpoint extends Owner {
  readonly url: string;
}

/** The pending deliveries of an owner to one URL about one subject, which are sent in order. */
export interface WebhookQueue extends WebhookEndpoint {
  readonly subject: string;
}

const keyOf = ({ accountId, mode, url, subject }: WebhookQueue): QueueKey => [accountId, mode, url, subject];

export const queueKey = ({ accountId, mode, url, subject }: WebhookQueue): string =>
  `${accountId} ${mode} ${url} ${subject}`;

/** An event to be sent to a URL. Of the pending deliveries of a queue only the first has a `dueAtMs`. */
export type Delivery = Readonly<typeof webhookDeliveries.$inferSelect>;

/** An attempt at a delivery, and how it ended; kept as long as the delivery. */
export type DeliveryAttempt = Readonly<typeof webhookAttempts.$inferSelect>;

/** The values of a row in the order of its columns. */
const valuesOf = (row: Readonly<Record<string, string | number | null>>, columns: ReturnType<typeof columnsOf>) =>
  columns.map(([name]) => row[name] ?? null);

/** The columns that an attempt changes. */
export type AttemptEnd = Pick<Delivery, (typeof ATTEMPT_COLUMNS)[number]>;

/** The columns that can change. */
export type DeliveryChange = Partial<AttemptEnd & Pick<Delivery, "url" | "via">>;

/** Events at or after `sinceMs` and before `untilMs`. */
export type DeliveryFilters = FiltersOf<
  Pick<Delivery, "type" | "url" | "subject"> & {
    status: DeliveryStatus | readonly DeliveryStatus[];
    sinceMs: number;
    untilMs: number;
  }
>;

const isAt = (rows: EndpointTable, { accountId, mode, url }: WebhookEndpoint) =>
  and(eq(rows.accountId, accountId), eq(rows.mode, mode), eq(rows.url, url));
const pendingAt = (endpoint: WebhookEndpoint) => and(isAt(table, endpoint), sql`status = 'pending'`);

const matching = ({ accountId, mode }: Owner, filters: DeliveryFilters): SQL | undefined => {
  const { status, type, url, subject, sinceMs, untilMs } = filters;
  return and(
    eq(table.accountId, accountId),
    eq(table.mode, mode),
    status === undefined ? undefined : inArray(table.status, typeof status === "string" ? [status] : [...status]),
    type === undefined ? undefined : eq(table.type, type),
    url === undefined ? undefined : eq(table.url, url),
    subject === undefined ? undefined : eq(table.subject, subject),
    sinceMs === undefined ? undefined : gte(table.createdAtMs, sinceMs),
    untilMs === undefined ? undefined : lt(table.createdAtMs, untilMs),
  );
};

/** Deliveries, and the URLs that are paused or gone. */
export class DeliveryStore {
  readonly #statements;
  readonly #insert;
  readonly #insertAttempts;

  constructor(private readonly db: Db) {
    this.#statements = prepareDeliveries(db);
    this.#insert = prepareRowInsert(db, {
      ...intoOf("webhook_deliveries", DELIVERY_COLUMNS),
      ending: "ON CONFLICT DO NOTHING",
    });
    this.#insertAttempts = prepareRowInsert(db, intoOf("webhook_attempts", ATTEMPT_ROW_COLUMNS));
  }

  insert(_tx: Tx, deliveries: readonly Delivery[]) {
    this.#insert(deliveries.map((delivery) => valuesOf(delivery, DELIVERY_COLUMNS)));
  }

  find(id: string): Delivery | undefined {
    return this.#statements.byId.get(id) ?? undefined;
  }

  /** Stores how an attempt ended. */
  endAttempt(_tx: Tx, id: string, end: AttemptEnd) {
    this.#statements.endAttempt.run(...ATTEMPT_COLUMNS.map((name) => end[name]), id);
  }

  change(_tx: Tx, id: string, change: DeliveryChange) {
    this.db.orm
      .update(table)
      .set({ ...change })
      .where(eq(table.id, id))
      .run();
  }

  /** The same for each of several queues, which may be named more than once. */
  wakeQueues(tx: Tx, queues: readonly WebhookQueue[], dueAtMs: number) {
    for (const queue of new Map(queues.map((queue) => [queueKey(queue), queue])).values())
      this.wakeQueue(tx, queue, dueAtMs);
  }

  /** Makes the first delivery of a queue due, but not before a pause ends, and only the first. Call it after every change of the queue. */
  wakeQueue(_tx: Tx, queue: WebhookQueue, dueAtMs: number) {
    const key = keyOf(queue);
    const first = this.#statements.firstOfQueue.get(...key);
    if (first === null || first.dueAtMs !== null) return;
    this.#statements.clearDueOfOthers.run(...key, first.id);
    this.#statements.setDue.run(Math.max(dueAtMs, this.pausedUntil(queue)), first.id);
  }

  /** The next endpoint with pending deliveries, in the order of the index; null: the first. */
  endpointAfter(after: WebhookEndpoint | null): DueEndpoint | undefined {
    const { accountId, mode, url } = after ?? { accountId: "", mode: "", url: "" };
    return this.#statements.endpointAfter.get(accountId, mode, url) ?? undefined;
  }

  /** The first deliveries of the queues of an endpoint that are due, the longest waiting first. */
  dueHeads(endpoint: WebhookEndpoint, nowMs: number, limit: number): Delivery[] {
    return this.#statements.dueHeads.all(endpoint.accountId, endpoint.mode, endpoint.url, nowMs, limit);
  }

  /** The ids of the pending deliveries of a queue in order. */
  queue(queue: WebhookQueue, limit: number): string[] {
    return this.#statements.queue.all(...keyOf(queue), limit).map(({ id }) => id);
  }

  /** The oldest pending deliveries to a URL that were not tried yet. */
  untried(endpoint: WebhookEndpoint, limit: number): Delivery[] {
    const untried = and(pendingAt(endpoint), eq(table.attempts, 0));
    return this.db.orm.select().from(table).where(untried).orderBy(asc(table.eventId)).limit(limit).all();
  }

  countPending(endpoint: WebhookEndpoint): number {
    return this.#statements.countPending.get({ ...endpoint })?.pending ?? 0;
  }

  failPending(_tx: Tx, endpoint: WebhookEndpoint, problem: string, atMs: number) {
    const failed = { status: "failed", dueAtMs: null, lastProblem: problem, finishedAtMs: atMs } as const;
    this.db.orm.update(table).set(failed).where(pendingAt(endpoint)).run();
  }

  /** The id at an offset among an owner's deliveries older than `before`, newest first; null when there are fewer. */
  idBehind(owner: Owner, before: string | null, offset: number): string | null {
    const older = and(matching(owner, {}), before === null ? undefined : lt(table.id, before));
    const ids = this.db.orm.select({ id: table.id }).from(table).where(older).orderBy(desc(table.id));
    return ids.limit(1).offset(offset).get()?.id ?? null;
  }

  /** Newest first, older than the id `before` and not older than `from`. */
  list(owner: Owner, filters: DeliveryFilters, page: IdWindow): Delivery[] {
    const within = and(
      matching(owner, filters),
      page.before === null ? undefined : lt(table.id, page.before),
      page.from === undefined ? undefined : gte(table.id, page.from),
    );
    return this.db.orm.select().from(table).where(within).orderBy(desc(table.id)).limit(page.limit).all();
  }

  /** Examines the next `looks` deliveries after an id, oldest first, and returns up to `limit` that match, and where to continue. */
  listForward(
    owner: Owner,
    filters: DeliveryFilters,
    { after, looks, limit }: { after: string | null; looks: number; limit: number },
  ): WalkPage<Delivery, string> {
    const behind = after === null ? undefined : gt(table.id, after);
    const examined = and(matching(owner, {}), behind);
    const ids = this.db.orm.select({ id: table.id }).from(table).where(examined).orderBy(asc(table.id));
    const upTo =
      ids
        .limit(1)
        .offset(looks - 1)
        .get()?.id ?? null;
    const wanted = and(matching(owner, filters), behind, upTo === null ? undefined : lte(table.id, upTo));
    const rows = this.db.orm.select().from(table).where(wanted).orderBy(asc(table.id)).limit(limit).all();
    const last = rows.at(-1);
    return { rows, next: rows.length === limit && last !== undefined ? last.id : upTo };
  }

  insertAttempts(_tx: Tx, attempts: ReadonlyArray<Omit<DeliveryAttempt, "id">>) {
    this.#insertAttempts(attempts.map((attempt) => valuesOf(attempt, ATTEMPT_ROW_COLUMNS)));
  }

  /** The attempts at a delivery, oldest first. */
  attemptsAt(deliveryId: string, limit: number): DeliveryAttempt[] {
    const newest = this.db.orm.select().from(webhookAttempts).where(eq(webhookAttempts.deliveryId, deliveryId));
    return newest.orderBy(desc(webhookAttempts.id)).limit(limit).all().toReversed();
  }

  /** Deletes up to `limit` deliveries finished before a time, and returns how many. */
  purge(_tx: Tx, beforeMs: number, limit: number): number {
    const old = and(isNotNull(table.finishedAtMs), lt(table.finishedAtMs, beforeMs));
    const rows = this.db.orm.select({ id: table.id }).from(table).where(old).limit(limit).all();
    for (const { id } of rows) {
      this.db.orm.delete(webhookAttempts).where(eq(webhookAttempts.deliveryId, id)).run();
      this.db.orm.delete(table).where(eq(table.id, id)).run();
    }
    return rows.length;
  }

  /** Until when nothing is sent to a URL; 0 when it is not paused. */
  pausedUntil({ accountId, mode, url }: WebhookEndpoint): number {
    return this.#statements.pauseEnd.get(accountId, mode, url)?.untilMs ?? 0;
  }

  pause(_tx: Tx, endpoint: WebhookEndpoint, untilMs: number) {
    const { accountId, mode, url } = endpoint;
    const target = [webhookPauses.accountId, webhookPauses.mode, webhookPauses.url];
    const set = { untilMs: sql`max(${webhookPauses.untilMs}, excluded.until_ms)` };
    this.db.orm
      .insert(webhookPauses)
      .values({ accountId, mode, url, untilMs })
      .onConflictDoUpdate({ target, set })
      .run();
    const early = and(pendingAt(endpoint), isNotNull(table.dueAtMs), lt(table.dueAtMs, untilMs));
    this.db.orm.update(table).set({ dueAtMs: untilMs }).where(early).run();
  }

  /** Moves the time of every retry and the end of every pause, after the clock was set. */
  shiftTimes(_tx: Tx, byMs: number) {
    this.db.orm
      .update(table)
      .set({ dueAtMs: sql`due_at_ms + ${byMs}` })
      .where(sql`due_at_ms is not null`)
      .run();
    this.db.orm
      .update(webhookPauses)
      .set({ untilMs: sql`until_ms + ${byMs}` })
      .run();
  }

  endPause(_tx: Tx, endpoint: WebhookEndpoint) {
    this.db.orm.delete(webhookPauses).where(isAt(webhookPauses, endpoint)).run();
  }

  /** Deletes up to `limit` pauses that ended before a time, and returns how many. */
  purgePauses(_tx: Tx, beforeMs: number, limit: number): number {
    return this.#statements.purgePauses.run(beforeMs, limit).changes;
  }

  /** When a URL responded 410; undefined while deliveries to it are enabled. */
  goneSince(owner: Owner, url: string): number | undefined {
    return this.#statements.gone.get({ ...owner, url })?.atMs;
  }

  markGone(_tx: Tx, { accountId, mode, url }: WebhookEndpoint, atMs: number) {
    this.db.orm.insert(webhookGone).values({ accountId, mode, url, atMs }).onConflictDoNothing().run();
  }

  clearGone(_tx: Tx, owner: Owner, url: string) {
    this.db.orm
      .delete(webhookGone)
      .where(isAt(webhookGone, { ...owner, url }))
      .run();
  }
}
