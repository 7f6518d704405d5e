import { describe, expect, test } from "bun:test";
import { createApps } from "../../testing/app.ts";
import { signIn } from "../../testing/dashboard.ts";
import { changesNothingOfOthers } from "../../testing/other-account.ts";
// The checks declare their titles.
import "../../doctor/open.ts";

const start = createApps();

describe("the first steps", () => {
  test("are done one by one, in live and in test mode", async () => {
    const app = start();
    const visitor = await signIn(app);
    expect((await visitor.get("/welcome")).text).toContain("0 of 10 steps done");
    await visitor.post("/test/verify", { email: "deliverable@example.com" });
    await visitor.post("/test/blocklists/new", { targets: "clean.example" });
    const { text } = await visitor.get("/test/welcome");
    expect(text).toContain("2 of 5 steps done");
    expect(text).not.toContain("Check this machine");
    await visitor.post("/webhooks/default", { webhook_url: "https://8.8.8.8/hook" });
    await signIn(app, { email: "m@example.com", role: "member", isOperator: false });
    await app.service.doctor.run();
    expect((await visitor.get("/welcome")).text).toContain("2 of 10 steps done");
  });

  test("of others than operators and owners leave out what these do", async () => {
    const app = start();
    const member = await signIn(app, { email: "m@example.com", role: "member", isOperator: false });
    const { text } = await member.get("/welcome");
    expect(text).toContain("0 of 5 steps done");
    for (const part of ["Check this machine", "Invite", "Back up", "POSTWARDEN_"]) expect(text).not.toContain(part);
    expect(text).toContain("Ask the operator of this service to set up report mail.");
    const owner = await signIn(app, { email: "o@example.com", isOperator: false });
    expect((await owner.get("/welcome")).text).toContain("of 7 steps done");
  });

  test("can be hidden by each user, and shown again", async () => {
    const app = start();
    const visitor = await signIn(app);
    const actor = { accountId: visitor.accountId };
    const { value } = await changesNothingOfOthers(app.db.sqlite, actor, () =>
      visitor.submit("/welcome/hide", { steps: "backup" }),
    );
    expect(value.text).toContain("0 of 9 steps done");
    expect(value.text).not.toContain("Back up the database");
    const colleague = await signIn(app, { email: "c@example.com" });
    expect((await colleague.get("/welcome")).text).toContain("Back up the database");
    expect((await visitor.post("/welcome/hide", { steps: "nothing" })).status).toBe(400);
    expect((await visitor.submit("/welcome/show")).text).toContain("Back up the database");
  });

  test("stand on the home page until they are done or hidden", async () => {
    const app = start();
    const visitor = await signIn(app);
    await app.service.blocklist.targets.addMany({ accountId: visitor.accountId, mode: "live" }, [
      {
        target: "8.8.8.8",
        label: null,
        alertSeverityMin: null,
        webhookUrl: null,
        recipients: [],
        monitoringEnabled: true,
      },
    ]);
    const { text, html } = await visitor.get("/");
    expect(text).toContain("First steps Next: Check this machine");
    expect(html.includes('aria-label="1 of 10 done"')).toBe(true);
    const left = [...html.matchAll(/name="steps" value="(\w+)"/g)].map(([, step = ""]) => step);
    expect((await visitor.submit("/welcome/hide", { steps: left })).text).not.toContain("Next: ");
  });
});

describe("the machine", () => {
  test("is checked when somebody presses the button", async () => {
    const app = start();
    const visitor = await signIn(app);
    await visitor.submit("/welcome/check");
    await app.service.doctor.run();
    expect((await visitor.get("/welcome")).text).toContain("1 failed, 1 warning, 1 passed. First: Outgoing port 25.");
    expect((await visitor.submit("/welcome/check")).text).toContain("less than 30 seconds ago");
  });
});

describe("report mail", () => {
  const HOST = "reports.example.com";

  test("is set up by two records and the settings, computed from the name of this machine", async () => {
    const visitor = await signIn(start({ settings: { HELO_NAME: "mail.example.com" } }));
    const { text } = await visitor.get("/welcome/report-mail");
    for (const part of [
      `*._report._dmarc.${HOST}`,
      "10 mail.example.com.",
      `POSTWARDEN_REPORT_HOST=${HOST}`,
      "POSTWARDEN_REPORT_LISTEN=0.0.0.0:25",
    ])
      expect(text).toContain(part);
    expect(text).not.toContain("POSTWARDEN_HELO_NAME");
    const other = await visitor.post("/welcome/report-mail", { host: "dmarc.acme.com", act: "show" });
    expect(other.text).toContain("POSTWARDEN_REPORT_HOST=dmarc.acme.com");
  });

  test("names the setting of what is not known", async () => {
    const visitor = await signIn(start({ settings: { HELO_NAME: "localhost" } }));
    const { text } = await visitor.get("/welcome/report-mail");
    expect(text).toContain("POSTWARDEN_HELO_NAME=mail.example.com");
  });

  test("says whether the records are published now", async () => {
    const zone = { [HOST]: { MX: [[10, "mail.example.com"]] }, "mail.example.com": { A: ["8.8.8.8"] } } as const;
    const visitor = await signIn(start({ zone, settings: { HELO_NAME: "mail.example.com" } }));
    const { text } = await visitor.post("/welcome/report-mail", { host: HOST, act: "check" });
    expect(text).toContain(`published Mail for ${HOST} goes to mail.example.com [8.8.8.8].`);
    expect(text).toContain(`._report._dmarc.${HOST} does not exist. Publish`);
    const elsewhere = await visitor.post("/welcome/report-mail", { host: "other.example.com", act: "check" });
    expect(elsewhere.text).toContain("missing other.example.com has no MX record");
    const refused = await visitor.post("/welcome/report-mail", { host: "not a name", act: "check" });
    expect([refused.status, refused.text.includes("Must be a host name")]).toEqual([400, true]);
  });

  test("concerns operators; others are sent to them", async () => {
    const owner = await signIn(start(), { isOperator: false });
    expect((await owner.get("/welcome/report-mail")).status).toBe(403);
  });
});
