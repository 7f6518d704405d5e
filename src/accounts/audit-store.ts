import { and, desc, eq, gte, lt, sql, type SQL } from "drizzle-orm";
import type { Tx } from "../foundation/db/open.ts";
import { auditLog } from "../foundation/db/schema-users.ts";
import { hostname } from "node:os";
import { isoTime } from "../foundation/base/clock.ts";
import { ownUserId, userNameOf } from "../foundation/base/private-file.ts";
import type { RecordedAct } from "../foundation/db/recorded-acts.ts";
import type { DbClock } from "../foundation/db/runtime.ts";
import type { FiltersOf } from "../foundation/base/walk.ts";

export type AuditEntry = Readonly<typeof auditLog.$inferSelect>;

/** Which entries `list` returns; undefined does not restrict. */
/** `actionBegin`: how the action begins: `keys`. */
export type AuditFilters = FiltersOf<{ accountId: string; sinceMs: number; actionBegin: string }>;

/** `plan free → scale, burst 2 → 50`: the values that differ. */
export const auditChangeText = ({ before, after }: { before: unknown; after: unknown }): string => {
  const [old, now] = [before, after].map((values) => (typeof values === "object" ? { ...values } : {})) as [
    Record<string, unknown>,
    Record<string, unknown>,
  ];
  const text = (value: unknown): string => {
    if (value === null) return "none";
    if (typeof value !== "object") return String(value);
    const items = Array.isArray(value) ? value : Object.entries(value).map(([name, item]) => `${name} ${text(item)}`);
    return items.length === 0 ? "none" : items.join(", ");
  };
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((name) => JSON.stringify(old[name]) !== JSON.stringify(now[name]))
    .map((name) => {
      if (!(name in old)) return `${name} ${text(now[name])}`;
      return name in now ? `${name} ${text(old[name])} → ${text(now[name])}` : `${name} ${text(old[name])}`;
    })
    .join(", ");
};

/** Who acts: a user of the operating system, and the process. */
export interface Actor {
  readonly user: string;
  readonly host: string;
  readonly pid: number;
}

type Values = Readonly<Record<string, unknown>>;

/** An action, with the values that it changed. Never put a secret or an email address in: entries cannot be erased. */
export interface AuditedAction {
  readonly action: string;
  readonly accountId: string | null;
  readonly subject: string | null;
  readonly before?: Values;
  readonly after?: Values;
  /** Who acted, where it was not the process: a user of the dashboard, by its id. */
  readonly by?: string | undefined;
  /** The same for an API key, by its id. */
  readonly byKey?: string;
  /** The same for the link in a mail. */
  readonly byLink?: boolean;
}

/** An action with what does it. */
export interface PerformedAction<T> extends Omit<RecordedAct<T>, "entry"> {
  /** A function is called in the transaction that writes the entry; null for nothing to write. */
  readonly action: AuditedAction | (() => AuditedAction | null);
}

/** The user of an entry about what a recipient did by the link in a mail. */
const LINK_IN_MAIL = "link in a mail";

/** The actor of this process. `caller` is the user who used sudo. */
export const actorOfProcess = (caller?: string): Actor => {
  const user = userNameOf(ownUserId());
  const isSudo = caller !== undefined && caller !== "" && caller !== user;
  return { user: isSudo ? `${caller} (as ${user})` : user, host: hostname(), pid: process.pid };
};

const jsonOf = (values: Values | undefined): string | null => (values === undefined ? null : JSON.stringify(values));
const valuesOf = (text: string | null): unknown => (text === null ? null : JSON.parse(text));

/** An entry as it is shown. */
export const auditView = ({ id, atMs, user, host, pid, action, accountId, subject, before, after }: AuditEntry) => ({
  id,
  at: isoTime(atMs),
  user,
  host,
  pid,
  action,
  account_id: accountId,
  subject,
  before: valuesOf(before),
  after: valuesOf(after),
});

/** The append-only log of administrative actions: who did what, when, and the values before and after. Triggers refuse changes. */
export class AuditLog {
  constructor(
    private readonly runtime: DbClock,
    private readonly actor: Actor,
  ) {}

  /** Appends an entry in the transaction of the action, so that neither exists without the other. */
  append(_tx: Tx, action: AuditedAction) {
    this.#insert(action);
  }

  /**
   * Performs an action whose use case does not append its entry. The first transaction of `work` that changes a row has the
   * entry; without any, it is written when `work` has ended and `isRecordedUnchanged` (default: yes).
   */
  perform<T>({ action, ...act }: PerformedAction<T>): Promise<T> {
    const entry = () => {
      const found = typeof action === "function" ? action() : action;
      if (found !== null) this.#insert(found);
      return found !== null;
    };
    return this.runtime.db.perform({ ...act, entry });
  }

  #insert({ before, after, by, byKey, byLink = false, ...action }: AuditedAction) {
    const user = by === undefined ? (byKey === undefined ? this.actor.user : `key ${byKey}`) : `user ${by}`;
    const actor = { ...this.actor, user: byLink ? LINK_IN_MAIL : user };
    const atMs = this.runtime.clock.nowMs();
    const entry = { ...actor, ...action, atMs, before: jsonOf(before), after: jsonOf(after) };
    this.runtime.db.orm.insert(auditLog).values(entry).run();
  }

  /** The newest entries first; those with an id below `before`, unless it is null. */
  list(
    { accountId, sinceMs, actionBegin = "" }: AuditFilters,
    { before, limit }: { before: number | null; limit: number },
  ): AuditEntry[] {
    const conditions: Array<SQL | undefined> = [
      accountId === undefined ? undefined : eq(auditLog.accountId, accountId),
      sinceMs === undefined ? undefined : gte(auditLog.atMs, sinceMs),
      before === null ? undefined : lt(auditLog.id, before),
      actionBegin === "" ? undefined : sql`substr(${auditLog.action}, 1, ${actionBegin.length}) = ${actionBegin}`,
    ];
    const found = this.runtime.db.orm
      .select()
      .from(auditLog)
      .where(and(...conditions));
    return found.orderBy(desc(auditLog.id)).limit(limit).all();
  }
}
