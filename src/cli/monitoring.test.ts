import { afterAll, describe, expect, test } from "bun:test";
import { Database as Sqlite } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import blocklists from "../../fixtures/blocklists.json" with { type: "json" };
import { newId } from "../foundation/base/secrets.ts";
import { createCommandLine } from "../testing/command-line.ts";
import { encodeResponse, type SeenQuery, startDnsServer } from "../testing/dns-server.ts";

const { run, dataDir } = createCommandLine();
const folder = mkdtempSync(join(tmpdir(), "postwarden-monitoring-"));
afterAll(() => rmSync(folder, { recursive: true }));

const NXDOMAIN = 3;
const ANSWERS: Readonly<Record<string, string>> = {
  "2.0.0.127.bl.spamcop.net": "127.0.0.2",
  "8.8.8.8.bl.spamcop.net": "127.0.0.2",
};

const answer = (query: SeenQuery) => {
  const data = query.type === "A" ? ANSWERS[query.name.toLowerCase()] : undefined;
  if (data === undefined) return encodeResponse(query, { rcode: NXDOMAIN });
  return encodeResponse(query, { answers: [{ name: query.name, type: "A", ttl: 60, data }] });
};

const withSpamcop = async (script: typeof answer, args: readonly string[]) => {
  const { server, stop } = await startDnsServer(script);
  const path = join(folder, `${newId()}.json`);
  const lists = blocklists.lists.filter(({ id }) => id === "spamcop");
  await Bun.write(path, JSON.stringify({ ...blocklists, lists }));
  try {
    const settings = { DNS_SERVERS: `${server.address}:${server.port}`, BLOCKLIST_CATALOGUE: path };
    return await run(args, { settings });
  } finally {
    stop();
  }
};

describe("blocklist check", () => {
  test.concurrent("says what a listing means and where to be delisted", async () => {
    const end = await withSpamcop(answer, ["blocklist", "check", "8.8.8.8", "8.8.4.4"]);
    expect(end.status).toBe(0);
    expect(end.out).toContain("8.8.8.8: listed");
    expect(end.out).toMatch(/high +spamcop +listed /);
    expect(end.out).toContain("\nDelisting:\n  spamcop: https:");
    for (const line of end.out.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
    expect(end.out).toContain("8.8.4.4: clean (1 of 1 lists: not listed)");
  });

  test.concurrent("prints an object a line with --json", async () => {
    const end = await withSpamcop(answer, ["blocklist", "check", "8.8.8.8", "--json"]);
    expect(end.json).toMatchObject({
      target: "8.8.8.8",
      kind: "ipv4",
      status: "listed",
      listed_on: ["spamcop"],
      results: [{ list: "spamcop", outcome: "listed", codes: ["127.0.0.2"] }],
    });
  });

  test("refuses what is no target, before anybody is asked", async () => {
    const end = await run(["blocklist", "check", "10.0.0.1", "--json"]);
    expect(end.status).toBe(2);
    expect(end.err).toContain("not a public address");
  });
});

describe("blocklist lists", () => {
  test("names them without asking anybody", async () => {
    const end = await run(["blocklist", "lists", "--json"]);
    expect(end.status).toBe(0);
    expect(end.json.lists).toBeArrayOfSize(blocklists.lists.length);
  });

  test("--test tells a list that can be believed from one that cannot", async () => {
    const good = await withSpamcop(answer, ["blocklist", "lists", "--test"]);
    expect(good).toMatchObject({ status: 0 });
    expect(good.out).toContain("ipv4 healthy");
    const silent = (query: SeenQuery) => encodeResponse(query, { rcode: NXDOMAIN });
    const bad = await withSpamcop(silent, ["blocklist", "lists", "--test"]);
    expect(bad).toMatchObject({ status: 1 });
    expect(bad.out).toContain("ipv4 silent");
    expect(bad.out.replace(/\s+/g, " ")).toContain("no entry for its own test point");
  });
});

describe("webhooks", () => {
  test("secret makes one and keeps it, rotate makes another beside it, deliveries are none yet", async () => {
    await run(["accounts", "create", "one"]);
    const secretsOf = async (command: string) =>
      (await run(["webhooks", command, "--account", "one", "--json"])).json.secrets as Array<Record<string, unknown>>;
    const [first] = await secretsOf("secret");
    expect(String(first?.secret)).toMatch(/^whsec_/);
    expect(await secretsOf("secret")).toEqual([first ?? {}]);
    const rotated = await secretsOf("rotate");
    expect(rotated[1]).toMatchObject({ secret: first?.secret });
    expect(rotated[1]?.valid_until).not.toBeNull();
    expect((await run(["webhooks", "deliveries", "--account", "one", "--json"])).json).toEqual({ deliveries: [] });
    expect((await run(["webhooks", "secret", "--account", "one"])).out).toContain(String(rotated[0]?.secret));
  });

  test("that failed are sent again, those that wait are cancelled: one, or all that pass the filters", async () => {
    const [first, second, third] = [newId(), newId(), newId()];
    const { id: account } = (await run(["accounts", "show", "one", "--json"])).json;
    const sqlite = new Sqlite(join(dataDir, "postwarden.db"));
    for (const [id, status, url] of [
      [first, "failed", "https://a.example/"],
      [second, "rejected", "https://b.example/"],
      [third, "pending", "https://c.example/"],
    ]) {
      sqlite.run(
        `INSERT INTO webhook_deliveries (id, event_id, account_id, mode, url, subject, type, body, status, created_at_ms)
            VALUES (?1, ?1, ?2, 'live', ?3, 'target:1', 'blacklist.listed', '{"type":"t","timestamp":"","data":{}}', ?4, 1767225600000)`,
        [id ?? "", String(account), url ?? "", status ?? ""],
      );
    }
    sqlite.close();
    const on = ["--account", "one", "--json"];
    const statuses = async () => {
      const { json } = await run(["webhooks", "deliveries", ...on]);
      const rows = (json as { deliveries: ReadonlyArray<{ id: string; status: string }> }).deliveries;
      return [first, second, third].map((id) => rows.find((row) => row.id === id)?.status);
    };
    expect(await statuses()).toEqual(["failed", "rejected", "pending"]);
    expect((await run(["webhooks", "cancel", first, ...on])).status).toBe(1);
    expect((await run(["webhooks", "cancel", newId(), ...on])).status).toBe(1);
    expect((await run(["webhooks", "redeliver", "--since", "x", ...on])).status).toBe(2);
    expect((await run(["webhooks", "redeliver", "--url", "https://a.example/", ...on])).json).toEqual({ count: 1 });
    expect(await statuses()).toEqual(["pending", "rejected", "pending"]);
    expect((await run(["webhooks", "redeliver", ...on])).json).toEqual({ count: 1 });
    expect((await run(["webhooks", "cancel", third, ...on])).json).toMatchObject({ id: third, status: "cancelled" });
    expect((await run(["webhooks", "cancel", "--until", "2026-02-01T00:00:00Z", ...on])).json).toEqual({ count: 2 });
    expect(await statuses()).toEqual(["cancelled", "cancelled", "cancelled"]);
    expect((await run(["webhooks", "redeliver", first, "--account", "one"])).out).toContain(first);
  });

  test("of an account that does not exist fail, and a name is needed when there are several", async () => {
    expect((await run(["webhooks", "secret", "--account", "nobody"])).status).toBe(1);
    expect((await run(["webhooks", "secret"])).status).toBe(0);
    await run(["accounts", "create", "several"]);
    expect((await run(["webhooks", "secret"])).status).toBe(2);
    expect((await run(["webhooks", "deliveries", "--account", "one", "--limit", "x"])).status).toBe(2);
  });
});
