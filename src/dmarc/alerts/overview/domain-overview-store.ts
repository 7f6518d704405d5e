import { OF_ENABLED_ACCOUNT } from "../../../foundation/db/statements.ts";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import type { DomainOwner } from "../../records/domains/domain-store.ts";
import { z } from "zod";
import { ADVICE_ACTIONS } from "../../insight/advice/advice-model.ts";

/** What a list of domains is restricted to. `silent`: active and not declared to send no mail, but no report for three days. */
export const LISTED_STATUSES = ["action_required", "silent", "pending", "active", "paused"] as const;
export type ListedStatus = (typeof LISTED_STATUSES)[number];

export const DOMAIN_ORDERS = ["worst", "name", "messages", "aligned", "last_report"] as const;
export type DomainOrder = (typeof DOMAIN_ORDERS)[number];

interface ListQuery {
  readonly status: ListedStatus | null;
  /** Part of the name or the label, in any case; empty for all. */
  readonly text: string;
  /** Only domains with this tag; null for all. */
  readonly tag: string | null;
  readonly order: DomainOrder;
  /** A domain whose last report is older is silent. */
  readonly silentBeforeMs: number;
  /** The numbers of the domains with open alerts. */
  readonly alerted: readonly number[];
  readonly limit: number;
  readonly offset: number;
}

/** Sums over the domains with a tag, of 30 days. */
export interface TagSums {
  readonly tag: string;
  readonly domains: number;
  readonly messages: number;
  readonly aligned: number;
  /** Failing messages that somebody must act on. */
  readonly actionable: number;
}

/** Tags in one list. */
const TAGS_LISTED_MAX = 1_000;

/** Sums over the domains of an owner. */
interface OverviewSums {
  readonly domains: number;
  /** The domains whose counts are known. */
  readonly counted: number;
  readonly messages: number;
  readonly aligned: number;
  /** Of the seven days before; null when they are known of no domain. */
  readonly messagesBefore: number | null;
  readonly alignedBefore: number | null;
  /** When the oldest of the counts were computed; null when none are known. */
  readonly computedAtMs: number | null;
}

type Stored = Omit<DomainOverview, keyof typeof overviewBodySchema.shape> & { readonly body: string };

const COLUMNS = `computed_at_ms computedAtMs, messages_7 messages7, aligned_7 aligned7,
  messages_before_7 messagesBefore7, aligned_before_7 alignedBefore7, messages_30 messages30,
  aligned_30 aligned30, actionable_30 actionable30, body`;

const OF_OWNER = `d.account_id = $account AND d.mode = $mode AND d.deleted_at_ms IS NULL
  AND ($only IS NULL OR EXISTS (SELECT 1 FROM json_each(d.tags) WHERE value = $only))`;
const STATUS = `CASE WHEN d.monitoring_enabled = 0 THEN 'paused' WHEN d.status <> 'active' THEN d.status
  WHEN d.last_report_at_ms < $silent AND d.sends_mail IS NOT 0 THEN 'silent' ELSE 'active' END`;
const URGENCY = `CASE ${STATUS} WHEN 'action_required' THEN 0 WHEN 'paused' THEN 3 ELSE
  iif(d.number IN (SELECT value FROM json_each($alerted)) OR ${STATUS} = 'silent', 1, 2) END`;
/** Of the mail that the domain's own senders are known to send. */
const FAILING_SHARE = "1.0 * o.actionable_30 / nullif(o.aligned_30 + o.actionable_30, 0)";

/** SQLite sorts null first in ascending order. */
const ORDERS: Readonly<Record<DomainOrder, string>> = {
  worst: `${URGENCY}, coalesce(${FAILING_SHARE}, 0) DESC, d.domain`,
  name: "d.domain",
  messages: "o.messages_30 DESC, d.domain",
  aligned: "o.messages_30 IS NULL OR o.messages_30 = 0, 1.0 * o.aligned_30 / o.messages_30, d.domain",
  last_report: "d.last_report_at_ms IS NULL, d.last_report_at_ms DESC, d.domain",
};

/** Stored by `OverviewJob`: what lists show of domains. `domain` is the `number` of a domain. */
export class DomainOverviewStore {
  constructor(private readonly deps: Pick<Db, "sqlite">) {}

  /** Saves the overview of a domain, unless the domain was deleted meanwhile. */
  save(_tx: Tx, domain: number, overview: DomainOverview): void {
    const { computedAtMs, messages7, aligned7, messagesBefore7, alignedBefore7, ...rest } = overview;
    const { messages30, aligned30, actionable30, ...body } = rest;
    this.deps.sqlite
      .query(
        `INSERT OR REPLACE INTO dmarc_overviews (domain, computed_at_ms, messages_7, aligned_7, messages_before_7, aligned_before_7,
          messages_30, aligned_30, actionable_30, body) SELECT number, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM dmarc_domains
          WHERE number = ? AND deleted_at_ms IS NULL`,
      )
      .run(
        ...[computedAtMs, messages7, aligned7, messagesBefore7, alignedBefore7, messages30, aligned30, actionable30],
        ...[JSON.stringify(body), domain],
      );
  }

  /** Null before the first, and when another version wrote it. */
  read(domain: number): DomainOverview | null {
    const row = this.deps.sqlite
      .query<Stored, [number]>(`SELECT ${COLUMNS} FROM dmarc_overviews WHERE domain = ?`)
      .get(domain);
    if (row === null) return null;
    const { body, ...counts } = row;
    const read = overviewBodySchema.safeParse(JSON.parse(body));
    return read.success ? { ...counts, ...read.data } : null;
  }

  /**
   * Domains after a number without an overview, or whose overview is of an earlier day; those that changed or were classified since;
   * and those that were reported about since, when no report has arrived after `quietSinceMs`, or the overview is older than
   * `reportedBeforeMs`.
   */
  due(
    after: number,
    times: { readonly dayMs: number; readonly quietSinceMs: number; readonly reportedBeforeMs: number },
    limit: number,
  ): number[] {
    return this.deps.sqlite
      .query<{ number: number }, [number, number, number, number, number]>(
        `SELECT number FROM dmarc_domains d LEFT JOIN dmarc_overviews o ON o.domain = d.number
          WHERE number > ?1 AND deleted_at_ms IS NULL AND ${OF_ENABLED_ACCOUNT} AND (
            o.domain IS NULL OR o.computed_at_ms < ?2 OR d.updated_at_ms >= o.computed_at_ms
            OR d.last_report_at_ms >= o.computed_at_ms AND (d.last_report_at_ms <= ?3 OR o.computed_at_ms < ?4)
            OR EXISTS (SELECT 1 FROM dmarc_source_words w WHERE w.domain = d.number AND w.at_ms >= o.computed_at_ms))
          ORDER BY number LIMIT ?5`,
      )
      .all(after, times.dayMs, times.quietSinceMs, times.reportedBeforeMs, limit)
      .map(({ number }) => number);
  }

  /** The numbers of an owner's domains in an order. */
  list({ accountId, mode, onlyTag: only = null }: DomainOwner, query: ListQuery): number[] {
    const { text, tag, status, silentBeforeMs, alerted, limit, offset } = query;
    return this.deps.sqlite
      .query<{ number: number }, Record<string, string | number | null>>(
        `SELECT d.number FROM dmarc_domains d LEFT JOIN dmarc_overviews o ON o.domain = d.number
          WHERE ${OF_OWNER} AND ($status IS NULL OR $status = ${STATUS})
            AND ($text = '' OR instr(d.domain, $text) > 0 OR instr(lower(coalesce(d.label, '')), $text) > 0)
            AND ($tag IS NULL OR EXISTS (SELECT 1 FROM json_each(d.tags) WHERE value = $tag))
          ORDER BY ${ORDERS[query.order]} LIMIT $limit OFFSET $offset`,
      )
      .all({
        account: accountId,
        mode,
        only,
        tag,
        status,
        silent: silentBeforeMs,
        // Only named where the statement has it.
        ...(query.order === "worst" ? { alerted: JSON.stringify(alerted) } : {}),
        limit,
        offset,
        text: text.toLowerCase(),
      })
      .map(({ number }) => number);
  }

  /** How many domains of an owner there are by status. */
  countByStatus(
    { accountId, mode, onlyTag: only = null }: DomainOwner,
    silentBeforeMs: number,
  ): ReadonlyMap<ListedStatus, number> {
    const rows = this.deps.sqlite
      .query<{ status: ListedStatus; domains: number }, Record<string, string | number | null>>(
        `SELECT ${STATUS} status, count(*) domains FROM dmarc_domains d WHERE ${OF_OWNER} GROUP BY 1`,
      )
      .all({ account: accountId, mode, only, silent: silentBeforeMs });
    return new Map(rows.map(({ status, domains }) => [status, domains]));
  }

  /** The tags of an owner's domains in alphabetical order, with sums; a domain counts for each of its tags. */
  tagSums({ accountId, mode, onlyTag: only = null }: DomainOwner): TagSums[] {
    return this.deps.sqlite
      .query<TagSums, Record<string, string | number | null>>(
        `SELECT t.value tag, count(*) domains, coalesce(sum(o.messages_30), 0) messages, coalesce(sum(o.aligned_30), 0) aligned,
          coalesce(sum(o.actionable_30), 0) actionable
          FROM dmarc_domains d JOIN json_each(d.tags) t LEFT JOIN dmarc_overviews o ON o.domain = d.number
          WHERE ${OF_OWNER} AND ($only IS NULL OR t.value = $only) GROUP BY 1 ORDER BY 1 LIMIT $limit`,
      )
      .all({ account: accountId, mode, only, limit: TAGS_LISTED_MAX });
  }

  /** The messages of seven days of all domains of an owner. */
  sums({ accountId, mode, onlyTag: only = null }: DomainOwner): OverviewSums {
    const row = this.deps.sqlite
      .query<OverviewSums, Record<string, string | null>>(
        `SELECT count(*) domains, count(o.domain) counted, coalesce(sum(o.messages_7), 0) messages,
          coalesce(sum(o.aligned_7), 0) aligned, sum(o.messages_before_7) messagesBefore, sum(o.aligned_before_7) alignedBefore,
          min(o.computed_at_ms) computedAtMs
          FROM dmarc_domains d LEFT JOIN dmarc_overviews o ON o.domain = d.number WHERE ${OF_OWNER}`,
      )
      .get({ account: accountId, mode, only });
    const none = { messagesBefore: null, alignedBefore: null, computedAtMs: null };
    return row ?? { domains: 0, counted: 0, messages: 0, aligned: 0, ...none };
  }
}

/** The next step of a domain, as the advice gave it. */
const nextStepSchema = z.object({
  action: z.enum(ADVICE_ACTIONS),
  why: z.string(),
  /** The key and the name of the source that it is about; null for others. */
  source: z.string().nullable(),
  sourceName: z.string().nullable(),
});
export type NextStep = Readonly<z.output<typeof nextStepSchema>>;

const overviewBodySchema = z.object({
  /** The first of the 30 days, since 1970 (UTC). */
  fromDay: z.int(),
  /** Messages of each of the 30 days; null for a day that no report covers. */
  messages: z.array(z.int().nullable()),
  failing: z.array(z.int().nullable()),
  /** Null when nothing is left to do. */
  next: nextStepSchema.nullable(),
});
type DomainOverviewBody = Readonly<z.output<typeof overviewBodySchema>>;

/** What lists show of a domain, computed at one point in time: counts of the last 7 and 30 days, and the next step. */
export interface DomainOverview extends DomainOverviewBody {
  readonly computedAtMs: number;
  readonly messages7: number;
  readonly aligned7: number;
  /** Of the seven days before these; null when no report covers them. */
  readonly messagesBefore7: number | null;
  readonly alignedBefore7: number | null;
  readonly messages30: number;
  readonly aligned30: number;
  /** Failing messages of 30 days that somebody must act on: neither forwarded nor forged. */
  readonly actionable30: number;
}
