import { describe, expect, test } from "bun:test";
import { createMailNetworks, type NetworkEgress, type NetworkHost } from "../testing/mail-network.ts";
import { HANG_UP, type SmtpStubScript } from "../testing/smtp-stub.ts";
import type { ConcludedVerification } from "./verdict.ts";

const networkOf = createMailNetworks();

const BLOCKED = "554 5.7.1 Client host blocked using a blocklist";
const UNKNOWN = "550 5.1.1 User unknown";
const FIRST = "127.0.0.1";
const SECOND = "127.0.0.2";
const one: NetworkEgress = { name: "one", from: FIRST };
const two: NetworkEgress = { name: "two", from: SECOND };

const onlyAda = (address: string): string => (address === "ada@x.example" ? "250 2.1.5 Ok" : UNKNOWN);
/** Blocks those who come from these addresses, when they name a recipient. */
const blocking = (...from: string[]): SmtpStubScript => ({
  rcpt: (address, _nth, { remoteAddress }) => (from.includes(remoteAddress) ? BLOCKED : onlyAda(address)),
});
const host = (script: SmtpStubScript, name = "mx.x.example"): NetworkHost => ({ name, script });

const egressesOf = ({ evidence }: ConcludedVerification) =>
  evidence.attempts.flatMap(({ sessions }) => sessions.map(({ egress }) => egress));

describe("an egress that is blocked", () => {
  test("gives way to the other at once, whose answer is the verdict, and both are in the evidence", async () => {
    const concluded = await networkOf({ hosts: [host(blocking(FIRST))], egresses: [one, two] }).verify();
    expect(concluded.result).toMatchObject({ sub_status: "mailbox_exists", signals: { catch_all: "pass" } });
    expect(egressesOf(concluded)).toEqual(["one", "two"]);
    const [attempt] = concluded.evidence.attempts;
    expect(attempt?.sessions[0]?.replies.some(({ reading }) => reading === "blocked")).toBe(true);
  });

  test("at the banner gives way as well", async () => {
    const script: SmtpStubScript = {
      rcpt: onlyAda,
      banner: ({ remoteAddress }) => (remoteAddress === FIRST ? BLOCKED : "220 stub.example ESMTP"),
    };
    const concluded = await networkOf({ hosts: [host(script)], egresses: [one, two] }).verify();
    expect([concluded.result.sub_status, ...egressesOf(concluded)]).toEqual(["mailbox_exists", "one", "two"]);
  });

  test("is on cooldown at that provider, and not elsewhere", async () => {
    const zone = { "y.example": { MX: [[10, "mx.y.example"]] } } as const;
    const other = { ...host({}, "mx.y.example"), preference: 20 };
    const network = networkOf({ hosts: [host(blocking(FIRST)), other], zone, egresses: [one, two] });
    await network.verify();
    for (let n = 0; n < 3; n++) expect(egressesOf(await network.verify())).toEqual(["two"]);
    const elsewhere = [await network.verify("ada@y.example"), await network.verify("ada@y.example")].flatMap(
      egressesOf,
    );
    expect(elsewhere.toSorted()).toEqual(["one", "two"]);
  });

  test("is tried again after its cooldown", async () => {
    const network = networkOf({ hosts: [host(blocking(FIRST))], egresses: [one, two] });
    await network.verify();
    await network.clock.advance(15 * 60_000);
    const later = [await network.verify(), await network.verify()].map(egressesOf);
    expect(later).toContainEqual(["one", "two"]);
  });

  test("like all others means smtp_blocked, and none is on cooldown", async () => {
    const network = networkOf({ hosts: [host(blocking(FIRST, SECOND))], egresses: [one, two] });
    const { result, chargeable, evidence } = await network.verify();
    expect([result.sub_status, chargeable]).toEqual(["smtp_blocked", true]);
    expect(evidence.conclusion?.because).toContain("The refusal is about this service");
    expect(egressesOf(await network.verify()).toSorted()).toEqual(["one", "two"]);
  });

  test("before one that times out still counts, and is not on cooldown", async () => {
    const silent: NetworkEgress = { ...two, broken: "refused_or_unreachable" };
    const network = networkOf({ hosts: [host(blocking(FIRST))], egresses: [one, silent] });
    const concluded = await network.verify();
    expect([concluded.result.sub_status, ...egressesOf(concluded)]).toEqual(["smtp_blocked", "one", "two"]);
  });

  test("is not left for a refusal that is about the recipient, or for the time being", async () => {
    for (const line of [UNKNOWN, "450 4.2.0 Greylisted", "451 4.3.0 Temporary failure"]) {
      const concluded = await networkOf({ hosts: [host({ rcpt: () => line })], egresses: [one, two] }).verify();
      expect(egressesOf(concluded)).toEqual(["one"]);
    }
  });

  test("and its successors are three at most in one attempt", async () => {
    const egresses: [NetworkEgress, ...NetworkEgress[]] = [one, two, { name: "three" }, { name: "four" }];
    const concluded = await networkOf({ hosts: [host({ rcpt: () => BLOCKED })], egresses }).verify();
    expect(new Set(egressesOf(concluded)).size).toBe(3);
    expect(egressesOf(concluded)).toHaveLength(3);
  });
});

test("a greylist retry uses the same egress, whose address the server knows", async () => {
  const known = new Set<string>();
  const script: SmtpStubScript = {
    rcpt(address, _nth, { remoteAddress }) {
      const triple = `${remoteAddress} ${address}`;
      if (known.has(triple)) return onlyAda(address);
      known.add(triple);
      return "450 4.2.0 Greylisted, try again later";
    },
  };
  for (const firstTurns of [0, 1]) {
    known.clear();
    const network = networkOf({ hosts: [host(script)], egresses: [one, two], retryWaitsS: [60] });
    for (let n = 0; n < firstTurns; n++) await network.verify("bob@x.example");
    const concluded = await network.verifyWithRetries();
    expect(concluded.result.sub_status).toBe("mailbox_exists");
    expect(new Set(egressesOf(concluded)).size).toBe(1);
  }
});

describe("an egress that is broken itself", () => {
  for (const broken of ["proxy_failed", "local_failure"] as const) {
    test(`(${broken}) gives way to the next, and is left alone everywhere for a minute`, async () => {
      const zone = { "y.example": { MX: [[10, "mx.y.example"]] } } as const;
      const hosts = [host({ rcpt: onlyAda }), { ...host({}, "mx.y.example"), preference: 20 }];
      const first: NetworkEgress = { ...one, broken };
      const network = networkOf({ hosts, zone, egresses: [first, two] });
      const concluded = await network.verify();
      expect([concluded.result.sub_status, ...egressesOf(concluded)]).toEqual(["mailbox_exists", "one", "two"]);
      for (const email of ["ada@x.example", "ada@y.example"])
        expect(egressesOf(await network.verify(email))).toEqual(["two"]);
      first.broken = null;
      await network.clock.advance(60_000);
      const later = [await network.verify(), await network.verify()].flatMap(egressesOf);
      expect(later.toSorted()).toEqual(["one", "two"]);
    });

    test(`(${broken}) and alone is our fault: not charged, and no statement about the mail host`, async () => {
      const network = networkOf({ hosts: [host({ rcpt: onlyAda })], egresses: [{ ...one, broken }] });
      const { result, chargeable, evidence } = await network.verify();
      expect(result).toMatchObject({ verdict: "risky", sub_status: "internal_error", signals: { smtp: "unknown" } });
      expect(chargeable).toBe(false);
      expect(evidence.conclusion?.because).toMatch(
        broken === "proxy_failed"
          ? /^The proxy one \(POSTWARDEN_SOCKS_PROXIES\) does not work; no probe was sent\.$/
          : /^This machine cannot connect from one \(POSTWARDEN_SOURCE_ADDRESSES\); no probe was sent\.$/,
      );
      expect(evidence.attempts[0]?.sessions[0]?.failure).toEqual({ stage: "connect", kind: broken });
    });
  }

  test("after one that was blocked: the refusal of the mail host counts", async () => {
    const network = networkOf({ hosts: [host(blocking(FIRST))], egresses: [one, { ...two, broken: "proxy_failed" }] });
    const { result, chargeable } = await network.verify();
    expect([result.sub_status, chargeable]).toEqual(["smtp_blocked", true]);
  });

  test("before one that is refused: unreachable", async () => {
    const dead: NetworkHost = { name: "mx.x.example", unconnectable: "refused_or_unreachable" };
    const network = networkOf({ hosts: [dead], egresses: [{ ...one, broken: "local_failure" }, two] });
    expect((await network.verify()).result.sub_status).toBe("smtp_unreachable");
  });
});

describe("source addresses", () => {
  const ipv4: NetworkEgress = { name: "192.0.2.9", localAddress: "192.0.2.9" };
  const ipv6: NetworkEgress = { name: "2001:db8::9", localAddress: "2001:db8::9" };
  const onlyIpv6: NetworkHost = { ...host({ rcpt: onlyAda }), address: "2a00:1450:4001::1b" };

  test("are chosen by the IP version of the mail host", async () => {
    for (const [target, egress] of [
      [onlyIpv6, "2001:db8::9"],
      [host({ rcpt: onlyAda }), "192.0.2.9"],
    ] as const) {
      const concluded = await networkOf({ hosts: [target], egresses: [ipv4, ipv6] }).verify();
      expect([concluded.result.sub_status, ...egressesOf(concluded)]).toEqual(["mailbox_exists", egress]);
    }
  });

  test("of the other IP version only: no host is dialled, and it is our fault", async () => {
    const network = networkOf({ hosts: [onlyIpv6], egresses: [ipv4] });
    const { result, chargeable, evidence } = await network.verify();
    expect([result.sub_status, chargeable]).toEqual(["internal_error", false]);
    expect(evidence.attempts[0]).toMatchObject({ sessions: [], finding: { rule: "no_egress", host: "mx.x.example" } });
    expect(evidence.conclusion?.because).toBe(
      "No source address (POSTWARDEN_SOURCE_ADDRESSES) has the IP version of the mail host; no probe was sent.",
    );
    expect(network.stub("mx.x.example").sessions).toEqual([]);
  });
});

describe("a proxy that may be at fault", () => {
  const proxy = (name: string, from: string, broken: NetworkEgress["broken"] = null): NetworkEgress => ({
    ...{ name, from, isProxy: true },
    ...(broken === null ? {} : { broken }),
  });
  const works: SmtpStubScript = { rcpt: onlyAda };
  const hangingUpOn = (...from: string[]): SmtpStubScript => ({
    rcpt: (address, _nth, { remoteAddress }) => (from.includes(remoteAddress) ? HANG_UP : onlyAda(address)),
  });

  test.each(["refused_or_unreachable", "timeout"] as const)(
    "because nothing can be reached through it (%s): another one decides, and is preferred there",
    async (broken) => {
      const network = networkOf({
        hosts: [host(works)],
        egresses: [proxy("one", FIRST, broken), proxy("two", SECOND)],
      });
      const concluded = await network.verify();
      expect([concluded.result.sub_status, ...egressesOf(concluded)]).toEqual(["mailbox_exists", "one", "two"]);
      for (let n = 0; n < 3; n++) expect(egressesOf(await network.verify())).toEqual(["two"]);
    },
  );

  test("and a host that cannot be reached through any: it is unreachable, and no proxy is on cooldown", async () => {
    const dead: NetworkHost = { name: "mx.x.example", unconnectable: "timeout" };
    const network = networkOf({
      hosts: [dead],
      egresses: [proxy("one", FIRST), proxy("two", SECOND), proxy("three", FIRST)],
    });
    const first = await network.verify();
    expect([first.result.sub_status, egressesOf(first).length]).toEqual(["smtp_unreachable", 2]);
    expect(egressesOf(await network.verify())).toHaveLength(2);
  });

  test("because it dies in the middle of a session: another one decides", async () => {
    const egresses = [proxy("one", FIRST), proxy("two", SECOND)] as const;
    const concluded = await networkOf({ hosts: [host(hangingUpOn(FIRST))], egresses }).verify();
    expect([concluded.result.sub_status, ...egressesOf(concluded)]).toEqual(["mailbox_exists", "one", "two"]);
  });

  test("and is the only one: a session that it broke off is repeated", async () => {
    let sessions = 0;
    const script: SmtpStubScript = {
      banner: () => (++sessions === 1 ? HANG_UP : "220 stub.example ESMTP"),
      rcpt: onlyAda,
    };
    const concluded = await networkOf({ hosts: [host(script)], egresses: [proxy("one", FIRST)] }).verify();
    expect([concluded.result.sub_status, ...egressesOf(concluded)]).toEqual(["mailbox_exists", "one", "one"]);
  });

  test("and is the only one, and is gone after it broke off the session: nothing is said about the host", async () => {
    const only = proxy("one", FIRST);
    const script: SmtpStubScript = {
      rcpt: () => {
        only.broken = "proxy_failed";
        return HANG_UP;
      },
    };
    const { result, chargeable } = await networkOf({ hosts: [host(script)], egresses: [only] }).verify();
    expect([result.sub_status, chargeable]).toEqual(["internal_error", false]);
  });

  test("and the host that closes every session is at fault itself, after two", async () => {
    for (const egresses of [[proxy("one", FIRST)], [proxy("one", FIRST), proxy("two", SECOND)]] as const) {
      const network = networkOf({ hosts: [host(hangingUpOn(FIRST, SECOND))], egresses: [...egresses] });
      // The second attempt shows that no proxy is on cooldown.
      for (const concluded of [await network.verify(), await network.verify()]) {
        expect(concluded.result.sub_status).toBe("smtp_protocol_error");
        expect(egressesOf(concluded)).toHaveLength(2);
        expect(new Set(egressesOf(concluded)).size).toBe(egresses.length);
      }
    }
  });

  test("beside one that is broken: the failure of the first counts, not that of the second", async () => {
    const egresses = [proxy("one", FIRST, "timeout"), proxy("two", SECOND, "proxy_failed")] as const;
    const concluded = await networkOf({ hosts: [host(works)], egresses: [...egresses] }).verify();
    expect([concluded.result.sub_status, ...egressesOf(concluded)]).toEqual(["smtp_unreachable", "one", "two"]);
  });

  test("a source address is this machine's own: a timeout is not repeated from another one", async () => {
    const egresses = [{ ...one, broken: "timeout" as const }, two] as const;
    const concluded = await networkOf({ hosts: [host(works)], egresses: [...egresses] }).verify();
    expect([concluded.result.sub_status, ...egressesOf(concluded)]).toEqual(["smtp_unreachable", "one"]);
  });
});

test("an egress at its limit of connections is passed over", async () => {
  let release: () => void = () => undefined;
  const held = new Promise<string>((resolve) => {
    release = () => resolve("250 2.1.5 Ok");
  });
  let recipients = 0;
  const script: SmtpStubScript = { rcpt: () => (++recipients === 1 ? held : "250 2.1.5 Ok") };
  const limits = { connectionsPerEgressMax: 1 };
  const network = networkOf({ hosts: [host(script)], egresses: [one, two], limits });
  const first = network.verify();
  await network.stub("mx.x.example").received("RCPT");
  const others = [await network.verify("b@x.example"), await network.verify("c@x.example")];
  release();
  expect([await first, ...others].flatMap(egressesOf)).toEqual(["one", "two", "two"]);
});
