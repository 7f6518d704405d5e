import { describe, expect, test } from "bun:test";
import { createDmarcAlertHarness } from "../../../testing/dmarc-alert-harness.ts";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { newId } from "../../../foundation/base/secrets.ts";
import { createZoneResolver, type Zone } from "../../../testing/dns-zone.ts";
import { createAdvisor } from "./advisor.ts";
import { RecordStore } from "../queries/record-store.ts";
import { adviceSchema } from "./advice-model.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";

const newHarness = createDmarcAlertHarness();
const RECORD = "v=DMARC1; p=none; rua=mailto:k@r.example";
const POLICY = {
  p: "none",
  sp: "none",
  np: "none",
  adkim: "r",
  aspf: "r",
  t: "n",
  pct: 100,
  own: true,
  inherited_from: null,
};
const STATE = JSON.stringify({ believed: { records: [RECORD], holds_ours: true, policy: POLICY }, doubt: null });

const stateOf = (p: string, t = "n") =>
  JSON.stringify({
    believed: { records: [`v=DMARC1; p=${p}; t=${t}; rua=mailto:k@r.example`], policy: { ...POLICY, p, t } },
    doubt: null,
  });

/** A domain that was enrolled 60 days ago. */
const start = (zone: Zone = {}, more: Partial<DomainRow> = {}) => {
  const harness = newHarness();
  const { reading, clock, db, domains } = harness;
  const records = new RecordStore(db);
  const resolver = createZoneResolver(zone);
  const createdAtMs = clock.nowMs() - 60 * DAY_MS;
  const domain = harness.add("example.com", { state: STATE, createdAtMs, updatedAtMs: createdAtMs, ...more });
  const advise = createAdvisor({ reading, resolver, clock, domains, records });
  return {
    ...harness,
    resolver,
    domain,
    advise: () => advise(domain),
    adviseWithoutHistory: () => createAdvisor({ reading, resolver, clock, records })(domain),
    /** What the DNS said `daysAgo`. */
    history(daysAgo: number, policy: Partial<Record<keyof typeof POLICY, unknown>> | null): void {
      const atMs = clock.nowMs() - daysAgo * DAY_MS;
      const told = policy === null ? null : { ...POLICY, ...policy };
      const fixed = { status: "active", previous_status: "active", record: null, checks: [], changes: [] };
      const body = JSON.stringify({ ...fixed, policy: told });
      db.transact((tx) =>
        domains.insertHistory(tx, { id: newId(), domain: domain.number, trigger: "scheduled", atMs, body }),
      );
    },
    /** Good reports of some reporters about a day. */
    good(day: number, reporters: readonly string[] = ["google.com", "yahoo"]): void {
      harness.report(domain.number, day, "dkim:example.com", { messages: 20, aligned: 20 });
      db.sqlite.run("DELETE FROM dmarc_daily_reporters WHERE day = ?", [day]);
      for (const reporter of reporters) {
        db.sqlite.run("INSERT INTO dmarc_daily_reporters VALUES (?, ?, ?, '', 1, 10, 10, 1)", [
          domain.number,
          day,
          reporter,
        ]);
      }
    },
    async observed(): Promise<Record<string, unknown>> {
      return Object.fromEntries((await advise(domain)).requirements.map(({ code, observed }) => [code, observed]));
    },
  };
};

describe("advice about a domain", () => {
  test("counts what its reports say, and fits the documentation", async () => {
    const { advise, domain, report, today, observed } = start();
    for (let day = today - 12; day <= today; day++)
      report(domain.number, day, "dkim:example.com", { messages: 20, aligned: 20 });
    const advice = await advise();
    expect(adviceSchema.safeParse(advice).error).toBeUndefined();
    expect(advice.stage).toBe("monitoring");
    expect(await observed()).toMatchObject({ reported_days: 13, reporters: 1, messages: 260, aligned_share: 1 });
  });

  test("without any report or check is to publish the record", async () => {
    const { advise } = start({}, { state: null, status: "pending" });
    expect(await advise()).toMatchObject({ stage: "none", ready: false, next: { action: "publish_record" } });
  });

  test("checks whether the subdomains that send exist; no response is not a yes", async () => {
    for (const [zone, action] of [
      [{ "a.example.com": { TXT: ["v=spf1 -all"] } }, "protect_missing_names"],
      [{}, "wait"],
      [{ "a.example.com": "servfail" }, "wait"],
    ] as const) {
      const { advise, domain, report, name, today, resolver } = start(zone, { state: stateOf("quarantine") });
      report(domain.number, today, "dkim:example.com", { messages: 5, aligned: 5 });
      name(domain.number, today, "a.example.com", { messages: 5, aligned: 5 });
      name(domain.number, today, "forged.example.com", { messages: 5 });
      expect((await advise()).next?.action).toBe(action);
      expect(resolver.queries).toEqual(["A a.example.com"]);
    }
  });

  test("sends no DNS query for test keys", async () => {
    const { advise, domain, name, today, resolver } = start({}, { mode: "test" });
    name(domain.number, today, "a.example.com", { messages: 5, aligned: 5 });
    await advise();
    expect(resolver.queries).toEqual([]);
  });
});

describe("a stage lasts for 14 days with reports under its policy", () => {
  test.each([
    ["none", "n", "rehearse_quarantine"],
    ["quarantine", "y", "end_rehearsal"],
    ["quarantine", "n", "reject"],
    ["reject", "y", "end_rehearsal"],
  ])("p=%s t=%s", async (p, t, action) => {
    for (const [daysAgo, expected] of [
      [14, "unready"],
      [15, action],
    ] as const) {
      const { advise, history, good, today } = start({}, { state: stateOf(p, t) });
      history(40, { p: "none", t: t === "n" && p === "none" ? "y" : "n" });
      history(daysAgo, { p, t });
      for (let day = today - 29; day < today; day++) good(day);
      const { ready, next } = await advise();
      expect(ready ? next?.action : "unready").toBe(expected);
    }
  });

  test("so nobody goes from none to reject in one afternoon", async () => {
    const { advise, history, good, today } = start({}, { state: stateOf("quarantine", "y") });
    for (let day = today - 29; day <= today; day++) good(day);
    history(30, { p: "none" });
    history(0, { p: "quarantine", t: "y" });
    const { ready, next, requirements } = await advise();
    expect([ready, next?.record ?? ""]).toEqual([false, expect.not.stringContaining("t=n")]);
    expect(requirements.filter(({ met }) => !met)).toEqual([
      expect.objectContaining({ code: "reported_days", observed: 0 }),
    ]);
  });

  test.each<[string, [daysAgo: number, policy: Record<string, unknown> | null][], number]>([
    ["the enrolment, without a history", [], 30],
    [
      "the oldest of the rows that say it",
      [
        [20, { p: "reject" }],
        [9, {}],
        [5, { np: "reject" }],
        [1, {}],
      ],
      9,
    ],
    [
      "its return, when it was another for a while",
      [
        [25, {}],
        [8, { p: "reject" }],
        [6, {}],
      ],
      6,
    ],
    [
      "the row after one that knew of none",
      [
        [12, null],
        [4, {}],
      ],
      4,
    ],
    [
      "the last row, when the newest says something else",
      [
        [20, {}],
        [3, { t: "y" }],
      ],
      3,
    ],
  ])("counted from %s", async (_, rows, days) => {
    const { history, good, today, observed } = start();
    for (let day = today - 29; day <= today; day++) good(day);
    for (const [daysAgo, policy] of rows) history(daysAgo, policy);
    expect((await observed()).reported_days).toBe(days);
  });

  test("through a history of many rows", async () => {
    const { history, good, today, observed } = start();
    for (let day = today - 29; day <= today; day++) good(day);
    history(20, { p: "reject" });
    for (let n = 0; n < 120; n++) history(10 - n / 100, {});
    expect((await observed()).reported_days).toBe(10);
  });

  test("from the last change of anything, where no history is at hand", async () => {
    const { adviseWithoutHistory, domain, good, today } = start();
    for (let day = today - 29; day <= today; day++) good(day);
    expect((await adviseWithoutHistory()).ready).toBe(true);
    const changed = start({}, { updatedAtMs: domain.updatedAtMs + 50 * DAY_MS });
    for (let day = today - 29; day <= today; day++) changed.good(day);
    expect((await changed.adviseWithoutHistory()).ready).toBe(false);
  });
});

describe("a sender that could be the owner's", () => {
  const unknown = async () => {
    const { domain, good, report, today, clock, advise } = start();
    for (let day = today - 29; day <= today; day++) {
      good(day);
      report(domain.number, day, "203.0.113.7 -/- mailer.example -", { messages: 20, authenticated: 20 });
    }
    return { advise, clock };
  };

  test("is no question while its reverse names are looked up, an hour at most", async () => {
    const { advise, clock } = await unknown();
    expect(await advise()).toMatchObject({
      ready: false,
      next: { action: "wait", why: expect.stringContaining("reverse DNS lookups of its addresses are not complete") },
      obstacles: [{ problem: "unclassified" }],
    });
    await clock.advance(3_600_000);
    expect((await advise()).next).toMatchObject({ action: "classify_sources", source: "org:mailer.example" });
  });
});

test("own servers that fail beside others that pass are named, with their last failing day", async () => {
  const { domain, good, report, reverse, today, advise } = start();
  reverse("192.0.2.1", "mx.example.com");
  reverse("192.0.2.9", "scanner.example.com");
  for (let day = today - 29; day <= today; day++) {
    good(day);
    report(domain.number, day, "192.0.2.1 example.com/s1 - -", { messages: 50, aligned: 50 });
    if (day < today - 2) report(domain.number, day, "192.0.2.9 -/- - -", { messages: 10 });
  }
  const { next } = await advise();
  expect(next).toMatchObject({ action: "fix_sources", source: "own/failing" });
  expect(next?.why).toContain("270 messages of the last 30 days failed, the last on 2026-11-17.");
  expect(next?.steps[0]).toBe("Sign the mail with DKIM as example.com on the servers that fail: 192.0.2.9 (270).");
});

describe("one window of 30 days holds for", () => {
  test("days and shares: days long ago do not count for the mail of today", async () => {
    const { advise, domain, report, good, today, observed } = start();
    for (let day = today - 29; day <= today - 14; day++) {
      good(day);
      report(domain.number, day, "spf:crm.mcsv.net", { messages: 20, authenticated: 20 });
    }
    good(today);
    expect(await observed()).toMatchObject({ reported_days: 17, aligned_share: 0.5151 });
    expect((await advise()).ready).toBe(false);
  });

  test("shares, but a bad week is not hidden by good ones before", async () => {
    const { domain, report, good, today, observed } = start();
    for (let day = today - 29; day <= today; day++) good(day);
    report(domain.number, today - 10, "dkim:example.com", { messages: 100_000, aligned: 100_000 });
    report(domain.number, today - 6, "spf:crm.mcsv.net", { messages: 140, authenticated: 140 });
    expect(await observed()).toMatchObject({ aligned_share: 0.9986, recent_share: 0.5 });
  });

  test("reporters: those of two days count, under whichever name they write", async () => {
    const { good, today, observed } = start();
    good(today - 20, ["enterprise outlook", "google inc.", "once.example"]);
    good(today - 2, ["outlook.com", "protection.outlook.com"]);
    expect((await observed()).reporters).toBe(1);
    good(today - 1, ["google.com"]);
    expect((await observed()).reporters).toBe(2);
  });
});

test("advice about a domain without reports says nothing about failing mail", async () => {
  const { advise, domain, report, today } = start({}, { sendsMail: null });
  const action = async () => (await advise()).next?.action;
  expect(await action()).toBe("wait");
  const silent = await start({}, { sendsMail: false }).advise();
  expect(silent).toMatchObject({ ready: true, next: { action: "reject_all" } });
  expect(JSON.stringify(silent)).not.toMatch(/passed|in 14 days/);
  report(domain.number, today - 13, "spf:spammer.example", { messages: 5 });
  expect(await action()).toBe("wait");
  report(domain.number, today - 14, "spf:spammer.example", { messages: 5 });
  expect((await advise()).next).toMatchObject({
    action: "set_sends_mail",
    why: "No mail of example.com has passed DMARC in 14 days. Does it send any?",
  });
  // A monthly newsletter is mail.
  report(domain.number, today - 44, "dkim:example.com", { messages: 500, aligned: 500 });
  expect(await action()).toBe("wait");
});

test("a domain that sends no mail waits for 14 days without mail that passes, and for nothing else", async () => {
  for (const [daysAgo, action] of [
    [14, "reject_all"],
    [13, "wait"],
  ] as const) {
    const { advise, domain, report, today } = start({}, { sendsMail: false });
    report(domain.number, today - daysAgo, "dkim:example.com", { messages: 1, aligned: 1 });
    expect((await advise()).next?.action).toBe(action);
  }
});
