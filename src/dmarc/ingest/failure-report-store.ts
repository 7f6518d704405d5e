import type { Db, Tx } from "../../db/open.ts";

/** A failure report as it is stored. `body` is the JSON of a `FailureReport`. */
export interface FailureReportRow {
  readonly id: string;
  readonly domain: number;
  readonly ingestion: string;
  readonly receivedAtMs: number;
  readonly isRedacted: boolean;
  readonly body: string;
  readonly sameness: string;
}

type StoredRow = Omit<FailureReportRow, "isRedacted"> & { readonly isRedacted: 0 | 1 };

const COLUMNS = "id, domain, ingestion, received_at_ms receivedAtMs, is_redacted isRedacted, body, sameness";
/** Behind every id. */
const LAST_ID = "~";

/** Failure reports of domains that want them stored. `domain` is always the `number` of a domain. */
export const createFailureReportStore = ({ sqlite }: Pick<Db, "sqlite">) => {
  const insert = sqlite.prepare(
    `INSERT INTO dmarc_failure_reports (id, domain, ingestion, received_at_ms, is_redacted, body, sameness)
      VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  const same = sqlite.prepare<{ id: string; ingestion: string }, [number, string]>(
    "SELECT id, ingestion FROM dmarc_failure_reports WHERE domain = ? AND sameness = ?",
  );
  const count = sqlite.prepare<{ count: number }, [number, number, number]>(
    "SELECT count(*) count FROM dmarc_failure_reports WHERE domain = ? AND received_at_ms >= ? AND received_at_ms < ?",
  );
  const behind = sqlite.prepare<StoredRow, [number, string, number]>(
    `SELECT ${COLUMNS} FROM dmarc_failure_reports WHERE domain = ? AND id < ? ORDER BY id DESC LIMIT ?`,
  );
  const byId = sqlite.prepare<StoredRow, [number, string]>(
    `SELECT ${COLUMNS} FROM dmarc_failure_reports WHERE domain = ? AND id = ?`,
  );
  const rowOf = ({ isRedacted, ...row }: StoredRow): FailureReportRow => ({ ...row, isRedacted: isRedacted === 1 });

  return {
    /** Throws when the same one of the domain is there. */
    insert(_tx: Tx, row: FailureReportRow): void {
      insert.run(row.id, row.domain, row.ingestion, row.receivedAtMs, row.isRedacted ? 1 : 0, row.body, row.sameness);
    },
    findSameFailure: (domain: number, sameness: string) => same.get(domain, sameness),
    /** How many arrived in a span of time, its end excluded. */
    countBetween: (domain: number, fromMs: number, toMs: number): number => count.get(domain, fromMs, toMs)?.count ?? 0,
    /** Those that came last first, older than the id `before`. */
    listFailures: (domain: number, page: { readonly before: string | null; readonly limit: number }) =>
      behind.all(domain, page.before ?? LAST_ID, page.limit).map(rowOf),
    findFailure(domain: number, id: string): FailureReportRow | undefined {
      const row = byId.get(domain, id);
      return row === null ? undefined : rowOf(row);
    },
  };
};

export type FailureReportStore = ReturnType<typeof createFailureReportStore>;
