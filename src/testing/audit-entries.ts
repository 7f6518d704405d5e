import type { Database as Sqlite } from "bun:sqlite";
import { rowsChangedBy } from "./other-account.ts";

/** What the audit log must have of a change. */
export interface ExpectedEntry {
  /** `user <id>`, `key <id>`, or the user of the operating system. */
  readonly user: string;
  readonly action: string;
  readonly accountId: string | null;
  readonly subject: string | null;
}

/** Runs `work`; the entries that it has added to the audit log, the oldest first. */
export const entriesAddedBy = async <T>(
  sqlite: Sqlite,
  work: () => T | Promise<T>,
): Promise<{ readonly value: T; readonly entries: readonly ExpectedEntry[] }> => {
  const last = sqlite.query<{ id: number }, []>("SELECT ifnull(max(id), 0) AS id FROM audit_log").get()?.id ?? 0;
  const value = await work();
  const added = sqlite.query<ExpectedEntry, [number]>(
    "SELECT user, action, account_id AS accountId, subject FROM audit_log WHERE id > ? ORDER BY id",
  );
  return { value, entries: added.all(last) };
};

/** The last use of a session or key, which every request notes. */
const LAST_USE = /"(last_seen|last_used)_at_ms":[^,}]+/g;

const isLastUse = (row: string): boolean => {
  const [from = "", to = ""] = row.replace(/^.*? was changed: /, "").split(" → ");
  return from.replaceAll(LAST_USE, "") === to.replaceAll(LAST_USE, "");
};

/** Runs `work` while the database refuses every entry of the audit log; the rows that it has changed nevertheless. */
export const changedWithoutEntry = async <T>(
  sqlite: Sqlite,
  work: () => T | Promise<T>,
): Promise<{ readonly value: T; readonly rows: readonly string[] }> => {
  sqlite.run("CREATE TRIGGER no_entry BEFORE INSERT ON audit_log BEGIN SELECT RAISE(ABORT, 'no entry'); END");
  try {
    const { value, rows } = await rowsChangedBy(sqlite, work);
    return { value, rows: rows.filter((row) => !isLastUse(row)) };
  } finally {
    sqlite.run("DROP TRIGGER no_entry");
  }
};

/** Tables of what a request leaves behind even where it changes nothing. */
const INCIDENTAL: ReadonlySet<string> = new Set(["audit_log", "sessions", "api_keys"]);

/**
 * Throws unless the audit log has a change by exactly one entry, the expected one; without `expected`, unless it has none. The
 * result of a change in many transactions may follow in a second entry, with `.done` after its action.
 */
export const requireEntry = (
  { changed, entries }: { readonly changed: readonly string[]; readonly entries: readonly ExpectedEntry[] },
  expected: ExpectedEntry | null,
): void => {
  const tables = changed.filter((table) => !INCIDENTAL.has(table));
  const what = tables.length === 0 ? "The change" : `The change of ${tables.join(", ")}`;
  const result = JSON.stringify({ ...expected, action: `${expected?.action}.done` });
  const own = entries.filter((entry, at) => at === 0 || JSON.stringify(entry) !== result);
  const [wanted, found] = [JSON.stringify(expected === null ? [] : [expected]), JSON.stringify(own)];
  if (wanted !== found) throw new Error(`${what} is in the audit log as ${found} instead of ${wanted}`);
};
