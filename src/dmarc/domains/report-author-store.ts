import type { Db, Tx } from "../../db/open.ts";

/** Somebody whose mail is authenticated as a reporter's: an organisational domain. */
export interface ReportAuthor {
  /** The day, since 1970 (UTC), on which the first such mail came in. */
  readonly firstDay: number;
  /** What the mail and reports took of the disk on `usageDay`. */
  readonly usageDay: number;
  readonly usageBytes: number;
}

/** Authors remembered for a domain: more than there are reporters of any. */
export const AUTHORS_MAX = 200;
/** An author of whom nothing came for so many days may give way to another one. */
const AUTHOR_DAYS = 90;

/** Who sends authenticated reports about a domain, and what that takes of the disk. `domain` is the `number` of a domain. */
export const createReportAuthorStore = ({ sqlite }: Db) => {
  const find = sqlite.prepare<ReportAuthor, [number, string]>(
    `SELECT first_day firstDay, usage_day usageDay, usage_bytes usageBytes FROM dmarc_report_authors
      WHERE domain = ? AND author = ?`,
  );
  const known = sqlite.prepare<unknown, [number, number]>(
    "SELECT 1 FROM dmarc_report_authors WHERE domain = ? AND first_day < ? LIMIT 1",
  );
  const count = sqlite.prepare<{ count: number }, [number]>(
    "SELECT count(*) count FROM dmarc_report_authors WHERE domain = ?",
  );
  const expire = sqlite.prepare("DELETE FROM dmarc_report_authors WHERE domain = ? AND last_day < ?");
  const add = sqlite.prepare<unknown, { domain: number; author: string; day: number; bytes: number }>(
    `INSERT INTO dmarc_report_authors (domain, author, first_day, last_day, usage_day, usage_bytes)
      VALUES ($domain, $author, $day, $day, $day, $bytes) ON CONFLICT DO UPDATE SET last_day = max(last_day, $day),
      usage_bytes = iif(usage_day = $day, usage_bytes, 0) + $bytes, usage_day = $day`,
  );

  return {
    /** Null for one from whom nothing came. */
    find: (domain: number, author: string): ReportAuthor | null => find.get(domain, author),
    /** Whether anybody's report came before a day. */
    hasKnown: (domain: number, day: number): boolean => known.get(domain, day) !== null,
    /** Notes that a report came on a day, and what it took of the disk. Beyond `AUTHORS_MAX` nobody new is noted. */
    add(
      _tx: Tx,
      domain: number,
      author: string,
      { day, bytes }: { readonly day: number; readonly bytes: number },
    ): void {
      if (find.get(domain, author) === null && (count.get(domain)?.count ?? 0) >= AUTHORS_MAX) {
        if (expire.run(domain, day - AUTHOR_DAYS).changes === 0) return;
      }
      add.run({ domain, author, day, bytes });
    },
  };
};

export type ReportAuthorStore = ReturnType<typeof createReportAuthorStore>;
