import { Database as Sqlite } from "bun:sqlite";
import { expect, test } from "bun:test";
import { migrate } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";

test("addresses keep their reverse names, and their networks become due spread over a day", () => {
  const sqlite = new Sqlite(":memory:");
  const at = MIGRATIONS.findIndex(({ name }) => name.endsWith("address-networks"));
  migrate(sqlite, MIGRATIONS.slice(0, at));
  const insert = sqlite.query("INSERT INTO dmarc_reverse_names VALUES (?, 'mail.example.com', 1, 7, 5)");
  for (let n = 0; n < 2_880; n += 1) insert.run(`8.8.${n >> 8}.${n & 255}`);
  const before = sqlite.query<{ s: number }, []>("SELECT unixepoch() s").get()?.s ?? 0;
  migrate(sqlite, MIGRATIONS);
  expect(
    sqlite
      .query(
        "SELECT DISTINCT name, is_confirmed, due_at_ms, asked_at_ms, asn, network_asked_at_ms FROM dmarc_reverse_names",
      )
      .all(),
  ).toEqual([
    { name: "mail.example.com", is_confirmed: 1, due_at_ms: 7, asked_at_ms: 5, asn: null, network_asked_at_ms: null },
  ]);
  const most = sqlite
    .query<{ n: number }, []>(
      "SELECT count(*) n FROM dmarc_reverse_names GROUP BY network_due_at_ms / 60000 ORDER BY 1 DESC LIMIT 1",
    )
    .get();
  expect(most).toEqual({ n: 2 });
  const span = sqlite
    .query<{ first: number; last: number }, []>(
      "SELECT min(network_due_at_ms) first, max(network_due_at_ms) last FROM dmarc_reverse_names",
    )
    .get();
  expect(span?.first ?? 0).toBeGreaterThanOrEqual(before * 1_000);
  expect((span?.last ?? 0) - (span?.first ?? 0)).toBe(1_439 * 60_000);
});
