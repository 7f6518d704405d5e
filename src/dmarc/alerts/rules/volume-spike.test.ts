import { describe, expect, test } from "bun:test";
import type { DayRange } from "../../../foundation/base/days.ts";
import { readDays } from "../../insight/sources/day-steps.ts";
import {
  createDmarcAlertHarness,
  type DmarcAlertHarness,
  expectDocumented,
} from "../../../testing/dmarc-alert-harness.ts";

const newHarness = createDmarcAlertHarness();
const DAY_MS = 24 * 60 * 60_000;
const OWN = "192.0.2.1 example.com/mail example.com -";

/** A domain with 60 days of 90 messages; alerts from `today` on. */
const settled = async (more: Parameters<DmarcAlertHarness["add"]>[1] = {}) => {
  const harness = newHarness();
  const { number } = harness.add("example.com", more);
  harness.reverse("192.0.2.1", "mail.example.com");
  for (let day = harness.today - 60; day < harness.today; day++)
    harness.report(number, day, OWN, { messages: 90, aligned: 90 });
  await harness.job.run();
  expect(harness.raised()).toEqual([]);
  return { harness, number };
};

/** Lets a day pass with a number of messages, and reviews it twice. */
const pass = async ({ harness, number }: Awaited<ReturnType<typeof settled>>, day: number, messages: number) => {
  harness.report(number, harness.today + day, OWN, { messages, aligned: messages });
  for (let n = 0; n < 2; n++) await harness.job.run();
  await harness.clock.advance(DAY_MS);
};

const alertsOf = ({ db }: DmarcAlertHarness) =>
  db.sqlite
    .query<{ body: string }, []>("SELECT body FROM dmarc_alerts WHERE rule = 'volume_spike' ORDER BY id")
    .all()
    .map(({ body }) => JSON.parse(body) as { summary: string; data: Record<string, unknown> });

describe("a source that sends far more than before", () => {
  test("is one alert with a running total, and one when it is over", async () => {
    const made = await settled();
    for (const [day, messages] of [3_000, 2_900, 3_100, 90, 90, 90, 90].entries()) await pass(made, day, messages);
    const { harness } = made;
    expect(harness.raised()).toEqual(["volume_spike own", "volume_spike own"]);
    expect(harness.countMails()).toBe(2);
    const [first, last] = alertsOf(harness);
    expect(first?.summary).toContain("9,000 messages passed DMARC since 2026-11-20, at most 90 a day before");
    expect(first?.data).toMatchObject({ state: "started", day: "2026-11-22", messages: 9_000, usual_messages: 90 });
    expect(last?.data).toMatchObject({ state: "ended", messages: 9_000 });
    expectDocumented(harness);
  });

  test.each<[string, Parameters<DmarcAlertHarness["add"]>[1]]>([
    ["the rule is off", { alerts: { volume_spike: false } }],
    ["it is marked as a bulk sender", { bulkSenders: ["own"] }],
    ["the threshold of messages is higher", { alertThresholds: { volume_spike_messages: 3_001 } }],
    ["the factor is higher", { alertThresholds: { volume_spike_factor: 34 } }],
  ])("is none when %s", async (_, more) => {
    const made = await settled(more);
    await pass(made, 0, 3_000);
    expect(made.harness.raised()).toEqual([]);
  });

  test.each([31, 360])("is none when it sent half as much %i days ago", async (daysAgo) => {
    const made = await settled();
    const { harness, number } = made;
    harness.report(number, harness.today - daysAgo, OWN, { messages: 1_500, aligned: 1_500 });
    await pass(made, 0, 3_000);
    expect(harness.raised()).toEqual([]);
  });

  test("is none when a receiver only began to report", async () => {
    const made = await settled();
    const { harness, number } = made;
    const counted = [
      { reporter: "google.com", day: harness.today, messages: 100, aligned: 100, forwarded: 0 },
      { reporter: "new.example", day: harness.today, messages: 2_900, aligned: 2_900, forwarded: 0 },
    ];
    const reporterDays = (_: readonly number[], range: DayRange) => readDays(range, () => counted);
    harness.report(number, harness.today, OWN, { messages: 3_000, aligned: 3_000 });
    await harness.review(number, { records: Object.assign(Object.create(harness.stores.records), { reporterDays }) });
    expect(harness.raised()).toEqual([]);
    harness.arrive(number);
    await harness.job.run();
    expect(harness.raised()).toEqual(["volume_spike own"]);
  });

  test("changes the totals of nobody else's alert", async () => {
    const made = await settled();
    const other = made.harness.add("example.net");
    const foreign = { rule: "volume_spike", subject: "own", data: {}, summary: "x", cooldown: false };
    made.harness.db.transact((tx) => made.harness.raise(tx, other, foreign, 0));
    await pass(made, 0, 3_000);
    await pass(made, 1, 3_000);
    const kept = made.harness.db.sqlite
      .query<{ body: string }, [number]>("SELECT body FROM dmarc_alerts WHERE domain = ?")
      .all(other.number);
    expect(kept).toEqual([{ body: '{"summary":"x","data":{}}' }]);
  });
});

describe("mail that passes from many new addresses", () => {
  const replay = (
    { harness, number }: Awaited<ReturnType<typeof settled>>,
    hosts: number,
    name: (n: number) => string | null,
  ) => {
    for (let n = 1; n <= hosts; n++) {
      const ip = `198.51.${100 + (n % 9)}.${n}`;
      harness.reverse(ip, name(n));
      harness.report(number, harness.today, `${ip} example.com/mail b.example.net -`, { messages: 80, aligned: 80 });
    }
  };

  test("is one alert that names the signature", async () => {
    const made = await settled();
    replay(made, 80, (n) => `vm${n}.rent${n % 9}.example`);
    await pass(made, 0, 90);
    for (let day = 1; day < 6; day++) await pass(made, day, 90);
    const { harness } = made;
    expect(harness.raised().filter((one) => one.startsWith("volume"))).toEqual([
      "volume_spike new_addresses",
      "volume_spike new_addresses",
    ]);
    const [first] = alertsOf(harness);
    expect(first?.data).toMatchObject({
      ...{ reason: "new_addresses", source: null, addresses: 80, messages: 6_400 },
      signatures: [{ domain: "example.com", selector: "mail", addresses: 80 }],
    });
    expectDocumented(harness);
  });

  test("has one alert about its new sources, while others have their own", async () => {
    const made = await settled();
    const { harness, number } = made;
    replay(made, 80, (n) => `vm${n}.rent${n % 9}.example`);
    const unaligned = { messages: 800, aligned: 0 };
    harness.reverse("203.0.113.7", "mail.contractor.example");
    harness.report(number, harness.today, "203.0.113.7 contractor.example/k contractor.example -", unaligned);
    await pass(made, 0, 90);
    const sources = harness.raised().filter((one) => one.startsWith("new_source"));
    expect(sources.map((one) => one.replace(/many:.*/, "many"))).toEqual([
      "new_source many",
      "new_source org:contractor.example",
    ]);
  });

  test("is alerted when the reports come a day later", async () => {
    const made = await settled();
    await pass(made, 0, 90);
    replay(made, 80, (n) => `vm${n}.rent${n % 9}.example`);
    await pass(made, 1, 90);
    expect(made.harness.raised()).toContain("volume_spike new_addresses");
  });

  test.each<[string, number, (n: number) => string | null]>([
    ["are few", 19, () => null],
    ["are of a known service", 80, (n) => `o${n}.outbound-mail.sendgrid.net`],
    ["are of one new organization, which is a new source", 80, (n) => `mta${n}.newsletters.example`],
  ])("is none when they %s", async (_, hosts, name) => {
    const made = await settled();
    replay(made, hosts, name);
    await pass(made, 0, 90);
    expect(made.harness.raised().filter((one) => one.startsWith("volume"))).toEqual([]);
  });
});
