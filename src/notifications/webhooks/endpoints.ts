import type { AttentionItem } from "../../foundation/base/attention.ts";
import type { DbClock } from "../../foundation/db/runtime.ts";
import type { DeliveryAttempt, DeliveryStore, WebhookEndpoint } from "./delivery-store.ts";
import { type DeliveryFormat, formatOf, hideSecrets, maskUrl } from "../channels/channels.ts";
import type { Database as Sqlite } from "bun:sqlite";
import type { Db } from "../../foundation/db/open.ts";
import { statements } from "../../foundation/db/statements.ts";
import type { Owner } from "../../foundation/base/secrets.ts";

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
export type RecentAttempt = Pick<DeliveryAttempt, "atMs" | "httpStatus" | "problem">;

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

  constructor({ sqlite }: Db) {
    this.#sql = prepareAll(sqlite);
  }

  /** The URLs that are set for the account, its targets, domains and unfinished lists; or one of them. */
  used({ accountId, mode }: Owner, limit: number, url: string | null = null): UsedUrl[] {
    return this.#sql.used.all({ accountId, mode, url, limit });
  }

  /** The URLs that responded 410, and when. */
  gone({ accountId, mode }: Owner): ReadonlyArray<{ readonly url: string; readonly atMs: number }> {
    return this.#sql.gone.all(accountId, mode);
  }

  /** The newest attempts at a URL, the newest first. */
  recent({ accountId, mode, url }: WebhookEndpoint, limit: number): RecentAttempt[] {
    return this.#sql.recent.all(accountId, mode, url, limit);
  }

  /** The next URL that was called in the last 30 days, in their order. */
  urlAfter({ accountId, mode }: Owner, after: string): string | undefined {
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

/**
 * `disabled`: it responded 410 or that it is gone, nothing is sent; `failing`: its last attempt failed; `paused`: it asked for a pause; `unused`:
 * nothing was sent in 30 days; `unset`: it failed, but nothing is sent to it any more.
 */
export const ENDPOINT_STATES = ["disabled", "failing", "paused", "unused", "working", "unset"] as const;
export type EndpointState = (typeof ENDPOINT_STATES)[number];

/** A URL that events are sent to. */
export interface EndpointStatus {
  readonly url: string;
  readonly format: DeliveryFormat;
  readonly state: EndpointState;
  /** When it was disabled, began to fail, or when its pause ends; null otherwise. */
  readonly sinceMs: number | null;
  readonly uses: ReadonlyArray<{ readonly use: UrlUse; readonly count: number }>;
  /** Events that wait; `PENDING_SHOWN_MAX` stands for any more. */
  readonly pending: number;
  readonly nextDueMs: number | null;
  readonly lastAttempt: RecentAttempt | null;
  /** Failed attempts since the last one that delivered, up to `ATTEMPTS_EXAMINED_MAX`. */
  readonly failures: number;
}

export const PENDING_SHOWN_MAX = 1_000;
/** URLs shown of one account and mode. */
export const ENDPOINTS_MAX = 200;
const ATTEMPTS_EXAMINED_MAX = 100;
/** Attempts shown of one delivery: more only after many redeliveries. */
const ATTEMPTS_SHOWN_MAX = 50;

/** The URLs that an account's events are sent to, and how that goes. */
export class Endpoints {
  readonly #store: EndpointStore;

  constructor(
    private readonly runtime: DbClock,
    private readonly deliveries: DeliveryStore,
  ) {
    this.#store = new EndpointStore(runtime.db);
  }

  /** The URLs in use and those that were called in the last 30 days, the worst first. */
  list({ accountId, mode }: Owner): EndpointStatus[] {
    const owner = { accountId, mode };
    const uses = new Map<string, UsedUrl[]>();
    for (const used of this.#store.used(owner, ENDPOINTS_MAX))
      uses.set(used.url, [...(uses.get(used.url) ?? []), used]);
    const urls = new Set([...uses.keys(), ...this.#calledUrls(owner)]);
    const rank = ({ state }: EndpointStatus) => ENDPOINT_STATES.indexOf(state);
    return [...urls]
      .slice(0, ENDPOINTS_MAX)
      .map((url) => this.#statusOf({ ...owner, url }, uses.get(url) ?? []))
      .toSorted((a, b) => rank(a) - rank(b) || b.pending - a.pending || (a.url < b.url ? -1 : 1));
  }

  /** The URL that a given one stands for: itself, or the URL of the account whose masked form it is. */
  resolve(owner: Owner, given: string): string {
    if (!given.includes("…")) return given;
    const { accountId, mode } = owner;
    const set = this.#store.used({ accountId, mode }, ENDPOINTS_MAX).map(({ url }) => url);
    return [...set, ...this.#calledUrls({ accountId, mode })].find((url) => maskUrl(url) === given) ?? given;
  }

  /** One of them; null for a URL that the account has nothing to do with. */
  find({ accountId, mode }: Owner, url: string): EndpointStatus | null {
    if (!URL.canParse(url)) return null;
    const owner = { accountId, mode };
    const status = this.#statusOf({ ...owner, url }, this.#store.used(owner, ENDPOINTS_MAX, url));
    const isKnown = status.uses.length > 0 || status.state !== "unused" || status.pending > 0;
    return isKnown ? status : null;
  }

  /** The URLs that events do not reach. Cheap while all work: every page of the dashboard counts them. */
  attention({ accountId, mode }: Owner): AttentionItem[] {
    const owner = { accountId, mode };
    const urls = this.#calledUrls(owner);
    return urls.flatMap((url) => {
      const isGone = this.deliveries.goneSince(owner, url) !== undefined;
      if (!isGone && this.#store.recent({ ...owner, url }, 1)[0]?.problem == null) return [];
      const status = this.find(owner, url);
      if (status?.state !== "disabled" && status?.state !== "failing") return [];
      const { state, sinceMs, pending, lastAttempt } = status;
      const waiting = pending === 0 ? "" : ` ${pending} ${pending === 1 ? "event waits" : "events wait"}.`;
      return [
        {
          severity: state === "disabled" ? "bad" : "warn",
          label: "Webhook",
          sinceMs,
          title: `${nameAmong(url, urls)} does not take our events`,
          detail:
            state === "disabled"
              ? `${lastAttempt?.problem ?? "The URL is gone."} Nothing is sent until it is enabled.`
              : `${lastAttempt?.problem ?? "The last attempt failed."}${waiting}`,
          action: { text: "See why", path: `/webhooks/deliveries?url=${encodeURIComponent(maskUrl(url))}` },
        },
      ];
    });
  }

  /** The attempts at a delivery, oldest first. The caller has checked whose it is. */
  attempts(deliveryId: string): DeliveryAttempt[] {
    return this.deliveries.attemptsAt(deliveryId, ATTEMPTS_SHOWN_MAX);
  }

  /** The URLs that were called in the last 30 days or are disabled. */
  #calledUrls(owner: Owner) {
    const urls = new Set(this.#store.gone(owner).map(({ url }) => url));
    let called = this.#store.urlAfter(owner, "");
    for (let looked = 0; called !== undefined && looked < ENDPOINTS_MAX; looked += 1) {
      urls.add(called);
      called = this.#store.urlAfter(owner, called);
    }
    return [...urls];
  }

  #statusOf(endpoint: WebhookEndpoint, uses: EndpointStatus["uses"]): EndpointStatus {
    const attempts = this.#store.recent(endpoint, ATTEMPTS_EXAMINED_MAX);
    const delivered = attempts.findIndex(({ problem }) => problem === null);
    const failures = delivered < 0 ? attempts.length : delivered;
    const goneMs = this.deliveries.goneSince(endpoint, endpoint.url);
    const pausedUntilMs = this.deliveries.pausedUntil(endpoint);
    const isPaused = pausedUntilMs > this.runtime.clock.nowMs();
    const pending = this.#store.pending(endpoint, PENDING_SHOWN_MAX);
    const isSet = uses.length > 0 || pending > 0;
    const state = (): Pick<EndpointStatus, "state" | "sinceMs"> => {
      if (!isSet && (goneMs !== undefined || failures > 0)) return { state: "unset", sinceMs: null };
      if (goneMs !== undefined) return { state: "disabled", sinceMs: goneMs };
      if (isPaused) return { state: "paused", sinceMs: pausedUntilMs };
      if (failures > 0) return { state: "failing", sinceMs: attempts[failures - 1]?.atMs ?? null };
      return { state: attempts.length === 0 ? "unused" : "working", sinceMs: null };
    };
    return {
      url: endpoint.url,
      format: formatOf(endpoint.url),
      uses,
      failures,
      pending,
      ...state(),
      nextDueMs: this.#store.nextDueMs(endpoint),
      lastAttempt: attempts[0] ?? null,
    };
  }
}

/** The host of a URL, with the path where other URLs have the same host. */
const nameAmong = (url: string, urls: readonly string[]): string => {
  const { host, pathname } = new URL(url);
  const hasTwin = urls.some((other) => other !== url && new URL(other).host === host);
  return hasTwin ? hideSecrets(`${host}${pathname}`, url) : host;
};
