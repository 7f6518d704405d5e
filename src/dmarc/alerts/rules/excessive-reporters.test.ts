import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../../foundation/base/days.ts";
import {
  createDmarcAlertHarness,
  enrolSettled,
  expectDocumented,
  type DmarcAlertHarness,
} from "../../../testing/dmarc-alert-harness.ts";
import { ReporterStore, decidingVouchers } from "../../records/domains/reporter-store.ts";
import { DmarcOverview } from "../overview/dmarc-overview.ts";
import { DomainOverviewStore } from "../overview/domain-overview-store.ts";
import { excessiveAdvice, findOutliers } from "./excessive-reporters.ts";
import { OpenAlertStore } from "./open-alert-store.ts";

const newHarness = createDmarcAlertHarness();
const OWNER = { accountId: "account", mode: "live" } as const;
const ATTACKER = "attacker.example";
const HUGE = 1_000_000;

interface Reporting {
  readonly messages: number;
  /** The reported days before today. */
  readonly days: readonly number[];
  readonly isKnown?: boolean;
}

const lastDays = (count: number): readonly number[] => Array.from({ length: count }, (_, day) => day);

const start = () => {
  const harness = newHarness();
  const { db, clock, domains, alerts: raised } = harness;
  const { number } = harness.add("example.com", OWNER);
  const reporters = new ReporterStore(db);
  const overviews = new DomainOverviewStore(db);
  const overview = new DmarcOverview({ db, clock }, { overviews, alerts: new OpenAlertStore(db), raised, domains });
  return {
    ...{ ...harness, number, reporters },
    /** Reports of a reporter about the same number of messages on some days; they all arrive now. */
    reports: (author: string, { messages, days, isKnown = false }: Reporting): void =>
      addReports(harness, number, author, { messages, days, isKnown }),
    review: (): Promise<void> => harness.job.run(),
    open: () => overview.openAlertsOf(OWNER, harness.find(number)).map(({ title, detail }) => `${title}. ${detail}`),
    excessive: () => reporters.ofDomain(number).unknown.flatMap((one) => (one.isExcessive ? [one.author] : [])),
    accept: (author: string) => db.transact((tx) => reporters.accept(tx, OWNER, author, clock.nowMs())),
  };
};

const addReports = (
  { db, clock, arrive }: DmarcAlertHarness,
  domain: number,
  author: string,
  { messages, days, isKnown }: Required<Reporting>,
): void => {
  const reporters = new ReporterStore(db);
  const today = Math.floor(clock.nowMs() / DAY_MS);
  for (const before of days) {
    const day = today - before;
    const voucher = db.transact((tx) => reporters.vouch(tx, domain, { author, isKnown, day }));
    db.sqlite.run(
      `INSERT INTO dmarc_daily_reporters VALUES (?1, ?2, ?3, ?3, 1, ?4, ?4, ?5)
        ON CONFLICT (domain, day, reporter, author, is_trusted) DO UPDATE SET messages = messages + ?4`,
      [domain, day, author, messages, voucher],
    );
  }
  arrive(domain);
};

/** 30 days of two known reporters about 6,000 messages. */
const startCovered = () => {
  const started = start();
  for (const author of ["google.com", "yahoo.com"])
    started.reports(author, { messages: 100, days: lastDays(30), isKnown: true });
  return started;
};

describe("an unknown reporter whose counts are far above those of all known ones", () => {
  test("is named once, with what it counts and what to do", async () => {
    const { reports, review, raised, events, open, excessive, countMails, ...started } = startCovered();
    reports(ATTACKER, { messages: HUGE, days: [1, 2] });
    await review();
    reports(ATTACKER, { messages: HUGE, days: [0] });
    await started.clock.advance(2 * DAY_MS);
    await review();
    expect(raised()).toEqual([`excessive_reporter ${ATTACKER}`]);
    expect(countMails()).toBe(1);
    expect(excessive()).toEqual([ATTACKER]);
    expect(events()[0]).toMatchObject({
      type: "dmarc.excessive_reporter",
      data: {
        ...{ domain: "example.com", count: 1, compared_with: "known_reporters", other_messages: 6_000 },
        reporters: [{ name: ATTACKER, messages: 2 * HUGE }],
        ...{ first_day: "2026-10-22", last_day: "2026-11-20" },
      },
    });
    expectDocumented({ events });
    expect(open()).toEqual([
      "example.com: attacker.example reports 2,000,000 messages in 30 days, all known reporters together 6,000. Advice, classes and other alerts do not count its reports; charts and totals do. Anyone with a domain can send reports, also false ones. If you know the reporter, accept it. Otherwise no action is needed.",
    ]);
  });

  test("needs nobody once it is accepted", async () => {
    const { reports, review, raised, open, accept, excessive } = startCovered();
    reports(ATTACKER, { messages: HUGE, days: [0] });
    await review();
    expect(open()).toHaveLength(1);
    accept(ATTACKER);
    expect(open()).toEqual([]);
    expect(excessive()).toEqual([]);
    reports(ATTACKER, { messages: HUGE, days: [1] });
    await review();
    expect(raised()).toHaveLength(1);
  });

  test("needs nobody once its counts are no longer far above, and is named again when they are", async () => {
    const { reports, review, raised, open, excessive, clock } = startCovered();
    reports(ATTACKER, { messages: HUGE, days: [0] });
    await review();
    await clock.advance(31 * DAY_MS);
    for (const author of ["google.com", "yahoo.com"]) reports(author, { messages: 100, days: [0], isKnown: true });
    await review();
    expect([open(), excessive()]).toEqual([[], []]);
    reports(ATTACKER, { messages: HUGE, days: [0] });
    await review();
    expect(raised()).toEqual(Array(2).fill(`excessive_reporter ${ATTACKER}`));
    expect(open()).toHaveLength(1);
  });

  test("is marked although the rule is off, and nothing is raised", async () => {
    const { reports, review, raised, excessive, ...started } = startCovered();
    started.db.transact((tx) => started.domains.update(tx, started.number, { alerts: { excessive_reporter: false } }));
    reports(ATTACKER, { messages: HUGE, days: [0] });
    await review();
    expect([raised(), excessive()]).toEqual([[], [ATTACKER]]);
  });

  test("is in one alert with others; those that follow within a day are in the next one", async () => {
    const { reports, review, raised, events, excessive, clock } = startCovered();
    for (let n = 0; n < 12; n += 1) reports(`a${n}.example`, { messages: HUGE + n, days: [0] });
    await review();
    expect(raised()).toHaveLength(1);
    expect(events()[0]?.data).toMatchObject({ count: 12, other_messages: 6_000 });
    expect(events()[0]?.data.reporters).toHaveLength(10);
    for (let n = 0; n < 5; n += 1) {
      reports(`b${n}.example`, { messages: HUGE, days: [0] });
      await review();
      await clock.advance(60_000);
    }
    expect([raised(), excessive()].map(({ length }) => length)).toEqual([1, 12]);
    await clock.advance(DAY_MS);
    await review();
    expect(events()[1]?.data).toMatchObject({ count: 5 });
    expect(excessive()).toHaveLength(17);
  });
});

describe("no alert names", () => {
  test.each([
    ["the receiver of most mail", "provider.example", 3_900],
    ["a reporter about a busy day of a small domain", "small.example", 600],
    ["the domain's own receiver, which nobody else can be", "example.com", HUGE],
  ])("%s", async (_, author, messages) => {
    const { reports, review, raised, excessive } = startCovered();
    reports(author, { messages, days: lastDays(30) });
    await review();
    expect([raised(), excessive()]).toEqual([[], []]);
  });

  test("a known or an accepted reporter", async () => {
    const { reports, review, raised, accept } = startCovered();
    accept("accepted.example");
    reports("accepted.example", { messages: HUGE, days: [0] });
    reports("microsoft.com", { messages: HUGE, days: [0], isKnown: true });
    await review();
    expect(raised()).toEqual([]);
  });

  test("a reporter about days that are over", async () => {
    const { reports, review, raised } = startCovered();
    reports(ATTACKER, { messages: HUGE, days: [30, 31] });
    await review();
    expect(raised()).toEqual([]);
  });

  test("the only receiver that reports, or the larger of two", async () => {
    const { reports, review, raised } = start();
    reports("gateway.example", { messages: HUGE, days: lastDays(30) });
    await review();
    reports("other.example", { messages: 1, days: lastDays(30) });
    await review();
    expect(raised()).toEqual([]);
  });
});

describe("where known reporters do not cover the domain", () => {
  test("one far above the others decides nothing from then on", async () => {
    const { reports, review, raised, events, reporters, number } = start();
    for (const author of ["a.example", "b.example"]) reports(author, { messages: 20, days: lastDays(30) });
    reports("c.example", { messages: 5_000, days: lastDays(30) });
    await review();
    expect(raised()).toEqual([]);
    reports(ATTACKER, { messages: 100 * HUGE, days: [0, 1] });
    await review();
    expect(raised()).toEqual([`excessive_reporter ${ATTACKER}`]);
    expect(events()[0]?.data).toMatchObject({ compared_with: "other_reporters", other_messages: 151_200 });
    const found = reporters.ofDomain(number);
    const own = found.unknown.find(({ author }) => author === ATTACKER)?.voucher ?? 0;
    expect(own).toBeGreaterThan(1);
    expect(decidingVouchers(found)).not.toContain(own);
  });

  test("two together are both found: neither is compared with the other", async () => {
    const { reports, review, excessive } = start();
    for (const author of ["a.example", "b.example"]) reports(author, { messages: 20, days: lastDays(30) });
    for (const author of [ATTACKER, "second.example"]) reports(author, { messages: HUGE, days: [0] });
    await review();
    expect(excessive().toSorted()).toEqual([ATTACKER, "second.example"]);
  });
});

test("outliers do not depend on the order of reporters, and in a covered domain not on each other", () => {
  const amounts = fc.array(fc.integer({ min: 0, max: 10_000_000 }), { maxLength: 12 });
  fc.assert(
    fc.property(amounts, fc.nat(100_000), fc.boolean(), (messages, known, isCovered) => {
      const all = messages.map((_, at) => ({ voucher: at + 2, author: `${at}.example`, isExcessive: false }));
      const of = (voucher: number) => ({
        messages: voucher === 1 ? known : (messages[voucher - 2] ?? 0),
        reporters: 1,
      });
      const judge = (unknown: typeof all) =>
        findOutliers({ isCovered, known: [1], unknown }, of).excessive.map(({ voucher }) => voucher);
      const found = new Set(judge(all));
      expect(new Set(judge(all.toReversed()))).toEqual(found);
      if (!isCovered) return;
      for (const one of all) expect(judge([one]).length > 0).toBe(found.has(one.voucher));
    }),
  );
});

test("unknown reporters alone raise no other alert about a domain that known ones cover, although these pause", async () => {
  const { harness, number } = await enrolSettled(newHarness());
  for (const author of ["google.com", "yahoo.com"])
    addReports(harness, number, author, { messages: 10, days: [1, 5], isKnown: true });
  await harness.clock.advance(20 * DAY_MS);
  addReports(harness, number, ATTACKER, { messages: 5_000, days: [0, 1, 2, 3, 4], isKnown: false });
  const { voucher = 0 } = new ReporterStore(harness.db).ofDomain(number).unknown[0] ?? {};
  harness.reverse("203.0.113.7", "mail.shop.example");
  for (let day = harness.today + 16; day <= harness.today + 20; day += 1)
    harness.report(number, day, "203.0.113.7 example.com/mail example.com -", { messages: 5_000, aligned: 5_000 });
  const { sqlite } = harness.db;
  for (const table of ["dmarc_daily", "dmarc_daily_reporters"])
    sqlite.run(`UPDATE ${table} SET is_trusted = ? WHERE is_trusted = 1 AND day > ?`, [voucher, harness.today + 15]);
  await harness.job.run();
  expect(harness.raised().filter((what) => !what.startsWith("reports_stopped"))).toEqual([]);
  sqlite.run("DELETE FROM dmarc_reporters WHERE is_known = 1");
  harness.arrive(number);
  await harness.job.run();
  expect(harness.raised().filter((what) => what.startsWith("new_source"))).toHaveLength(1);
});

test.each([
  [1, "its", "the reporter"],
  [2, "their", "one of the reporters"],
])("what follows from %d of them speaks of as many", (count, whose, who) => {
  const { counted, todo } = excessiveAdvice({ count });
  expect([counted.includes(` ${whose} reports`), todo.startsWith(`If you know ${who}, accept it.`)]).toEqual([
    true,
    true,
  ]);
});
