import { describe, expect, test } from "bun:test";
import { DAY_MS, dayOfTime } from "../../foundation/base/days.ts";
import { Browser } from "../../testing/dashboard-browser.ts";
import { createDmarcPageTests } from "../../testing/dmarc-page-tests.ts";
import { monthNamed, monthsUntil } from "./month-report.tsx";

const newTest = createDmarcPageTests();

/** A domain with mail of its own and of forgers in December 2025; it is January 2026. */
const filled = async () => {
  const made = await newTest();
  const id = await made.enrol();
  for (const daysAgo of [3, 4])
    await made.report(daysAgo, {
      rows: [
        { ip: "192.0.2.1", count: 90 },
        {
          ip: "198.18.7.7",
          count: 10,
          disposition: "reject",
          dkim: "fail",
          spf: "fail",
          dkimResults: [],
          spfResults: [],
        },
      ],
    });
  made.nameAddresses({ "192.0.2.1": "mail.example.com", "198.18.7.7": null });
  await made.app.service.dmarc.jobs.sumUpDomains();
  return { ...made, id };
};

const shared = async () => {
  const made = await filled();
  const created = await made.visitor.submit(`/dmarc/${made.id}/shares`, { days: "7", note: "the board" });
  const token = /\/r\/([\w-]+)/.exec(created.text)?.[1] ?? "";
  const anyone = new Browser(made.app);
  return { ...made, token, anyone };
};

describe("the months", () => {
  const nowMs = Date.UTC(2026, 0, 31, 12);

  test("are thirteen up to now", () => {
    const names = monthsUntil(nowMs).map(({ name }) => name);
    expect([names.length, names[0], names[1], names[12]]).toEqual([13, "2026-01", "2025-12", "2025-01"]);
    const { range } = monthNamed("2025-02", nowMs, () => []);
    expect(range.toDay - range.fromDay).toBe(27);
  });

  test.each([
    ["the last complete one", ["2025-11-30", "2025-12-31", "2026-01-30"], "2025-12"],
    ["the newest complete one with mail", ["2025-03-05", "2025-06-01", "2026-01-02"], "2025-06"],
    ["the present one, when no other has mail", ["2026-01-31"], "2026-01"],
    ["the last complete one, when none has mail", [], "2025-12"],
  ])("by default are %s", (_, days, expected) => {
    const mailDays = () => days.map((day) => dayOfTime(Date.parse(day)));
    for (const name of [undefined, "2019-01", "x"]) expect(monthNamed(name, nowMs, mailDays).name).toBe(expected);
  });
});

describe("the monthly report", () => {
  test("says what passed, what was stopped, who sends and what to do", async () => {
    const { visitor, id } = await filled();
    const { text } = await visitor.get(`/dmarc/${id}/month`);
    expect(text).toContain("Email security report, December 2025");
    expect(text).toContain("Receivers reported 200 messages; 90 % passed DMARC.");
    expect(text).toMatch(/Stopped by receivers 20 /);
    expect(text).toMatch(/Who sends .*example\.com \(own servers\) Authorized 180 100 %/);
    expect(text).toContain("Next step");
    expect((await visitor.get(`/dmarc/${id}/month?month=2025-11`)).text).toContain("No receiver reported mail");
  });

  test("says once that the record changed, and begins every change with a capital letter", async () => {
    const { visitor, id, zone, app, key } = await filled();
    zone["_dmarc.example.com"] = JSON.parse(
      JSON.stringify(zone["_dmarc.example.com"]).replace("p=none", "p=quarantine; pct=50"),
    );
    await app.request("POST", `/v1/dmarc/domains/${id}/verify`, { key });
    const { accountId } = visitor;
    const domain = app.service.dmarc.domains.find({ accountId, mode: "live" }, id);
    app.db.sqlite.run(
      `INSERT INTO dmarc_alerts (id, domain, rule, subject, at_ms, body) SELECT '01a', ?, 'new_source', 'x', at_ms,
        '{"summary":"new source Brevo: 9 messages","data":{}}' FROM dmarc_alerts WHERE rule = 'record_changed'`,
      [domain.number],
    );
    const { text } = await visitor.get(`/dmarc/${id}/month?month=2026-01`);
    expect(text).toContain("Record changed: p=quarantine, pct=50");
    expect(text).toContain("New source Brevo: 9 messages");
    expect(text).not.toContain("record was changed");
  });
});

test("the next step has days as people write them", async () => {
  const { report, enrol, visitor, app, nameAddresses } = await newTest();
  const id = await enrol();
  const failing = { dkim: "fail", spf: "fail", dkimResults: [], spfResults: ["example.com softfail"] } as const;
  for (const daysAgo of [3, 4]) await report(daysAgo, { rows: [{ ip: "192.0.2.1", count: 90, ...failing }] });
  nameAddresses({ "192.0.2.1": "mail.example.com" });
  await app.service.dmarc.jobs.sumUpDomains();
  const { text } = await visitor.get(`/dmarc/${id}/month`);
  expect(text).toMatch(/Next step Fix example\.com \(own servers\) .* the last on 2\d Dec/);
});

describe("a read-only link", () => {
  test("shows the report to anybody, without cookies, scripts or other pages, and stays out of indexes", async () => {
    const { app, token, id } = await shared();
    const response = await app.handle(new Request(`http://localhost/r/${token}`));
    const html = await response.text();
    expect(response.status).toBe(200);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(response.headers.get("x-robots-tag")).toContain("noindex");
    expect(response.headers.get("referrer-policy")).toBe("no-referrer");
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(html).toContain("Receivers reported 200 messages");
    expect(html).not.toContain("<script");
    expect(html).not.toContain(id);
  });

  test("is listed with its last use, is stored as a hash, and every act is in the audit log", async () => {
    const { app, visitor, anyone, token, id } = await shared();
    await anyone.get(`/r/${token}`);
    const { text, html } = await visitor.get(`/dmarc/${id}/month`);
    expect(text).toContain("the board");
    expect(text).not.toContain("never");
    expect(html).not.toContain(token);
    expect(JSON.stringify(app.db.sqlite.query("SELECT * FROM dmarc_shares").all())).not.toContain(token);
    const share = app.db.sqlite.query<{ id: string }, []>("SELECT id FROM dmarc_shares").get()?.id ?? "";
    await visitor.submit(`/dmarc/${id}/shares/${share}/revoke`, {});
    expect((await anyone.get(`/r/${token}`)).status).toBe(404);
    const log = app.db.sqlite.query<{ action: string }, []>("SELECT action FROM audit_log ORDER BY id").all();
    expect(log.map(({ action }) => action)).toEqual(
      expect.arrayContaining(["dmarc.shares.add", "dmarc.shares.revoke"]),
    );
  });

  test.each<[string, (made: Awaited<ReturnType<typeof shared>>) => Promise<unknown>]>([
    ["its time is over", ({ app }) => app.advance(7 * DAY_MS)],
    ["the domain is deleted", ({ visitor, id }) => visitor.submit(`/dmarc/${id}/delete`, {})],
    ["the account is disabled", async ({ app }) => app.db.sqlite.run("UPDATE accounts SET disabled_at_ms = 1")],
  ])("shows nothing when %s", async (_, end) => {
    const made = await shared();
    expect((await made.anyone.get(`/r/${made.token}`)).status).toBe(200);
    await end(made);
    expect((await made.anyone.get(`/r/${made.token}`)).status).toBe(404);
  });

  test.each(["x", "a".repeat(64), "..%2f"])("%s is none", async (token) => {
    const { anyone } = await shared();
    expect((await anyone.get(`/r/${token}`)).status).toBe(404);
  });

  test.each(["0", "367", "1.5", "soon"])("cannot end after %s days", async (days) => {
    const { app, visitor, id } = await filled();
    expect((await visitor.post(`/dmarc/${id}/shares`, { days, note: "" })).status).toBe(400);
    expect(app.db.sqlite.query("SELECT * FROM dmarc_shares").all()).toEqual([]);
  });

  test("is one of twenty at most", async () => {
    const { visitor, id } = await filled();
    for (let n = 0; n < 20; n++) await visitor.post(`/dmarc/${id}/shares`, { days: "1", note: "" });
    expect((await visitor.post(`/dmarc/${id}/shares`, { days: "1", note: "" })).text).toContain("at most 20 links");
  });
});
