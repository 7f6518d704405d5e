import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import blocklists from "../../fixtures/blocklists.json" with { type: "json" };
import { createCommandLine } from "../testing/command-line.ts";
import { encodeResponse, type SeenQuery, startDnsServer } from "../testing/dns-server.ts";

const { run } = createCommandLine();
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
  const path = join(folder, "catalogue.json");
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
  test("says what a listing means and where to be delisted", async () => {
    const end = await withSpamcop(answer, ["blocklist", "check", "8.8.8.8", "8.8.4.4"]);
    expect(end.status).toBe(0);
    expect(end.out).toContain("8.8.8.8: listed");
    expect(end.out).toMatch(/spamcop +listed +high .*https:/);
    expect(end.out).toContain("8.8.4.4: clean (1 of 1 lists say: not listed)");
  });

  test("prints an object a line with --json", async () => {
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
    expect(bad.out).toContain("does not know its own test entry");
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

  test("of an account that does not exist fail, and without an account are wrong usage", async () => {
    expect((await run(["webhooks", "secret", "--account", "nobody"])).status).toBe(1);
    expect((await run(["webhooks", "secret"])).status).toBe(2);
    expect((await run(["webhooks", "deliveries", "--account", "one", "--limit", "x"])).status).toBe(2);
  });
});
