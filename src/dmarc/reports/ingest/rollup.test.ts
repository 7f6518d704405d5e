import { describe, expect, test } from "bun:test";
import type { ReportRow } from "../report/report-row.ts";
import { COUNT_MAX } from "../report/report-values.ts";
import {
  OVERFLOW_REST,
  RANK_STEP,
  isLegacyKey,
  keyOfEvidence,
  legacyKeyOf,
  overflowKeyOf,
  readSourceKey,
  recordRank,
  rowFacts,
  sourceKeyOf,
} from "./rollup.ts";

const row = (change: Partial<ReportRow> = {}): ReportRow => ({
  sourceIp: "192.0.2.1",
  count: 3,
  disposition: "none",
  dkim: null,
  spf: null,
  reasons: [],
  headerFrom: "example.com",
  envelopeFrom: null,
  envelopeTo: null,
  dkimResults: [],
  spfResults: [],
  ...change,
});
const dkim = (domain: string | null, result: "pass" | "fail" = "pass") =>
  ({ domain, selector: "s", result, humanResult: null }) as const;
const spf = (domain: string | null, result: "pass" | "fail" = "pass") =>
  ({ domain, scope: "mfrom", result, humanResult: null }) as const;

describe("the key of a source", () => {
  const IP = "192.0.2.1";

  test.each<[string, Partial<ReportRow>, string]>([
    ["the address alone where nothing passed", {}, `${IP} -/- - -`],
    ["the aligned signature", { dkimResults: [dkim("example.com")] }, `${IP} example.com/s - -`],
    ["one below the domain", { dkimResults: [dkim("mail.example.com")] }, `${IP} mail.example.com/s - -`],
    [
      "the first that is aligned and the first that is not",
      { dkimResults: [dkim("esp.net"), dkim("a.example.com"), dkim("example.com"), dkim("other.net")] },
      `${IP} a.example.com/s - esp.net`,
    ],
    [
      "no signature that failed",
      { dkimResults: [dkim("example.com", "fail"), dkim("esp.net", "fail")] },
      `${IP} -/- - -`,
    ],
    ["no signature that the report leaves out", { dkim: "pass" }, `${IP} -/- - -`],
    ["the From that passed by an envelope that the report leaves out", { spf: "pass" }, `${IP} -/- example.com -`],
    [
      "nothing by a word about a stranger's From",
      { headerFrom: "other.org", dkim: "pass", spf: "pass" },
      `${IP} -/- - -`,
    ],
    [
      "no word of alignment that the checks do not bear out",
      { dkim: "pass", spf: "pass", dkimResults: [dkim("esp.net")], spfResults: [spf("esp.net")] },
      `${IP} -/- esp.net esp.net`,
    ],
    ["no signature without a domain", { dkimResults: [dkim(null)] }, `${IP} -/- - -`],
    [
      "strangers below the same suffix as strangers",
      { headerFrom: "a.github.io", dkimResults: [dkim("b.github.io")] },
      `${IP} -/- - b.github.io`,
    ],
    [
      "a stranger's signature as a stranger's, although it is aligned with the row's From",
      { headerFrom: "other.org", dkimResults: [dkim("other.org")], spfResults: [spf("other.org")] },
      `${IP} -/- other.org other.org`,
    ],
    [
      "ours below a stranger's From as a stranger's",
      { headerFrom: "other.org", dkimResults: [dkim("example.com")] },
      `${IP} -/- - example.com`,
    ],
    [
      "the aligned signature below a From of a name below",
      { headerFrom: "news.example.com", dkimResults: [dkim("mail.example.com")] },
      `${IP} mail.example.com/s - -`,
    ],
    [
      "one aligned with the enrolled domain when there is no From",
      { headerFrom: null, dkimResults: [dkim("example.com")] },
      `${IP} example.com/s - -`,
    ],
    ["the envelope, aligned or not", { spfResults: [spf("bounce.esp.net")] }, `${IP} -/- bounce.esp.net -`],
    [
      "an aligned envelope before others",
      { spfResults: [spf("bounce.esp.net"), spf("b.example.com")], dkimResults: [dkim("example.com")] },
      `${IP} example.com/s b.example.com -`,
    ],
    [
      "four labels of names of others",
      { spfResults: [spf("1.2.3.4.esp.net")], dkimResults: [dkim("a.b.c.d.esp.net")] },
      `${IP} -/- 3.4.esp.net c.d.esp.net`,
    ],
    ["no SPF that failed or has no domain", { spfResults: [spf("esp.net", "fail"), spf(null)] }, `${IP} -/- - -`],
    ["IPv6", { sourceIp: "2001:db8::1" }, "2001:db8::1 -/- - -"],
  ])("is %s", (_what, change, key) => {
    expect(sourceKeyOf(row(change), "example.com")).toBe(key);
    expect(keyOfEvidence(readSourceKey(key))).toBe(key);
    expect(isLegacyKey(key)).toBe(false);
  });

  test.each<[string, Partial<ReportRow>, string]>([
    [
      "the signature of its organization",
      { headerFrom: "mail.example.com", dkimResults: [dkim("example.com")] },
      `${IP} example.com/s - -`,
    ],
    [
      "none when the From is above it",
      { headerFrom: "example.com", dkimResults: [dkim("example.com")] },
      `${IP} -/- - example.com`,
    ],
  ])("for an enrolled domain below the organizational one is %s", (_what, change, key) => {
    expect(sourceKeyOf(row(change), "mail.example.com")).toBe(key);
  });

  test.each([
    ["S1", "s1"],
    ["2026._domain-key", "2026._domain-key"],
    ["a b", "-"],
    ["-", "-"],
    [`${"x".repeat(63)}y`, "-"],
    ["x/y", "-"],
  ])("has the selector %p as %s", (selector, written) => {
    const signature = { domain: "example.com", selector, result: "pass", humanResult: null } as const;
    const key = sourceKeyOf(row({ dkimResults: [signature] }), "example.com");
    expect(key).toBe(`${IP} example.com/${written} - -`);
  });

  test.each([
    [`${IP} example.com/s bounce.esp.net esp.net`, "* example.com/s bounce.esp.net esp.net", "dkim:example.com"],
    [`${IP} -/- bounce.esp.net esp.net`, "* -/- bounce.esp.net esp.net", "spf:bounce.esp.net"],
    ["2001:db8::1 -/- - -", OVERFLOW_REST, "ip:2001:db8::1"],
    [OVERFLOW_REST, OVERFLOW_REST, "ip:"],
  ])("%s: without its address %s, of old %s", (key, overflow, legacy) => {
    expect(overflowKeyOf(key)).toBe(overflow);
    expect(legacyKeyOf(key)).toBe(legacy);
    expect(isLegacyKey(legacy)).toBe(true);
  });

  test.each([
    ["dkim:example.com", { signer: "example.com" }],
    ["spf:bounce.esp.net", { envelope: "bounce.esp.net" }],
    ["ip:2001:db8::1", { ip: "2001:db8::1" }],
    ["other", {}],
  ])("of old, %s, is read as what it says", (key, evidence) => {
    const nothing = { ip: null, signer: null, selector: null, envelope: null, foreign: null };
    expect(readSourceKey(key)).toEqual({ ...nothing, ...evidence });
  });
});

describe("the facts about a row", () => {
  const relaxed = { adkim: null, aspf: null };
  const of = (change: Partial<ReportRow>, policy: Parameters<typeof rowFacts>[2] = relaxed) => {
    const { isAligned, isForwarded, isAuthenticated } = rowFacts(row(change), "example.com", policy);
    return { isAligned, isForwarded, isAuthenticated };
  };
  const forwarded = [{ type: "forwarded", comment: null }] as const;

  test("the aligned results that the report states are used", () => {
    expect(of({ dkim: "pass", spf: "fail" })).toEqual({ isAligned: true, isForwarded: false, isAuthenticated: false });
    expect(of({ dkim: "fail", spf: "pass" }).isAligned).toBe(true);
    const fails = of({ dkim: "fail", spf: "fail", dkimResults: [dkim("example.com")] });
    expect(fails).toEqual({ isAligned: false, isForwarded: false, isAuthenticated: true });
    expect(of({ dkim: "fail", dkimResults: [dkim("example.com")] }).isAligned).toBe(false);
  });

  test("if it states none, its checks are compared as strictly as the policy asks", () => {
    expect(of({ dkimResults: [dkim("mail.example.com")] }).isAligned).toBe(true);
    expect(of({ dkimResults: [dkim("mail.example.com")] }, { adkim: "s", aspf: null }).isAligned).toBe(false);
    expect(of({ dkimResults: [dkim("example.com")] }, { adkim: "s", aspf: null }).isAligned).toBe(true);
    expect(of({ spfResults: [spf("b.example.com")] }).isAligned).toBe(true);
    expect(of({ spfResults: [spf("b.example.com")] }, { adkim: null, aspf: "s" }).isAligned).toBe(false);
    expect(of({ spfResults: [spf("esp.net")] })).toEqual({
      isAligned: false,
      isForwarded: false,
      isAuthenticated: true,
    });
  });

  test("only rows that are not aligned can be forwarded or authenticated for another domain", () => {
    expect(of({ dkim: "pass", reasons: forwarded, spfResults: [spf("esp.net")] })).toEqual({
      isAligned: true,
      isForwarded: false,
      isAuthenticated: false,
    });
    expect(of({ dkim: "fail", reasons: forwarded }).isForwarded).toBe(true);
  });

  test("the rank puts failing rows before forwarded before aligned ones, and of each those with the most messages first", () => {
    const failing = recordRank({ isAligned: false, isForwarded: false }, 1);
    const passedOn = recordRank({ isAligned: false, isForwarded: true }, COUNT_MAX);
    const aligned = recordRank({ isAligned: true, isForwarded: false }, COUNT_MAX);
    expect(failing).toBeGreaterThan(passedOn);
    expect(recordRank({ isAligned: false, isForwarded: true }, 1)).toBeGreaterThan(aligned);
    expect(recordRank({ isAligned: true, isForwarded: false }, 2)).toBeGreaterThan(
      recordRank({ isAligned: true, isForwarded: false }, 1),
    );
    expect(RANK_STEP).toBeGreaterThan(COUNT_MAX);
  });
});
