import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../foundation/base/days.ts";
import { err, ok, type Result } from "../../foundation/base/errors.ts";
import { createTestClock } from "../../testing/clock.ts";
import { silentLog } from "../../testing/silent-log.ts";
import type { SubStatus } from "../result.ts";
import type { KnownResult } from "./recipient-store.ts";
import type { PolicySettings } from "./policy-settings.ts";
import { RecipientPolicy } from "./recipient-policy.ts";

const SETTINGS: PolicySettings = {
  ...{ policyListen: null, policyNetworks: [], policyAccount: null, policyMode: "reject" },
  policyReject: ["mailbox_not_found", "domain_not_found"],
  ...{ policyMaxAgeDays: 30, policySuppression: true, policyVerifyPerDay: 10 },
};
const CERTAIN = 97;

interface World {
  readonly settings?: Partial<PolicySettings>;
  readonly subStatus?: SubStatus;
  readonly ageDays?: number;
  readonly confidence?: number;
  readonly suppressed?: string;
  readonly account?: Result<string, string>;
}

const policyOf = ({ settings, subStatus, ageDays = 0, confidence = CERTAIN, suppressed, account }: World) => {
  const clock = createTestClock(Date.UTC(2026, 10, 13));
  const queued: string[] = [];
  const looked: string[] = [];
  const known: KnownResult | null =
    subStatus === undefined
      ? null
      : { subStatus, result: JSON.stringify({ confidence }), completedAtMs: clock.nowMs() - ageDays * DAY_MS };
  const policy = new RecipientPolicy(
    { clock, log: silentLog },
    { ...SETTINGS, ...settings },
    {
      store: {
        latest(accountId, email) {
          looked.push(`${accountId} ${email}`);
          return known;
        },
      },
      matchSuppression: (email) => (email === suppressed ? email : null),
      accountOf: () => account ?? ok("account-1"),
      background: { add: ({ normalizedEmail }) => void queued.push(normalizedEmail) },
    },
  );
  return { clock, policy, queued, looked };
};

const PASSES = "DUNNO";
const REJECTS = "REJECT 5.1.1 <bob@x.example>: known not to exist since 2026-11-03 (Postwarden)";

describe("what is stored decides", () => {
  test.each<[name: string, world: World, action: string, isQueued: boolean]>([
    ["not found, ten days ago", { subStatus: "mailbox_not_found", ageDays: 10 }, REJECTS, true],
    ["not found, today", { subStatus: "mailbox_not_found" }, REJECTS.replace("11-03", "11-13"), false],
    [
      "no such domain",
      { subStatus: "domain_not_found" },
      "REJECT 5.1.2 <bob@x.example>: domain known not to exist since 2026-11-13 (Postwarden)",
      false,
    ],
    [
      "not found, warned of only",
      { subStatus: "mailbox_not_found", ageDays: 10, settings: { policyMode: "warn" } },
      REJECTS.replace("REJECT", "WARN"),
      true,
    ],
    [
      "not found, on the last day",
      { subStatus: "mailbox_not_found", ageDays: 30 },
      REJECTS.replace("11-03", "10-14"),
      true,
    ],
    ["not found, too long ago", { subStatus: "mailbox_not_found", ageDays: 30.01 }, PASSES, true],
    ["not found, in the future", { subStatus: "mailbox_not_found", ageDays: -2 }, PASSES, false],
    ["not found, at a server that accepts others", { subStatus: "mailbox_not_found", confidence: 70 }, PASSES, false],
    ["not found, not quite certain", { subStatus: "mailbox_not_found", confidence: 94 }, PASSES, false],
    [
      "not found, just certain",
      { subStatus: "mailbox_not_found", confidence: 95 },
      REJECTS.replace("11-03", "11-13"),
      false,
    ],
    [
      "not found, which does not reject here",
      { subStatus: "mailbox_not_found", settings: { policyReject: [] } },
      PASSES,
      false,
    ],
    ["disabled, which does not reject by default", { subStatus: "mailbox_disabled" }, PASSES, false],
    [
      "disabled, where that rejects",
      { subStatus: "mailbox_disabled", settings: { policyReject: ["mailbox_disabled"] } },
      "REJECT 5.2.1 <bob@x.example>: mailbox known to be disabled since 2026-11-13 (Postwarden)",
      false,
    ],
    ["exists", { subStatus: "mailbox_exists", ageDays: 5 }, PASSES, false],
    ["exists, too long ago", { subStatus: "mailbox_exists", ageDays: 31 }, PASSES, true],
    ["catch-all", { subStatus: "catch_all", ageDays: 5 }, PASSES, false],
    ["DNS error, today", { subStatus: "dns_error" }, PASSES, false],
    ["DNS error, some days ago", { subStatus: "dns_error", ageDays: 2 }, PASSES, true],
    ["greylisted, some days ago", { subStatus: "greylisted", ageDays: 2 }, PASSES, true],
    ["blocked, today", { subStatus: "smtp_blocked" }, PASSES, false],
    ["unknown", {}, PASSES, true],
    [
      "suppressed",
      { suppressed: "bob@x.example" },
      "REJECT 5.7.1 <bob@x.example>: on the suppression list (Postwarden)",
      false,
    ],
    [
      "suppressed, which does not reject here",
      { suppressed: "bob@x.example", settings: { policySuppression: false } },
      PASSES,
      true,
    ],
  ])("%s", (_, world, action, isQueued) => {
    const { policy, queued, looked } = policyOf(world);
    expect(policy.answer("Bob@X.example", "unix").action).toBe(action);
    expect(queued).toEqual(isQueued ? ["bob@x.example"] : []);
    for (const one of looked) expect(one).toBe("account-1 bob@x.example");
  });
});

describe("what cannot be judged passes", () => {
  test.each(["", "no address", "a@b@c", "a".repeat(5_000), "\u0000@x.example", "postmaster"])("%p", (recipient) => {
    const { policy, queued } = policyOf({ subStatus: "mailbox_not_found" });
    expect(policy.answer(recipient, "unix").action).toBe(PASSES);
    expect(queued).toEqual([]);
  });

  test("without an account, and the operator finds out", () => {
    const { policy, looked } = policyOf({ subStatus: "mailbox_not_found", account: err("There is no account.") });
    expect(policy.answer("bob@x.example", "unix").action).toBe(PASSES);
    expect(looked).toEqual([]);
    expect(policy.finding()).toBe("The policy service passes every recipient. There is no account.");
  });

  test("when the database fails, or holds what cannot be read", () => {
    const { policy } = policyOf({ subStatus: "mailbox_not_found", confidence: Number.NaN });
    expect(policy.answer("bob@x.example", "unix").action).toBe(PASSES);
  });
});

test("a reply is ASCII on one line, whatever the recipient", () => {
  const { policy } = policyOf({ subStatus: "mailbox_not_found", ageDays: 10 });
  expect(policy.answer("bücher@x.example", "unix").action).toBe(
    "REJECT 5.1.1 recipient known not to exist since 2026-11-03 (Postwarden)",
  );
  expect(policy.answer('"a b"@x.example', "unix").action).not.toContain('"a b"');
});

test("an account that is created later answers seconds after", async () => {
  let account: Result<string, string> = err("There is no account yet.");
  const clock = createTestClock();
  const policy = new RecipientPolicy({ clock, log: silentLog }, SETTINGS, {
    store: { latest: () => null },
    matchSuppression: (email) => email,
    accountOf: () => account,
    background: { add: () => undefined },
  });
  expect(policy.answer("a@x.example", "unix").action).toBe(PASSES);
  account = ok("account-1");
  await clock.advance(10_000);
  expect(policy.answer("a@x.example", "unix").action).toStartWith("REJECT 5.7.1 ");
  expect(policy.finding()).toBeNull();
});
