import type { Db, Tx } from "../../../foundation/db/open.ts";

/** An organizational domain that report mail is authenticated as. */
export interface ReportAuthor {
  /** The day, since 1970 (UTC), of the first such mail. */
  readonly firstDay: number;
  /** Disk space that its mail and reports took on `usageDay`. */
  readonly usageDay: number;
  readonly usageBytes: number;
}

/** Authors stored for a domain; no domain has as many reporters. */
export const AUTHORS_MAX = 200;
/** An author without mail for this long may be replaced by another one. */
const AUTHOR_DAYS = 90;

/** Who sends authenticated reports about a domain, and the disk space they take. `domain` is the `number` of a domain. */
export class ReportAuthorStore {
  readonly #find;
  readonly #known;
  readonly #count;
  readonly #expire;
  readonly #add;

  constructor({ sqlite }: Pick<Db, "sqlite">) {
    this.#find = sqlite.prepare<ReportAuthor, [number, string]>(
      `SELECT first_day firstDay, usage_day usageDay, usage_bytes usageBytes FROM dmarc_report_authors
        WHERE domain = ? AND author = ?`,
    );
    this.#known = sqlite.prepare<unknown, [number, number]>(
      "SELECT 1 FROM dmarc_report_authors WHERE domain = ? AND first_day < ? LIMIT 1",
    );
    this.#count = sqlite.prepare<{ count: number }, [number]>(
      "SELECT count(*) count FROM dmarc_report_authors WHERE domain = ?",
    );
    this.#expire = sqlite.prepare("DELETE FROM dmarc_report_authors WHERE domain = ? AND last_day < ?");
    this.#add = sqlite.prepare<unknown, { domain: number; author: string; day: number; bytes: number }>(
      `INSERT INTO dmarc_report_authors (domain, author, first_day, last_day, usage_day, usage_bytes)
        VALUES ($domain, $author, $day, $day, $day, $bytes) ON CONFLICT DO UPDATE SET last_day = max(last_day, $day),
        usage_bytes = iif(usage_day = $day, usage_bytes, 0) + $bytes, usage_day = $day`,
    );
  }

  /** Null for an author without mail. */
  find(domain: number, author: string): ReportAuthor | null {
    return this.#find.get(domain, author);
  }

  /** Whether any report arrived before a day. */
  hasKnown(domain: number, day: number): boolean {
    return this.#known.get(domain, day) !== null;
  }

  /** Records that a report arrived on a day, and its size. Beyond `AUTHORS_MAX` no new author is added. */
  add(_tx: Tx, domain: number, author: string, usage: { readonly day: number; readonly bytes: number }): void {
    if (this.find(domain, author) === null && (this.#count.get(domain)?.count ?? 0) >= AUTHORS_MAX) {
      if (this.#expire.run(domain, usage.day - AUTHOR_DAYS).changes === 0) return;
    }
    this.#add.run({ domain, author, ...usage });
  }
}
