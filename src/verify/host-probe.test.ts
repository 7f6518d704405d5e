import { describe, expect, test } from "bun:test";
import { parseAddress } from "../foundation/mail/address.ts";
import type { SmtpFailure } from "../foundation/net/smtp-failure.ts";
import { parseReply, type SmtpReply } from "../foundation/net/smtp-reply.ts";
import { EgressPool } from "./smtp/open.ts";
import type { ProbeResult } from "./smtp/host-queue.ts";
import { createTestClock } from "../testing/clock.ts";
import { CatchAllCache, RecentAcceptances } from "./findings.ts";
import { HostProber } from "./host-probe.ts";

const OK = "250 2.1.5 Ok";
const BLOCKED = "554 5.7.1 Client host blocked using a blocklist";
const HOST = { host: "mx.x.example", address: "192.0.2.25", port: 25, provider: "x.example" };

const replyOf = (line: string): SmtpReply => {
  const reply = parseReply(line);
  if (!reply.ok) throw new Error(`not a reply: ${line}`);
  return reply.value;
};
const addressOf = (email: string) => {
  const address = parseAddress(email);
  if (!address.ok) throw new Error(address.error);
  return address.value;
};

const RESULT: ProbeResult = {
  ...{ mail: replyOf("250 2.1.0 Ok"), rcpts: [], failure: null },
  ...{ connection: "new", tls: false, transcript: [], startedAtMs: 0, tookMs: 10 },
};
/** The recipient gets the first reply, the random one the second. */
const replying = (...lines: string[]): ProbeResult => ({ ...RESULT, rcpts: lines.map(replyOf) });
const failing = (failure: Partial<SmtpFailure>): ProbeResult => ({
  ...RESULT,
  mail: null,
  failure: {
    ...{
      stage: "connect",
      kind: "connect_timeout",
      reply: null,
      detail: null,
      receivedAnything: false,
      transcript: [],
    },
    ...failure,
  },
});
const EXISTS = replying(OK, "550 5.1.1 User unknown");
const UNREACHABLE = failing({});

/** A prober whose sessions have these results, one after the other; `one`, `two` and `three` are the egresses. */
const start = (
  results: readonly ProbeResult[],
  { localAddress = null, full = [] }: { readonly localAddress?: string | null; readonly full?: readonly string[] } = {},
) => {
  const clock = createTestClock();
  const egressOf = (name: string) => ({
    name,
    localAddress,
    isProxy: false,
    connector: () => Promise.reject(new Error("not dialled")),
  });
  const egresses = new EgressPool([egressOf("one"), egressOf("two"), egressOf("three")], clock);
  const sessions: Array<readonly [egress: string, recipients: number]> = [];
  const paces: string[] = [];
  const pool = {
    probe: async (
      { egress }: { readonly egress: string },
      { recipients }: { readonly recipients: readonly string[] },
    ) => {
      const result = results[sessions.length];
      if (result === undefined) throw new Error("one session too many");
      sessions.push([egress, recipients.length]);
      return result;
    },
    fullEgresses: () => new Set(full),
    notePace: (_target: unknown, { kind }: { readonly kind: string }) => {
      paces.push(kind);
    },
  };
  const prober = new HostProber({
    ...{ pool, egresses, catchAllCache: new CatchAllCache(clock), heloName: "probe.example", mailFrom: "" },
    ...{ acceptances: new RecentAcceptances(clock), retryWaitsS: [60] },
  });
  const probe = (previousEgress: string | null = "one") =>
    prober.probe(HOST, {
      ...{ address: addressOf("ada@x.example"), randomRecipient: "random@x.example", previousEgress },
      onBehalfOf: { account: "acc_1", priority: "realtime" },
    });
  return { egresses, sessions, paces, probe };
};

describe("the pace of the host", () => {
  test.each([
    ["a limit slows it down", replying("450 4.7.0 Too many connections, slow down"), ["rate_limited"]],
    ["a reply may speed it up", EXISTS, ["answered"]],
    ["a refusal is a reply", replying("550 5.1.1 User unknown"), ["answered"]],
    ["silence changes nothing", UNREACHABLE, []],
  ] as const)("%s", async (_name, result, expected) => {
    const { paces, probe } = start([result]);
    await probe();
    expect(paces).toEqual([...expected]);
  });
});

describe("the egresses of one attempt", () => {
  test.each<readonly [string, readonly ProbeResult[], readonly string[]]>([
    ["no other after silence, which is not due to the egress", [UNREACHABLE], ["one"]],
    ["no third after a block and a reply", [replying(BLOCKED), EXISTS], ["one", "two"]],
    [
      "a third after a block and silence, which may be the same block",
      [replying(BLOCKED), UNREACHABLE, EXISTS],
      ["one", "two", "three"],
    ],
  ])("%s", async (_name, results, expected) => {
    const { sessions, probe } = start(results);
    await probe();
    expect(sessions.map(([egress]) => egress).toSorted()).toEqual(expected.toSorted());
  });

  test.each<[string, readonly string[], string | null, string]>([
    ["one that is full is passed over", ["one"], null, "two"],
    ["a retry waits for its own, although it is full", ["one"], "one", "one"],
    ["when all are full, the next one is waited for", ["one", "two", "three"], null, "one"],
  ])("of their limits: %s", async (_, full, previous, expected) => {
    const { sessions, probe } = start([EXISTS], { full });
    await probe(previous);
    expect(sessions.map(([egress]) => egress)).toEqual([expected]);
  });

  test("a reply ends the cooldown of its egress at the provider", async () => {
    const { egresses, probe } = start([EXISTS]);
    for (const egress of ["one", "two", "three"]) egresses.block(egress, HOST.provider);
    expect(egresses.choose(HOST, "one")).toBeNull();
    await probe();
    expect(egresses.choose(HOST, null)?.name).toBe("one");
  });

  test("none of the IP version of the host: not settled, so that the next host is probed", async () => {
    const { sessions, probe } = start([], { localAddress: "2001:db8::9" });
    expect(await probe()).toMatchObject({ settled: false, finding: { reading: "internal", rule: "no_egress" } });
    expect(sessions).toEqual([]);
  });

  test("the time of all sessions counts", async () => {
    expect((await start([replying(BLOCKED), EXISTS]).probe()).tookMs).toBe(20);
  });
});

test("a random recipient refused as disabled is conclusive: it is cached, and not probed alone", async () => {
  const { sessions, probe } = start([replying(OK, "550 5.2.1 Account disabled"), replying(OK)]);
  expect((await probe()).finding).toMatchObject({ catch_all: "no", catch_all_age_s: null });
  expect((await probe()).finding).toMatchObject({ catch_all: "no", catch_all_age_s: 0 });
  expect(sessions.map(([, recipients]) => recipients)).toEqual([2, 1]);
});

describe("the evidence of a session", () => {
  test.each([
    ["connect", "banner"],
    ["banner", "banner"],
    ["ehlo", "ehlo"],
    ["starttls", "starttls"],
  ] as const)("a refusal that ends it at %s is one of us at %s", async (stage, shown) => {
    const refusal = failing({
      stage,
      kind: "reply",
      reply: replyOf("421 4.3.2 Shutting down"),
      receivedAnything: true,
    });
    const { sessions } = await start([refusal]).probe();
    expect(sessions[0]?.replies.map(({ stage, about }) => [stage, about])).toEqual([[shown, "us"]]);
  });

  test.each([
    [1, 1],
    [60, 60],
    [61, 60],
    [1_000, 60],
  ])("of %d lines it keeps %d, the first 20 and the last 40", async (lines, kept) => {
    const transcript = Array.from({ length: lines }, (_, at) => ({ atMs: at, from: "server" as const, text: `${at}` }));
    const { sessions } = await start([{ ...EXISTS, transcript }]).probe();
    const texts = sessions[0]?.transcript.map(({ text }) => Number(text)) ?? [];
    expect(texts).toHaveLength(kept);
    expect([texts[0], texts[19], texts.at(-1)]).toEqual([0, lines < 20 ? undefined : 19, lines - 1]);
  });
});
