import { ALERT_RULES } from "./alerts/rules/alert-rules.ts";
import { describe, expect, test } from "bun:test";
import { newId } from "../foundation/base/secrets.ts";
import { createApps, type TestAppOptions } from "../testing/app.ts";
import {
  dnsSchema,
  domainSchema,
  enrolmentSchema,
  historySchema,
  verifiedSchema,
  domainsSchema,
} from "./domain-schemas.ts";

const start = createApps();
const PATH = "/v1/dmarc/domains";
const HOST = "reports.example.net";

const startWithKey = (options: TestAppOptions = {}, mode: "live" | "test" = "test") => {
  const app = start({ ...options, settings: { REPORT_HOST: HOST, ...options.settings } });
  const key = app.newKey({ mode });
  const call = (method: string, path: string, body?: unknown) =>
    app.request(method, path, { key, ...(body === undefined ? {} : { body }) });
  const enrol = async (domain: string) => {
    const answer = await call("POST", PATH, { domain });
    return { answer, ...enrolmentSchema.parse(answer.body) };
  };
  return { app, key, call, enrol };
};

const idsOf = (body: Readonly<Record<string, unknown>>) => domainsSchema.parse(body).domains.map(({ id }) => id);

describe("enrolment", () => {
  test("answers 201 with the domain and the record to publish, then 200 with the same", async () => {
    const { call, enrol } = startWithKey();
    const { answer, domain, dns_records } = await enrol(" Merge.Example. ");
    expect(answer.status).toBe(201);
    expect(answer.headers.get("location")).toBe(`${PATH}/${domain.id}`);
    expect(Object.keys(answer.body)).toEqual(["created", "domain", "dns_records"]);
    const current = "v=DMARC1; p=reject; rua=mailto:dmarc@merge.example";
    const value = `${current},mailto:${domain.reporting_address}`;
    expect(dns_records).toEqual([
      {
        host: "_dmarc.merge.example",
        type: "TXT",
        action: "update",
        value,
        current,
        strings: [value],
        reason: null,
        message: expect.any(String),
        warnings: [],
      },
    ]);
    const { last_check, reporting_address, policy, ...rest } = domain;
    expect(last_check?.checks.map(({ ok }) => ok)).toEqual([true, false, true]);
    expect(reporting_address).toMatch(/^[a-z2-7]{20}@reports\.example\.net$/);
    expect(policy).toMatchObject({ p: "reject", own: true, inherited_from: null });
    expect(rest).toEqual({
      id: domain.id,
      domain: "merge.example",
      status: "pending",
      label: null,
      tags: [],
      monitoring_enabled: true,
      reporting: "waiting",
      last_report_at: null,
      settings: {
        webhook_configured: false,
        recipients: [],
        alerts: Object.fromEntries(ALERT_RULES.map(({ name, isOff = false }) => [name, !isOff])),
        alert_thresholds: {
          new_source_messages: 10,
          new_source_percent: 1,
          failure_spike_messages: 20,
          failure_spike_percent: 15,
          spoofing_messages: 100,
          volume_spike_messages: 500,
          volume_spike_factor: 5,
          volume_spike_addresses: 20,
        },
        source_rules: [],
        bulk_senders: [],
        digest: "off",
        retention_days: 400,
        raw_retention_days: 90,
        sends_mail: null,
        require_authentic_reports: false,
        store_failure_reports: false,
        failure_reports_redact: true,
      },
      created_at: "2026-01-01T00:00:00.000Z",
      updated_at: "2026-01-01T00:00:00.000Z",
    });
    const again = await call("POST", PATH, { domain: "merge.example" });
    expect(again).toMatchObject({ status: 200, body: { ...answer.body, created: false } });
    expect((await call("GET", `${PATH}/${domain.id}`)).body).toEqual(answer.body.domain as Record<string, unknown>);
  });

  test.each([
    [{}, "domain"],
    [{ domain: "" }, "domain"],
    [{ domain: 1 }, "domain"],
    [{ domain: "com" }, "domain"],
    [{ domain: "a@b.example" }, "domain"],
    [{ domain: "192.0.2.1" }, "domain"],
    [{ domain: `${"x".repeat(400)}.com` }, "domain"],
    [{ domain: "a.example", token: "mine" }, "token"],
    [{ domain: "a.example", label: "" }, "label"],
    [{ domain: "a.example", webhook_url: "http://127.0.0.1/" }, "webhook_url"],
    [{ domain: "a.example", recipients: ["nobody"] }, "recipients.0"],
    [{ domain: "a.example", recipients: ["a@example.com"] }, "recipients"],
  ])("is not made of %j", async (body, path) => {
    const { app, call } = startWithKey();
    const answer = await call("POST", PATH, body);
    expect(answer).toMatchObject({ status: 400, body: { error: "Invalid request body", issues: [{ path }] } });
    expect(app.db.sqlite.query("SELECT * FROM dmarc_domains").all()).toEqual([]);
  });

  test("without a report host is a conflict that names the setting", async () => {
    const app = start();
    const answer = await app.request("POST", PATH, {
      key: app.newKey({ mode: "live" }),
      body: { domain: "example.com" },
    });
    expect(answer).toMatchObject({ status: 409, body: { error: "conflict" } });
    expect(answer.body.message).toContain("POSTWARDEN_REPORT_HOST");
  });
});

describe("verify", () => {
  test("of a live domain reads the DNS again and moves the status", async () => {
    const zone: Record<string, { TXT: string[] }> = { [`example.com._report._dmarc.${HOST}`]: { TXT: ["v=DMARC1;"] } };
    const { call, enrol } = startWithKey({ zone }, "live");
    const { domain, dns_records } = await enrol("example.com");
    zone["_dmarc.example.com"] = { TXT: [dns_records[0]?.value ?? ""] };
    const answer = await call("POST", `${PATH}/${domain.id}/verify`);
    expect(answer.status).toBe(200);
    const verified = verifiedSchema.parse(answer.body);
    expect(verified).toEqual(answer.body as typeof verified);
    expect(verified).toMatchObject({ previous_status: "pending", domain: { status: "active", policy: { p: "none" } } });
    expect(verified.checks.map(({ code, ok }) => [code, ok])).toEqual([
      ["record", true],
      ["reporting_address", true],
      ["authorisation", true],
    ]);
    expect(verified.dns_records).toMatchObject([{ action: "none", value: dns_records[0]?.value }]);
    const { history } = historySchema.parse((await call("GET", `${PATH}/${domain.id}/history`)).body);
    expect(history.map(({ trigger, changes }) => [trigger, changes])).toEqual([
      ["manual", ["record_added", "reporting_address_added", "status"]],
      ["enrolled", []],
    ]);
  });

  test("of a live domain whose DNS is silent moves nothing", async () => {
    const { call, enrol } = startWithKey({ zone: { "_dmarc.example.com": "servfail" } }, "live");
    const { answer, domain, dns_records } = await enrol("example.com");
    expect(answer.status).toBe(201);
    expect(dns_records).toMatchObject([{ action: "conflict", reason: "dns_failure", value: "" }]);
    const verified = verifiedSchema.parse((await call("POST", `${PATH}/${domain.id}/verify`)).body);
    expect(verified.checks[0]?.ok).toBeNull();
    expect(verified.dns_records).toMatchObject([{ reason: "dns_failure" }]);
  });

  test.each([
    ["merge.example", "active"],
    ["other.example", "active"],
    ["missing.example", "action_required"],
    ["conflict.example", "action_required"],
  ])("of %s with a test key makes it %s, without any DNS", async (name, status) => {
    const { app, call, enrol } = startWithKey();
    const { domain } = await enrol(name);
    const first = await call("POST", `${PATH}/${domain.id}/verify`);
    expect(first.body).toMatchObject({ previous_status: "pending", domain: { status } });
    const shown = dnsSchema.parse((await call("GET", `${PATH}/${domain.id}/dns`)).body);
    expect(shown.dns_records).toEqual(verifiedSchema.parse(first.body).dns_records);
    expect(shown.service_records.map(({ type }) => type)).toEqual(["TXT", "MX"]);
    expect(app.resolver.queries).toEqual([]);
  });
});

test("a domain is enrolled with tags, and keeps its own when it is enrolled again", async () => {
  const { call } = startWithKey();
  const enrol = (tags: unknown) => call("POST", PATH, { domain: "shop.example", tags });
  expect((await enrol(["a tag"])).status).toBe(400);
  expect((await enrol("client-a")).status).toBe(400);
  expect(await enrol(["Shops", "client-a", "shops"])).toMatchObject({
    ...{ status: 201, body: { created: true, domain: { tags: ["client-a", "shops"] } } },
  });
  expect(await enrol(["other"])).toMatchObject({ status: 200, body: { domain: { tags: ["client-a", "shops"] } } });
});

test("tags are set, listed by and refused when they are too many or too long", async () => {
  const { call, enrol } = startWithKey();
  const [first, second] = [(await enrol("a.example")).domain, (await enrol("b.example")).domain];
  const patch = (tags: unknown) => call("PATCH", `${PATH}/${first.id}`, { tags });
  expect((await patch(["Shops", " client-a ", "shops"])).body).toMatchObject({ tags: ["client-a", "shops"] });
  const listed = async (tag: string) => {
    const { body } = await call("GET", `${PATH}?tag=${tag}`);
    return (body as { domains: { id: string }[] }).domains.map(({ id }) => id);
  };
  expect(await listed("SHOPS")).toEqual([first.id]);
  expect(await listed("shop")).toEqual([]);
  expect((await call("GET", `${PATH}/${second.id}`)).body).toMatchObject({ tags: [] });
  for (const tags of [
    ["two words"],
    ["-x"],
    ["x".repeat(41)],
    Array.from({ length: 11 }, (_, n) => `t${n}`),
    [""],
    "x",
  ])
    expect([tags, (await patch(tags)).status]).toEqual([tags, 400]);
});

test("settings change as given, and what does not fit is refused by name", async () => {
  const { call, enrol } = startWithKey();
  const { domain } = await enrol("a.example");
  const path = `${PATH}/${domain.id}`;
  const changed = domainSchema.parse(
    (
      await call("PATCH", path, {
        label: "shop",
        monitoring_enabled: false,
        webhook_url: "https://example.com/hook",
        alerts: { new_subdomain: false },
        retention_days: 30,
        raw_retention_days: 0,
        sends_mail: false,
        require_authentic_reports: true,
        digest: "off",
        recipients: [],
      })
    ).body,
  );
  expect(changed).toMatchObject({ label: "shop", monitoring_enabled: false });
  expect(changed.settings).toMatchObject({
    webhook_configured: true,
    alerts: { new_subdomain: false, new_source: true },
    retention_days: 30,
    raw_retention_days: 0,
    sends_mail: false,
    require_authentic_reports: true,
  });
  expect((await call("PATCH", path, {})).body).toEqual(changed);
  expect((await call("PATCH", path, { label: null, sends_mail: null })).body).toMatchObject({
    label: null,
    settings: { sends_mail: null },
  });
  for (const [body, at] of [
    [{ alerts: { no_such_rule: true } }, "alerts.no_such_rule"],
    [{ alerts: { new_source: "yes" } }, "alerts.new_source"],
    [{ retention_days: 0 }, "retention_days"],
    [{ retention_days: 3_651 }, "retention_days"],
    [{ raw_retention_days: -1 }, "raw_retention_days"],
    [{ raw_retention_days: 1.5 }, "raw_retention_days"],
    [{ digest: "hourly" }, "digest"],
    [{ digest: "daily" }, "digest"],
    [{ recipients: Array.from({ length: 21 }, (_, n) => `a${n}@example.com`) }, "recipients"],
    [{ domain: "b.example" }, "domain"],
    [{ status: "active" }, "status"],
  ] as const) {
    const answer = await call("PATCH", path, body);
    expect(answer).toMatchObject({ status: 400, body: { error: "Invalid request body", issues: [{ path: at }] } });
  }
});

test("a domain of another account or mode does not exist", async () => {
  const { app, call, enrol } = startWithKey();
  const { domain } = await enrol("a.example");
  for (const key of [app.newKey({ account: "other" }), app.newKey({ mode: "live" })]) {
    for (const [method, path] of [
      ["GET", ""],
      ["PATCH", ""],
      ["DELETE", ""],
      ["POST", "/verify"],
      ["GET", "/dns"],
      ["GET", "/history"],
    ] as const) {
      const body = method === "PATCH" ? { body: {} } : {};
      const answer = await app.request(method, `${PATH}/${domain.id}${path}`, { key, ...body });
      expect(answer).toMatchObject({ status: 404, body: { error: "not_found" } });
    }
    expect((await app.request("GET", PATH, { key })).body.domains).toEqual([]);
  }
  for (const wrong of ["1", newId()]) expect((await call("GET", `${PATH}/${wrong}`)).status).toBe(404);
});

test("a deleted domain is gone, and can be enrolled again", async () => {
  const { call, enrol } = startWithKey();
  const { domain } = await enrol("a.example");
  expect(await call("DELETE", `${PATH}/${domain.id}`)).toMatchObject({ status: 204, text: "" });
  expect((await call("DELETE", `${PATH}/${domain.id}`)).status).toBe(404);
  expect((await call("GET", PATH)).body.domains).toEqual([]);
  const again = await enrol("a.example");
  expect(again.answer.status).toBe(201);
  expect(again.domain.id).not.toBe(domain.id);
});

test("domains are listed newest first, by pages and filters", async () => {
  const { call, enrol } = startWithKey();
  const ids: string[] = [];
  for (const name of ["a.example", "merge.example", "b.example"]) ids.push((await enrol(name)).domain.id);
  await call("POST", `${PATH}/${ids[1]}/verify`);
  await call("PATCH", `${PATH}/${ids[0]}`, { monitoring_enabled: false });
  const first = await call("GET", `${PATH}?limit=2`);
  const second = await call("GET", `${PATH}?limit=2&cursor=${first.body.next_cursor}`);
  expect([...idsOf(first.body), ...idsOf(second.body)]).toEqual(ids.toReversed());
  expect(second.body.next_cursor).toBeNull();
  expect(idsOf((await call("GET", `${PATH}?status=active`)).body)).toEqual([ids[1] ?? ""]);
  expect(idsOf((await call("GET", `${PATH}?domain=B.Example.`)).body)).toEqual([ids[2] ?? ""]);
  expect(idsOf((await call("GET", `${PATH}?monitoring_enabled=false`)).body)).toEqual([ids[0] ?? ""]);
  for (const [query, error] of [
    ["limit=0", "Invalid limit"],
    ["cursor=x", "Invalid cursor"],
    ["status=bad", "Invalid query"],
    ["domain=1.2.3", "Invalid query"],
    ["page=2", "Invalid query"],
  ]) {
    expect((await call("GET", `${PATH}?${query}`)).body.error).toBe(error ?? "");
  }
});

test("the history is paged, newest first", async () => {
  const { call, enrol } = startWithKey();
  const { domain } = await enrol("merge.example");
  await call("POST", `${PATH}/${domain.id}/verify`);
  const first = await call("GET", `${PATH}/${domain.id}/history?limit=1`);
  const second = await call("GET", `${PATH}/${domain.id}/history?limit=1&cursor=${first.body.next_cursor}`);
  const triggers = [first, second].flatMap(({ body }) =>
    historySchema.parse(body).history.map(({ trigger }) => trigger),
  );
  expect(triggers).toEqual(["manual", "enrolled"]);
  expect(second.body.next_cursor).toBeNull();
});

test("each call needs its scope", async () => {
  const { app, enrol } = startWithKey();
  const { domain } = await enrol("a.example");
  const reader = app.newKey({ scopes: ["dmarc:read"] });
  expect((await app.request("GET", `${PATH}/${domain.id}/dns`, { key: reader })).status).toBe(200);
  expect((await app.request("POST", `${PATH}/${domain.id}/verify`, { key: reader })).status).toBe(403);
  expect((await app.request("POST", PATH, { key: reader, body: { domain: "b.example" } })).status).toBe(403);
  expect((await app.request("GET", PATH, { key: app.newKey({ scopes: ["bulk:write"] }) })).status).toBe(403);
  expect((await app.request("GET", PATH)).status).toBe(401);
});
