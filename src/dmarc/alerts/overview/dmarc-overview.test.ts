import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { createDmarcAlertHarness } from "../../../testing/dmarc-alert-harness.ts";
import type { Alert } from "../../records/domains/alert-store.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import { DmarcOverview, type DomainListQuery } from "./dmarc-overview.ts";
import { DomainOverviewStore, type DomainOverview } from "./domain-overview-store.ts";
import { OpenAlertStore } from "../rules/open-alert-store.ts";

const OWNER = { accountId: "account", mode: "live" } as const;
const HOUR_MS = 60 * 60_000;
const newHarness = createDmarcAlertHarness();

const start = () => {
  const harness = newHarness();
  const { db, clock, domains, alerts: raised, raise } = harness;
  const overviews = new DomainOverviewStore(db);
  const overview = new DmarcOverview({ db, clock }, { overviews, alerts: new OpenAlertStore(db), raised, domains });
  const list = (query: Partial<DomainListQuery> = {}) =>
    overview
      .list(OWNER, { status: null, text: "", tag: null, order: "worst", limit: 10, offset: 0, ...query })
      .domains.map(({ row }) => row.domain);
  return {
    ...{ ...harness, overviews, overview, list },
    attention: () => overview.attention(OWNER).map(({ severity, title }) => `${severity}: ${title}`),
    summed: (domain: DomainRow, counts: Partial<DomainOverview>): void =>
      db.transact((tx) => overviews.save(tx, domain.number, { ...NOTHING, ...counts })),
    alert: (domain: DomainRow, alert: Pick<Alert, "rule" | "subject" | "data">): void =>
      void db.transact((tx) => raise(tx, domain, { ...alert, summary: "made", cooldown: false }, clock.nowMs())),
  };
};

const NOTHING: DomainOverview = {
  ...{
    computedAtMs: 5,
    messages7: 0,
    aligned7: 0,
    messagesBefore7: null,
    alignedBefore7: null,
    messages30: 0,
    aligned30: 0,
    actionable30: 0,
  },
  ...{ fromDay: 0, messages: [], failing: [], next: null },
};

const policy = (p: "none" | "quarantine" | "reject") => ({
  ...{ p, sp: p, np: p, adkim: "r", aspf: "r", own: true, inherited_from: null, t: "n", pct: 100 },
});
const weakened = (from: "quarantine" | "reject", to: "none" | "quarantine") => ({
  rule: "policy_weakened" as const,
  subject: `${from}-${to}`,
  data: {
    ...{ previous_policy: policy(from), policy: policy(to), record: `v=DMARC1; p=${to}` },
    ...{ checked_at: "2026-11-20T12:00:00.000Z", trigger: "scheduled" },
  },
});
const newSource = (key: string, name = key) => ({
  rule: "new_source" as const,
  subject: key,
  data: { count: 1, sources: [eventSource(key, name)] },
});
const eventSource = (key: string, name = key) => ({
  ...{ key, name, kind: "organization", service: null, classification: "unknown", first_day: "2026-11-19" },
  ...{ messages: 1_240, aligned: 3, dkim: [], spf: [], addresses: [] },
});
const spike = (state: "started" | "grew" | "ended", ...keys: readonly string[]) => ({
  rule: "failure_spike" as const,
  subject: keys.join(),
  data: {
    ...{ state, started_day: "2026-11-18", day: "2026-11-19", messages: 400, failing: 100 },
    ...{ failing_share: 0.25, usual_failing_share: 0.01 },
    sources: keys.map((key) => ({
      ...{ ...eventSource(key), started_day: "2026-11-18", failing: 100, failing_share: 0.25 },
      ...{ usual_failing_share: 0.01, causes: [] },
    })),
  },
});
const tls = (state: "began" | "ended") => ({
  rule: "tls_failures" as const,
  subject: "s",
  data: {
    ...{ state, policy_domain: "example.com", policy_type: "sts", result_type: "certificate-expired" },
    ...{ meaning: "the certificate has expired", advice: "Renew it.", sessions: 90, failed_sessions: 45 },
    ...{ failing_share: 0.5, mx_hosts: [], reporters: [], first_day: "2026-11-18", last_day: "2026-11-19" },
  },
});
const campaign = {
  rule: "spoofing_campaign" as const,
  subject: "2026-11-19",
  data: {
    ...{ started_day: "2026-11-19", day: "2026-11-19", messages: 900, networks: 40, quarantined: 0, rejected: 880 },
  },
};
const stateOf = (p: "none" | "quarantine" | "reject") => JSON.stringify({ believed: { policy: policy(p) } });

describe("the list of domains", () => {
  const filled = () => {
    const started = start();
    const { add, clock, summed } = started;
    const freshMs = clock.nowMs() - HOUR_MS;
    summed(add("calm.example", { lastReportAtMs: freshMs }), { messages30: 900, aligned30: 900 });
    summed(add("failing.example", { lastReportAtMs: freshMs - 1 }), {
      ...{ messages30: 100, aligned30: 50, actionable30: 50 },
    });
    summed(add("forged.example", { lastReportAtMs: freshMs - 2, label: "Shop 100%" }), {
      ...{ messages30: 500, aligned30: 5, actionable30: 0 },
    });
    add("silent.example", { lastReportAtMs: clock.nowMs() - 73 * HOUR_MS });
    add("parked.example", { lastReportAtMs: clock.nowMs() - 99 * HOUR_MS, sendsMail: false, accountId: "parked" });
    add("new.example", { status: "pending" });
    add("gone.example", { status: "action_required", lastReportAtMs: freshMs });
    add("paused.example", { status: "action_required", monitoringEnabled: false });
    add("other.example", { accountId: "another" });
    add("test.example", { mode: "test" });
    return started;
  };

  test.each([
    ["worst", ["gone", "silent", "failing", "calm", "forged", "new", "paused"]],
    ["name", ["calm", "failing", "forged", "gone", "new", "paused", "silent"]],
    ["messages", ["calm", "forged", "failing", "gone", "new", "paused", "silent"]],
    ["aligned", ["forged", "failing", "calm", "gone", "new", "paused", "silent"]],
    ["last_report", ["calm", "gone", "failing", "forged", "silent", "new", "paused"]],
  ] as const)("by %s", (order, names) => {
    expect(filled().list({ order })).toEqual(names.map((name) => `${name}.example`));
  });

  test("begins with open alerts, then has the failing share of own mail, and no parked domain before others", () => {
    const { add, alert, clock, list, summed } = start();
    const fresh = { lastReportAtMs: clock.nowMs() - HOUR_MS };
    const silentMs = clock.nowMs() - 73 * HOUR_MS;
    summed(add("large.example", fresh), { messages30: 9_000, aligned30: 8_900, actionable30: 100 });
    summed(add("small.example", fresh), { messages30: 100, aligned30: 10, actionable30: 10 });
    summed(add("forged.example", fresh), { messages30: 9_000, aligned30: 100, actionable30: 0 });
    add("a-parked.example", { lastReportAtMs: silentMs, sendsMail: false });
    const alerted = add("z-alerted.example", fresh);
    alert(alerted, newSource("org:example.net"));
    const names = ["z-alerted", "small", "large", "a-parked", "forged"];
    expect(list()).toEqual(names.map((name) => `${name}.example`));
    add("silent.example", { lastReportAtMs: silentMs });
    expect(list().slice(0, 2)).toEqual(["silent.example", "z-alerted.example"]);
  });

  test("is filtered by status and by part of the name or the label, literally", () => {
    const { list, overview } = filled();
    expect(list({ status: "active", order: "name" })).toEqual(["calm.example", "failing.example", "forged.example"]);
    expect(list({ status: "silent" })).toEqual(["silent.example"]);
    expect(list({ status: "paused" })).toEqual(["paused.example"]);
    expect(list({ text: "LE" })).toHaveLength(7);
    expect(list({ text: "100%" })).toEqual(["forged.example"]);
    expect(list({ text: "%" })).toEqual(["forged.example"]);
    expect(Object.fromEntries(overview.countByStatus(OWNER))).toEqual({
      ...{ active: 3, action_required: 1, silent: 1, pending: 1, paused: 1 },
    });
  });

  test("has no warning about missing reports of a domain that sends no mail", () => {
    const { overview } = filled();
    const owner = { ...OWNER, accountId: "parked" };
    const page = overview.list(owner, { status: "silent", text: "", tag: null, order: "name", limit: 10, offset: 0 });
    expect(page.domains).toEqual([]);
    expect(Object.fromEntries(overview.countByStatus(owner))).toEqual({ active: 1 });
    const all = overview.list(owner, { status: null, text: "", tag: null, order: "name", limit: 10, offset: 0 });
    expect(all.domains.map(({ status }) => status)).toEqual(["active"]);
  });

  test("comes in pages", () => {
    const { list, overview } = filled();
    expect(list({ order: "name", limit: 2, offset: 2 })).toEqual(["forged.example", "gone.example"]);
    const page = (offset: number) =>
      overview.list(OWNER, { status: null, text: "", tag: null, order: "name", limit: 2, offset }).hasMore;
    expect([page(4), page(5), page(6)]).toEqual([true, false, false]);
  });

  test("is grouped by tags, each with its figures, of one account and mode", () => {
    const { add, alert, list, overview, summed } = start();
    const counts = { messages30: 100, aligned30: 90, actionable30: 4 };
    for (const [name, tags] of [
      ["a.example", ["client-a", "shops"]],
      ["b.example", ["client-a"]],
      ["c.example", []],
    ] as const)
      summed(add(name, { tags }), counts);
    summed(add("other.example", { accountId: "other", tags: ["client-a"] }), counts);
    add("test.example", { mode: "test", tags: ["client-a"] });
    expect(list({ tag: "client-a", order: "name" })).toEqual(["a.example", "b.example"]);
    expect(list({ tag: "client" })).toEqual([]);
    alert(add("d.example", { tags: ["shops"] }), newSource("org:sender.example"));
    alert(add("e.example", { tags: ["shops"], accountId: "other" }), newSource("org:sender.example"));
    expect(overview.tags(OWNER)).toEqual([
      { tag: "client-a", domains: 2, messages: 200, aligned: 180, actionable: 8, openAlerts: 0 },
      { tag: "shops", domains: 2, messages: 100, aligned: 90, actionable: 4, openAlerts: 1 },
    ]);
  });

  test("has the status, the figures and what needs somebody", () => {
    const { add, alert, overview, summed } = start();
    const domain = add("example.com");
    summed(domain, { messages7: 7 });
    alert(domain, newSource("org:sender.example"));
    alert(domain, weakened("reject", "none"));
    const { domains } = overview.list(OWNER, {
      status: null,
      text: "",
      tag: null,
      order: "name",
      limit: 10,
      offset: 0,
    });
    expect(domains).toMatchObject([
      { status: "active", overview: { messages7: 7 }, attention: [{ label: "Policy" }, { label: "New sender" }] },
    ]);
  });
});

test("mail in our name is that of all domains of the account and mode", () => {
  const { add, overview, summed } = start();
  expect(overview.mailInName(OWNER)).toEqual({
    ...{ domains: 0, messages: 0, aligned: 0, alignedPercent: null, before: null, computedAtMs: null },
  });
  summed(add("a.example"), { messages7: 30, aligned7: 29, computedAtMs: 9 });
  summed(add("b.example"), { messages7: 10, aligned7: 10, messagesBefore7: 8, alignedBefore7: 6, computedAtMs: 4 });
  add("c.example");
  summed(add("d.example", { accountId: "another" }), { messages7: 1_000 });
  expect(overview.mailInName(OWNER)).toEqual({
    ...{
      domains: 3,
      messages: 40,
      aligned: 39,
      alignedPercent: 97.5,
      before: { messages: 8, aligned: 6 },
      computedAtMs: 4,
    },
  });
});

describe("attention", () => {
  const lastCheck = (code: string) =>
    JSON.stringify({
      ...{ at: "2026-11-20T12:00:00.000Z", ok: false },
      checks: [{ code, ok: false, observed: null, expected: null, message: "What is wrong." }],
    });

  test("is due where the checks of the DNS fail, since the status changed", () => {
    const { add, attention, overview, alert, clock } = start();
    const failing = { status: "action_required" as const };
    const domain = add("gone.example", { ...failing, lastCheck: lastCheck("record") });
    add("rua.example", { ...failing, lastCheck: lastCheck("reporting_address") });
    add("auth.example", { ...failing, lastCheck: lastCheck("authorisation") });
    add("none.example", { ...failing, lastCheck: null });
    add("paused.example", { ...failing, monitoringEnabled: false });
    alert(domain, { rule: "status_changed", subject: "action_required", data: {} });
    expect(attention()).toEqual([
      "bad: gone.example has no valid DMARC record",
      "warn: No reports about none.example can arrive",
      "warn: Receivers may not send reports about auth.example here",
      "warn: rua.example no longer sends its reports here",
    ]);
    expect(overview.attention(OWNER)[0]).toMatchObject({
      ...{ detail: "What is wrong.", sinceMs: clock.nowMs() },
      action: { path: `/dmarc/${domain.id}/record` },
    });
  });

  const cases: ReadonlyArray<
    [string, Partial<DomainRow>, (started: ReturnType<typeof start>, domain: DomainRow) => void, string[]]
  > = [
    [
      "a weaker policy",
      {},
      ({ alert }, domain) => alert(domain, weakened("reject", "none")),
      ["bad: The policy of example.com was weakened: p=reject became p=none"],
    ],
    [
      "a weaker policy that was corrected",
      { state: stateOf("reject") },
      ({ alert }, domain) => alert(domain, weakened("reject", "none")),
      [],
    ],
    [
      "a weaker policy of a record that is gone",
      { status: "action_required", lastCheck: lastCheck("record") },
      ({ alert }, domain) => alert(domain, weakened("reject", "none")),
      ["bad: example.com has no valid DMARC record"],
    ],
    [
      "two new senders",
      {},
      ({ alert }, domain) => {
        for (const key of ["org:a.example", "org:b.example"]) alert(domain, newSource(key));
      },
      ["warn: org:b.example began to send as example.com", "warn: org:a.example began to send as example.com"],
    ],
    [
      "a new sender that the user classified",
      {},
      ({ alert, db, reading }, domain) => {
        alert(domain, newSource("org:a.example"));
        const word = { key: "org:a.example", classification: "threat", atMs: 1, note: null } as const;
        db.transact((tx) => reading.setUserClassification(tx, domain.number, word));
      },
      [],
    ],
    [
      "failures that grew",
      {},
      ({ alert }, domain) => {
        alert(domain, spike("started", "org:a.example"));
        alert(domain, spike("grew", "org:a.example"));
      },
      ["bad: Mail of org:a.example as example.com has failed since 2026-11-18"],
    ],
    [
      "failures that ended, with those of another source",
      {},
      ({ alert }, domain) => {
        alert(domain, spike("started", "org:a.example"));
        alert(domain, spike("ended", "org:a.example", "org:b.example"));
      },
      [],
    ],
    [
      "failures that ended for one of two sources",
      {},
      ({ alert }, domain) => {
        alert(domain, spike("started", "org:a.example", "org:b.example"));
        alert(domain, spike("ended", "org:a.example"));
      },
      ["bad: Mail of org:a.example and 1 other sender as example.com has failed since 2026-11-18"],
    ],
    ["a campaign", {}, ({ alert }, domain) => alert(domain, campaign), ["warn: Somebody forges mail from example.com"]],
    [
      "TLS failures",
      {},
      ({ alert }, domain) => alert(domain, tls("began")),
      ["warn: Mail servers cannot deliver to example.com by TLS"],
    ],
    [
      "TLS failures that ended",
      {},
      ({ alert }, domain) => {
        alert(domain, tls("began"));
        alert(domain, tls("ended"));
      },
      [],
    ],
    ["data of another version", {}, ({ alert }, domain) => alert(domain, { ...campaign, data: { before: true } }), []],
    [
      "a paused domain",
      { monitoringEnabled: false },
      ({ alert }, domain) => alert(domain, weakened("reject", "none")),
      [],
    ],
    [
      "another account's domain",
      { accountId: "another" },
      ({ alert }, domain) => alert(domain, weakened("reject", "none")),
      [],
    ],
  ];
  test.each(cases)("for %s", (_, change, happen, expected) => {
    const started = start();
    happen(started, started.add("example.com", change));
    expect(started.attention()).toEqual(expected);
  });

  test("for reports that stopped, until one arrives", () => {
    const { add, alert, arrive, attention, clock } = start();
    const domain = add("example.com", { lastReportAtMs: clock.nowMs() - 4 * DAY_MS });
    const data = { last_report_at: "2026-11-16T12:00:00.000Z", last_day: "2026-11-15" };
    alert(domain, { rule: "reports_stopped", subject: "2026-11-16", data });
    expect(attention()).toEqual(["warn: No reports about example.com since 2026-11-16"]);
    arrive(domain.number);
    expect(attention()).toEqual([]);
  });

  test.each([
    ["a weaker policy", weakened("reject", "none"), 14],
    ["a new sender", newSource("org:a.example"), 14],
    ["a campaign", campaign, 7],
    ["failures", spike("started", "org:a.example"), 60],
  ] as const)("%s is no news after some days", async (_, alert, days) => {
    const started = start();
    started.alert(started.add("example.com"), alert);
    await started.clock.advance(days * DAY_MS - HOUR_MS);
    expect(started.attention()).toHaveLength(1);
    await started.clock.advance(2 * HOUR_MS);
    expect(started.attention()).toHaveLength(0);
  });

  test.each([
    [100, 0.25, "100 of 400 messages failed (25 %), usually 1 %."],
    [399, 0.9975, "399 of 400 messages failed (99 %), usually 1 %."],
    [400, 1, "All 400 messages failed, usually 1 %."],
  ])("say how many messages failed: %d", (failing, failing_share, detail) => {
    const { add, alert, overview } = start();
    const domain = add("example.com");
    const started = spike("started", "org:a.example");
    alert(domain, { ...started, data: { ...started.data, failing, failing_share } });
    expect(overview.openAlertsOf(OWNER, domain)).toMatchObject([{ detail }]);
  });

  test("names from reports are cut and on one line", () => {
    const { add, alert, attention } = start();
    alert(add("example.com"), newSource("org:a.example", `x\n${"y".repeat(500)}`));
    expect(attention()[0]).toMatch(/^warn: x y{117}… began/);
  });
});

describe("an alert that is acknowledged", () => {
  const acknowledged = async (harness: ReturnType<typeof start>, domain: DomainRow) => {
    const [shown] = harness.overview.openAlertsOf(OWNER, domain);
    await harness.overview.acknowledge(() => domain, shown?.id ?? "");
    return shown;
  };

  test("needs nobody, until the same happens again", async () => {
    const harness = start();
    const domain = harness.add("example.com");
    harness.alert(domain, weakened("reject", "none"));
    expect(await acknowledged(harness, domain)).toMatchObject({ rule: "policy_weakened", severity: "bad" });
    expect(harness.overview.openAlertsOf(OWNER, domain)).toEqual([]);
    await harness.clock.advance(HOUR_MS);
    harness.alert(domain, weakened("reject", "none"));
    expect(harness.attention()).toHaveLength(1);
  });

  test("does not uncover an earlier one", async () => {
    const harness = start();
    const domain = harness.add("example.com");
    harness.alert(domain, spike("started", "org:a.example"));
    await harness.clock.advance(HOUR_MS);
    harness.alert(domain, spike("grew", "org:a.example"));
    await acknowledged(harness, domain);
    expect(harness.attention()).toEqual([]);
  });

  test("must be the domain's own", async () => {
    const harness = start();
    const [domain, other] = [harness.add("example.com"), harness.add("example.net")];
    harness.alert(domain, campaign);
    const [shown] = harness.overview.openAlertsOf(OWNER, domain);
    expect(harness.overview.openAlertsOf(OWNER, other)).toEqual([]);
    expect(harness.overview.acknowledge(() => other, shown?.id ?? "")).rejects.toThrow();
    expect(harness.attention()).toHaveLength(1);
  });
});
