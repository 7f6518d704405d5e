import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { createDmarcPageTests } from "../../../testing/dmarc-page-tests.ts";
import { watchOthers } from "../../../testing/other-account.ts";
import type { IssuedKey } from "../../../accounts/keys.ts";

const newTest = createDmarcPageTests();
const HOST = "mta-sts.example.com";
const FILE = "/.well-known/mta-sts.txt";

const started = async () => {
  const made = await newTest();
  const { app, zone, key } = made;
  const id = await made.enrol();
  const setMx = (...hosts: string[]) => {
    zone["example.com"] = { MX: hosts.map((host) => [10, host]) };
  };
  setMx("mx1.example.com");
  const path = `/v1/dmarc/domains/${id}/mta-sts`;
  const set = (body: unknown, by: IssuedKey = key) => app.request("PATCH", path, { key: by, body });
  const get = async () => (await app.request("GET", path, { key })).body;
  const fetched = (host = HOST, target = FILE, method = "GET") =>
    app.handle(new Request(`http://${host}${target}`, { method, headers: { host } }));
  const check = async (minutes: number) => {
    await app.clock.advance(minutes * 60_000);
    await app.service.dmarc.jobs.checkPolicies();
  };
  return { ...made, id, setMx, path, set, get, fetched, check };
};

describe("a policy", () => {
  test("is served at its host once it is on, with the MX hosts of the DNS", async () => {
    const { set, get, fetched } = await started();
    expect((await fetched()).status).toBe(404);
    expect(await get()).toMatchObject({ mode: "off", policy: null, dns_records: [] });
    const { status, body } = await set({ mode: "testing" });
    expect(status).toBe(200);
    const text = "version: STSv1\r\nmode: testing\r\nmx: mx1.example.com\r\nmax_age: 604800\r\n";
    expect(body).toMatchObject({ mode: "testing", mx: ["mx1.example.com"], policy: text, record_state: "missing" });
    const response = await fetched("MTA-STS.example.com.:443");
    expect([response.status, response.headers.get("content-type"), await response.text()]).toEqual([
      200,
      "text/plain",
      text,
    ]);
  });

  test.each([
    ["another host", "mta-sts.example.org", FILE, "GET", 404],
    ["the domain itself", "example.com", FILE, "GET", 404],
    ["another path at its host", HOST, "/", "GET", 404],
    ["the API at its host", HOST, "/v1/account", "GET", 404],
    ["HEAD", HOST, FILE, "HEAD", 200],
    ["POST", HOST, FILE, "POST", 405],
  ])("%s", async (_, host, target, method, status) => {
    const { set, fetched } = await started();
    await set({ mode: "testing" });
    expect((await fetched(host, target, method)).status).toBe(status);
  });

  test("costs no query for each request, also of unknown hosts", async () => {
    const { app, set, fetched } = await started();
    await set({ mode: "testing" });
    await fetched();
    app.db.sqlite.run("DELETE FROM dmarc_mta_sts");
    for (let n = 0; n < 50; n++) expect((await fetched(`mta-sts.x${n}.example`)).status).toBe(404);
    expect((await fetched()).status).toBe(200);
    await app.clock.advance(10_000);
    expect((await fetched()).status).toBe(404);
  });

  test("ends with the domain, and while the account is disabled", async () => {
    const { app, key, set, id, fetched } = await started();
    await set({ mode: "testing" });
    app.db.sqlite.run("UPDATE accounts SET disabled_at_ms = 1");
    await app.clock.advance(10_000);
    expect((await fetched()).status).toBe(404);
    app.db.sqlite.run("UPDATE accounts SET disabled_at_ms = NULL");
    await app.clock.advance(10_000);
    expect((await fetched()).status).toBe(200);
    await app.request("DELETE", `/v1/dmarc/domains/${id}`, { key });
    await app.clock.advance(10_000);
    expect((await fetched()).status).toBe(404);
  });

  test("follows the MX records, with an alert that names the new record", async () => {
    const { app, key, id, set, get, setMx, check, fetched } = await started();
    const { policy_id: before } = (await set({ mode: "testing" })).body;
    setMx("mx1.example.com", "mx2.example.com");
    await check(5);
    expect((await get()).policy_id).toBe(before);
    await check(5);
    const { mx, policy_id: after } = await get();
    expect([mx, after === before]).toEqual([["mx1.example.com", "mx2.example.com"], false]);
    expect(await (await fetched()).text()).toContain("mx: mx2.example.com\r\n");
    const { alerts } = (await app.request("GET", `/v1/dmarc/domains/${id}/alerts`, { key })).body;
    expect(Array.isArray(alerts) && alerts.filter(({ rule }) => rule !== "status_changed")).toMatchObject([
      {
        rule: "mta_sts_changed",
        data: { added: ["mx2.example.com"], record: { host: "_mta-sts.example.com", value: `v=STSv1; id=${after};` } },
      },
    ]);
  });

  test("stays as it is while the DNS fails, and says so", async () => {
    const { zone, set, get, check } = await started();
    const { policy } = (await set({ mode: "testing" })).body;
    zone["example.com"] = { MX: "servfail" };
    await check(5);
    await check(60 * 24 * 30);
    expect(await get()).toMatchObject({ policy, problem: "dns_failure" });
  });

  test("knows whether its record is published", async () => {
    const { zone, set, get, check } = await started();
    const { policy_id: id } = (await set({ mode: "testing" })).body;
    for (const [texts, state] of [
      [["v=STSv1; id=1;"], "differs"],
      [[`v=STSv1; id=${id};`], "current"],
    ] as const) {
      zone["_mta-sts.example.com"] = { TXT: texts };
      await check(60);
      expect((await get()).record_state).toBe(state);
    }
    zone["_mta-sts.example.com"] = { TXT: "timeout" };
    await check(60);
    expect((await get()).record_state).toBe("current");
  });
});

describe("the mode", () => {
  const tlsReport = (failed: number, reportId: string, daysAgo: number, nowMs: number) => {
    const begin = new Date(nowMs - daysAgo * DAY_MS).toISOString();
    return {
      "organization-name": "Sender",
      "date-range": { "start-datetime": begin, "end-datetime": begin },
      "contact-info": "tls@sender.example",
      "report-id": reportId,
      policies: [
        {
          policy: { "policy-type": "sts", "policy-domain": "example.com" },
          summary: { "total-successful-session-count": 40, "total-failure-session-count": failed },
        },
      ],
    };
  };

  test("enforce without a policy that is tested says what to begin with", async () => {
    const { set } = await started();
    const refusedFor = async () => String((await set({ mode: "enforce" })).body.message);
    const begin = 'Begin with "testing" and enforce after 14 days of it, or set "early".';
    expect(await refusedFor()).toBe(`No policy is served for example.com. ${begin}`);
    await set({ mode: "testing" });
    await set({ mode: "none" });
    expect(await refusedFor()).toBe(`The policy of example.com is withdrawn. ${begin}`);
  });

  test("enforce is refused with the count before two clean weeks, and possible after them", async () => {
    const { app, key, set, get } = await started();
    await set({ mode: "testing" });
    const refused = await set({ mode: "enforce" });
    expect(refused.status).toBe(409);
    expect(String(refused.body.message)).toStartWith("Tested for 0 of 14 days; 0 TLS reports about the last 14 days");
    await app.clock.advance(14 * DAY_MS);
    expect((await set({ mode: "enforce" })).status).toBe(409);
    const upload = (failed: number, reportId: string) =>
      app.request("POST", "/v1/dmarc/reports", { key, body: tlsReport(failed, reportId, 2, app.clock.nowMs()) });
    await upload(0, "1");
    expect((await get()).tls_reports).toEqual({
      ...{ tested_days: 14, reports: 1, successful_sessions: 40, failed_sessions: 0, enforceable: true },
    });
    await upload(1, "2");
    expect((await set({ mode: "enforce" })).status).toBe(409);
    app.db.sqlite.run("DELETE FROM dmarc_tls_reports WHERE failed_sessions > 0");
    expect((await set({ mode: "enforce" })).body).toMatchObject({ mode: "enforce", max_age_s: 1_209_600 });
  });

  test("off is refused while senders may hold the enforced policy", async () => {
    const { app, set, fetched } = await started();
    await set({ mode: "enforce", early: true });
    expect((await set({ mode: "off" })).status).toBe(409);
    const { serve_until: until, policy } = (await set({ mode: "none" })).body;
    expect([until, policy]).toEqual(["2026-01-15T00:00:00.000Z", "version: STSv1\r\nmode: none\r\nmax_age: 86400\r\n"]);
    await app.clock.advance(14 * DAY_MS - 1);
    expect((await set({ mode: "off" })).body.message).toContain("2026-01-15T00:00:00.000Z");
    await app.clock.advance(1);
    expect((await set({ mode: "off" })).body).toMatchObject({ mode: "off" });
    expect((await fetched()).status).toBe(404);
  });

  test.each([
    ["no response", { MX: "timeout" } as const, "The DNS did not say"],
    ["no MX record", {}, "has no MX record"],
    ["an address as MX", { MX: [[10, "192.0.2.1"]] } as const, "A policy cannot name"],
  ])("cannot be set with %s", async (_, records, message) => {
    const { zone, set } = await started();
    zone["example.com"] = records;
    const refused = await set({ mode: "testing" });
    expect([refused.status, String(refused.body.message).includes(message)]).toEqual([409, true]);
  });

  test.each([[{}], [{ mode: "on" }], [{ mode: "testing", early: "yes" }], [{ mode: "testing", mx: [] }]])(
    "is not read from %j",
    async (body) => {
      const { set } = await started();
      expect((await set(body)).status).toBe(400);
    },
  );
});

describe("two accounts with one domain", () => {
  test("who has not shown that the domain is its own cannot serve its policy, nor see the other's", async () => {
    const { app, set, path, get, fetched } = await started();
    await set({ mode: "testing" });
    const other = app.newKey({ account: "other", mode: "live" });
    for (const method of ["GET", "PATCH"])
      expect(
        (await app.request(method, path, { key: other, body: method === "GET" ? undefined : { mode: "off" } })).status,
      ).toBe(404);
    const { body } = await app.request("POST", "/v1/dmarc/domains", { key: other, body: { domain: "example.com" } });
    const { id } = body.domain as { id: string };
    const refused = await app.request("PATCH", `/v1/dmarc/domains/${id}/mta-sts`, {
      key: other,
      body: { mode: "enforce", early: true },
    });
    expect([refused.status, String(refused.body.message)]).toEqual([
      409,
      expect.stringContaining("Publish the DMARC record"),
    ]);
    expect(await (await fetched()).text()).toContain("mode: testing");
    // An account that controls the domain no more gives way to the one that does.
    app.db.sqlite.run("UPDATE dmarc_domains SET status = 'active' WHERE id = ?", [id]);
    await app.request("PATCH", `/v1/dmarc/domains/${id}/mta-sts`, {
      key: other,
      body: { mode: "enforce", early: true },
    });
    expect(await (await fetched()).text()).toContain("mode: testing");
    app.db.sqlite.run("UPDATE dmarc_domains SET status = 'action_required' WHERE id <> ?", [id]);
    await app.clock.advance(10_000);
    expect(await (await fetched()).text()).toContain("mode: enforce");
    expect(await get()).toMatchObject({ mode: "testing" });
  });

  test("a change concerns one of them", async () => {
    const { app, set, key } = await started();
    const { value } = await watchOthers(app.db.sqlite, { accountId: key.accountId, mode: "live" }, () =>
      set({ mode: "testing" }),
    );
    expect(value.status).toBe(200);
  });

  test("domains of test keys have a policy that is not served", async () => {
    const { app, fetched } = await started();
    const key = app.newKey({ mode: "test" });
    const { body } = await app.request("POST", "/v1/dmarc/domains", { key, body: { domain: "shop.example" } });
    const { id } = body.domain as { id: string };
    await app.request("POST", `/v1/dmarc/domains/${id}/verify`, { key });
    const response = await app.request("PATCH", `/v1/dmarc/domains/${id}/mta-sts`, { key, body: { mode: "testing" } });
    expect(response.body).toMatchObject({ mode: "testing", mx: ["mail.shop.example"] });
    expect((await fetched("mta-sts.shop.example")).status).toBe(404);
  });
});
