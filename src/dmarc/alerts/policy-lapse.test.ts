import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../base/days.ts";
import { createDmarcAlertWorlds, type DmarcAlertWorld } from "../../testing/dmarc-alert-world.ts";
import { expectDocumented } from "../../testing/dmarc-alert-settled.ts";
import { publishedPolicy } from "../../testing/dmarc-policy.ts";
import { createPolicyLapseReview, findLapses, type OwnPolicy } from "./policy-lapse.ts";
import { createPolicyLapseStore, type ReportedPolicy } from "./policy-lapse-store.ts";

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
  const newWorld = createDmarcAlertWorlds();
  const POLICY = { p: "reject", sp: "reject", np: "reject", adkim: "r", aspf: "r", own: true, inherited_from: null };
  const RECORD = "v=DMARC1; p=reject";
  const believed = { records: [RECORD], holds_ours: true, policy: POLICY, authorisation: "authorised" };

  /** A domain whose policy has been p=reject for 30 days. */
  const begin = (world: DmarcAlertWorld, state: object = { believed }) => {
    const domain = world.add("example.com", { state: JSON.stringify(state) });
    const write = (daysAgo: number, p: string) => {
      const history = { status: "active", previous_status: "active", record: RECORD, checks: [], changes: [] };
      const body = JSON.stringify({ ...history, policy: { ...POLICY, p } });
      const atMs = world.clock.nowMs() - daysAgo * DAY_MS;
      const id = `0000-${String(1_000 - daysAgo)}`;
      world.db.transact((tx) =>
        world.domains.insertHistory(tx, { id, domain: domain.number, trigger: "scheduled", atMs, body }),
      );
    };
    write(60, "none");
    write(30, "reject");
    const review = createPolicyLapseReview({
      store: createPolicyLapseStore(world.db),
      domains: world.domains,
      raise: world.raise,
    });
    let reports = 0;
    return {
      write,
      /** A report about a day so many days ago. */
      report(
        daysAgo: number,
        p: P,
        { author = null, reporter = "google.com" }: { author?: string | null; reporter?: string } = {},
      ) {
        const day = world.today - daysAgo;
        const policy = JSON.stringify(publishedPolicy({ domain: "example.com", p }));
        reports += 1;
        world.db.sqlite.run(
          `INSERT INTO dmarc_reports (id, domain, ingestion, org, begin_ms, end_ms, day, received_at_ms, policy_domain, policy,
            body, rows, messages, aligned, sameness, content, is_complete) VALUES (?, ?, '', ?, ?, ?, ?, 0, 'example.com', ?, '{}', 1, 1, 1, ?, '', 1)`,
          [
            ...[`r${reports}`, domain.number, reporter, day * DAY_MS, (day + 1) * DAY_MS - 1, day, policy],
            author === null ? `s${reports}` : `s${reports} ${author}`,
          ],
        );
        world.db.transact((tx) => review(tx, world.find(domain.number), world.clock.nowMs()));
      },
    };
  };

  test("alerts to a lapse once, with who found it, however many reports come", async () => {
    const world = newWorld();
    const { report } = begin(world);
    report(5, "reject");
    report(2, "none");
    report(2, "none");
    report(1, "none");
    await world.clock.advance(DAY_MS);
    report(0, "none");
    report(3, "none");
    expect(world.raised()).toEqual([
      `policy_weakened reports:${new Date((world.today - 2) * DAY_MS).toISOString().slice(0, 10)}`,
    ]);
    expect(world.events()[0]?.data).toMatchObject({
      trigger: "reports",
      previous_policy: { p: "reject" },
      policy: { p: "none" },
      record: RECORD,
      reported: { reporters: ["google.com"] },
    });
    expectDocumented(world);
  });

  test.each<readonly [string, (made: ReturnType<typeof begin>) => void]>([
    ["a report that is not trusted", ({ report }) => report(2, "none", { author: "unauthenticated" })],
    [
      "a lapse that the DNS showed as well",
      ({ write, report }) => {
        write(2, "none");
        write(1, "reject");
        report(2, "none");
      },
    ],
    ["a lapse of long ago", ({ report }) => report(9, "none", { reporter: "google.com" })],
  ])("is silent about %s", (_, make) => {
    const world = newWorld();
    const made = begin(world);
    made.report(12, "reject");
    make(made);
    expect(world.raised()).toEqual([]);
  });

  test("leaves a doubt of the DNS checks to them, and what is not enforced alone", () => {
    for (const state of [
      { believed, doubts: { policy: 1 } },
      { believed: { ...believed, policy: { ...POLICY, p: "none" } } },
      { believed: { ...believed, policy: { ...POLICY, own: false, inherited_from: "example.com" } } },
    ]) {
      const world = newWorld();
      const { report } = begin(world, state);
      report(5, "reject");
      report(2, "none");
      expect(world.raised()).toEqual([]);
    }
  });
});
