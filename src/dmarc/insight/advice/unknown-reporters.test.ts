import { messagesNow, summaryNow } from "../../../testing/report-queries.ts";
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { atOnce } from "../../../foundation/base/in-steps.ts";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { type SampleRow, sampleReportMail } from "../../../testing/dmarc-reports.ts";
import { createZoneResolver } from "../../../testing/dns-zone.ts";
import { createIngestHarness, INGEST_OWNER, type IngestHarness } from "../../../testing/ingest-harness.ts";
import { AlertRuleStore } from "../../alerts/rules/alert-rule-store.ts";
import { AcceptedReporters } from "../queries/accepted-reporters.ts";
import type { Summary } from "../queries/summary.ts";
import { RecordStore } from "../queries/record-store.ts";
import { RollupStore } from "../sources/rollup-store.ts";
import { createAdvisor } from "./advisor.ts";

const newHarness = createIngestHarness();
const START_MS = Date.parse("2026-03-01T00:00:00Z");
const DAYS = 20;
const HOUR_MS = 3_600_000;
const HUGE = 1_000_000_000;
const RECORD = "v=DMARC1; p=none; rua=mailto:k@r.example";
const TAGS = { p: "none", sp: "none", np: "none", adkim: "r", aspf: "r", t: "n", pct: 100 };
const STATE = JSON.stringify({
  believed: { records: [RECORD], holds_ours: true, policy: { ...TAGS, own: true, inherited_from: null } },
  doubt: null,
});

/** Mail is authenticated as its sender's. */
const start = () => {
  const clock = createTestClock(START_MS + (DAYS + 1) * DAY_MS);
  const harness = newHarness({
    clock,
    authenticate: async ({ mailFrom }) => {
      const [localPart = null, from = null] = mailFrom?.split("@") ?? [];
      return { authenticity: "pass", from, localPart, spf: null, dkim: [], dmarc: null, message: "made up" };
    },
  });
  const createdAtMs = START_MS - 30 * DAY_MS;
  const domain = harness.enrol("example.com", { state: STATE, createdAtMs, updatedAtMs: createdAtMs, sendsMail: true });
  const reading = new RollupStore(harness.db, { trustedOnly: true });
  const advise = createAdvisor({
    reading,
    clock,
    resolver: createZoneResolver({}),
    records: new RecordStore(harness.db),
  });
  return { harness, domain, reading, advise: () => advise(domain), clock };
};

interface Mailed {
  readonly from: string;
  readonly org: string;
  /** The day, from 0 on. */
  readonly day: number;
  readonly rows: readonly SampleRow[];
  readonly id?: string;
}

const mail = async (harness: IngestHarness, { from, org, day, rows, id = "" }: Mailed): Promise<void> => {
  const report = { org, email: from, reportId: `${org} ${day} ${id}`, begin: (START_MS + day * DAY_MS) / 1000, rows };
  const smtp = { via: "smtp", client: "192.0.2.1", helo: "x", mailFrom: from } as const;
  const { row } = await harness.upload(sampleReportMail(report), smtp);
  if (row.outcome !== "stored") throw new Error(`a report was not stored: ${row.reason}`);
};

const GOOGLE = { org: "google.com", from: "noreply-dmarc-support@google.com" };
const YAHOO = { org: "Yahoo", from: "noreply@dmarc.yahoo.com" };
const UNCLASSIFIED = { ip: "203.0.113.7", count: 500, dkim: "fail", spf: "fail" } as const;
const SIGNED_AS_OTHER = { dkimResults: ["mailer.example pass"], spfResults: ["mailer.example pass"] };
const ROWS: readonly SampleRow[] = [{ count: 30_000 }, { ...UNCLASSIFIED, ...SIGNED_AS_OTHER }];

/** 20 days of two reporters about 30,000 aligned messages and 500 of a sender that could be the owner's. */
const report20Days = async (harness: IngestHarness, reporters: ReadonlyArray<{ org: string; from: string }>) => {
  for (let day = 0; day < DAYS; day += 1)
    for (const reporter of reporters) await mail(harness, { ...reporter, day, rows: ROWS });
};

const attack = async (harness: IngestHarness, rows: readonly SampleRow[], id: string): Promise<void> => {
  for (const org of ["attackerz.net", "attackery.org"])
    for (const day of [DAYS - 3, DAYS - 2, DAYS - 1]) await mail(harness, { org, from: `r@${org}`, day, rows, id });
};

describe("two reporters whose domains anybody can buy", () => {
  test("change nothing in the advice about a domain that known reporters cover", async () => {
    const { harness, advise, clock } = start();
    await report20Days(harness, [GOOGLE, YAHOO]);
    // Reverse names are not awaited any more.
    await clock.advance(HOUR_MS);
    const { notes: _, ...before } = await advise();
    expect(before).toMatchObject({ ready: false, next: { action: "classify_sources" } });
    await attack(harness, [{ count: HUGE }], "good");
    const { notes, ...after } = await advise();
    expect(after).toEqual(before);
    expect(notes.find(({ code }) => code === "unknown_reporters")?.message).toBe(
      "This advice leaves out 6,000,000,000 messages of the last 30 days in reports of unknown reporters: attackery.org, attackerz.net. Accept those that you know.",
    );
    await attack(harness, [{ count: HUGE, dkim: "fail", spf: "fail", ip: "198.51.100.1" }], "bad");
    const { notes: __, ...blocked } = await advise();
    expect(blocked).toEqual(before);
  });

  test("cannot hide a sender that one known reporter names, although it does not cover the domain", async () => {
    const { harness, advise, clock } = start();
    await report20Days(harness, [GOOGLE]);
    await clock.advance(HOUR_MS);
    await attack(harness, [{ count: HUGE }], "good");
    const advice = await advise();
    expect(advice).toMatchObject({ ready: false, next: { action: "classify_sources" } });
  });

  test("decide once the owner accepts them, and no longer when that is withdrawn", async () => {
    const { harness, reading, domain } = start();
    await report20Days(harness, [GOOGLE, YAHOO]);
    const range = { fromDay: 0, toDay: 40_000 };
    const before = messagesNow(reading, domain.number, range);
    await attack(harness, [{ count: 5 }], "good");
    const { reporters } = harness.stores;
    expect(messagesNow(reading, domain.number, range)).toBe(before);
    harness.db.transact((tx) => reporters.accept(tx, INGEST_OWNER, "attackerz.net", 1));
    expect(messagesNow(reading, domain.number, range)).toBe(before + 15);
    harness.db.transact((tx) => reporters.withdraw(tx, INGEST_OWNER, "attackerz.net"));
    expect(messagesNow(reading, domain.number, range)).toBe(before);
  });

  test("are marked in the summary, which counts them", async () => {
    const { harness, domain } = start();
    await report20Days(harness, [GOOGLE, YAHOO]);
    await attack(harness, [{ count: 5 }], "good");
    const figures = new RollupStore(harness.db);
    const range = { fromDay: 0, toDay: 40_000 };
    const before = summaryNow(figures, domain, range);
    expect(before).toMatchObject({ unknown_reporter_messages: 30, reporters: 4 });
    expect(before.unknown_reporter_note).toBe(
      "30 of 1,220,030 messages are in reports of 2 unknown reporters: anybody with a domain can be one. They are counted here; advice and alerts ignore them, because known reporters cover the domain.",
    );
    const standings = (summary: Summary) =>
      Object.fromEntries(summary.top_reporters.map(({ org_name, standing }) => [org_name, standing]));
    expect(standings(before)).toEqual({
      ...{ "google.com": "known", Yahoo: "known", "attackerz.net": "unknown", "attackery.org": "unknown" },
    });
    const accepted = new AcceptedReporters(harness, harness.stores.reporters);
    await accepted.accept(INGEST_OWNER, "mx.attackerz.net");
    const after = summaryNow(figures, domain, range);
    expect(after.unknown_reporter_messages).toBe(15);
    expect(standings(after)).toMatchObject({ "attackerz.net": "accepted", "attackery.org": "unknown" });
  });

  test("of another account stay unknown there", async () => {
    const { harness, reading, domain } = start();
    const other = harness.enrol("example.com", { accountId: "other" });
    await report20Days(harness, [GOOGLE, YAHOO]);
    await attack(harness, [{ count: 5 }], "good");
    harness.db.transact((tx) =>
      harness.stores.reporters.accept(tx, { accountId: "other", mode: "live" }, "attackerz.net", 1),
    );
    expect(other.number).not.toBe(domain.number);
    expect(reading.domainReporters(domain.number).unknown.map(({ author }) => author)).toEqual([
      "attackerz.net",
      "attackery.org",
    ]);
  });
});

test("a mailbox that anybody can have at a provider is not the provider", async () => {
  const { harness, reading, domain } = start();
  const rows = [{ count: 1 }];
  await mail(harness, { org: "yahoo.com", from: "somebody@yahoo.com", day: 1, rows });
  await mail(harness, { org: "GMX", from: "noreply-dmarc@gmx.net", day: 1, rows, id: "2" }).catch(() => undefined);
  const { unknown } = reading.domainReporters(domain.number);
  expect(unknown.map(({ author }) => author)).toContain("yahoo.com");
});

describe("where small receivers only report", () => {
  const reporters = ["post.amt-eins.de", "mx.verein-zwei.de", "mail.firma-drei.at"].map((org) => {
    const [, name = "", tld = ""] = org.split(".");
    return { org: `${name}.${tld}`, from: `dmarc@${org}` };
  });

  test("advice proceeds when it holds without each of them", async () => {
    const { harness, advise } = start();
    for (let day = 0; day < DAYS; day += 1)
      for (const reporter of reporters) await mail(harness, { ...reporter, day, rows: [{ count: 50 }] });
    const advice = await advise();
    expect(advice).toMatchObject({ ready: true, next: { action: "rehearse_quarantine" } });
    expect(advice.notes.map(({ code }) => code)).toContain("unknown_reporters");
  });

  test("one of them alone does not make it ready", async () => {
    const { harness, advise } = start();
    const [first, second] = reporters;
    if (first === undefined || second === undefined) throw new Error("no reporters");
    for (let day = 0; day < DAYS; day += 1) {
      await mail(harness, { ...first, day, rows: [{ count: 50 }, { ...UNCLASSIFIED, ...SIGNED_AS_OTHER }] });
      await mail(harness, { ...second, day, rows: [{ count: HUGE }] });
    }
    expect((await advise()).ready).toBe(false);
  });
});

describe("whatever one unknown reporter reports about a domain that known ones cover", () => {
  type Reports = Array<{ day: number; rows: SampleRow[] }>;
  const row: fc.Arbitrary<SampleRow> = fc.record({
    ip: fc.constantFrom("192.0.2.1", "203.0.113.7", "198.51.100.9", "198.51.100.10", "2001:db8::1"),
    count: fc.constantFrom(1, 20, 5_000, HUGE),
    dkim: fc.constantFrom("pass", "fail"),
    spf: fc.constantFrom("pass", "fail"),
    headerFrom: fc.constantFrom("example.com", "a.example.com", "new.example.com"),
    dkimResults: fc.constantFrom([], ["example.com pass s1"], ["mailer.example pass"], ["google.com pass x"]),
    spfResults: fc.constantFrom([], ["example.com pass"], ["mailer.example pass"]),
    reasons: fc.constantFrom([], ["forwarded x"], ["local_policy arc=pass"]),
  });
  const reports = (most: number, from: number) =>
    fc.array(
      fc.record({
        day: fc.integer({ min: from, max: DAYS - 1 }),
        rows: fc.array(row, { minLength: 1, maxLength: 3 }),
      }),
      { maxLength: most, minLength: 1 },
    );

  /** Once these showed the day, or the place in a list, of the source that the unknown reporter named first. */
  const first: SampleRow = {
    ...{ ip: "203.0.113.7", count: 1, dkim: "pass", spf: "pass", headerFrom: "example.com", reasons: [] },
    dkimResults: ["example.com pass s1"],
    spfResults: ["mailer.example pass"],
  };
  const second: SampleRow = { ...first, ip: "192.0.2.1", dkimResults: [], spfResults: [] };
  const COUNTEREXAMPLES = [-8, 2].flatMap((day) =>
    [true, false].map((isFirst): [Reports, Reports, boolean] => [
      [{ day: 2, rows: [second, first] }],
      [{ day, rows: [first] }],
      isFirst,
    ]),
  );

  const seenBy = async ({ advise, harness, reading, domain }: ReturnType<typeof start>) => {
    const { notes: _, ...advice } = await advise();
    const rules = new AlertRuleStore(harness.db, { trustedOnly: true });
    const range = { fromDay: 0, toDay: 40_000 };
    return {
      advice,
      days: atOnce(rules.sourceDays(domain.number, range, null)),
      totals: atOnce(reading.totals(domain.number, range)),
    };
  };

  const covered = async (known: Reports) => {
    const world = start();
    for (const reporter of [GOOGLE, YAHOO])
      for (const day of [0, 1]) await mail(world.harness, { ...reporter, day, rows: [{ count: 10 }], id: "first" });
    for (const [at, one] of known.entries()) await mail(world.harness, { ...GOOGLE, ...one, id: `known ${at}` });
    return world;
  };

  test("requirements, unclassified senders, next step and alert figures stay", async () => {
    await fc.assert(
      fc.asyncProperty(reports(8, 2), reports(6, -20), fc.boolean(), async (known, unknown, isFirst) => {
        const without = await seenBy(await covered(known));
        const world = isFirst ? start() : await covered(known);
        const send = async () => {
          for (const [at, one] of unknown.entries())
            await mail(world.harness, { org: "attackerz.net", from: "r@attackerz.net", ...one, id: `${at}` });
        };
        await send();
        if (isFirst) {
          for (const reporter of [GOOGLE, YAHOO])
            for (const day of [0, 1])
              await mail(world.harness, { ...reporter, day, rows: [{ count: 10 }], id: "first" });
          for (const [at, one] of known.entries()) await mail(world.harness, { ...GOOGLE, ...one, id: `known ${at}` });
        }
        const { advice, totals, days } = await seenBy(world);
        expect({ advice, totals }).toEqual({ advice: without.advice, totals: without.totals });
        expect(days.map(({ messages, day }) => [day, messages]).toSorted()).toEqual(
          without.days.map(({ messages, day }) => [day, messages]).toSorted(),
        );
      }),
      { numRuns: 25, examples: COUNTEREXAMPLES },
    );
  }, 120_000);
});
