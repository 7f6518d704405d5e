import { Database as Sqlite } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS } from "../foundation/base/days.ts";
import { TestApp } from "../testing/app.ts";
import { postList, untilJobEnded } from "../testing/bulk-requests.ts";
import { createCommandLine } from "../testing/command-line.ts";
import { sampleReportXml } from "../testing/dmarc-reports.ts";
import { newId } from "../foundation/base/secrets.ts";
import { rowsChangedBy } from "../testing/other-account.ts";

const { dataDir, run } = createCommandLine();
const path = join(dataDir, "postwarden.db");

/** Accounts with something of each kind that expires: all of it, some of it, and nothing yet. */
const fill = async (): Promise<void> => {
  await run(["migrate"]);
  const app = new TestApp({ path });
  const addTo = async (account: string) => {
    const key = app.newKey({ mode: "live", account, name: account });
    const testKey = app.newKey({ mode: "test", account, name: `${account}-test` });
    await app.verify(key, "not an address", "?timeout=1", { "idempotency-key": "one" });
    const body = "Name,E-Mail\nAnna,mailbox_exists@a.example\n";
    const posted = await postList(app, { key: testKey, body, headers: { "content-type": "text/csv" } });
    await untilJobEnded(app, testKey, posted.id);
    await app.request("POST", "/v1/dmarc/domains", { key: testKey, body: { domain: "example.com" } });
    const begin = Math.floor(app.clock.nowMs() / DAY_MS - 1) * (DAY_MS / 1_000);
    await app.request("POST", "/v1/dmarc/reports", { key: testKey, body: sampleReportXml({ begin }) });
    const target = await app.request("POST", "/v1/blacklist/targets", {
      key: testKey,
      body: { target: "listed.example" },
    });
    await app.request("POST", `/v1/blacklist/targets/${target.id}/check`, { key: testKey });
    app.db.sqlite.run(
      "INSERT INTO outbox (id, account_id, mode, type, data, created_at_ms, delivered_at_ms) VALUES (?, ?, 'test', 'webhook.test', '{}', ?, 1)",
      [newId(), testKey.accountId, app.clock.nowMs()],
    );
  };
  for (const [account, days] of Object.entries({ old: 500, middle: 60, new: 0.5 })) {
    app.clock.setWall(Date.now() - days * DAY_MS - app.clock.nowMs());
    await addTo(account);
  }
  app.close();
};

const tablesOf = (rows: readonly string[]): readonly string[] =>
  [...new Set(rows.map((row) => row.split(" ")[0] ?? ""))].toSorted();

test("counts what has expired without a change, then removes that and nothing else, once", async () => {
  await fill();
  const sqlite = new Sqlite(path);
  const accountOf = (name: string): string =>
    sqlite.query<{ id: string }, [string]>("SELECT id FROM accounts WHERE name = ?").get(name)?.id ?? "";
  const young = accountOf("new");

  const rehearsed = await rowsChangedBy(sqlite, () => run(["purge", "--dry-run", "--json"]));
  expect([rehearsed.value.status, rehearsed.value.err, rehearsed.rows]).toEqual([0, "", []]);
  expect(readdirSync(dataDir).filter((name) => !name.startsWith("postwarden.db"))).toEqual([]);
  expect(readdirSync(dataDir).filter((name) => name.includes("partial"))).toEqual([]);
  const { dry_run, rows, kinds } = rehearsed.value.json;
  expect(dry_run).toBe(true);
  const found = kinds as ReadonlyArray<{ kind: string; rows: number }>;
  expect(found.map(({ kind }) => kind).toSorted()).toEqual([
    "DMARC and TLS reports",
    "blocklists",
    "columns of uploaded lists",
    "lists",
    "report mails and files",
    "sessions and Idempotency-Keys",
    "verifications",
    "webhooks and events",
  ]);
  const table = (await run(["purge", "--dry-run"])).out;
  expect(table).toMatch(/^EXPIRED +ROWS\n/);
  expect(table).toContain("Nothing was removed. To remove it: postwarden purge --now");

  const purged = await rowsChangedBy(sqlite, () => run(["purge", "--now", "--json"]));
  expect([purged.value.status, purged.value.err]).toEqual([0, ""]);
  expect(purged.value.json).toMatchObject({ dry_run: false, rows, kinds: found });
  expect(purged.rows.filter((row) => row.includes(young))).toEqual([]);
  expect(tablesOf(purged.rows)).toContain("audit_log");
  const added = purged.rows.filter((row) => row.includes(" was added: "));
  expect(tablesOf(added)).toEqual(["audit_log"]);
  expect(added).toHaveLength(2);
  const deleted = purged.rows.filter((row) => row.includes(" was deleted: "));
  const cleared = purged.rows.filter((row) => row.startsWith("bulk_rows ") && row.includes(" was changed: "));
  expect(deleted.length + cleared.length).toBe(Number(rows));
  expect(cleared).toHaveLength(1);

  const again = await rowsChangedBy(sqlite, () => run(["purge", "--now"]));
  expect(again.value.out).toStartWith("Nothing has expired by 20");
  expect(tablesOf(again.rows)).toEqual(["audit_log"]);
  sqlite.close();
});

test("needs to be told which of both", async () => {
  expect(await run(["purge"])).toMatchObject({ status: 2, out: "", problem: expect.stringContaining("--dry-run") });
  expect(await run(["purge", "--now", "--dry-run"])).toMatchObject({ status: 2, out: "" });
});
