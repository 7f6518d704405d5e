import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../../foundation/base/days.ts";
import {
  afterCheck,
  afterMode,
  type HostedPolicy,
  hostsOf,
  newPolicy,
  servedUntilMs,
  textOfPolicy,
} from "./policy-changes.ts";
import { isPolicyId, parseMtaStsPolicy, POLICY_MODES, policyIdIn, policyIdOf, policyTextOf } from "./policy-text.ts";

const MINUTE_MS = 60_000;
const START_MS = Date.UTC(2026, 0, 1);
const created = newPolicy(1, { mode: "enforce", hosts: ["a.example.com", "b.example.com"], publishedId: "" }, START_MS);

/** Checks one after the other: minutes after the start, and the exchanges that the DNS has. */
const checked = (
  checks: ReadonlyArray<readonly [minutes: number, exchanges: readonly string[] | null]>,
): HostedPolicy => {
  let policy = created;
  for (const [minutes, exchanges] of checks) {
    const change = afterCheck(policy, { exchanges, publishedId: null }, START_MS + minutes * MINUTE_MS);
    policy = { ...policy, ...change };
  }
  return policy;
};

const AB = ["a.example.com", "b.example.com"];
const [ABC, BC] = [
  [...AB, "c.example.com"],
  ["b.example.com", "c.example.com"],
];
const DAY_MIN = 24 * 60;

describe("the hosts of an enforced policy", () => {
  test.each([
    ["stay while the DNS has the same in another order", [[60, AB.toReversed()]], AB],
    ["stay after one response with a new host", [[60, ABC]], AB],
    [
      "stay when the second response comes too soon",
      [
        [60, ABC],
        [61, ABC],
      ],
      AB,
    ],
    [
      "have a host that two responses agree on",
      [
        [60, ABC],
        [65, ABC],
      ],
      ABC,
    ],
    [
      "have it also when a query in between failed",
      [
        [60, ABC],
        [65, null],
        [80, ABC],
      ],
      ABC,
    ],
    [
      "stay when the second response has another set",
      [
        [60, ABC],
        [65, AB],
      ],
      AB,
    ],
    [
      "stay without a response, however long",
      [
        [60, null],
        [60 * DAY_MIN, null],
      ],
      AB,
    ],
    [
      "stay without an MX record, however long",
      [
        [60, []],
        [60 * DAY_MIN, []],
      ],
      AB,
    ],
    [
      "stay with a null MX",
      [
        [60, ["."]],
        [65, ["."]],
      ],
      AB,
    ],
    [
      "stay when an MX is no host name",
      [
        [60, ["192.0.2.1"]],
        [65, ["192.0.2.1"]],
      ],
      AB,
    ],
    [
      "keep one that is gone",
      [
        [60, BC],
        [65, BC],
      ],
      ABC,
    ],
    [
      "keep one that is gone for less than seven days",
      [
        [60, BC],
        [65, BC],
        [60 + 7 * DAY_MIN - 1, BC],
      ],
      ABC,
    ],
    [
      "lose one that is gone for seven days",
      [
        [60, BC],
        [65, BC],
        [60 + 7 * DAY_MIN, BC],
      ],
      BC,
    ],
    [
      "keep one that comes back meanwhile",
      [
        [60, BC],
        [65, BC],
        [DAY_MIN, AB],
        [60 + 7 * DAY_MIN, BC],
      ],
      ABC,
    ],
  ] as const)("%s", (_, checks, hosts) => {
    const policy = checked(checks);
    expect([...policy.hosts]).toEqual([...hosts]);
    const isChanged = !Bun.deepEquals([...hosts], AB);
    expect(policy.sinceMs > START_MS).toBe(isChanged);
    expect(policyIdOf(textOfPolicy(policy)) !== policyIdOf(textOfPolicy(created))).toBe(isChanged);
  });

  test.each([
    ["a failure", null, "dns_failure", 15],
    ["no MX record", [], "no_mx", 5],
    ["an MX that a policy cannot name", ["a_b"], "unusable_mx", 60],
    ["101 MX hosts", Array.from({ length: 101 }, (_, n) => `mx${n}.example.com`), "unusable_mx", 60],
    ["a new set", ABC, null, 5],
    ["the same set", AB, null, 60],
  ] as const)("are checked again in time after %s", (_, exchanges, problem, minutes) => {
    const nowMs = START_MS + 10 * MINUTE_MS;
    const change = afterCheck(created, { exchanges, publishedId: null }, nowMs);
    expect([change.problem ?? null, change.dueAtMs]).toEqual([problem, nowMs + minutes * MINUTE_MS]);
    expect("publishedId" in change).toBe(false);
  });

  test("are read from MX records in any spelling", () => {
    expect(hostsOf(["MX2.Example.com.", "mx1.example.com", "mx1.example.com", "."])).toEqual([
      "mx1.example.com",
      "mx2.example.com",
    ]);
    expect(hostsOf(["mx"])).toBeNull();
  });
});

describe("the mode", () => {
  const DAYS_14 = 14 * DAY_MS;
  test.each([
    ["testing", "enforce", null],
    ["enforce", "testing", DAYS_14],
    ["enforce", "none", DAYS_14],
    ["testing", "none", null],
  ] as const)("from %s to %s: senders may hold an enforced policy for %p ms", (from, to, heldMs) => {
    const policy = { ...created, mode: from };
    const after = { ...policy, ...afterMode(policy, to, START_MS + 1) };
    expect(after).toMatchObject({ mode: to, modeSinceMs: START_MS + 1, sinceMs: START_MS + 1 });
    expect(servedUntilMs(after, START_MS + 1)).toBe(heldMs === null ? null : START_MS + 1 + heldMs);
  });

  test("that is set again changes nothing; withdrawn after testing again, the date of the enforced policy stays", () => {
    expect(afterMode(created, "enforce", START_MS + 5)).toEqual({});
    const testing = { ...created, ...afterMode(created, "testing", START_MS) };
    const none = { ...testing, ...afterMode(testing, "none", START_MS + DAY_MS) };
    expect(servedUntilMs(none, START_MS + DAY_MS)).toBe(START_MS + DAYS_14);
    expect(servedUntilMs(none, START_MS + DAYS_14)).toBeNull();
  });

  test.each(POLICY_MODES)("%s makes a policy that senders accept", (mode) => {
    const text = policyTextOf(mode, AB);
    expect(parseMtaStsPolicy(text)).toMatchObject({ mode, mx: mode === "none" ? [] : AB, faults: [] });
    expect(isPolicyId(policyIdOf(text))).toBe(true);
  });
});

test.each([
  [["v=STSv1; id=abc;"], "abc"],
  [["v=STSv1;id=abc"], "abc"],
  [["other", "v=STSv1; id=20260101;"], "20260101"],
  [["v=STSv1; id=a-b;"], ""],
  [["v=STSv1; id=a;", "v=STSv1; id=b;"], ""],
  [[], ""],
])("the id in %j is %j", (texts, id) => {
  expect(policyIdIn(texts)).toBe(id);
});
