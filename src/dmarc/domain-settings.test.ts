import { expect, test } from "bun:test";
import { createApps } from "../testing/app.ts";
import { domainSchema, enrolmentSchema } from "./domain-schemas.ts";

const start = createApps();
const PATH = "/v1/dmarc/domains";
const MAIL = { NOTIFY_SMTP_URL: "smtp://127.0.0.1:2525", NOTIFY_FROM: "alerts@example.net" };

const startEnrolled = async () => {
  const app = start({ settings: { REPORT_HOST: "reports.example.net", ...MAIL } });
  const key = app.newKey({ mode: "live" });
  const { body } = await app.request("POST", PATH, { key, body: { domain: "example.com" } });
  const { id } = enrolmentSchema.parse(body).domain;
  const patch = (options: unknown) => app.request("PATCH", `${PATH}/${id}`, { key, body: options });
  const settings = async (options: unknown) => domainSchema.parse((await patch(options)).body).settings;
  return { patch, settings };
};

test("a webhook is set, kept by other changes, and removed by null", async () => {
  const { patch, settings } = await startEnrolled();
  expect(await settings({ webhook_url: "https://example.com/hook" })).toMatchObject({ webhook_configured: true });
  expect(await settings({ digest: "off" })).toMatchObject({ webhook_configured: true });
  expect(await settings({ webhook_url: null })).toMatchObject({ webhook_configured: false });
  for (const wrong of ["", "http://example.com/hook", "https://127.0.0.1/", "nowhere", 1]) {
    const answer = await patch({ webhook_url: wrong });
    expect(answer).toMatchObject({ status: 400, body: { issues: [{ path: "webhook_url" }] } });
  }
});

test("recipients are taken as a whole, each once, in normal form; a list with a wrong one changes nothing", async () => {
  const { patch, settings } = await startEnrolled();
  const given = [" Ops@Example.com ", "ops@example.com", "b@example.com"];
  expect(await settings({ recipients: given })).toMatchObject({ recipients: ["ops@example.com", "b@example.com"] });
  for (const [wrong, path] of [
    [["c@example.com", "nobody"], "recipients.1"],
    [null, "recipients"],
    ["c@example.com", "recipients"],
  ] as const) {
    expect(await patch({ recipients: wrong })).toMatchObject({ status: 400, body: { issues: [{ path }] } });
  }
  expect(await settings({ label: "shop" })).toMatchObject({ recipients: ["ops@example.com", "b@example.com"] });
  expect(await settings({ recipients: [] })).toMatchObject({ recipients: [] });
});

test("a digest is one of four, and nothing of a change with a wrong field is kept", async () => {
  const { patch, settings } = await startEnrolled();
  for (const digest of ["daily", "weekly", "monthly", "off"])
    expect(await settings({ digest })).toMatchObject({ digest });
  for (const digest of [null, "", "hourly", true]) {
    expect(await patch({ digest, retention_days: 7 })).toMatchObject({
      status: 400,
      body: { issues: [{ path: "digest" }] },
    });
  }
  expect(await settings({})).toMatchObject({ digest: "off", retention_days: 400 });
});

test("what does not fit is refused in plain words", async () => {
  const { patch } = await startEnrolled();
  for (const [options, message] of [
    [{ label: "" }, "Not empty: null removes it"],
    [{ label: 7 }, "Text of at most 200 characters is needed"],
    [{ retention_days: 0 }, "Must be a whole number of days from 1 to 3650"],
    [{ retention_days: 1.5 }, "Must be a whole number of days from 1 to 3650"],
    [{ retention_days: "30" }, "Must be a whole number of days from 1 to 3650"],
    [{ raw_retention_days: -1.5 }, "Must be a whole number of days from 0 to 3650"],
    [{ raw_retention_days: 9_999 }, "Must be a whole number of days from 0 to 3650"],
    [{ monitoring_enabled: "yes" }, "Must be true or false"],
    [{ sends_mail: 1 }, "Must be true, false or null"],
    [{ alerts: { new_source: null } }, "Must be true or false"],
    [{ alerts: null }, "Must be an object"],
    [{ digest: "hourly" }, "Must be one of: off, daily, weekly, monthly"],
    [{ bulk_senders: ["mailchimp"] }, "Must be the key of a source, as /sources returns it"],
    [[], "Must be an object"],
  ] as const) {
    expect([options, (await patch(options)).body.issues]).toMatchObject([options, [{ message }]]);
  }
  expect((await patch({ no_such_field: 1 })).body.issues).toEqual([
    { path: "no_such_field", message: "Unknown field" },
  ]);
});

test("an order and a filter that do not fit are refused in plain words", async () => {
  const app = start({ settings: { REPORT_HOST: "reports.example.net" } });
  const key = app.newKey({ mode: "live" });
  for (const [body, issues] of [
    [{ domain: 1 }, [{ path: "domain", message: "Must be a domain, such as example.com" }]],
    [{}, [{ path: "domain", message: "Required" }]],
    [{ domain: "a.com", label: "" }, [{ path: "label", message: "Leave the field out rather than empty" }]],
    [[], [{ path: "", message: "Must be an object" }]],
  ] as const) {
    expect((await app.request("POST", PATH, { key, body })).body.issues).toEqual([...issues]);
  }
  expect((await app.request("GET", `${PATH}?status=bad`, { key })).body.issues).toEqual([
    { path: "status", message: "Must be one of: pending, active, action_required" },
  ]);
});
