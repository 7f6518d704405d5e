import { describe, expect, test } from "bun:test";
import { createMailNetworks, type NetworkHost } from "../testing/mail-network.ts";
import type { Zone } from "../testing/dns-zone.ts";
import { evidenceWith, findingWith } from "../testing/evidence.ts";
import type { SmtpStubScript } from "../testing/smtp-stub.ts";
import { concludeVerification, planRetry } from "./verdict.ts";
import { beginEvidence } from "./address-evidence.ts";
import type { VerificationEngine } from "./engine.ts";
import { type Evidence, evidenceSchema, type ProbeFinding } from "./evidence.ts";

const networkOf = createMailNetworks();

const GREYLISTED_FINDING = "450 4.2.0 Greylisted, try again later";
const UNKNOWN = "550 5.1.1 User unknown";

/** Greylists each recipient until it has been asked `tries` times. */
const greylistingFor = (tries: number, line = GREYLISTED_FINDING): SmtpStubScript => {
  const asked = new Map<string, number>();
  return {
    rcpt: (address) => {
      const times = (asked.get(address) ?? 0) + 1;
      asked.set(address, times);
      if (times <= tries) return line;
      return address === "ada@x.example" ? "250 2.1.5 Ok" : UNKNOWN;
    },
  };
};
/** One attempt. */
const attempt = async (engine: VerificationEngine, before = beginEvidence("ada@x.example")) => {
  const attempted = await engine.verify(before);
  return { ...attempted, retry: attempted.kind === "retry" ? attempted.retry : null };
};
const plan = (evidence: Evidence, { retryWaitsS = [60], isOutage = false } = {}) =>
  planRetry(evidence, { nowMs: 0, retryWaitsS, isOutage });
const hostWith = (script: SmtpStubScript, name = "mx.x.example"): NetworkHost => ({ name, script });

describe("the evidence before any network", () => {
  test("of an address", () => {
    const evidence = beginEvidence(" Info@Mailinator.com ");
    expect(evidence.address).toEqual({
      submitted: " Info@Mailinator.com ",
      normalized_email: "info@mailinator.com",
      read_as: null,
      problem: null,
      suggestion: null,
      role_account: "info",
      disposable: "mailinator.com",
    });
    expect(evidenceSchema.parse(evidence)).toEqual(evidence);
  });

  test("of what is none", () => {
    const { address } = beginEvidence("no address");
    expect(address.problem).toMatch(/\.$/);
    expect(address).toMatchObject({ role_account: null, disposable: null, suggestion: null });
  });

  test("of an address literal, which no list knows", () => {
    expect(beginEvidence("ada@[192.0.2.1]").address.disposable).toBeNull();
  });
});

describe("greylisting", () => {
  test("is waited out, with the same random recipient, and settles like any other", async () => {
    const network = networkOf({ hosts: [hostWith(greylistingFor(1))], retryWaitsS: [60, 300] });
    const { result, evidence } = await network.verifyWithRetries();
    expect(result).toMatchObject({ sub_status: "mailbox_exists", verdict: "deliverable", confidence: 98 });
    expect(result.signals).toMatchObject({ greylisting: "pass", catch_all: "pass" });
    expect(evidence.attempts.map(({ number, finding }) => [number, finding.reading])).toEqual([
      [1, "greylisted"],
      [2, "accepted"],
    ]);
    const randoms = network
      .stub("mx.x.example")
      .sessions.flatMap(({ lines }) => lines.filter((line) => line.startsWith("RCPT") && !line.includes("ada@")));
    expect(randoms.length).toBe(2);
    expect(new Set(randoms).size).toBe(1);
    expect(evidence.retries).toEqual([
      {
        reason: "greylisted",
        planned_at: "2026-01-01T00:00:00.000Z",
        due_at: "2026-01-01T00:01:00.000Z",
        waited_for: "schedule",
      },
    ]);
  });

  test("that outlasts the retries is risky", async () => {
    const network = networkOf({ hosts: [hostWith(greylistingFor(99))], retryWaitsS: [60, 300] });
    const { result, evidence } = await network.verifyWithRetries();
    expect(result).toMatchObject({ sub_status: "greylisted", verdict: "risky" });
    expect(evidence.attempts.length).toBe(3);
    expect(evidenceSchema.parse(evidence)).toEqual(evidence);
  });

  test("is answered at the same one of equally preferred hosts and addresses", async () => {
    const hosts = ["a", "b"].map((name): NetworkHost => ({
      ...hostWith(greylistingFor(1), `${name}.x.example`),
      preference: 10,
    }));
    const network = networkOf({ hosts });
    network.zone["x.example"] = {
      MX: [
        [10, "b.x.example"],
        [10, "a.x.example"],
      ],
    };
    const { evidence: first } = await attempt(network.engine);
    network.zone["x.example"] = {
      MX: [
        [10, "a.x.example"],
        [10, "b.x.example"],
      ],
    };
    const { evidence: second } = await attempt(network.engine, first);
    expect(second.attempts.map(({ finding: { host, reading } }) => [host, reading])).toEqual([
      ["b.x.example", "greylisted"],
      ["b.x.example", "accepted"],
    ]);
  });

  test("at a less preferred host does not keep the better one from being probed first", async () => {
    const better = hostWith(greylistingFor(0), "better.x.example");
    const network = networkOf({ hosts: [better, hostWith(greylistingFor(1), "other.x.example")] });
    network.zone["better.x.example"] = { A: ["198.51.99.9"] };
    const { evidence: first } = await attempt(network.engine);
    expect(first.attempts[0]?.finding).toMatchObject({ reading: "greylisted", host: "other.x.example" });
    network.zone["better.x.example"] = { A: ["203.0.114.1"] };
    const { evidence: second } = await attempt(network.engine, first);
    expect(second.attempts[1]?.finding).toMatchObject({ reading: "accepted", host: "better.x.example" });
  });
});

test.each([
  ["outage", "conclude", "concluded"],
  ["outage", "retry", "retry"],
  ["outage", "repeat", "repeat"],
  ["open", "repeat", "repeat"],
  ["open", "retry", "concluded"],
  ["believed", "retry", "concluded"],
  ["believed", "repeat", "concluded"],
] as const)("no response, judged as %s, with the policy %s: %s", async (outage, duringOutage, kind) => {
  const network = networkOf({ outage, hosts: [{ name: "mx.x.example", unconnectable: "timeout" }] });
  expect((await network.engine.verify(beginEvidence("ada@x.example"), { duringOutage })).kind).toBe(kind);
});

describe("DNS at a retry", () => {
  test("that fails leaves the hosts known from before", async () => {
    const network = networkOf({ hosts: [hostWith(greylistingFor(1))] });
    const { evidence: first } = await attempt(network.engine);
    network.zone["x.example"] = "servfail";
    const { evidence: second } = await attempt(network.engine, first);
    expect(second.attempts.at(-1)?.finding.reading).toBe("accepted");
    expect(second.domain).toMatchObject({ outcome: "mail_hosts", dns_queries: [{ outcome: "servfail" }] });
  });

  test("that says the domain is gone ends the check", async () => {
    const network = networkOf({ hosts: [hostWith(greylistingFor(9))], retryWaitsS: [60, 60, 60] });
    const { evidence: first, kind } = await attempt(network.engine);
    expect(kind).toBe("retry");
    network.zone["x.example"] = "nxdomain";
    const second = await attempt(network.engine, first);
    expect([second.kind, second.evidence.domain?.outcome]).toEqual(["concluded", "nxdomain"]);
  });
});

describe("a retry", () => {
  const planned = (finding: Partial<ProbeFinding>, used = 0, waits: readonly number[] = [60, 300]) => {
    const retry = { reason: "greylisted", planned_at: "", due_at: "", waited_for: "schedule" as const };
    const evidence = evidenceWith({ findings: [findingWith(finding)] });
    const next = plan({ ...evidence, retries: Array.from({ length: used }, () => retry) }, { retryWaitsS: [...waits] });
    if (next === null) return null;
    return [(Date.parse(next.due_at) - Date.parse(next.planned_at)) / 1000, next.waited_for];
  };
  const later = { reading: "greylisted", retryable: true } as const;

  test("follows the schedule, and ends with it", () => {
    expect(planned(later, 0)).toEqual([60, "schedule"]);
    expect(planned(later, 1)).toEqual([300, "schedule"]);
    expect(planned(later, 2)).toBeNull();
    expect(planned(later, 0, [])).toBeNull();
  });

  test("follows the server's hint, a second late, up to two hours", () => {
    expect(planned({ ...later, retry_hint_s: 120 })).toEqual([121, "server_hint"]);
    expect(planned({ ...later, retry_hint_s: 7200 })).toEqual([7201, "server_hint"]);
    expect(planned({ ...later, retry_hint_s: 7201 })).toEqual([60, "schedule"]);
  });

  test("is planned after a DNS failure and after one of ours, but for what is wrong with the domain itself", async () => {
    const reasonFor = async (failure: Zone[string]) => {
      const network = networkOf({ hosts: [], zone: { "x.example": failure } });
      return (await attempt(network.engine)).retry?.reason;
    };
    for (const failure of ["servfail", "timeout", "network_error", "refused", "malformed", "unconfirmed"] as const)
      expect(await reasonFor(failure)).toBe("dns_error");
    for (const failure of ["local_failure", "overloaded", "aborted"] as const)
      expect(await reasonFor(failure)).toBe("local_failure");
    for (const failure of ["nxdomain", "cname_loop", "invalid_name"] as const)
      expect(await reasonFor(failure)).toBeUndefined();
  });

  test("after a connection that could not leave is planned; that a host is unreachable, only in an outage", () => {
    const reasonFor = (finding: Partial<ProbeFinding>, isOutage: boolean) =>
      plan(evidenceWith({ findings: [findingWith(finding)] }), { isOutage })?.reason;
    for (const rule of ["local_failure", "proxy_failed"])
      expect(reasonFor({ reading: "internal", rule }, false)).toBe("local_failure");
    expect(reasonFor({ reading: "internal", rule: "no_egress" }, true)).toBeUndefined();
    expect(reasonFor({ reading: "unreachable" }, false)).toBeUndefined();
    expect(reasonFor({ reading: "unreachable" }, true)).toBe("smtp_unreachable");
    expect(reasonFor({ reading: "mailbox_not_found" }, true)).toBeUndefined();
  });

  test("is planned for nothing that another try would not change", () => {
    for (const reading of ["accepted", "mailbox_not_found", "blocked", "timeout", "unreachable", "internal"] as const)
      expect(planned({ reading })).toBeNull();
  });

  test("is not planned at an unverifiable provider, nor before the first attempt", () => {
    const provider = evidenceWith({ findings: [findingWith(later)], domain: { unverifiable_provider: "Some" } });
    expect(plan(provider)).toBeNull();
    expect(plan(beginEvidence("ada@x.example"))).toBeNull();
  });

  test("follows the hint in the reply text", async () => {
    const script = greylistingFor(1, "451 4.7.1 Greylisting in action, please come back in 00:05:00");
    const network = networkOf({ hosts: [hostWith(script)] });
    expect((await attempt(network.engine)).retry).toMatchObject({
      waited_for: "server_hint",
      due_at: "2026-01-01T00:05:01.000Z",
    });
  });
});

test("a text that is not an address is concluded without a query", async () => {
  const network = networkOf();
  const begun = beginEvidence("no address");
  expect(await network.engine.verify(begun)).toMatchObject({
    kind: "concluded",
    evidence: { ...begun, conclusion: expect.anything() },
  });
});

test("a failure of ours is an attempt of its own, and no reason to come back", () => {
  const { engine } = networkOf({ hosts: [] });
  const { kind, evidence: failed } = engine.fail(evidenceWith({ findings: [] }));
  expect(failed.attempts.map(({ number, finding }) => [number, finding.reading])).toEqual([[1, "internal"]]);
  expect(kind).toBe("concluded");
  expect(evidenceSchema.parse(failed)).toEqual(failed);
});

describe("a retry that is cut short does not end a greylisted check", () => {
  const greylisted = findingWith({ reading: "greylisted", retryable: true });
  for (const reading of ["unreachable", "timeout", "protocol_error", "internal"] as const) {
    const evidence = evidenceWith({ findings: [greylisted, findingWith({ reading, heard: false })] });
    test(`${reading}: it is retried`, () => {
      expect(plan({ ...evidence, retries: [] })?.reason).toBe("greylisted");
    });
    test(`${reading}: when the retries are used up, it is still greylisted and charged`, () => {
      const { result, chargeable } = concludeVerification(evidence, "2026-01-01T00:00:00.000Z");
      expect([result.sub_status, chargeable]).toEqual(["greylisted", true]);
    });
  }
});

describe("the operator's list", () => {
  const matching = (entry: string | null) => {
    const asked: string[] = [];
    const matchSuppression = (email: string) => {
      asked.push(email);
      return entry;
    };
    return { asked, matchSuppression };
  };

  test("is matched with the normal form; a hit makes an accepted address toxic, and the evidence names the entry", async () => {
    const { asked, matchSuppression } = matching("x.example");
    const { result, evidence } = await networkOf({ hosts: [hostWith(greylistingFor(0))], matchSuppression }).verify(
      "ada@X.Example",
    );
    expect(asked).toEqual(["ada@x.example"]);
    expect(result).toMatchObject({ verdict: "risky", sub_status: "toxic", signals: { toxic: "fail", smtp: "pass" } });
    expect(evidence.toxic).toEqual({ entry: "x.example" });
    expect(evidence.conclusion?.because).toContain("x.example");
  });

  test("does not outweigh a mailbox or a domain that is not there", async () => {
    const { matchSuppression } = matching("x.example");
    const network = networkOf({ hosts: [hostWith(greylistingFor(0))], matchSuppression });
    expect((await network.verify("bob@x.example")).result.sub_status).toBe("mailbox_not_found");
    const { result } = await network.verify("bob@gone.example");
    expect([result.sub_status, result.signals.toxic]).toEqual(["domain_not_found", "fail"]);
  });

  test("that has no such entry is a signal that passes; without a list it is skipped", async () => {
    const hosts = [hostWith(greylistingFor(0))];
    const none = await networkOf({ hosts, matchSuppression: matching(null).matchSuppression }).verify();
    expect([none.result.sub_status, none.result.signals.toxic]).toEqual(["mailbox_exists", "pass"]);
    expect((await networkOf({ hosts }).verify()).result.signals.toxic).toBe("skipped");
  });
});
