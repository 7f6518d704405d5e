import { newId } from "../../../foundation/base/secrets.ts";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import { rows, sqlStatements } from "../../../foundation/db/statements.ts";
import type { DomainPage } from "../../records/domains/domain-store.ts";
import type { ObservedRecord } from "./observed-records.ts";

/** Rows of a domain. The names of DKIM keys come from reports, which anybody can send. */
const ROWS_MAX = 1_000;

/** A change of the records of a kind at a name. */
export interface RecordChangeRow extends Pick<ObservedRecord, "kind" | "host"> {
  readonly id: string;
  readonly atMs: number;
  /** The records before, as a JSON array; null for the first that was seen. */
  readonly before: string | null;
  /** The records since then, as a JSON array. */
  readonly value: string;
}

/** The changes of the DNS records of domains. Each is stored once, when a health check finds it. `domain` is the `number` of a domain. */
export class RecordHistoryStore {
  readonly #sql;

  constructor(db: Pick<Db, "sqlite">) {
    this.#sql = sqlStatements(db, {
      current: rows<Pick<RecordChangeRow, "kind" | "host" | "value">, [number]>(
        "SELECT kind, host, value, max(id) FROM dmarc_record_history WHERE domain = ? GROUP BY kind, host",
      ),
      insert: `INSERT INTO dmarc_record_history (id, domain, kind, host, at_ms, before, value)
        SELECT ?, number, ?, ?, ?, ?, ? FROM dmarc_domains WHERE number = ? AND deleted_at_ms IS NULL`,
      removeOldest: `DELETE FROM dmarc_record_history WHERE domain = ?1 AND id <= (SELECT id FROM dmarc_record_history
        WHERE domain = ?1 ORDER BY id DESC LIMIT 1 OFFSET ${ROWS_MAX})`,
      list: rows<RecordChangeRow, [number, string, number]>(
        `SELECT id, kind, host, at_ms AS atMs, before, value FROM dmarc_record_history
        WHERE domain = ? AND id < ? ORDER BY id DESC LIMIT ?`,
      ),
      changes: rows<RecordChangeRow, [number, number]>(
        `SELECT id, kind, host, at_ms AS atMs, before, value FROM dmarc_record_history
        WHERE domain = ? AND before IS NOT NULL ORDER BY id DESC LIMIT ?`,
      ),
    });
  }

  /** Stores what changed since the last check, unless the domain was deleted meanwhile. The name of a key without a record is stored once there was a key. */
  observe(_tx: Tx, domain: number, observed: readonly ObservedRecord[], atMs: number): void {
    const current = new Map(this.#sql.current.all(domain).map(({ kind, host, value }) => [`${kind} ${host}`, value]));
    const changed = observed.filter(({ kind, host, values }) => {
      const before = current.get(`${kind} ${host}`);
      return before === undefined ? kind !== "dkim" || values.length > 0 : before !== JSON.stringify(values);
    });
    for (const { kind, host, values } of changed) {
      const before = current.get(`${kind} ${host}`) ?? null;
      this.#sql.insert.run(newId(), kind, host, atMs, before, JSON.stringify(values), domain);
    }
    if (changed.length > 0) this.#sql.removeOldest.run(domain);
  }

  /** Newest first, with the first records that were seen. */
  list(domain: number, { before, limit }: DomainPage): RecordChangeRow[] {
    return this.#sql.list.all(domain, before ?? "~", limit);
  }

  /** The newest changes, without the first records that were seen. */
  changes(domain: number, limit: number): RecordChangeRow[] {
    return this.#sql.changes.all(domain, limit);
  }
}
