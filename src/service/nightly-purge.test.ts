import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../foundation/base/days.ts";
import { createApps, ENDLESS, type TestApp } from "../testing/app.ts";
import { BULK_PATH, postList, untilJobEnded } from "../testing/bulk-requests.ts";

const PATH = "/v1/email-verifications";
const HOUR_MS = 60 * 60 * 1000;
const NOTHING = { verifications: 0, evidence: 0, lists: 0, files: 0, listEvidence: 0 };

const start = createApps();

const countOf = (app: TestApp, table: string): number =>
  app.db.sqlite.query<{ count: number }, []>(`SELECT count(*) AS count FROM ${table}`).get()?.count ?? -1;

const CSV = "Name;E-Mail;Phone\nAnna;mailbox_exists@a.example;123\nBert;greylisted@b.example;456\n";

/** A finished single verification with evidence, and a finished list from a file. */
const fill = async (settings: Record<string, string> = {}) => {
  const app = start({ settings });
  const live = app.newKey({ mode: "live" });
  const key = app.newKey();
  const { id } = await app.verify(live, "not an address", "?timeout=1");
  const posted = await postList(app, { key, body: CSV, headers: { "content-type": "text/csv" } });
  await untilJobEnded(app, key, posted.id);
  const startMs = app.clock.nowMs();
  /** Sets the clock to a time after the start. */
  const later = (days: number) => app.clock.setWall(startMs + days * DAY_MS + 2 * HOUR_MS - app.clock.nowMs());
  const csvOf = async (list = posted.id) => {
    const headers = { authorization: `Bearer ${key.key}` };
    const request = new Request(`http://localhost${BULK_PATH}/${list}/results.csv`, { headers });
    return (await app.handle(request)).text();
  };
  return { app, live, key, id, job: posted.id, later, csvOf };
};

describe("after the retention of evidence and of list files", () => {
  test("both are gone, and the results are not", async () => {
    const { app, live, id, later, csvOf } = await fill();
    later(29);
    expect(await app.service.purge.run()).toMatchObject(NOTHING);
    later(30);
    expect(await app.service.purge.run()).toMatchObject({ ...NOTHING, evidence: 1, files: 1 });
    expect(countOf(app, "verification_evidence")).toBe(0);
    expect((await app.request("GET", `${PATH}/${id}`, { key: live })).body.status).toBe("completed");
    const csv = await csvOf();
    expect(csv).toStartWith("E-Mail;normalized_email;verdict;");
    expect(csv).toContain("\r\nmailbox_exists@a.example;mailbox_exists@a.example;deliverable;");
    for (const gone of ["Anna", "Phone", "123", "456"]) expect(csv).not.toContain(gone);
    expect(await app.service.purge.run()).toMatchObject(NOTHING);
  });

  test("the evidence of a live list is gone, too", async () => {
    const { app, job, later } = await fill();
    app.db.sqlite.run("INSERT INTO bulk_evidence SELECT number, 0, x'00' FROM bulk_jobs WHERE id = ?", [job]);
    later(30);
    expect(await app.service.purge.run()).toMatchObject({ listEvidence: 1 });
    expect(countOf(app, "bulk_evidence")).toBe(0);
  });

  test("a list without a header and with rows above it keeps its addresses only", async () => {
    const { app, key, later, csvOf } = await fill();
    const body = "1,mailbox_exists@a.example\n2,greylisted@b.example\n";
    const { id } = await postList(app, { key, body, headers: { "content-type": "text/csv" } });
    await untilJobEnded(app, key, id);
    later(30);
    await app.service.purge.run();
    const text = await csvOf(id);
    expect(text.split("\r\n").map((line) => line.split(",")[0])).toEqual([
      ...["email", "mailbox_exists@a.example", "greylisted@b.example"],
      "",
    ]);
  });
});

describe("after the retention of results", () => {
  test("verifications and lists are gone with everything that belongs to them", async () => {
    const { app, live, key, id, job, later } = await fill();
    later(400);
    expect(await app.service.purge.run()).toMatchObject({ verifications: 1, lists: 1 });
    expect((await app.request("GET", `${PATH}/${id}`, { key: live })).status).toBe(404);
    expect((await app.request("GET", `${BULK_PATH}/${job}`, { key })).status).toBe(404);
    for (const table of ["verifications", "verification_evidence", "bulk_jobs", "bulk_rows", "bulk_addresses"])
      expect([table, countOf(app, table)]).toEqual([table, 0]);
    expect(app.service.accounts.ledger.sum(app.accountId())).toEqual({ available: 99, held: 0 });
  });

  test("what is still running stays, however old it is", async () => {
    const app = start(ENDLESS);
    const key = app.newKey({ mode: "live" });
    const posted = app.verify(key, "someone@example.com", "?timeout=1");
    await app.advance(1_000);
    await posted;
    const list = await postList(app, { key, body: { emails: ["other@example.com"] } });
    app.clock.setWall(1_000 * DAY_MS);
    expect(await app.service.purge.run()).toMatchObject(NOTHING);
    expect(app.countVerifications()).toBe(1);
    expect((await app.request("GET", `${BULK_PATH}/${list.id}`, { key })).status).toBe(200);
    expect(app.credits()).toEqual({ available: 98, held: 2 });
  });

  test("a repeated request with an Idempotency-Key of the last day still gets its verification", async () => {
    const app = start({ settings: { VERIFICATION_RETENTION_DAYS: "1" } });
    const key = app.newKey({ mode: "live" });
    const order = () => app.verify(key, "not an address", "", { "idempotency-key": "k" });
    const { id } = await order();
    app.clock.setWall(DAY_MS - 1);
    await app.service.purge.run();
    expect((await order()).id).toBe(id);
    app.clock.setWall(2 * HOUR_MS);
    expect(await app.service.purge.run()).toMatchObject({ verifications: 1 });
  });

  test("rows from a time when the clock was ahead do not keep older ones", async () => {
    const app = start();
    const key = app.newKey({ mode: "live" });
    app.service.accounts.accounts.grantCredits("main", 1_000, "test");
    app.clock.setWall(5_000 * DAY_MS);
    for (let n = 0; n < 250; n++) {
      await app.advance(1_000);
      await app.verify(key, `not an address ${n}`);
    }
    app.clock.setWall(-5_500 * DAY_MS);
    await app.verify(key, "not an address either");
    app.clock.setWall(500 * DAY_MS);
    expect(await app.service.purge.run()).toMatchObject({ verifications: 1 });
    expect(app.countVerifications()).toBe(250);
  });
});

test("with `off` and 0 nothing ever expires", async () => {
  const { app, later, csvOf } = await fill({
    ...{ VERIFICATION_RETENTION_DAYS: "off", EVIDENCE_RETENTION_DAYS: "0" },
    ...{ LIST_RETENTION_DAYS: "0", LIST_FILE_RETENTION_DAYS: "off" },
  });
  later(30_000);
  expect(await app.service.purge.run()).toMatchObject(NOTHING);
  expect(await csvOf()).toContain("Anna");
  expect(countOf(app, "verification_evidence")).toBe(1);
});

test("a stop ends a run after its present step, and the next one resumes", async () => {
  const { app, later } = await fill();
  later(400);
  await Promise.all([app.service.purge.stop(), app.service.purge.run()]);
  expect(app.countVerifications()).toBe(1);
});

describe("POSTWARDEN_REPORT_MAIL_RETENTION_DAYS", () => {
  test.each([
    ["14", 14],
    ["off", 3_650],
  ])("%s is the `raw_retention_days` of new domains: %i", async (days, expected) => {
    const app = start({ settings: { REPORT_MAIL_RETENTION_DAYS: days, REPORT_HOST: "reports.example.net" } });
    const posted = await app.request("POST", "/v1/dmarc/domains", {
      key: app.newKey(),
      body: { domain: "example.com" },
    });
    expect(posted.body.domain).toMatchObject({ settings: { raw_retention_days: expected } });
  });

  test.each([
    ["14", 13, 1],
    ["14", 15, 0],
    ["off", 30_000, 1],
  ])("%s keeps a file of no domain: after %i days there is %i", async (setting, days, left) => {
    const app = start({ settings: { REPORT_MAIL_RETENTION_DAYS: setting } });
    app.db.sqlite.run(
      "INSERT INTO dmarc_ingestions (id, account_id, mode, via, received_at_ms, bytes, status, findings) VALUES ('i', 'a', 'live', 'http', ?, 1, 'done', '[]')",
      [app.clock.nowMs()],
    );
    app.db.sqlite.run("INSERT INTO dmarc_raw VALUES ('i', x'00')");
    app.clock.setWall(days * DAY_MS);
    await app.service.dmarc.jobs.expireReports();
    expect(countOf(app, "dmarc_raw")).toBe(left);
  });
});
