import { describe, expect, test } from "bun:test";
import { createDomainHarness, LIVE, REPORT_HOST, TEST } from "../../../testing/monitored-domains.ts";
import type { DomainSettingsChange } from "./domains.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import type { Db } from "../../../foundation/db/open.ts";

const newHarness = createDomainHarness();
const DAY_MS = 24 * 60 * 60_000;

/** What a call was refused with. */
const refusal = async (work: () => Promise<unknown>) => {
  try {
    await work();
  } catch (error) {
    if (error instanceof AppError) return { code: error.code, text: JSON.stringify(error.details) };
    throw error;
  }
  return null;
};

/** Copies of the only domain, as many as are wanted. */
const copyDomain = ({ sqlite }: Db, count: number): void => {
  const columns = sqlite
    .query<{ name: string }, []>("SELECT name FROM pragma_table_info('dmarc_domains') WHERE pk = 0")
    .all();
  const names = columns.map(({ name }) => `"${name}"`).join(", ");
  const unique = new Set(["id", "domain", "token"]);
  const values = columns.map(({ name }) => (unique.has(name) ? `'n' || value || '.com'` : `"${name}"`)).join(", ");
  sqlite.run(
    `WITH RECURSIVE copies (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM copies WHERE value < ${count})
     INSERT INTO dmarc_domains (${names}) SELECT ${values} FROM dmarc_domains, copies`,
  );
};

describe("enrolment", () => {
  test("gives a domain an address of its own and says what to publish", async () => {
    const { enrol, domains } = newHarness();
    const { created, domain, dnsRecords } = await enrol("Example.COM.");
    expect(created).toBe(true);
    const view = domains.view(domain);
    expect(view).toMatchObject({ domain: "example.com", status: "pending", policy: null, reporting: "waiting" });
    expect(view.reporting_address).toMatch(/^[a-z2-7]{20}@reports\.example\.net$/);
    expect(dnsRecords).toMatchObject([
      {
        host: "_dmarc.example.com",
        type: "TXT",
        action: "create",
        value: `v=DMARC1; p=none; rua=mailto:${view.reporting_address}`,
      },
    ]);
    expect(view.last_check?.checks.map(({ ok }) => ok)).toEqual([false, false, false]);
    expect(view.settings).toMatchObject({
      digest: "off",
      retention_days: 400,
      raw_retention_days: 90,
      sends_mail: null,
    });
  });

  test("is pending even when the record is there already", async () => {
    const harness = newHarness();
    harness.publish("example.com", "v=DMARC1; p=none");
    expect((await harness.enrol("example.com")).domain.status).toBe("pending");
  });

  test("of the same domain twice, also at the same time, makes one", async () => {
    const { enrol, store } = newHarness();
    const both = await Promise.all([enrol("example.com"), enrol("EXAMPLE.com")]);
    expect(both.map(({ created }) => created).toSorted()).toEqual([false, true]);
    expect(both[0]?.domain.id).toBe(both[1]?.domain.id ?? "");
    expect(both[0]?.dnsRecords).toEqual(both[1]?.dnsRecords ?? []);
    expect((await enrol("example.com")).created).toBe(false);
    expect((await enrol("example.com", { ...LIVE, accountId: "other" })).created).toBe(true);
    expect(store.count(LIVE)).toBe(1);
  });

  test("outlives a DNS that is silent, and advises nothing then", async () => {
    const harness = newHarness();
    harness.zone["_dmarc.example.com"] = "servfail";
    const { created, domain, dnsRecords } = await harness.enrol("example.com");
    expect(created).toBe(true);
    expect(dnsRecords[0]).toMatchObject({ action: "conflict", reason: "dns_failure", value: "", strings: [] });
    expect(harness.store.findById(domain.id)?.nextCheckAtMs).toBe(harness.clock.nowMs() + 30 * 60_000);
  });

  test("is refused for what cannot be monitored", async () => {
    const { enrol } = newHarness();
    expect(await refusal(() => enrol("co.uk"))).toMatchObject({ code: "Invalid request body" });
    const long = `${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(60)}.${"d".repeat(40)}.com`;
    expect((await refusal(() => enrol(long)))?.text).toContain("the DNS allows 253");
  });

  test("needs a report host, but not with a test key", async () => {
    const { enrol, domains } = newHarness({ reportHost: null });
    const refused = await refusal(() => enrol("example.com"));
    expect(refused?.code).toBe("conflict");
    expect(refused?.text).toContain("POSTWARDEN_REPORT_HOST");
    const { domain } = await enrol("a.example", TEST);
    expect(domains.view(domain).reporting_address).toEndWith("@reports.example");
  });

  test("stops at 10,000 domains", async () => {
    const { db, enrol, insert } = newHarness();
    insert({ domain: "n0.com" });
    copyDomain(db, 9_999);
    expect((await refusal(() => enrol("example.com")))?.code).toBe("conflict");
    expect((await enrol("n1.com")).created).toBe(false);
  });

  test("takes a webhook and recipients, and turns the URL on", async () => {
    const { domains, turnedOn } = newHarness();
    const url = "https://example.com/hook";
    const { domain } = await domains.enrol(LIVE, {
      domain: "example.com",
      label: "x",
      webhookUrl: url,
      recipients: ["a@example.com"],
      tags: [],
    });
    expect(domain).toMatchObject({ label: "x", webhookUrl: url, recipients: ["a@example.com"] });
    expect(turnedOn).toEqual([url]);
    const silent = newHarness({ hasMail: false });
    const order = { domain: "example.com", label: null, webhookUrl: null, recipients: ["a@example.com"], tags: [] };
    expect((await refusal(() => silent.domains.enrol(LIVE, order)))?.text).toContain("does not send mail");
  });

  test("and every change takes recipients at the domains that the operator allows only", async () => {
    const harness = newHarness({ recipientDomains: ["example.net"] });
    const order = { domain: "example.com", label: null, webhookUrl: null, recipients: ["a@example.com"], tags: [] };
    expect((await refusal(() => harness.domains.enrol(LIVE, order)))?.text).toContain("at example.net only");
    const { domain } = await harness.domains.enrol(LIVE, { ...order, recipients: ["a@example.net"] });
    const change = () => harness.domains.change(LIVE, domain.id, { recipients: ["b@example.org"] });
    expect((await refusal(change))?.text).toContain("at example.net only");
  });
});

describe("verify", () => {
  test("makes a domain active that published what it was told, and then nothing is left to do", async () => {
    const harness = newHarness();
    const { domain, dnsRecords } = await harness.enrol("example.com");
    harness.publish("example.com", dnsRecords[0]?.value ?? "");
    const verified = await harness.domains.verify(LIVE, domain.id);
    expect(verified).toMatchObject({ previousStatus: "pending", domain: { status: "active" } });
    expect(verified.result.dnsRecords[0]).toMatchObject({ action: "none", value: dnsRecords[0]?.value });
    expect(harness.alerts.map(({ rule }) => rule)).toEqual(["status_changed"]);
  });

  test("of one domain several times at once looks once", async () => {
    const harness = newHarness();
    const { domain } = await harness.enrol("example.com");
    const before = harness.resolver.queries.length;
    const all = await Promise.all([1, 2, 3].map(() => harness.domains.verify(LIVE, domain.id)));
    expect(new Set(all).size).toBe(1);
    expect(harness.resolver.countQueries("_dmarc.example.com", "TXT")).toBe(2);
    expect(harness.resolver.queries.length).toBeGreaterThan(before);
  });

  test("of a domain that is deleted meanwhile finds none, and records nothing", async () => {
    const harness = newHarness();
    const { domain } = await harness.enrol("example.com");
    const verifying = refusal(() => harness.domains.verify(LIVE, domain.id));
    await harness.domains.remove(LIVE, domain.id);
    expect((await verifying)?.code).toBe("not_found");
    expect(harness.alerts).toEqual([]);
  });

  test("is given up when the service stops", async () => {
    const harness = newHarness();
    const { domain } = await harness.enrol("example.com");
    const verifying = refusal(() => harness.domains.verify(LIVE, domain.id));
    await harness.domains.stop();
    expect((await verifying)?.code).toBe("unavailable");
    expect(harness.domains.canCheck()).toBe(false);
    expect(harness.history(domain.id)).toHaveLength(1);
  });
});

describe("with a test key", () => {
  test.each([
    ["merge.example", "update", "active", "none"],
    ["other.example", "create", "active", "none"],
    ["a.b.other.example", "create", "active", "none"],
    ["missing.example", "create", "action_required", "create"],
    ["conflict.example", "conflict", "action_required", "conflict"],
  ] as const)("%s: %s, then %s and %s, without any DNS", async (name, first, status, then) => {
    const harness = newHarness();
    const { domain, dnsRecords } = await harness.enrol(name, TEST);
    expect(domain.status).toBe("pending");
    expect(dnsRecords[0]?.action).toBe(first);
    expect((await harness.domains.dns(TEST, domain.id)).dnsRecords).toEqual(dnsRecords);
    const verified = await harness.domains.verify(TEST, domain.id);
    expect(verified.domain.status).toBe(status);
    expect(verified.result.dnsRecords[0]?.action).toBe(then);
    expect((await harness.domains.dns(TEST, domain.id)).dnsRecords).toEqual(verified.result.dnsRecords);
    expect(await harness.domains.verify(TEST, domain.id)).toMatchObject({ previousStatus: status, domain: { status } });
    expect(harness.resolver.queries).toEqual([]);
    await harness.clock.advance(100 * DAY_MS);
    expect(harness.store.due(harness.clock.nowMs(), 10)).toEqual([]);
  });

  test("merge.example keeps its policy and its own address", async () => {
    const { enrol } = newHarness();
    const { domain, dnsRecords } = await enrol("merge.example", TEST);
    const current = "v=DMARC1; p=reject; rua=mailto:dmarc@merge.example";
    const value = `${current},mailto:${domain.token}@${REPORT_HOST}`;
    expect(dnsRecords).toEqual([
      expect.objectContaining({ host: "_dmarc.merge.example", action: "update", value, current, strings: [value] }),
    ]);
  });

  test("a domain has the same address whenever it is enrolled", async () => {
    const { enrol, domains } = newHarness();
    const first = await enrol("merge.example", TEST);
    await domains.remove(TEST, first.domain.id);
    const again = await enrol("merge.example", TEST);
    expect(again.created).toBe(true);
    expect(again.dnsRecords).toEqual(first.dnsRecords);
  });
});

describe("settings", () => {
  test("change as given, and nothing else", async () => {
    const harness = newHarness();
    const { domain } = await harness.enrol("example.com");
    const before = harness.domains.view(domain);
    await harness.clock.advance(1_000);
    const change = async (options: DomainSettingsChange) =>
      harness.domains.view(await harness.domains.change(LIVE, domain.id, options));
    expect(await change({})).toEqual(before);
    expect(await change({ label: "shop", retentionDays: 30, rawRetentionDays: 0, sendsMail: false })).toEqual({
      ...before,
      label: "shop",
      settings: { ...before.settings, retention_days: 30, raw_retention_days: 0, sends_mail: false },
      updated_at: "2026-01-01T00:00:01.000Z",
    });
    await change({ alerts: { new_source: false } });
    const { settings } = await change({ alerts: { new_subdomain: false, new_source: true } });
    expect(settings.alerts).toMatchObject({ new_source: true, new_subdomain: false, status_changed: true });
    expect((await change({ webhookUrl: "https://example.com/hook" })).settings.webhook_configured).toBe(true);
    expect((await change({ webhookUrl: "https://gone.example.com/" })).settings.webhook_configured).toBe(false);
    expect((await change({ webhookUrl: null, label: null })).label).toBeNull();
    await change({ webhookUrl: null });
    // Pending events move to the new URL.
    const subject = `domain:${domain.id}`;
    expect(harness.moved).toEqual([
      { subject, from: null, to: "https://example.com/hook" },
      { subject, from: "https://example.com/hook", to: "https://gone.example.com/" },
      { subject, from: "https://gone.example.com/", to: null },
      { subject, from: null, to: null },
    ]);
    expect(harness.turnedOn).toEqual(["https://example.com/hook", "https://gone.example.com/"]);
  });

  test.each([
    ["daily", "2026-01-01T06:00:00.000Z"],
    ["weekly", "2026-01-05T06:00:00.000Z"],
    ["monthly", "2026-01-01T06:00:00.000Z"],
    ["off", null],
  ] as const)("a %s digest is due at %s", async (digest, at) => {
    const harness = newHarness();
    const { domain } = await harness.enrol("example.com");
    await harness.domains.change(LIVE, domain.id, { digest: "daily" });
    const { digestDueAtMs } = await harness.domains.change(LIVE, domain.id, { digest });
    expect(digestDueAtMs).toBe(at === null ? null : Date.parse(at));
  });

  test("that need mail are refused where none is sent, but may be taken back", async () => {
    const { domains, enrol } = newHarness({ hasMail: false });
    const { domain } = await enrol("example.com");
    for (const options of [{ recipients: ["a@example.com"] }, { digest: "daily" }] as const) {
      expect((await refusal(() => domains.change(LIVE, domain.id, options)))?.text).toContain("does not send mail");
    }
    expect(await refusal(() => domains.change(LIVE, domain.id, { recipients: [], digest: "off" }))).toBeNull();
  });

  test("paused, a domain is not checked; resumed, it is soon", async () => {
    const harness = newHarness();
    const { id } = await harness.activate();
    await harness.domains.change(LIVE, id, { monitoringEnabled: false });
    await harness.clock.advance(3 * DAY_MS);
    expect(harness.store.due(harness.clock.nowMs(), 10)).toEqual([]);
    const resumed = await harness.domains.change(LIVE, id, { monitoringEnabled: true });
    expect(resumed).toMatchObject({ status: "active", nextCheckAtMs: harness.clock.nowMs() + 60_000 });
  });
});

test("a domain is seen by its account and mode only", async () => {
  const { domains, enrol } = newHarness();
  const { domain } = await enrol("example.com");
  for (const other of [{ ...LIVE, accountId: "other" }, TEST]) {
    expect(() => domains.find(other, domain.id)).toThrow("no such domain");
    expect((await refusal(() => domains.verify(other, domain.id)))?.code).toBe("not_found");
    expect((await refusal(() => domains.change(other, domain.id, {})))?.code).toBe("not_found");
    expect((await refusal(() => domains.remove(other, domain.id)))?.code).toBe("not_found");
    expect((await refusal(() => domains.dns(other, domain.id)))?.code).toBe("not_found");
    expect(domains.list(other, {}, { before: null, limit: 10 })).toEqual([]);
  }
});

test("a deleted domain and its address are gone at once; enrolled again it has another", async () => {
  const { domains, enrol, store } = newHarness();
  const { domain } = await enrol("example.com");
  await domains.remove(LIVE, domain.id);
  expect(store.findByToken(domain.token)).toBeUndefined();
  expect((await refusal(() => domains.remove(LIVE, domain.id)))?.code).toBe("not_found");
  const again = await enrol("example.com");
  expect(again.created).toBe(true);
  expect(again.domain.token).not.toBe(domain.token);
});

test("reports make a domain receiving, and 72 hours without one make it silent", async () => {
  const { clock, domains, insert } = newHarness();
  const reporting = (lastReportAtMs: number | null, domain: string) =>
    domains.view(insert({ lastReportAtMs, domain })).reporting;
  expect(reporting(null, "a.com")).toBe("waiting");
  expect(reporting(clock.nowMs() - 3 * DAY_MS, "b.com")).toBe("receiving");
  expect(reporting(clock.nowMs() - 3 * DAY_MS - 1, "c.com")).toBe("silent");
});

test("the operator's records name the machine that receives mail", async () => {
  const { domains, enrol } = newHarness({ mailHost: "mx.example.net" });
  const { domain } = await enrol("example.com");
  expect((await domains.dns(LIVE, domain.id)).serviceRecords).toMatchObject([
    { host: `*._report._dmarc.${REPORT_HOST}`, type: "TXT", value: "v=DMARC1;" },
    { host: REPORT_HOST, type: "MX", value: "10 mx.example.net." },
  ]);
});
