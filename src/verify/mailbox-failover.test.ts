import { describe, expect, test } from "bun:test";
import { OPERATOR } from "../foundation/base/on-behalf-of.ts";
import { parseAddress } from "../foundation/mail/address.ts";
import { createTestClock } from "../testing/clock.ts";
import { domainWith, findingWith } from "../testing/evidence.ts";
import { createMailNetworks, NETWORK_REPLY_TIMEOUT_MS, type NetworkHost } from "../testing/mail-network.ts";
import { HANG_UP, SILENCE, type SmtpStubScript } from "../testing/smtp-stub.ts";
import type { ConcludedVerification } from "./verdict.ts";
import { createMailboxProber } from "./domain-evidence.ts";
import type { SubStatus } from "./result.ts";

const networkOf = createMailNetworks();

const UNKNOWN = "550 5.1.1 User unknown";
const onlyAda: SmtpStubScript["rcpt"] = (address) => (address === "ada@x.example" ? "250 2.1.5 Ok" : UNKNOWN);
const everybody = () => "250 2.1.5 Ok";
const always = (line: string) => () => line;

const hostsAsked = ({ evidence }: ConcludedVerification) =>
  evidence.attempts.flatMap(({ sessions }) => sessions.map(({ host }) => host));

describe("several mail hosts", () => {
  const good: NetworkHost = { name: "good.x.example", script: { rcpt: onlyAda } };
  const acceptsAll: NetworkHost = { name: "all.x.example", script: { rcpt: everybody } };

  const passedOver: ReadonlyArray<readonly [string, NetworkHost]> = [
    ["refuses the connection", { name: "bad.x.example", unconnectable: "refused_or_unreachable" }],
    ["never answers the connect", { name: "bad.x.example", unconnectable: "timeout" }],
    ["says 421 at once", { name: "bad.x.example", script: { banner: always("421 4.3.2 Shutting down") } }],
    ["says 554 at once", { name: "bad.x.example", script: { banner: always("554 5.7.1 No") } }],
    [
      "refuses EHLO",
      { name: "bad.x.example", script: { command: (line) => (line.startsWith("EHLO") ? "550 No" : undefined) } },
    ],
    ["hangs up", { name: "bad.x.example", script: { banner: () => HANG_UP } }],
    ["speaks no SMTP", { name: "bad.x.example", script: { banner: always("hello") } }],
    ["hangs up at MAIL", { name: "bad.x.example", script: { mail: () => HANG_UP } }],
  ];
  for (const [name, bad] of passedOver)
    test(`one that ${name} leaves it to the next`, async () => {
      const concluded = await networkOf({ hosts: [bad, good] }).verify();
      expect(concluded.result.sub_status).toBe("mailbox_exists");
      expect(hostsAsked(concluded)).toEqual(["bad.x.example", "good.x.example"]);
    });

  test("that all close before the banner: no host responded, and nothing is charged", async () => {
    const mute = (name: string): NetworkHost => ({ name: `${name}.x.example`, script: { banner: () => HANG_UP } });
    const once = await networkOf({ hosts: [mute("a")] }).verify();
    expect([once.result.sub_status, once.result.verdict, once.chargeable]).toEqual([
      "smtp_protocol_error",
      "risky",
      false,
    ]);
    const twice = await networkOf({ hosts: [mute("a"), mute("b")] }).verify();
    expect([twice.result.sub_status, twice.chargeable]).toEqual(["smtp_protocol_error", false]);
  });

  test("one of which responded: charged, whatever the others do", async () => {
    const mute: NetworkHost = { name: "a.x.example", script: { banner: () => HANG_UP } };
    const rude: NetworkHost = { name: "b.x.example", script: { mail: () => HANG_UP } };
    const { result, chargeable } = await networkOf({ hosts: [mute, rude] }).verify();
    expect([result.sub_status, chargeable]).toEqual(["smtp_protocol_error", true]);
  });

  test("one that times out leaves it to the next", async () => {
    const network = networkOf({ hosts: [{ name: "bad.x.example", script: { banner: () => SILENCE } }, good] });
    const concluded = network.verify();
    await network.stub("bad.x.example").opened();
    await network.clock.advance(NETWORK_REPLY_TIMEOUT_MS);
    expect((await concluded).result.sub_status).toBe("mailbox_exists");
  });

  const decisive: ReadonlyArray<readonly [string, SmtpStubScript, SubStatus]> = [
    ["definite 550", { rcpt: always(UNKNOWN) }, "mailbox_not_found"],
    ["deferral at RCPT", { rcpt: always("451 4.3.0 Temporary lookup failure") }, "smtp_temporary_error"],
    ["421 at RCPT", { rcpt: always("421 4.7.0 Try again later") }, "rate_limited"],
    ["greylisting at MAIL", { mail: always("450 4.2.0 Greylisted") }, "greylisted"],
    ["policy at RCPT", { rcpt: always("554 5.7.1 Blocked using a blocklist") }, "smtp_blocked"],
    ["refusal of the sender", { mail: always("550 5.1.8 Sender address rejected") }, "sender_rejected"],
  ];
  for (const [name, script, subStatus] of decisive)
    test(`a primary's ${name} is not overruled by a secondary that accepts everybody`, async () => {
      const concluded = await networkOf({ hosts: [{ name: "first.x.example", script }, acceptsAll] }).verify();
      expect(concluded.result.sub_status).toBe(subStatus);
      expect(hostsAsked(concluded)).toEqual(["first.x.example"]);
    });

  const deferring: ReadonlyArray<readonly [string, SmtpStubScript["banner"], SubStatus]> = [
    ["421 instead of the banner", always("421 4.3.2 Service not available"), "smtp_temporary_error"],
    ["too many connections", always("421 4.7.0 Too many connections"), "rate_limited"],
  ];
  for (const [name, banner, subStatus] of deferring)
    test(`a primary's ${name} is waited out, whatever a secondary that accepts everybody says`, async () => {
      let refusals = 1;
      const script: SmtpStubScript = {
        banner: (session) => (refusals-- > 0 ? (banner?.(session) ?? "") : "220 first.x.example ESMTP"),
        rcpt: always(UNKNOWN),
      };
      const hosts = [{ name: "first.x.example", script }, acceptsAll];
      const concluded = await networkOf({ hosts }).verifyWithRetries();
      expect(concluded.result.sub_status).toBe("mailbox_not_found");
      expect(hostsAsked(concluded)).toEqual(["first.x.example", "all.x.example", "first.x.example"]);
      refusals = 99;
      const endless = await networkOf({ hosts }).verifyWithRetries();
      expect([endless.result.sub_status, endless.chargeable]).toEqual([subStatus, true]);
    });

  test("a primary's 421 does not outweigh a secondary that knows its recipients", async () => {
    const first: NetworkHost = { name: "first.x.example", script: { banner: always("421 4.3.2 Shutting down") } };
    const concluded = await networkOf({ hosts: [first, good], retryWaitsS: [60] }).verifyWithRetries();
    expect([concluded.result.sub_status, concluded.evidence.attempts.length]).toEqual(["mailbox_exists", 1]);
  });

  test("a primary that is down leaves it to one that accepts every recipient", async () => {
    const first: NetworkHost = { name: "first.x.example", unconnectable: "refused_or_unreachable" };
    const concluded = await networkOf({ hosts: [first, acceptsAll] }).verifyWithRetries();
    expect([concluded.result.sub_status, concluded.evidence.attempts.length]).toEqual(["catch_all", 1]);
  });

  describe("an address that needs SMTPUTF8", () => {
    const without = (name: string): NetworkHost => ({ name: `${name}.x.example`, script: { ehlo: [] } });

    test.each([
      ["no host offers it", [without("a"), without("b")], "smtputf8_unsupported"],
      ["the next host offers it", [without("a"), acceptsAll], "catch_all"],
      [
        "the primary cannot be reached: a backup must not decide",
        [{ name: "a.x.example", unconnectable: "timeout" }, without("b")],
        "smtp_unreachable",
      ],
      [
        "the primary is busy: a backup must not decide",
        [{ name: "a.x.example", script: { banner: always("421 4.3.2 Busy") } }, without("b")],
        "smtp_temporary_error",
      ],
    ] as const)("%s", async (_, hosts, subStatus) => {
      const concluded = await networkOf({ hosts: [...hosts], retryWaitsS: [] }).verify("ädä@x.example");
      expect(concluded.result.sub_status).toBe(subStatus);
    });

    test("the primary's address cannot be looked up: a backup must not decide, and it is free", async () => {
      const hosts = [without("a"), without("b")];
      const network = networkOf({ hosts, zone: { "a.x.example": "servfail" }, retryWaitsS: [] });
      const { result, chargeable } = await network.verify("ädä@x.example");
      expect([result.sub_status, chargeable]).toEqual(["smtp_unreachable", false]);
    });

    test("the attempt runs out of time: the remaining hosts may offer it", async () => {
      const lacking = findingWith({ reading: "smtputf8_unsupported", reply: null });
      const address = parseAddress("ädä@x.example");
      if (!address.ok) throw new Error(address.error);
      const hosts = ["192.0.2.25", "192.0.2.26"].map((ip, n) => ({
        ...{ host: `h${n}.x.example`, preference: n, lookup_failed: false },
        addresses: [{ address: ip, allowed: true }],
      }));
      const inquire = async (attemptTimeMs: number) => {
        const probe = async () => ({ sessions: [], tookMs: 1_000, finding: lacking, settled: false });
        const runtime = { clock: createTestClock(), random: { integer: () => 0 } };
        const ask = createMailboxProber(runtime, { probe }, { smtpPort: 25, attemptTimeMs });
        const question = {
          randomRecipient: "r@x.example",
          number: 1,
          previousSession: null,
          onBehalfOf: OPERATOR,
        } as const;
        return (await ask({ address: address.value, domain: domainWith({ hosts }), ...question })).attempt.finding
          .reading;
      };
      expect([await inquire(500), await inquire(5_000)]).toEqual(["unreachable", "smtputf8_unsupported"]);
    });

    test("more addresses than are tried: the last ones may offer it", async () => {
      const many = (count: number) =>
        Array.from({ length: count }, (_, n): NetworkHost => ({ ...without(`h${n}`), preference: n }));
      const subStatus = async (count: number) =>
        (await networkOf({ hosts: many(count), retryWaitsS: [] }).verify("ädä@x.example")).result.sub_status;
      expect(await subStatus(39)).toBe("smtputf8_unsupported");
      expect(await subStatus(41)).toBe("smtp_unreachable");
    });
  });

  describe("after a primary that only replied 421, a worse host", () => {
    const busy: NetworkHost = { name: "a.x.example", script: { banner: always("421 4.3.2 Busy") } };
    const says = (line: string): NetworkHost => ({ name: "b.x.example", script: { rcpt: () => line } });

    test.each([
      ["that accepts everybody settles nothing", "250 Ok", "smtp_temporary_error"],
      ["that relays nothing for us settles nothing", "554 5.7.1 Relay access denied", "smtp_temporary_error"],
      ["that knows the mailbox is unknown is believed", "550 5.1.1 User unknown", "mailbox_not_found"],
    ])("%s", async (_, line, subStatus) => {
      const concluded = await networkOf({ hosts: [busy, says(line)], retryWaitsS: [] }).verify();
      expect(concluded.result.sub_status).toBe(subStatus as typeof concluded.result.sub_status);
    });
  });

  test("when none can be reached the check is free", async () => {
    const dead = ["a", "b", "c"].map((name): NetworkHost => ({ name: `${name}.x.example`, unconnectable: "timeout" }));
    const { result, chargeable } = await networkOf({ hosts: dead }).verify();
    expect([result.sub_status, chargeable]).toEqual(["smtp_unreachable", false]);
  });

  test("one that responded before the others timed out makes it charged", async () => {
    const hosts: NetworkHost[] = [
      { name: "a.x.example", script: { banner: always("554 5.7.1 No") } },
      { name: "b.x.example", unconnectable: "timeout" },
    ];
    const { result, chargeable } = await networkOf({ hosts }).verify();
    expect([result.sub_status, chargeable]).toEqual(["smtp_blocked", true]);
  });

  test("all addresses of a host are tried, IPv4 first and four at most", async () => {
    const addresses = Array.from({ length: 6 }, (_, at) => `198.51.99.${at}`);
    const zone = { "mx.x.example": { A: addresses, AAAA: ["2a00:1450::1"] } };
    const { evidence } = await networkOf({ zone }).verify();
    expect(evidence.attempts[0]?.sessions.map(({ address }) => address)).toEqual(addresses.slice(0, 4));
    const mixed = { "mx.x.example": { AAAA: ["2a00:1450::1"], A: ["198.51.99.1", "10.0.0.1"] } };
    const second = await networkOf({ zone: mixed }).verify();
    const asked = second.evidence.attempts[0]?.sessions.map(({ address }) => address);
    expect(asked).toEqual(["198.51.99.1", "2a00:1450::1"]);
  });
});

describe("an attempt is bounded", () => {
  test("by time: when its sessions have taken too long, no further host is tried", async () => {
    const names = ["a", "b", "c", "d", "e", "f", "g"].map((name) => `${name}.x.example`);
    const network = networkOf({ hosts: names.map((name) => ({ name, script: { banner: () => SILENCE } })) });
    const concluded = network.verify();
    for (const name of names.slice(0, 5)) {
      await network.stub(name).opened();
      await network.clock.advance(NETWORK_REPLY_TIMEOUT_MS);
    }
    expect(hostsAsked(await concluded)).toEqual(names.slice(0, 5));
  });

  test("by addresses: forty of all hosts together", async () => {
    const names = Array.from({ length: 30 }, (_, at) => `mx${at}.x.example`);
    const addresses = ["1", "2", "3", "4"].map((last) => `198.51.99.${last}`);
    const hosts = Object.fromEntries(names.map((name) => [name, { A: addresses }]));
    const zone = { ...hosts, "x.example": { MX: names.map((name, at) => [at, name] as const) } };
    const concluded = await networkOf({ hosts: [], zone }).verify();
    expect(hostsAsked(concluded)).toEqual(names.slice(0, 10).flatMap((name) => [name, name, name, name]));
    expect(concluded.result.sub_status).toBe("smtp_unreachable");
  });

  test("by lines: of a wordy server the first and the latest are kept", async () => {
    const ehlo = Array.from({ length: 100 }, (_, at) => `X-KEYWORD-${at}`);
    const script = { rcpt: onlyAda, ehlo };
    const { evidence, result } = await networkOf({ hosts: [{ name: "mx.x.example", script }] }).verify();
    const lines = evidence.attempts[0]?.sessions[0]?.transcript.map(({ text }) => text) ?? [];
    expect(result.sub_status).toBe("mailbox_exists");
    expect(lines.length).toBe(60);
    expect([lines[0], ...lines.slice(-3)]).toEqual(["220 stub.example ESMTP", UNKNOWN, "RSET", "250 2.0.0 Ok"]);
  });
});

describe("the addresses of an attempt", () => {
  const inquire = async (addresses: readonly string[], previousAddress: string | null, tookMs = 0) => {
    const address = parseAddress("ada@x.example");
    if (!address.ok) throw new Error(address.error);
    const asked: string[] = [];
    const probe = async (target: { readonly address: string }) => {
      asked.push(target.address);
      return { sessions: [], tookMs, finding: findingWith({ reading: "unreachable", heard: false }), settled: false };
    };
    const runtime = { clock: createTestClock(), random: { integer: () => 0 } };
    const hosts = [
      {
        ...{ host: "mx.x.example", preference: 10, lookup_failed: false },
        addresses: addresses.map((one) => ({ address: one, allowed: one !== "10.0.0.1" })),
      },
    ];
    await createMailboxProber(
      runtime,
      { probe },
      { smtpPort: 25, attemptTimeMs: 1_000 },
    )({
      ...{ address: address.value, domain: domainWith({ hosts }), randomRecipient: null, number: 1 },
      previousSession: previousAddress === null ? null : { address: previousAddress, egress: "direct" },
      onBehalfOf: OPERATOR,
    });
    return asked;
  };

  test("IPv4 comes first, and before it the address of the latest session; private ones are not probed", async () => {
    const addresses = ["2001:db8::1", "10.0.0.1", "192.0.2.1", "192.0.2.2"];
    expect(await inquire(addresses, null)).toEqual(["192.0.2.1", "192.0.2.2", "2001:db8::1"]);
    expect(await inquire(addresses, "192.0.2.2")).toEqual(["192.0.2.2", "192.0.2.1", "2001:db8::1"]);
    expect(await inquire(addresses, "2001:db8::1")).toEqual(["2001:db8::1", "192.0.2.1", "192.0.2.2"]);
  });

  test("of one host are four at most, and no more once the sessions took longer than the attempt may", async () => {
    const addresses = [1, 2, 3, 4, 5].map((n) => `192.0.2.${n}`);
    expect(await inquire(addresses, null)).toEqual(addresses.slice(0, 4));
    expect(await inquire(addresses, null, 500)).toEqual(addresses.slice(0, 3));
    expect(await inquire(addresses, null, 1_001)).toEqual(addresses.slice(0, 1));
  });
});
