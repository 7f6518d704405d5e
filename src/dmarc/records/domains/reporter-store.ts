import type { Db, Tx } from "../../../foundation/db/open.ts";
import type { KeyMode } from "../../../foundation/base/secrets.ts";
import { rows, sqlStatements } from "../../../foundation/db/statements.ts";
import { MAKE_OVERVIEWS_DUE } from "./domain-store.ts";

/** Nobody vouches for a report: its mail is not authenticated as the reporter's, or the domain has too many unknown reporters. */
export const VOUCHED_BY_NOBODY = 0;
/** The owner handed a report in, or a known reporter sent it. */
export const VOUCHED_AS_KNOWN = 1;

/** Unknown reporters stored for a domain; no domain has as many. Reports of more are counted as those that nobody vouches for. */
export const UNKNOWN_REPORTERS_MAX = 200;
/** Reporter names stored for a domain from reports that the owner handed in; further ones share no row. */
const KNOWN_REPORTERS_MAX = 1_000;
/** An unknown reporter whose last report is about an older day may be replaced by another one. */
const REPORTER_DAYS = 90;
/** Known reporters cover a domain by reports about these days. */
const COVERED_DAYS = 30;
const COVERING_REPORTERS_MIN = 2;

/** A reporter of a domain that nobody knows but by its authenticated mail. */
export interface UnknownReporter {
  /** What its reports are counted under. */
  readonly voucher: number;
  readonly author: string;
  readonly isExcessive: boolean;
}

/** The reporters of a domain. */
export interface DomainReporters {
  /** Whether known ones decide alone: see `ReporterStore`. */
  readonly isCovered: boolean;
  /** Vouchers of known reporters and of those that the owner accepted. */
  readonly known: readonly number[];
  readonly unknown: readonly UnknownReporter[];
}

/** The vouchers whose counts advice, alerts and classes rely on. */
export const decidingVouchers = ({ isCovered, known, unknown }: DomainReporters): readonly number[] =>
  isCovered ? known : [...known, ...unknown.filter(({ isExcessive }) => !isExcessive).map(({ voucher }) => voucher)];

interface Row {
  readonly number: number;
  readonly author: string;
  readonly isKnown: 0 | 1;
  readonly firstDay: number;
  readonly lastDay: number;
  readonly excessiveSinceMs: number | null;
  readonly isAccepted: 0 | 1;
}

const OF_DOMAIN = `SELECT r.number, r.author, r.is_known isKnown, r.first_day firstDay, r.last_day lastDay,
  r.excessive_since_ms excessiveSinceMs, a.author IS NOT NULL isAccepted
  FROM dmarc_reporters r JOIN dmarc_domains d ON d.number = r.domain LEFT JOIN dmarc_accepted_reporters a
    ON a.account_id = d.account_id AND a.mode = d.mode AND a.author = r.author AND r.is_known = 0
  WHERE r.domain = ? ORDER BY r.number`;
const FIND = "SELECT number FROM dmarc_reporters WHERE domain = ? AND author = ? AND is_known = ?";
const EXTEND = `UPDATE dmarc_reporters SET first_day = min(first_day, ?), last_day = max(last_day, ?)
  WHERE number = ? AND (first_day > ? OR last_day < ?)`;
const ADD =
  "INSERT INTO dmarc_reporters (domain, author, is_known, first_day, last_day) VALUES (?, ?, ?, ?, ?) RETURNING number";

/** A reporter that the owner accepted, by the organizational domain of its mail. */
export interface AcceptedReporter {
  readonly author: string;
  readonly atMs: number;
}

/**
 * What a reporter is to a domain: `known` (in the list that ships with the product, or the owner handed its reports in),
 * `accepted` by the owner, `unknown` (authenticated, but anybody can be one), or `unauthenticated`.
 */
export const REPORTER_STANDINGS = ["known", "accepted", "unknown", "unauthenticated"] as const;
export type ReporterStanding = (typeof REPORTER_STANDINGS)[number];

/** Whether reports of further unknown reporters are counted with those that nobody vouches for. */
export const hasTooManyReporters = ({ unknown }: Pick<DomainReporters, "unknown">): boolean =>
  unknown.length >= UNKNOWN_REPORTERS_MAX;

/** Of whom nobody vouches for the reports, as the end of a sentence about them. */
export const unvouchedWords = (reporters: Pick<DomainReporters, "unknown">): string =>
  hasTooManyReporters(reporters)
    ? `is not authenticated as the reporter's, or comes from an unknown reporter beyond the first ${UNKNOWN_REPORTERS_MAX}`
    : "is not authenticated as the reporter's";

/** The standing of the reporter behind a voucher. */
export const standingOf = ({ known, unknown }: DomainReporters, voucher: number): ReporterStanding => {
  if (voucher === VOUCHED_BY_NOBODY) return "unauthenticated";
  if (voucher === VOUCHED_AS_KNOWN) return "known";
  if (known.includes(voucher)) return "accepted";
  return unknown.some((one) => one.voucher === voucher) ? "unknown" : "unauthenticated";
};

export interface ReporterOwner {
  readonly accountId: string;
  readonly mode: KeyMode;
}

/**
 * Who sends trusted reports about a domain. Anybody with a domain of their own can be a reporter, so each unknown one
 * has its own voucher. Known reporters *cover* a domain when at least two of them (accepted ones included) have each
 * reported about at least two days, and about one of the 30 days up to the last reported one. Then they alone decide. Otherwise all
 * do, but for those whose counts are far above all others.
 */
export class ReporterStore {
  readonly #sql;

  constructor(db: Pick<Db, "sqlite">) {
    this.#sql = sqlStatements(db, {
      ofDomain: rows<Row, [number]>(OF_DOMAIN),
      find: rows<{ number: number }, [number, string, 0 | 1]>(FIND),
      count: rows<{ count: number }, [number, 0 | 1]>(
        "SELECT count(*) count FROM dmarc_reporters WHERE domain = ? AND is_known = ?",
      ),
      expire: "DELETE FROM dmarc_reporters WHERE domain = ? AND is_known = 0 AND last_day < ?",
      extend: rows<unknown, number[]>(EXTEND),
      add: rows<{ number: number }, [number, string, 0 | 1, number, number]>(ADD),
      setExcessive: rows<unknown, [number | null, number]>(
        "UPDATE dmarc_reporters SET excessive_since_ms = ? WHERE number = ?",
      ),
      accept: "INSERT OR IGNORE INTO dmarc_accepted_reporters (account_id, mode, author, at_ms) VALUES (?, ?, ?, ?)",
      withdraw: "DELETE FROM dmarc_accepted_reporters WHERE account_id = ? AND mode = ? AND author = ?",
      makeOverviewsDue: `${MAKE_OVERVIEWS_DUE} domain IN (SELECT number FROM dmarc_domains WHERE account_id = ? AND mode = ?)`,
      accepted: rows<AcceptedReporter, [string, string]>(
        "SELECT author, at_ms atMs FROM dmarc_accepted_reporters WHERE account_id = ? AND mode = ? ORDER BY author",
      ),
    });
  }

  ofDomain(domain: number): DomainReporters {
    const rows = this.#sql.ofDomain.all(domain);
    const lastDay = Math.max(0, ...rows.map((row) => row.lastDay));
    const known = rows.filter(({ isKnown, isAccepted }) => isKnown === 1 || isAccepted === 1);
    const covering = known.filter((row) => row.firstDay < row.lastDay && row.lastDay > lastDay - COVERED_DAYS);
    return {
      isCovered: new Set(covering.map(({ author }) => author)).size >= COVERING_REPORTERS_MIN,
      known: [VOUCHED_AS_KNOWN, ...known.filter(({ isKnown }) => isKnown === 0).map(voucherOf)],
      unknown: rows
        .filter(({ isKnown, isAccepted }) => isKnown === 0 && isAccepted === 0)
        .map((row) => ({
          voucher: voucherOf(row),
          author: row.author,
          isExcessive: row.excessiveSinceMs !== null,
        })),
    };
  }

  /**
   * The voucher of a report about a day. `author`: the organizational domain of a reporter, or the name in a report that the owner
   * handed in.
   */
  vouch(_tx: Tx, domain: number, { author, isKnown, day }: { author: string; isKnown: boolean; day: number }): number {
    const flag = isKnown ? 1 : 0;
    const found = this.#sql.find.get(domain, author, flag);
    if (found !== null) this.#sql.extend.run(day, day, found.number, day, day);
    const number = found?.number ?? (this.#hasRoom(domain, flag, day) ? this.#insert(domain, author, flag, day) : null);
    if (isKnown) return VOUCHED_AS_KNOWN;
    return number === null ? VOUCHED_BY_NOBODY : voucherOf({ number });
  }

  /** Notes since when the counts of an unknown reporter are far above those of all others; null: they are not. */
  setExcessive(_tx: Tx, voucher: number, sinceMs: number | null): void {
    this.#sql.setExcessive.run(sinceMs, voucher - 1);
  }

  /** Whether it was not accepted before. */
  accept(_tx: Tx, { accountId, mode }: ReporterOwner, author: string, atMs: number): boolean {
    const { changes } = this.#sql.accept.run(accountId, mode, author, atMs);
    if (changes > 0) this.#sql.makeOverviewsDue.run(accountId, mode);
    return changes > 0;
  }

  /** Whether it was accepted before. */
  withdraw(_tx: Tx, { accountId, mode }: ReporterOwner, author: string): boolean {
    const { changes } = this.#sql.withdraw.run(accountId, mode, author);
    if (changes > 0) this.#sql.makeOverviewsDue.run(accountId, mode);
    return changes > 0;
  }

  accepted({ accountId, mode }: ReporterOwner): readonly AcceptedReporter[] {
    return this.#sql.accepted.all(accountId, mode);
  }

  #insert(domain: number, author: string, isKnown: 0 | 1, day: number) {
    return this.#sql.add.get(domain, author, isKnown, day, day)?.number ?? null;
  }

  #hasRoom(domain: number, isKnown: 0 | 1, day: number) {
    const max = isKnown === 1 ? KNOWN_REPORTERS_MAX : UNKNOWN_REPORTERS_MAX;
    if ((this.#sql.count.get(domain, isKnown)?.count ?? 0) < max) return true;
    return isKnown === 0 && this.#sql.expire.run(domain, day - REPORTER_DAYS).changes > 0;
  }
}

const voucherOf = ({ number }: Pick<Row, "number">) => number + 1;

/** An organizational domain that report mail is authenticated as. */
interface ReportAuthor {
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
  readonly #sql;

  constructor(db: Pick<Db, "sqlite">) {
    this.#sql = sqlStatements(db, {
      find: rows<ReportAuthor, [number, string]>(
        `SELECT first_day firstDay, usage_day usageDay, usage_bytes usageBytes FROM dmarc_report_authors
        WHERE domain = ? AND author = ?`,
      ),
      known: rows<unknown, [number, number]>(
        "SELECT 1 FROM dmarc_report_authors WHERE domain = ? AND first_day < ? LIMIT 1",
      ),
      count: rows<{ count: number }, [number]>("SELECT count(*) count FROM dmarc_report_authors WHERE domain = ?"),
      expire: "DELETE FROM dmarc_report_authors WHERE domain = ? AND last_day < ?",
      add: rows<unknown, { domain: number; author: string; day: number; bytes: number }>(
        `INSERT INTO dmarc_report_authors (domain, author, first_day, last_day, usage_day, usage_bytes)
        VALUES ($domain, $author, $day, $day, $day, $bytes) ON CONFLICT DO UPDATE SET last_day = max(last_day, $day),
        usage_bytes = iif(usage_day = $day, usage_bytes, 0) + $bytes, usage_day = $day`,
      ),
    });
  }

  /** Null for an author without mail. */
  find(domain: number, author: string): ReportAuthor | null {
    return this.#sql.find.get(domain, author);
  }

  /** Whether any report arrived before a day. */
  hasKnown(domain: number, day: number): boolean {
    return this.#sql.known.get(domain, day) !== null;
  }

  /** Records that a report arrived on a day, and its size. Beyond `AUTHORS_MAX` no new author is added. */
  add(_tx: Tx, domain: number, author: string, usage: { day: number; bytes: number }): void {
    if (this.find(domain, author) === null && (this.#sql.count.get(domain)?.count ?? 0) >= AUTHORS_MAX) {
      if (this.#sql.expire.run(domain, usage.day - AUTHOR_DAYS).changes === 0) return;
    }
    this.#sql.add.run({ domain, author, ...usage });
  }
}
