import type { Severity } from "../../foundation/base/severity.ts";
import type { Db } from "../../foundation/db/open.ts";
import { statements } from "../../foundation/db/statements.ts";

/** What a table takes with its indexes. */
export interface TableSize {
  readonly table: string;
  readonly bytes: number;
}

/** Present listings of monitored targets of one severity that nobody acknowledged. */
export interface OpenListings {
  readonly severity: Severity | null;
  readonly listings: number;
}

const prepare = ({ sqlite }: Pick<Db, "sqlite">) =>
  statements({
    sizes: () =>
      sqlite.prepare<TableSize, []>(
        `SELECT coalesce(s.tbl_name, d.name) AS "table", sum(d.pgsize) AS bytes
      FROM dbstat d LEFT JOIN sqlite_schema s ON s.name = d.name WHERE d.aggregate = TRUE GROUP BY 1`,
      ),
    freePages: () =>
      sqlite.prepare<{ bytes: number }, []>(
        "SELECT f.freelist_count * p.page_size AS bytes FROM pragma_freelist_count f, pragma_page_size p",
      ),
    listings: () =>
      sqlite.prepare<OpenListings, []>(
        `SELECT l.severity, count(*) AS listings FROM blocklist_targets t JOIN blocklist_listings l ON l.target_id = t.id
      WHERE t.mode = 'live' AND t.listed_on <> '[]' AND t.monitoring_enabled = 1 AND l.acknowledged_at_ms IS NULL
        AND t.account_id NOT IN (SELECT id FROM accounts WHERE disabled_at_ms IS NOT NULL)
      GROUP BY l.severity`,
      ),
  });

/** Reads for `postwarden status`. */
export class StatusStore {
  readonly #sql;

  constructor(db: Pick<Db, "sqlite">) {
    this.#sql = prepare(db);
  }

  /** The size of each table with its indexes. Reads every page of the file. */
  tableSizes(): TableSize[] {
    return this.#sql.sizes.all();
  }

  /** Space inside the file that is free. */
  freeBytes(): number {
    return this.#sql.freePages.get()?.bytes ?? 0;
  }

  openListings(): OpenListings[] {
    return this.#sql.listings.all();
  }
}
