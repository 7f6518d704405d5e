import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { IssuedKey } from "../accounts/keys.ts";
import { TestApp } from "../testing/app.ts";
import { postList, untilJobEnded } from "../testing/bulk-requests.ts";
import { createCommandLine } from "../testing/command-line.ts";

const { dataDir, run } = createCommandLine();
const UNKNOWN_ID = "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52";
const TEST = ["--mode", "test"];
let [app, key, jobId]: [TestApp | null, IssuedKey | null, string] = [null, null, ""];

beforeAll(async () => {
  await run(["migrate"]);
  app = new TestApp({ path: join(dataDir, "postwarden.db") });
  key = app.newKey({ mode: "test" });
  const list = { key, body: { emails: ["mailbox_exists@any.example", "=1+1@any.example", "dns_error@any.example"] } };
  jobId = (await postList(app, list)).id;
  await untilJobEnded(app, key, jobId);
});
afterAll(() => app?.close());

const auditOf = async () => {
  const { json } = await run(["audit", "--limit", "100", "--json"]);
  return (json.entries as Array<{ action: string; subject: string | null }>).map(({ action, subject }) => [
    action,
    subject,
  ]);
};

describe("lists", () => {
  test("are listed and shown as the API shows them", async () => {
    const { json } = await run(["lists", "list", ...TEST, "--json"]);
    expect(json.jobs).toMatchObject([{ id: jobId, status: "completed", rows: { total: 3, finished: 3 } }]);
    expect((await run(["lists", "show", jobId, ...TEST, "--json"])).json).toEqual(
      (json.jobs as Array<Record<string, unknown>>)[0] ?? {},
    );
    expect((await run(["lists", "list", ...TEST])).out).toContain(jobId);
    expect((await run(["lists", "show", jobId, ...TEST, "--json"])).json).toMatchObject({ id: jobId });
    expect((await run(["lists", "list", ...TEST, "--status", "running", "--json"])).json).toEqual({ jobs: [] });
    expect((await run(["lists", "list", "--json"])).json).toEqual({ jobs: [] });
  });

  test("have their results as CSV, safe for spreadsheets unless told otherwise", async () => {
    const { status, out } = await run(["lists", "results", jobId, ...TEST]);
    expect(status).toBe(0);
    expect(out.split("\n")[0]).toContain("sub_status");
    expect(out).toContain("mailbox_exists@any.example");
    expect(out).toContain("'=1+1@any.example");
    expect((await run(["lists", "results", jobId, ...TEST, "--no-defuse"])).out).not.toContain("'=1+1");
  });

  test("are retried for the server to verify, cancelled and removed; each is in the audit log", async () => {
    expect((await run(["lists", "retry", jobId, ...TEST, "--json"])).json).toMatchObject({ status: "queued" });
    expect(await run(["lists", "remove", jobId, ...TEST])).toMatchObject({ status: 1, out: "" });
    expect((await run(["lists", "cancel", jobId, ...TEST, "--json"])).json).toMatchObject({ status: "cancelled" });
    expect((await run(["lists", "cancel", jobId, ...TEST])).out).toContain("cancelled");
    expect(await run(["lists", "retry", jobId, ...TEST])).toMatchObject({
      status: 1,
      err: expect.stringContaining("Only a completed job can be retried"),
    });
    expect((await run(["lists", "remove", jobId, ...TEST])).out).toBe(`Removed ${jobId}.`);
    expect((await run(["lists", "list", ...TEST, "--json"])).json).toEqual({ jobs: [] });
    const actions = (await auditOf()).filter(([action]) => action?.startsWith("jobs."));
    expect(actions).toEqual([
      ["jobs.remove", jobId],
      ["jobs.cancel", jobId],
      ["jobs.cancel", jobId],
      ["jobs.retry", jobId],
    ]);
  });

  test.each(["show", "cancel", "retry", "remove", "results"])("%s: an unknown id is an error", async (command) => {
    const { status, out, err } = await run(["lists", command, UNKNOWN_ID]);
    expect({ status, out }).toEqual({ status: 1, out: "" });
    expect(err).toContain("There is no bulk verification with this id.");
  });
});

describe("dmarc domains", () => {
  test("are enrolled, shown, changed, checked and removed", async () => {
    const added = await run([
      "dmarc",
      "domains",
      "add",
      "example.com",
      "--label",
      "shop",
      "--tag",
      "Client-A",
      ...TEST,
      "--json",
    ]);
    expect(added.json).toMatchObject({ domain: { domain: "example.com", label: "shop", tags: ["client-a"] } });
    const again = await run(["dmarc", "domains", "add", "example.com", ...TEST]);
    expect(again.out).toContain("The domain was enrolled already.");
    expect(again.out).toContain("Reporting address: ");
    expect((await run(["dmarc", "domains", "list", ...TEST, "--json"])).json.domains).toMatchObject([
      { domain: "example.com", settings: { digest: "off" } },
    ]);
    expect((await run(["dmarc", "domains", "show", "EXAMPLE.com", ...TEST, "--json"])).json).toMatchObject({
      domain: { domain: "example.com" },
      dns_records: [{ host: "_dmarc.example.com" }],
    });
    const verified = await run(["dmarc", "domains", "verify", "example.com", ...TEST, "--json"]);
    expect(verified.json).toMatchObject({ previous_status: expect.any(String), checks: expect.any(Array) });
    const update = (...flags: string[]) =>
      run(["dmarc", "domains", "update", "example.com", ...TEST, ...flags, "--json"]);
    expect((await update("--label", "", "--retention-days", "30", "--monitoring", "off")).json).toMatchObject({
      ...{ label: null, monitoring_enabled: false, settings: { retention_days: 30 } },
    });
    expect(await update()).toMatchObject({ status: 2 });
    expect(await update("--retention-days", "0")).toMatchObject({ status: 2 });
    expect(await update("--webhook-url", "ftp://example.com")).toMatchObject({ status: 2 });
    expect(await update("--recipient", "ops@example.com")).toMatchObject({ status: 1 });
    for (const command of [
      ["add", "other.example"],
      ["update", "example.com"],
    ])
      expect(await run(["dmarc", "domains", ...command, ...TEST, "--label", "x".repeat(201)])).toMatchObject({
        ...{ status: 2, err: expect.stringContaining("--label: At most 200 characters.") },
      });
    const empty = await run(["dmarc", "domains", "add", "other.example", ...TEST, "--label", ""]);
    expect(empty).toMatchObject({ status: 2, err: expect.stringContaining("Leave the option out rather than empty") });
    const wrong = ["--recipient", "ops@example.com", "nonsense"];
    for (const command of [
      ["dmarc", "domains", "add", "other.example"],
      ["dmarc", "domains", "update", "example.com"],
      ["dmarc", "tags", "digest", "client-a"],
      ["notifications", "set"],
    ]) {
      const { status, err } = await run([...command, ...wrong, ...(command[0] === "dmarc" ? TEST : [])]);
      expect([command, status]).toEqual([command, 2]);
      expect(err).toContain('--recipient "nonsense": Must be an email address.');
    }
    expect((await run(["dmarc", "domains", "remove", "example.com", ...TEST])).out).toBe("Removed example.com.");
    expect(await run(["dmarc", "domains", "show", "example.com", ...TEST])).toMatchObject({
      status: 1,
      err: expect.stringContaining("`postwarden dmarc domains add example.com` enrolls it."),
    });
    expect((await auditOf()).filter(([action]) => action?.startsWith("dmarc."))).toEqual([
      ["dmarc.domains.remove", "example.com"],
      ["dmarc.domains.update", "example.com"],
      ["dmarc.domains.check", "example.com"],
      ["dmarc.domains.add", "example.com"],
    ]);
  });

  test("that are not domains are wrong usage", async () => {
    for (const command of ["show", "verify", "remove"])
      expect(await run(["dmarc", "domains", command, "no domain", ...TEST])).toMatchObject({ status: 2, out: "" });
    expect(await run(["dmarc", "domains", "add", "no domain", ...TEST])).toMatchObject({ status: 1, out: "" });
  });

  test("have sources, which can be classified, and advice", async () => {
    await run(["dmarc", "domains", "add", "example.org", ...TEST]);
    const of = (...args: string[]) => run(["dmarc", ...args, ...TEST]);
    expect((await of("sources", "example.org", "--json")).json).toEqual({ sources: [] });
    expect((await of("sources", "example.org")).out).toMatch(/^KEY +NAME +CLASS/);
    expect((await of("advice", "example.org", "--json")).json).toMatchObject({ requirements: expect.any(Array) });
    expect((await of("advice", "example.org")).out).toMatch(/^Stage: \w+\nNext: /);
    expect(await of("classify", "example.org", "authorized", "org:example.net")).toMatchObject({ status: 1, out: "" });
    expect(await of("classify", "example.org", "authorized", "nonsense")).toMatchObject({ status: 2, out: "" });
    expect(await of("classify", "example.org", "friend", "org:example.net")).toMatchObject({ status: 2, out: "" });
  });
});

describe("notifications", () => {
  test("are shown and set", async () => {
    expect((await run(["notifications", "show", "--json"])).json).toMatchObject({ webhook_url: null, recipients: [] });
    const url = "https://example.com/hook";
    const set = (...flags: string[]) => run(["notifications", "set", ...flags, "--json"]);
    expect((await set("--webhook-url", url, "--severity-min", "high", "--digest", "daily")).json).toMatchObject({
      ...{ webhook_url: url, webhook_configured: true, blacklist_severity_min: "high", blacklist_digest: "daily" },
    });
    expect((await run(["notifications", "show"])).out).toContain(url);
    expect((await set("--webhook-url", "", "--severity-min", "all", "--digest", "off")).json).toMatchObject({
      ...{ webhook_url: null, blacklist_severity_min: null, blacklist_digest: "off" },
    });
    expect(await set()).toMatchObject({ status: 2 });
    expect(await set("--webhook-url", "http://127.0.0.1/")).toMatchObject({ status: 2 });
    expect(await set("--recipient", "ops@example.com")).toMatchObject({ status: 1 });
    expect((await auditOf()).filter(([action]) => action === "notifications.set")).toHaveLength(2);
  });

  test("to an address are stopped and resumed, by kind or all of them, and the log does not name it", async () => {
    const change = (name: string, ...flags: string[]) => run(["notifications", name, ...flags, "--json"]);
    const kindsOf = async (...args: Parameters<typeof change>) =>
      ((await change(...args)).json.stopped as Array<{ kind: string }>).map(({ kind }) => kind);
    expect(await kindsOf("stop", "ops@example.com", "--kind", "dmarc_digest")).toEqual(["dmarc_digest"]);
    expect(await kindsOf("stop", "OPS@example.com")).toHaveLength(5);
    expect((await run(["notifications", "show"])).out.replace(/\s+/g, " ")).toContain("alerts to ops@example.com");
    expect(await kindsOf("resume", "ops@example.com")).toEqual([]);
    expect(await change("stop", "nobody")).toMatchObject({ status: 2 });
    expect(await change("stop", "ops@example.com", "--kind", "all")).toMatchObject({ status: 2 });
    expect(JSON.stringify(await auditOf())).not.toContain("ops@example.com");
  });
});

describe("webhooks test", () => {
  test("sends a signed event now; a refusal is status 1", async () => {
    const seen: string[] = [];
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch(request) {
        seen.push(request.headers.get("webhook-signature") ?? "");
        return new Response(null, { status: new URL(request.url).pathname === "/ok" ? 204 : 500 });
      },
    });
    const settings = { WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8" };
    const url = `http://127.0.0.1:${server.port}`;
    try {
      const sent = await run(["webhooks", "test", `${url}/ok`, "--json"], { settings });
      expect(sent).toMatchObject({ status: 0, json: { delivered: true, http_status: 204, url: `${url}/ok` } });
      expect(seen[0]).toMatch(/^v1,/);
      const refused = await run(["webhooks", "test", `${url}/no`], { settings });
      expect(refused).toMatchObject({ status: 1, err: `postwarden: ${url}/no did not accept the event.` });
      expect(refused.out).toContain("(HTTP 500)");
    } finally {
      await server.stop(true);
    }
  });

  test("needs a URL that may be called", async () => {
    expect(await run(["webhooks", "test"])).toMatchObject({ status: 2, err: expect.stringContaining("Pass a URL.") });
    expect(await run(["webhooks", "test", "http://127.0.0.1/"])).toMatchObject({ status: 2, out: "" });
    expect(await run(["webhooks", "test", "https://example.com/", "--type", "no.type"])).toMatchObject({ status: 2 });
  });
});

test("changes of targets, suppressions and secrets are in the audit log, addresses are not", async () => {
  await run(["suppress", "add", "secret-person@example.com"]);
  await run(["suppress", "add", "secret-person@example.com"]);
  await run(["suppress", "remove", "secret-person@example.com"]);
  await run(["webhooks", "rotate"]);
  await run(["webhooks", "redeliver"]);
  await run(["blocklist", "targets", "add", "8.8.8.8"]);
  await run(["blocklist", "targets", "discover", "example.org", ...TEST]);
  await run(["blocklist", "targets", "remove", "8.8.8.8"]);
  const entries = await auditOf();
  expect(entries.slice(0, 8)).toEqual([
    ["targets.remove", "8.8.8.8"],
    ["targets.add", "example.org"],
    ["targets.add", "8.8.8.8"],
    ["webhooks.redeliver.done", "live"],
    ["webhooks.redeliver", "live"],
    ["webhooks.rotate", "live"],
    ["suppress.remove", null],
    ["suppress.add", null],
  ]);
  expect((await run(["audit", "--json", "--limit", "1000"])).out).not.toContain("secret-person");
});

describe("blocklist targets discover", () => {
  test("adds what it finds, or only shows it", async () => {
    const discover = (...flags: string[]) => run(["blocklist", "targets", "discover", ...flags, ...TEST, "--json"]);
    const found = [{ target: "discovered.example", source: "domain", status: "found", id: null, problem: null }];
    expect((await discover("discovered.example", "--dry-run")).json).toMatchObject({ found });
    expect((await discover("discovered.example")).json.found).toMatchObject([{ status: "created" }]);
    expect((await discover("discovered.example")).json.found).toMatchObject([{ status: "exists" }]);
    expect(await discover("192.0.2.1")).toMatchObject({ status: 1, out: "" });
    expect(await discover()).toMatchObject({ status: 2, out: "" });
  });
});
