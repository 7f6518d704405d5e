import { Database as Sqlite } from "bun:sqlite";
import { expect, test } from "bun:test";
import { migrate } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";

test("counts of untrusted reporters are divided by author", () => {
  const sqlite = new Sqlite(":memory:");
  const at = MIGRATIONS.findIndex(({ name }) => name.endsWith("report-authors"));
  migrate(sqlite, MIGRATIONS.slice(0, at));
  const counted =
    "INSERT INTO dmarc_daily_reporters (domain, day, reporter, reports, messages, aligned, is_trusted) VALUES";
  sqlite.run(
    `${counted} (1, 7, 'google.com', 2, 20, 19, 1), (1, 7, 'google.com', 3, 60, 6, 0), (1, 8, 'gone.example', 1, 5, 5, 0)`,
  );
  const report = (id: string, org: string | null, sameness: string, messages: number) =>
    sqlite.run(
      `INSERT INTO dmarc_reports (id, domain, ingestion, org, begin_ms, end_ms, day, received_at_ms, policy_domain, policy, body, rows,
        messages, aligned, sameness, content, is_complete) VALUES (?, 1, 'i', ?, 0, 1, 7, 1, 'd', '{}', '{}', 1, ?, 2, ?, 'c', 1)`,
      [id, org, messages, sameness],
    );
  report("a", "Google.com", "one attacker.example", 10);
  report("b", "google.com", "two unauthenticated", 30);
  report("c", "google.com", "three unauthenticated", 20);
  report("d", "google.com", "four", 20);
  report("e", null, "five unauthenticated", 1);
  migrate(sqlite, MIGRATIONS);
  expect(
    sqlite
      .query(
        "SELECT day, reporter, author, reports, messages, aligned, is_trusted FROM dmarc_daily_reporters ORDER BY 1, 7, 3",
      )
      .values(),
  ).toEqual([
    [7, "google.com", "attacker.example", 1, 10, 2, 0],
    [7, "google.com", "unauthenticated", 2, 50, 4, 0],
    [7, "google.com", "", 2, 20, 19, 1],
    [8, "gone.example", "unauthenticated", 1, 5, 5, 0],
  ]);
});
