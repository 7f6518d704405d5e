import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../../foundation/base/days.ts";
import {
  createDmarcAlertHarness,
  type DmarcAlertHarness,
  expectDocumented,
} from "../../../testing/dmarc-alert-harness.ts";
import { publishedPolicy } from "../../../testing/dmarc-policy.ts";
import type { ReportedPolicy } from "./alert-rule-store.ts";
import { findLapses, type OwnPolicy } from "./policy-weakened.ts";

type P = "none" | "quarantine" | "reject" | null;

/** What reporters found on days, as `day reporter p`. */
const found = (...texts: string[]): readonly ReportedPolicy[] =>
  texts.map((text) => {
    const [day = "", reporter = "", p = ""] = text.split(" ");
    const beginMs = Number(day) * DAY_MS;
    const policy = publishedPolicy({ p: p === "null" ? null : (p as P) });
    return { reporter, day: Number(day), beginMs, endMs: beginMs + DAY_MS - 1, policy };
  });

describe("reports prove a lapse", () => {
  const own: OwnPolicy = { p: "reject", sinceMs: 50 * DAY_MS };
  const ALL_WELL = ["98 google.com reject", "98 yahoo.com reject"];
  test.each<readonly [string, OwnPolicy, readonly string[], readonly string[]]>([
    ["of one day", own, [...ALL_WELL, "100 google.com none"], ["100-100 none google.com"]],
    ["to quarantine", own, [...ALL_WELL, "100 google.com quarantine"], ["100-100 quarantine google.com"]],
    [
      "that two reporters found, on days next to each other",
      own,
      [...ALL_WELL, "100 google.com quarantine", "101 yahoo.com none"],
      ["100-101 none google.com,yahoo.com"],
    ],
    [
      "twice",
      own,
      [...ALL_WELL, "100 google.com none", "104 google.com none"],
      ["104-104 none google.com", "100-100 none google.com"],
    ],
    ["not when no policy is weaker", own, ALL_WELL, []],
    ["not when the reporter never found the right one", own, [...ALL_WELL, "100 odd.example none"], []],
    ["not when the reporter found the right one only later", own, ["100 google.com none", "101 google.com reject"], []],
    ["not when the reporter does not say", own, [...ALL_WELL, "100 google.com null"], []],
    [
      "not on the days after the policy was made stronger",
      { ...own, sinceMs: 98 * DAY_MS },
      [...ALL_WELL, "100 google.com none"],
      [],
    ],
    ["not of a policy as weak as ours", { ...own, p: "quarantine" }, [...ALL_WELL, "100 google.com quarantine"], []],
  ])("%s", (_, policy, reported, expected) => {
    const lapses = findLapses(policy, found(...reported));
    expect(
      lapses.map(
        ({ firstDay, lastDay, policy: { p }, reporters }) => `${firstDay}-${lastDay} ${p} ${reporters.join()}`,
      ),
    ).toEqual([...expected]);
  });
});

describe("a review of reports", () => {
  const newHarness = createDmarcAlertHarness();
  const POLICY = { p: "reject", sp: "reject", np: "reject", adkim: "r", aspf: "r", own: true, inherited_from: null };
  const RECORD = "v=DMARC1; p=reject";
  const believed = { records: [RECORD], holds_ours: true, policy: POLICY, authorisation: "authorised" };

  /** A domain whose policy has been p=reject for 30 days. */
  const begin = (harness: DmarcAlertHarness, state: object = { believed }) => {
    const domain = harness.add("example.com", { state: JSON.stringify(state) });
    const write = (daysAgo: number, p: string) => {
      const history = { status: "active", previous_status: "active", record: RECORD, checks: [], changes: [] };
      const body = JSON.stringify({ ...history, policy: { ...POLICY, p } });
      const atMs = harness.clock.nowMs() - daysAgo * DAY_MS;
      const id = `0000-${String(1_000 - daysAgo)}`;
      harness.db.transact((tx) =>
        harness.domains.insertHistory(tx, { id, domain: domain.number, trigger: "scheduled", atMs, body }),
      );
    };
    write(60, "none");
    write(30, "reject");
    let reports = 0;
    return {
      write,
      /** A report about the day `daysAgo`. */
      async report(
        daysAgo: number,
        p: P,
        { author = null, reporter = "google.com" }: { author?: string | null; reporter?: string } = {},
      ) {
        const day = harness.today - daysAgo;
        const policy = JSON.stringify(publishedPolicy({ domain: "example.com", p }));
        reports += 1;
        harness.db.sqlite.run(
          `INSERT INTO dmarc_reports (id, domain, ingestion, org, begin_ms, end_ms, day, received_at_ms, policy_domain, policy,
            body, rows, messages, aligned, sameness, content, is_complete) VALUES (?, ?, '', ?, ?, ?, ?, 0, 'example.com', ?, '{}', 1, 1, 1, ?, '', 1)`,
          [
            ...[`r${reports}`, domain.number, reporter, day * DAY_MS, (day + 1) * DAY_MS - 1, day, policy],
            author === null ? `s${reports}` : `s${reports} ${author}`,
          ],
        );
        await harness.review(domain.number);
      },
    };
  };

  test("raises one alert for a lapse, with the reporters that found it, however many reports arrive", async () => {
    const harness = newHarness();
    const { report } = begin(harness);
    await report(5, "reject");
    await report(2, "none");
    await report(2, "none");
    await report(1, "none");
    await harness.clock.advance(DAY_MS);
    await report(0, "none");
    await report(3, "none");
    expect(harness.raised()).toEqual([
      `policy_weakened reports:${new Date((harness.today - 2) * DAY_MS).toISOString().slice(0, 10)}`,
    ]);
    expect(harness.events()[0]?.data).toMatchObject({
      trigger: "reports",
      previous_policy: { p: "reject" },
      policy: { p: "none" },
      record: RECORD,
      reported: { reporters: ["google.com"] },
    });
    expectDocumented(harness);
  });

  test.each<readonly [string, (made: ReturnType<typeof begin>) => Promise<void>]>([
    ["a report that is not trusted", ({ report }) => report(2, "none", { author: "unauthenticated" })],
    [
      "a lapse that the DNS showed as well",
      async ({ write, report }) => {
        write(2, "none");
        write(1, "reject");
        await report(2, "none");
      },
    ],
    ["a lapse of long ago", ({ report }) => report(9, "none", { reporter: "google.com" })],
  ])("is silent about %s", async (_, make) => {
    const harness = newHarness();
    const made = begin(harness);
    await made.report(12, "reject");
    await make(made);
    expect(harness.raised()).toEqual([]);
  });

  test("leaves a doubt of the DNS checks to them, and what is not enforced alone", async () => {
    for (const state of [
      { believed, doubts: { policy: 1 } },
      { believed: { ...believed, policy: { ...POLICY, p: "none" } } },
      { believed: { ...believed, policy: { ...POLICY, own: false, inherited_from: "example.com" } } },
    ]) {
      const harness = newHarness();
      const { report } = begin(harness, state);
      await report(5, "reject");
      await report(2, "none");
      expect(harness.raised()).toEqual([]);
    }
  });
});
