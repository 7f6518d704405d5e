import type { Database as Sqlite } from "bun:sqlite";

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

/** Tables of what a request leaves behind even where it changes nothing. */
const INCIDENTAL: ReadonlySet<string> = new Set(["audit_log", "sessions", "api_keys"]);

/** Throws unless the audit log has a change by exactly one entry, the expected one; without `expected`, unless it has none. */
export const requireEntry = (
  { changed, entries }: { readonly changed: readonly string[]; readonly entries: readonly ExpectedEntry[] },
  expected: ExpectedEntry | null,
): void => {
  const tables = changed.filter((table) => !INCIDENTAL.has(table));
  const what = tables.length === 0 ? "The change" : `The change of ${tables.join(", ")}`;
  const [wanted, found] = [JSON.stringify(expected === null ? [] : [expected]), JSON.stringify(entries)];
  if (wanted !== found) throw new Error(`${what} is in the audit log as ${found} instead of ${wanted}`);
};
