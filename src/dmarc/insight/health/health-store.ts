import { cached } from "../../../foundation/base/bounded-map.ts";
import { OF_ENABLED_ACCOUNT } from "../../../foundation/db/statements.ts";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import { type DomainRow, MAKE_OVERVIEWS_DUE } from "../../records/domains/domain-store.ts";
import { parseRepeatedBody } from "../../reports/report/report.ts";
import type { SignedRecord } from "./dkim-key.ts";
import { domainHealthSchema, type DomainHealth } from "./health-schema.ts";
import { decidingVouchers, ReporterStore } from "../../records/domains/reporter-store.ts";
import { RANK_STEP } from "../../reports/ingest/rollup.ts";

/** A domain whose health is due to be checked. */
export interface DueHealth extends Pick<DomainRow, "number" | "id" | "accountId" | "mode" | "domain" | "token"> {
  /** Whether the domain is monitored: neither paused nor deleted. */
  readonly isActive: boolean;
}

/** A domain, and whether a check of it is planned or none is needed. */
interface ListedDomain {
  readonly number: number;
  readonly id: string;
  readonly isPlanned: boolean;
}

interface RecordRow extends Pick<SignedRecord, "count" | "voucher"> {
  readonly body: string;
}

/** Records read of a day, each of those that are aligned and those that are not; the largest first. */
const RECORDS_PER_DAY_MAX = 50;

/** A health of 4 kB changes once a day, and advice reads it after every report. */
const CACHED_MAX = 300;
const parseHealth = cached(CACHED_MAX, (body): DomainHealth | null => {
  const parsed = domainHealthSchema.safeParse(JSON.parse(body));
  return parsed.success ? parsed.data : null;
});

/** The last health of each live domain, when the next check is due, and the selectors in reports. */
export class HealthStore {
  constructor(private readonly deps: Pick<Db, "sqlite">) {}

  /** The last health of a domain; null before its first check, and when another version wrote it. */
  readHealth(number: number): DomainHealth | null {
    const row = this.deps.sqlite
      .query<{ body: string | null }, [number]>("SELECT body FROM dmarc_health WHERE domain = ?")
      .get(number);
    return row === null || row.body === null ? null : parseHealth(row.body);
  }

  /** Saves the health of a domain, unless it was deleted meanwhile, and plans the next check. */
  save(_tx: Tx, number: number, health: DomainHealth, dueAtMs: number): void {
    this.deps.sqlite
      .query(
        `INSERT INTO dmarc_health (domain, due_at_ms, body)
          SELECT number, ?2, ?3 FROM dmarc_domains WHERE number = ?1 AND deleted_at_ms IS NULL
          ON CONFLICT (domain) DO UPDATE SET due_at_ms = excluded.due_at_ms, body = excluded.body`,
      )
      .run(number, dueAtMs, JSON.stringify(health));
  }

  /** The overview has the next step, which findings decide, too. */
  makeOverviewDue(_tx: Tx, number: number): void {
    this.deps.sqlite.query(`${MAKE_OVERVIEWS_DUE} domain = ?`).run(number);
  }

  postpone(_tx: Tx, number: number, dueAtMs: number): void {
    this.deps.sqlite.query("UPDATE dmarc_health SET due_at_ms = ? WHERE domain = ?").run(dueAtMs, number);
  }

  plan(_tx: Tx, number: number, dueAtMs: number): void {
    this.deps.sqlite.query("INSERT OR IGNORE INTO dmarc_health (domain, due_at_ms) VALUES (?, ?)").run(number, dueAtMs);
  }

  /** Domains after a number, in the order of their numbers. */
  domainsAfter(number: number, limit: number): ListedDomain[] {
    return this.deps.sqlite
      .query<Omit<ListedDomain, "isPlanned"> & { isPlanned: 0 | 1 }, [number, number]>(
        `SELECT d.number, d.id, d.mode <> 'live' OR d.deleted_at_ms IS NOT NULL OR h.domain IS NOT NULL AS isPlanned
          FROM dmarc_domains d LEFT JOIN dmarc_health h ON h.domain = d.number WHERE d.number > ? ORDER BY d.number LIMIT ?`,
      )
      .all(number, limit)
      .map((row) => ({ ...row, isPlanned: row.isPlanned === 1 }));
  }

  /** Domains whose check is due, the longest overdue first; paused ones too (`isActive` false). */
  due(nowMs: number, limit: number): DueHealth[] {
    return this.deps.sqlite
      .query<Omit<DueHealth, "isActive"> & { isActive: 0 | 1 }, [number, number]>(
        `SELECT d.number, d.id, d.account_id AS accountId, d.mode, d.domain, d.token,
          d.monitoring_enabled = 1 AND d.deleted_at_ms IS NULL AND ${OF_ENABLED_ACCOUNT} AS isActive
          FROM dmarc_health h JOIN dmarc_domains d ON d.number = h.domain
          WHERE h.due_at_ms <= ? ORDER BY h.due_at_ms LIMIT ?`,
      )
      .all(nowMs, limit)
      .map((row) => ({ ...row, isActive: row.isActive === 1 }));
  }

  /** The vouchers of the reports on which decisions rely. */
  decidingVouchers(number: number): ReadonlySet<number> {
    return new Set(decidingVouchers(new ReporterStore(this.deps).ofDomain(number)));
  }

  /** The signatures in the largest records of a day, aligned and not. */
  signedRecords(number: number, day: number): SignedRecord[] {
    const largest = this.deps.sqlite.query<RecordRow, [number, number, number, number]>(
      `SELECT c.count, c.body, CASE WHEN instr(r.sameness, ' ') > 0 THEN 0 ELSE coalesce(r.voucher, 1) END voucher
        FROM dmarc_records c JOIN dmarc_reports r ON r.number = c.report
        WHERE c.domain = ? AND c.day = ? AND c.rank >= ? AND c.rank < ? ORDER BY c.rank DESC LIMIT ${RECORDS_PER_DAY_MAX}`,
    );
    const read = (isAligned: boolean, [from, to]: readonly [number, number]) =>
      largest
        .all(number, day, from, to)
        .map(({ body, ...of }) => ({ ...of, isAligned, dkimResults: parseRepeatedBody(body).dkimResults }));
    return [...read(true, [0, RANK_STEP]), ...read(false, [RANK_STEP, Number.MAX_SAFE_INTEGER])];
  }
}
