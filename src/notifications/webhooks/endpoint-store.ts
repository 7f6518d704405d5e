import type { Database as Sqlite } from "bun:sqlite";
import type { Db } from "../../foundation/db/open.ts";
import type { WebhookEndpoint, WebhookOwner } from "./delivery-store.ts";
import { statements } from "../../foundation/db/statements.ts";

/** What sends its events to a URL. */
export const URL_USES = ["account", "targets", "domains", "lists"] as const;
export type UrlUse = (typeof URL_USES)[number];

/** A URL that is set somewhere, and how often. */
export interface UsedUrl {
  readonly url: string;
  readonly use: UrlUse;
  readonly count: number;
}

/** How an attempt at a URL ended; `problem` is null when it delivered. */
export interface RecentAttempt {
  readonly atMs: number;
  readonly httpStatus: number | null;
  readonly problem: string | null;
}

type Owned = [string, string];

const SET_BY_OWNER =
  "account_id = $accountId AND mode = $mode AND webhook_url IS NOT NULL AND ($url IS NULL OR webhook_url = $url)";

const prepareAll = (sqlite: Sqlite) =>
  statements({
    used: () =>
      sqlite.prepare<UsedUrl, [{ accountId: string; mode: string; url: string | null; limit: number }]>(
        `SELECT webhook_url AS url, 'account' AS use, 1 AS count FROM account_notifications WHERE ${SET_BY_OWNER}
      UNION ALL SELECT webhook_url, 'targets', count(*) FROM blocklist_targets WHERE ${SET_BY_OWNER} GROUP BY 1
      UNION ALL SELECT webhook_url, 'domains', count(*) FROM dmarc_domains
        WHERE deleted_at_ms IS NULL AND ${SET_BY_OWNER} GROUP BY 1
      UNION ALL SELECT webhook_url, 'lists', count(*) FROM bulk_jobs
        WHERE status IN ('receiving', 'queued', 'running', 'deleting') AND ${SET_BY_OWNER} GROUP BY 1
      LIMIT $limit`,
      ),
    gone: () =>
      sqlite.prepare<{ url: string; atMs: number }, Owned>(
        "SELECT url, at_ms AS atMs FROM webhook_gone WHERE account_id = ? AND mode = ?",
      ),
    pending: () =>
      sqlite.prepare<{ pending: number }, [string, string, string, number]>(
        `SELECT count(*) AS pending FROM (SELECT 1 FROM webhook_deliveries
      WHERE account_id = ? AND mode = ? AND url = ? AND status = 'pending' LIMIT ?)`,
      ),
    recent: () =>
      sqlite.prepare<RecentAttempt, [string, string, string, number]>(
        `SELECT at_ms AS atMs, http_status AS httpStatus, problem FROM webhook_attempts
      WHERE account_id = ? AND mode = ? AND url = ? ORDER BY id DESC LIMIT ?`,
      ),
    // One step of a loose index scan: its cost does not depend on the number of attempts.
    urlAfter: () =>
      sqlite.prepare<{ url: string }, [string, string, string]>(
        "SELECT url FROM webhook_attempts WHERE account_id = ? AND mode = ? AND url > ? ORDER BY url LIMIT 1",
      ),
    nextDue: () =>
      sqlite.prepare<{ dueAtMs: number | null }, [string, string, string]>(
        `SELECT min(due_at_ms) AS dueAtMs FROM webhook_deliveries
      WHERE account_id = ? AND mode = ? AND url = ? AND due_at_ms IS NOT NULL`,
      ),
  });

/** Which URLs of an account are used, and what waits for them. */
export class EndpointStore {
  readonly #sql;

  constructor({ sqlite }: Pick<Db, "sqlite">) {
    this.#sql = prepareAll(sqlite);
  }

  /** The URLs that are set for the account, its targets, domains and unfinished lists; or one of them. */
  used({ accountId, mode }: WebhookOwner, limit: number, url: string | null = null): UsedUrl[] {
    return this.#sql.used.all({ accountId, mode, url, limit });
  }

  /** The URLs that responded 410, and when. */
  gone({ accountId, mode }: WebhookOwner): ReadonlyArray<{ readonly url: string; readonly atMs: number }> {
    return this.#sql.gone.all(accountId, mode);
  }

  /** The newest attempts at a URL, the newest first. */
  recent({ accountId, mode, url }: WebhookEndpoint, limit: number): RecentAttempt[] {
    return this.#sql.recent.all(accountId, mode, url, limit);
  }

  /** The next URL that was called in the last 30 days, in their order. */
  urlAfter({ accountId, mode }: WebhookOwner, after: string): string | undefined {
    return this.#sql.urlAfter.get(accountId, mode, after)?.url;
  }

  /** How many events wait for a URL; `max` stands for any more. */
  pending({ accountId, mode, url }: WebhookEndpoint, max: number): number {
    return this.#sql.pending.get(accountId, mode, url, max)?.pending ?? 0;
  }

  /** When the next event is sent to a URL; null when nothing waits. */
  nextDueMs({ accountId, mode, url }: WebhookEndpoint): number | null {
    return this.#sql.nextDue.get(accountId, mode, url)?.dueAtMs ?? null;
  }
}
