import { and, asc, count, eq, isNotNull, lte, ne, type SQL, sql } from "drizzle-orm";
import type { KeyMode } from "../../foundation/base/secrets.ts";
import type { Db } from "../../foundation/db/open.ts";
import { placeholdersOf } from "../../foundation/db/placeholders.ts";
import { webhookDeliveries, webhookGone } from "../../foundation/db/schema-webhooks.ts";
import { statements } from "../../foundation/db/statements.ts";

/** An endpoint with pending deliveries; `dueAtMs`: of the earliest. */
export interface DueEndpoint {
  readonly accountId: string;
  readonly mode: KeyMode;
  readonly url: string;
  readonly dueAtMs: number;
}

const table = webhookDeliveries;

/** The columns that an attempt changes. */
export const ATTEMPT_COLUMNS = [
  ...(["status", "attempts", "rejections", "dueAtMs", "finishedAtMs"] as const),
  ...(["lastAttemptAtMs", "lastHttpStatus", "lastProblem", "lastAnswer"] as const),
] as const;

/** That a row belongs to the endpoint that a statement is called with. */
const isGivenEndpoint = ({ accountId, mode, url }: typeof table | typeof webhookGone): SQL[] => [
  eq(accountId, sql.placeholder("accountId")),
  eq(mode, sql.placeholder("mode")),
  eq(url, sql.placeholder("url")),
];
const ofEndpoint = isGivenEndpoint(table);
const ofQueue = [...ofEndpoint, eq(table.subject, sql.placeholder("subject")), sql`status = 'pending'`];
const isGiven = eq(table.id, sql.placeholder("id"));

const prepareQueues = ({ orm }: Pick<Db, "orm">) => ({
  firstOfQueue: () =>
    orm
      .select({ id: table.id, dueAtMs: table.dueAtMs })
      .from(table)
      .where(and(...ofQueue))
      .orderBy(asc(table.eventId))
      .limit(1)
      .prepare(),
  clearDueOfOthers: () =>
    orm
      .update(table)
      .set({ dueAtMs: null })
      .where(and(...ofQueue, isNotNull(table.dueAtMs), ne(table.id, sql.placeholder("first"))))
      .prepare(),
  queue: () =>
    orm
      .select({ id: table.id })
      .from(table)
      .where(and(...ofQueue))
      .orderBy(asc(table.eventId))
      .limit(sql.placeholder("limit"))
      .prepare(),
  dueHeads: () =>
    orm
      .select()
      .from(table)
      .where(and(...ofEndpoint, sql`due_at_ms is not null`, lte(table.dueAtMs, sql.placeholder("nowMs"))))
      .orderBy(asc(table.dueAtMs))
      .limit(sql.placeholder("limit"))
      .prepare(),
  countPending: () =>
    orm
      .select({ pending: count() })
      .from(table)
      .where(and(...ofEndpoint, sql`status = 'pending'`))
      .prepare(),
});

const prepareSingle = ({ orm }: Pick<Db, "orm">) => ({
  byId: () => orm.select().from(table).where(isGiven).prepare(),
  insert: () => orm.insert(table).values(placeholdersOf(table)).onConflictDoNothing().prepare(),
  setDue: () =>
    orm
      .update(table)
      .set({ dueAtMs: sql`${sql.placeholder("dueAtMs")}` })
      .where(isGiven)
      .prepare(),
  endAttempt: () =>
    orm
      .update(table)
      .set(Object.fromEntries(ATTEMPT_COLUMNS.map((name) => [name, sql`${sql.placeholder(name)}`])))
      .where(isGiven)
      .prepare(),
});

const prepareEndpoints = ({ orm, sqlite }: Pick<Db, "orm" | "sqlite">) => ({
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
export const prepareDeliveries = (db: Pick<Db, "orm" | "sqlite">) =>
  statements({
    ...prepareQueues(db),
    ...prepareSingle(db),
    ...prepareEndpoints(db),
  });
