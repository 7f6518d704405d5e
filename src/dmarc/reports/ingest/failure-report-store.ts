import type { Db, Tx } from "../../../foundation/db/open.ts";

/** A stored failure report. `body` is the JSON of a `FailureReport`. */
export interface FailureReportRow {
  readonly id: string;
  readonly domain: number;
  readonly ingestion: string;
  readonly receivedAtMs: number;
  readonly isRedacted: boolean;
  readonly body: string;
  readonly fingerprint: string;
}

type StoredRow = Omit<FailureReportRow, "isRedacted"> & { readonly isRedacted: 0 | 1 };

const SELECT = `SELECT id, domain, ingestion, received_at_ms AS receivedAtMs, is_redacted AS isRedacted, body, sameness AS fingerprint
  FROM dmarc_failure_reports`;
/** Greater than every id. */
const AFTER_ALL_IDS = "~";

const prepareStatements = ({ sqlite }: Pick<Db, "sqlite">) => ({
  insert: sqlite.prepare(
    `INSERT INTO dmarc_failure_reports (id, domain, ingestion, received_at_ms, is_redacted, body, sameness)
      VALUES (?, ?, ?, ?, ?, ?, ?)`,
  ),
  same: sqlite.prepare<{ id: string; ingestion: string }, [number, string]>(
    "SELECT id, ingestion FROM dmarc_failure_reports WHERE domain = ? AND sameness = ?",
  ),
  count: sqlite.prepare<{ count: number }, [number, number, number]>(
    "SELECT count(*) AS count FROM dmarc_failure_reports WHERE domain = ? AND received_at_ms >= ? AND received_at_ms < ?",
  ),
  page: sqlite.prepare<StoredRow, [number, string, number]>(
    `${SELECT} WHERE domain = ? AND id < ? ORDER BY id DESC LIMIT ?`,
  ),
  byId: sqlite.prepare<StoredRow, [number, string]>(`${SELECT} WHERE domain = ? AND id = ?`),
});

const rowOf = ({ isRedacted, ...row }: StoredRow): FailureReportRow => ({ ...row, isRedacted: isRedacted === 1 });

/** Failure reports of domains that store them. `domain` is always the `number` of a domain. */
export class FailureReportStore {
  readonly #sql: ReturnType<typeof prepareStatements>;

  constructor(db: Pick<Db, "sqlite">) {
    this.#sql = prepareStatements(db);
  }

  /** Throws when the domain has the same report. */
  insert(_tx: Tx, row: FailureReportRow): void {
    const { id, domain, ingestion, receivedAtMs, isRedacted, body, fingerprint } = row;
    this.#sql.insert.run(id, domain, ingestion, receivedAtMs, isRedacted ? 1 : 0, body, fingerprint);
  }

  findSameFailure(domain: number, fingerprint: string): { readonly id: string; readonly ingestion: string } | null {
    return this.#sql.same.get(domain, fingerprint);
  }

  /** How many arrived in a span of time, its end excluded. */
  countBetween(domain: number, fromMs: number, toMs: number): number {
    return this.#sql.count.get(domain, fromMs, toMs)?.count ?? 0;
  }

  /** Newest first, older than the id `before`. */
  listFailures(domain: number, page: { readonly before: string | null; readonly limit: number }): FailureReportRow[] {
    return this.#sql.page.all(domain, page.before ?? AFTER_ALL_IDS, page.limit).map(rowOf);
  }

  findFailure(domain: number, id: string): FailureReportRow | undefined {
    const row = this.#sql.byId.get(domain, id);
    return row === null ? undefined : rowOf(row);
  }
}
