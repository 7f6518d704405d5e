import { describe, expect, test } from "bun:test";
import { createLog } from "../../foundation/base/log.ts";
import type { DnsOutcome } from "../../foundation/net/dns.ts";
import { createTestClock, settle } from "../../testing/clock.ts";
import { createDirectConnector } from "../../foundation/net/connector.ts";
import { createZoneResolver } from "../../testing/dns-zone.ts";
import { failureOf, host } from "../../testing/probe-pool.ts";
import { silentLog } from "../../testing/silent-log.ts";
import { createStubs } from "../../testing/smtp-dial.ts";
import { SmtpSlice } from "./open.ts";
import type { ProbeTarget } from "./host-queue.ts";
import {
  DOUBTFUL_OUTAGE_MS_MAX,
  FAILING_NAMES_MAX,
  OPEN_MS_MAX,
  OUTAGE_MS_MAX,
  Outages,
  FAILING_PROVIDERS_MAX,
} from "./outages.ts";

const REFUSED = failureOf("refused_or_unreachable", "connect");
const NO_CONNECT = failureOf("connect_timeout", "connect");
const NO_SOCKET = failureOf("local_failure", "connect");
const startStub = createStubs();
const SETTINGS = {
  heloName: "probe.example",
  connectTimeoutMs: 10_000,
  replyTimeoutMs: 10_000,
  connectionsMax: 1,
  connectionsPerHostMax: 1,
  connectionsPerEgressMax: null,
  rcptPerConnectionMax: 1,
  probeAllowNetworks: [],
  sourceAddresses: [],
  socksProxies: [],
};
const target = (n: number, provider = `p${n}.example`): ProbeTarget =>
  host(`203.0.113.${n}`, `mx.${provider}`, provider);

const watched = () => {
  const clock = createTestClock();
  const lines: string[] = [];
  const answers = { dns: false, hosts: false };
  const probed: string[] = [];
  const outages = new Outages({
    clock,
    log: createLog("info", clock, (line) => lines.push(line)),
    reachesDns: async (known) => {
      probed.push(known === null ? "root" : known.name);
      return answers.dns;
    },
    reachesHost: async ({ provider }) => {
      probed.push(provider);
      return answers.hosts;
    },
    isLargeProvider: (provider) => provider.startsWith("large"),
  });
  const dns = (outcome: DnsOutcome, { name = "a.example", fromCache = false } = {}) =>
    outages.noteDns({ name, type: "MX", outcome, fromCache });
  /** A query that was answered, a moment ago. */
  const answered = async () => {
    dns("response", { name: "known.example" });
    await clock.advance(10);
  };
  /** The judgement of a failure, with the time that it takes. */
  const judge = async (channel: Parameters<Outages["judge"]>[0]) => {
    const judged = outages.judge(channel);
    await clock.advance(1_000);
    return judged;
  };
  const refuse = (count: number, from = 0, failure = REFUSED) => {
    for (let n = from; n < from + count; n++) outages.noteConnect(target(n), failure);
  };
  return { clock, lines, answers, probed, outages, dns, answered, judge, refuse };
};

describe("DNS", () => {
  test("that answers something else at the same time is no outage, without a probe", async () => {
    const { clock, outages, dns, probed } = watched();
    dns("servfail");
    const judged = outages.judge("dns");
    await settle();
    dns("nxdomain");
    await clock.advance(1_000);
    expect([await judged, outages.current(), probed]).toEqual(["believed", null, []]);
  });

  test("whose root answers is no outage", async () => {
    const { answers, outages, dns, judge } = watched();
    answers.dns = true;
    dns("timeout");
    expect([await judge("dns"), outages.current()]).toEqual(["believed", null]);
  });

  for (const outcome of ["servfail", "timeout", "network_error", "refused", "malformed", "unconfirmed"] as const)
    test(`where everything is ${outcome}, the root too, is an outage, logged once at each end`, async () => {
      const { clock, outages, dns, judge, lines } = watched();
      dns("response");
      await clock.advance(10);
      dns(outcome);
      expect([await judge("dns"), outages.current()]).toEqual(["outage", "dns_unavailable"]);
      expect(await judge("dns")).toBe("outage");
      expect(outages.findings().join()).toContain("No DNS server responds");
      await clock.advance(60_000);
      expect(lines).toHaveLength(1);
      dns("no_data");
      expect([outages.current(), outages.findings(), lines.length]).toEqual([null, [], 2]);
      expect(lines.join()).toContain('"reason":"dns_unavailable"');
    });

  test("a reply from the cache says nothing about now", async () => {
    const { outages, dns, answered, judge } = watched();
    await answered();
    dns("timeout");
    await judge("dns");
    dns("response", { fromCache: true });
    expect(outages.current()).toBe("dns_unavailable");
  });

  test("is probed at growing intervals during an outage, which ends with the first answer", async () => {
    const { clock, answers, outages, dns, answered, judge, probed } = watched();
    let told = 0;
    outages.onChange(() => told++);
    await answered();
    dns("timeout");
    await judge("dns");
    await clock.advance(7_000);
    // At once, then after 1, 2 and 4 seconds more.
    expect(probed.length).toBe(4);
    await clock.advance(600_000);
    expect(probed.length).toBeLessThan(20);
    answers.dns = true;
    await clock.advance(60_000);
    expect(outages.current()).toBeNull();
    const before = told;
    await clock.advance(600_000);
    expect(told).toBe(before);
    expect(clock.pending()).toBe(0);
  });

  test("that answers about the last name it knew is no outage, whatever it says of the root", async () => {
    const { answers, outages, dns, answered, judge, probed } = watched();
    await answered();
    answers.dns = true;
    dns("servfail", { name: "broken.example" });
    expect([await judge("dns"), outages.current(), probed]).toEqual(["believed", null, ["known.example"]]);
  });

  test("that never responded is an outage from ten names on, for a quarter of an hour; one name is believed after a while", async () => {
    const { clock, outages, dns, judge } = watched();
    for (let n = 1; n < FAILING_NAMES_MAX; n++) dns("servfail", { name: `a${n}.example` });
    dns("servfail", { name: "a1.example" });
    expect([await judge("dns"), outages.current()]).toEqual(["open", null]);
    await clock.advance(OPEN_MS_MAX);
    dns("servfail", { name: "a1.example" });
    expect([await judge("dns"), outages.current()]).toEqual(["believed", null]);
    dns("servfail", { name: "another.example" });
    expect([await judge("dns"), outages.current()]).toEqual(["outage", "dns_unavailable"]);
    await clock.advance(DOUBTFUL_OUTAGE_MS_MAX + 120_000);
    expect(outages.current()).toBeNull();
  });

  test("gives one turn at each interval", async () => {
    const { clock, outages, dns, answered, judge } = watched();
    await answered();
    dns("timeout");
    expect(outages.takeTurn()).toBe(false);
    await judge("dns");
    await clock.advance(1_000);
    expect([outages.takeTurn(), outages.takeTurn()]).toEqual([true, false]);
    await clock.advance(2_000);
    expect([outages.takeTurn(), outages.takeTurn()]).toEqual([true, false]);
  });

  test("that never answers is not waited for longer than a day; what answers then counts again", async () => {
    const { clock, outages, dns, answered, judge } = watched();
    await answered();
    dns("timeout");
    await judge("dns");
    await clock.advance(OUTAGE_MS_MAX - 120_000);
    expect(outages.current()).toBe("dns_unavailable");
    await clock.advance(240_000);
    dns("timeout");
    expect([outages.current(), await judge("dns")]).toEqual([null, "believed"]);
    dns("response");
    await clock.advance(1_000);
    dns("timeout");
    expect(await judge("dns")).toBe("outage");
  });
});

describe("mail hosts", () => {
  test("that refuse while a known one still responds are believed", async () => {
    const { clock, answers, outages, judge, refuse, probed } = watched();
    outages.noteConnect(target(200), null);
    await clock.advance(60_000);
    answers.hosts = true;
    refuse(100);
    expect([await judge("smtp"), outages.current(), probed]).toEqual(["believed", null, ["p200.example"]]);
  });

  test("that are known are dialled as for a probe, and their session is closed", async () => {
    const stub = startStub();
    const clock = createTestClock();
    const connector = createDirectConnector({ clock, mayConnect: () => true });
    const platform = { clock, connector, resolver: createZoneResolver({}), random: { integer: () => 0 } };
    const deps = { log: silentLog, connectionsPerProviderMax: () => 1 };
    const { outages } = new SmtpSlice(platform, SETTINGS, deps);
    outages.noteConnect({ ...host(stub.hostname), port: stub.port }, null);
    await clock.advance(60_000);
    outages.noteConnect(target(1), REFUSED);
    const judged = outages.judge("smtp");
    await clock.advance(1_000);
    expect(await judged).toBe("believed");
    await stub.allClosed();
    expect(stub.sessions.map(({ lines }) => lines)).toEqual([["EHLO probe.example", "QUIT"]]);
  });

  for (const failure of [REFUSED, NO_CONNECT])
    test(`that give ${failure.kind}, those that answered before too, are an outage`, async () => {
      const { clock, outages, judge, refuse } = watched();
      outages.noteConnect(target(200), null);
      await clock.advance(10);
      refuse(1, 0, failure);
      expect([await judge("smtp"), outages.current()]).toEqual(["outage", "smtp_unreachable"]);
      outages.noteConnect(target(5), failureOf("reply", "banner"));
      expect(outages.current()).toBeNull();
    });

  test("of many strangers are open at first, and an outage from ten providers on, for a quarter of an hour", async () => {
    const { clock, outages, judge, refuse } = watched();
    refuse(FAILING_PROVIDERS_MAX - 1);
    expect([await judge("smtp"), outages.current()]).toEqual(["open", null]);
    refuse(1, 100);
    expect([await judge("smtp"), outages.current()]).toEqual(["outage", "smtp_unreachable"]);
    await clock.advance(DOUBTFUL_OUTAGE_MS_MAX + 60_000);
    expect([outages.current(), await judge("smtp")]).toEqual([null, "believed"]);
  });

  test("of two large providers that refuse are an outage that is believed for longer", async () => {
    const { clock, outages, judge } = watched();
    for (const provider of ["large one", "large two"]) outages.noteConnect(target(1, provider), REFUSED);
    expect(await judge("smtp")).toBe("outage");
    await clock.advance(DOUBTFUL_OUTAGE_MS_MAX + 60_000);
    expect(outages.current()).toBe("smtp_unreachable");
  });

  test("of one provider, however many, are believed after half a minute", async () => {
    const { clock, outages, judge } = watched();
    for (let n = 0; n < 50; n++) outages.noteConnect(target(n, "one"), REFUSED);
    expect(await judge("smtp")).toBe("open");
    await clock.advance(OPEN_MS_MAX);
    outages.noteConnect(target(1, "one"), REFUSED);
    expect([await judge("smtp"), outages.current()]).toEqual(["believed", null]);
  });

  test("that failed long before others do not count with them", async () => {
    const { clock, outages, judge, refuse } = watched();
    refuse(FAILING_PROVIDERS_MAX - 1);
    await clock.advance(600_000);
    refuse(1, 100);
    expect([await judge("smtp"), outages.current()]).toEqual(["open", null]);
  });

  test("are probed a few at a time, others each time", async () => {
    const { clock, outages, judge, refuse, probed } = watched();
    for (let n = 0; n < 7; n++) outages.noteConnect(target(n), null);
    await clock.advance(10);
    refuse(1, 100);
    await judge("smtp");
    await clock.advance(3_000);
    expect(new Set(probed).size).toBe(7);
  });
});

describe("this machine", () => {
  test("without one success for some seconds is an outage; the first success ends it", async () => {
    const { clock, outages, dns, judge } = watched();
    dns("local_failure");
    expect(await judge("dns_sockets")).toBe("open");
    await clock.advance(3_000);
    dns("local_failure");
    expect([await judge("dns_sockets"), outages.current()]).toEqual(["outage", "local_failure"]);
    dns("servfail");
    expect(outages.current()).toBeNull();
  });

  test("whose connections cannot leave is an outage although DNS answers", async () => {
    const { clock, outages, dns, judge } = watched();
    outages.noteConnect(target(1), NO_SOCKET);
    await clock.advance(4_000);
    dns("response");
    outages.noteConnect(target(1), failureOf("proxy_failed", "connect"));
    expect([await judge("egress"), outages.current()]).toEqual(["outage", "local_failure"]);
    outages.noteConnect(target(1), REFUSED);
    expect(outages.current()).toBeNull();
  });

  test("that is short of sockets now and then says so once, not once an address", () => {
    const { outages, dns, lines } = watched();
    for (let n = 0; n < 1_000; n++) {
      dns("local_failure");
      dns("response");
    }
    expect([outages.current(), lines.length, outages.lastShortageMs()]).toEqual([null, 1, 0]);
  });
});
