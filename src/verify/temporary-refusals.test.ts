import { describe, expect, test } from "bun:test";
import { createMailNetworks } from "../testing/mail-network.ts";
import { HANG_UP, type SmtpStubScript } from "../testing/smtp-stub.ts";
import { evidenceWith, findingWith } from "../testing/evidence.ts";
import { pauseMsOf, planRetry } from "./verdict.ts";

const networkOf = createMailNetworks();

const OK = "250 2.1.5 Ok";
const onlyAda = (address: string): string => (address.startsWith("ada@") ? OK : "550 5.1.1 User unknown");
const STEPWISE = ["8BITMIME"];

/** Says `line` the first `times` times that a recipient is named, and then what is true. */
const late = (line: string, times = 1): SmtpStubScript => {
  const seen = new Map<string, number>();
  return {
    rcpt(address) {
      const before = seen.get(address) ?? 0;
      seen.set(address, before + 1);
      return before < times ? line : onlyAda(address);
    },
  };
};
/** Says `line` to the first session, and what is true to those after it. */
const lateAt = (stage: "banner" | "mail", line: string): SmtpStubScript => {
  const friendly = stage === "banner" ? "220 stub.example ESMTP" : "250 2.1.0 Ok";
  return {
    rcpt: onlyAda,
    [stage]: (...parts: Array<{ readonly id: number } | string>) => {
      const session = parts.at(-1);
      return typeof session === "object" && session.id === 0 ? line : friendly;
    },
  };
};

describe("a 4xx is retried, whatever its words", () => {
  test.each<readonly [string, SmtpStubScript]>([
    [
      "iRedMail",
      late(
        "451 4.7.1 <ada@x.example>: Recipient address rejected: Intentional policy rejection, please try again later",
      ),
    ],
    ["policyd", late("450 4.7.1 Policy Rejection- Please try later.")],
    ["a policy without a hint", late("450 4.7.1 Rejected by local policy")],
    [
      "a policy without a hint, one command at a time",
      { ...late("450 4.7.1 Rejected by local policy"), ehlo: STEPWISE },
    ],
    ["no words at all", late("450 4.7.1 no")],
    ["a sender that cannot be checked now", late("450 4.1.8 Sender address rejected: Domain not found")],
    ["a blocklist", late("450 4.7.1 blocked using zen.spamhaus.org")],
    ["a policy at MAIL", lateAt("mail", "451 4.7.1 Rejected by policy")],
    ["a policy at the banner", lateAt("banner", "450 4.7.1 Rejected by policy")],
    ["an unknown client at the banner", lateAt("banner", "451 4.7.1 Access denied")],
  ])("%s", async (_name, script) => {
    const { result, evidence } = await networkOf({ hosts: [{ name: "mx.x.example", script }] }).verifyWithRetries();
    expect([result.sub_status, result.confidence]).toEqual(["mailbox_exists", 98]);
    expect(evidence.retries).toHaveLength(1);
  });

  test("as often as the schedule says, and then its words are the reason", async () => {
    const script = late("451 4.7.1 Rejected by policy", 9);
    const network = networkOf({ hosts: [{ name: "mx.x.example", script }], retryWaitsS: [60, 300, 900] });
    const { result, evidence } = await network.verifyWithRetries();
    expect([result.sub_status, evidence.retries.length]).toEqual(["smtp_blocked", 3]);
  });

  test("once, where it names a blocklist both times and no wait", async () => {
    const script = late("450 4.7.1 blocked using zen.spamhaus.org", 9);
    const network = networkOf({ hosts: [{ name: "mx.x.example", script }], retryWaitsS: [60, 300, 900] });
    const { result, evidence } = await network.verifyWithRetries();
    expect([result.sub_status, evidence.retries.length]).toEqual(["smtp_blocked", 1]);
  });

  test("when the server requests it, even beside a blocklist", async () => {
    const script = late("450 4.7.1 blocked using zen.spamhaus.org, try again in 9 seconds", 2);
    const network = networkOf({ hosts: [{ name: "mx.x.example", script }], retryWaitsS: [60, 300, 900] });
    const { result, evidence } = await network.verifyWithRetries();
    expect(result.sub_status).toBe("mailbox_exists");
    expect(evidence.retries.map(({ waited_for }) => waited_for)).toEqual(["server_hint", "server_hint"]);
  });

  test("but not a full mailbox, nor one that receives too fast: both are acceptances", async () => {
    for (const [line, subStatus] of [
      ["452 4.2.2 Over quota", "mailbox_full"],
      ["450 4.2.1 receiving mail at a rate that prevents additional messages", "catch_all"],
    ] as const) {
      const network = networkOf({ hosts: [{ name: "mx.x.example", script: late(line, 9) }] });
      const { result, evidence } = await network.verifyWithRetries();
      expect([result.sub_status, evidence.retries.length]).toEqual([subStatus, 0]);
    }
  });

  test("and a permanent refusal in the same words is not", async () => {
    const script: SmtpStubScript = { rcpt: () => "550 5.7.1 Rejected by policy" };
    const { result, evidence } = await networkOf({ hosts: [{ name: "mx.x.example", script }] }).verifyWithRetries();
    expect([result.sub_status, evidence.retries.length]).toEqual(["smtp_blocked", 0]);
  });
});

describe("where only the random recipient is refused for now", () => {
  const isAda = (address: string) => address.startsWith("ada@");
  /** Greylists each recipient until it was named `times` times; ada needs fewer. */
  const greylisting = (times: { readonly ada: number; readonly random: number }, line: string): SmtpStubScript => {
    const seen = new Map<string, number>();
    return {
      rcpt(address) {
        const before = seen.get(address) ?? 0;
        seen.set(address, before + 1);
        return before < (isAda(address) ? times.ada : times.random) ? line : OK;
      },
    };
  };
  const verifyAt = (script: SmtpStubScript) =>
    networkOf({ hosts: [{ name: "mx.x.example", script }], retryWaitsS: [60, 300, 900] }).verifyWithRetries();

  test.each([
    ["greylisting whose delay the submitted one passed first", "450 4.2.0 Greylisted", 1, 2, 2],
    ["greylisting that knows the submitted one", "450 4.2.0 Greylisted", 0, 1, 1],
    ["a policy, also when it is asked alone", "450 4.7.1 Rejected by local policy", 0, 2, 1],
  ] as const)("%s, a catch-all is found after one more retry", async (_name, line, ada, random, retries) => {
    const { result, evidence } = await verifyAt(greylisting({ ada, random }, line));
    expect([result.verdict, result.sub_status, evidence.retries.length]).toEqual(["risky", "catch_all", retries]);
    expect(evidence.retries.at(-1)?.reason).toBe("greylisted");
  });

  test("for good, the recipient is known after one more retry", async () => {
    const { result, evidence } = await verifyAt(greylisting({ ada: 0, random: 99 }, "450 4.2.0 Greylisted"));
    expect([result.sub_status, result.signals.catch_all]).toEqual(["mailbox_exists", "unknown"]);
    expect(evidence.retries).toHaveLength(1);
  });

  test("because nobody has that name, nothing is retried", async () => {
    const script = { rcpt: (address: string) => (isAda(address) ? OK : "450 4.1.1 User unknown") };
    const { result, evidence } = await verifyAt(script);
    expect([result.sub_status, evidence.retries.length]).toEqual(["mailbox_exists", 0]);
  });

  test.each([
    ["fails", HANG_UP],
    ["refuses everybody for now", "450 4.2.0 Greylisted"],
  ])("and the retry %s, the acceptance still counts", async (_name, line) => {
    const script: SmtpStubScript = {
      rcpt: (address) => (isAda(address) ? OK : "450 4.2.0 Greylisted"),
      banner: ({ id }) => (id === 0 ? "220 stub.example ESMTP" : line),
    };
    const { result } = await verifyAt(script);
    expect(result.sub_status).toBe("mailbox_exists");
  });

  test("and the retry says that nobody has that name, that counts", async () => {
    const seen: string[] = [];
    const rcpt = (address: string) => {
      seen.push(address);
      if (seen.length <= 2) return isAda(address) ? OK : "450 4.2.0 Greylisted";
      return "550 5.1.1 User unknown";
    };
    expect((await verifyAt({ rcpt })).result.sub_status).toBe("mailbox_not_found");
  });
});

test("a primary that refuses us for now is not overruled by a backup that accepts everything", async () => {
  const primary = { name: "mx.x.example", script: lateAt("banner", "450 4.7.1 Rejected by policy") };
  const backup = { name: "mx2.x.example", script: { rcpt: () => OK } };
  const { result } = await networkOf({ hosts: [primary, backup] }).verifyWithRetries();
  expect(result.sub_status).toBe("mailbox_exists");
});

test("a host whose block was lifted for something else is retried as before", () => {
  const blocked = findingWith({ reading: "blocked", rule: "blocklist-named", retryable: true });
  const greylisted = findingWith({ reading: "greylisted", rule: "greylisting-words", retryable: true });
  const policy = { nowMs: 0, retryWaitsS: [60, 60, 60, 60], isOutage: false };
  expect(planRetry(evidenceWith({ findings: [blocked, blocked] }), policy)).toBeNull();
  expect(planRetry(evidenceWith({ findings: [blocked, blocked, greylisted] }), policy)).not.toBeNull();
});

test.each([
  [null, [60, 300], 60_000],
  [40, [60, 300], 41_000],
  [7_000, [60], 600_000],
  [90_000, [60], 60_000],
  [40, [], 0],
  [null, [], 0],
] as const)(
  "a host that shuts us out with the hint %p and the schedule %p is left alone for %d ms",
  (hintS, waits, ms) => {
    expect(pauseMsOf(hintS, waits)).toBe(ms);
  },
);
