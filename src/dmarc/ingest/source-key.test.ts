import { describe, expect, test } from "bun:test";
import { factsOf, RANK_STEP, rankOf } from "./ingest-row.ts";
import type { ReportRow } from "../report/report-row.ts";
import { COUNT_MAX } from "../report/report-values.ts";
import { kindOfSource, sourceKeyOf } from "./source-key.ts";

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
  test.each<[string, Partial<ReportRow>, string]>([
    ["the aligned signature", { dkimResults: [dkim("example.com")] }, "dkim:example.com"],
    ["one of the same organisational domain", { dkimResults: [dkim("mail.example.com")] }, "dkim:mail.example.com"],
    [
      "the first that is aligned",
      { dkimResults: [dkim("esp.net"), dkim("a.example.com"), dkim("example.com")] },
      "dkim:a.example.com",
    ],
    ["none that failed", { dkimResults: [dkim("example.com", "fail")] }, "ip:192.0.2.1"],
    ["none of strangers", { dkimResults: [dkim("esp.net")] }, "ip:192.0.2.1"],
    [
      "none of strangers below the same suffix",
      { headerFrom: "a.github.io", dkimResults: [dkim("b.github.io")] },
      "ip:192.0.2.1",
    ],
    ["none without a domain", { dkimResults: [dkim(null)] }, "ip:192.0.2.1"],
    [
      "none of a stranger, although it is aligned with the row's From",
      { headerFrom: "other.org", dkimResults: [dkim("other.org")] },
      "ip:192.0.2.1",
    ],
    [
      "the envelope of a stranger with a From of its own",
      { headerFrom: "other.org", dkimResults: [dkim("other.org")], spfResults: [spf("other.org")] },
      "spf:other.org",
    ],
    [
      "none of ours below a stranger's From",
      { headerFrom: "other.org", dkimResults: [dkim("example.com")] },
      "ip:192.0.2.1",
    ],
    [
      "the aligned signature below a From of a name below",
      { headerFrom: "news.example.com", dkimResults: [dkim("mail.example.com")] },
      "dkim:mail.example.com",
    ],
    [
      "one aligned with the enrolled domain when there is no From",
      { headerFrom: null, dkimResults: [dkim("example.com")] },
      "dkim:example.com",
    ],
    ["SPF, aligned or not", { spfResults: [spf("bounce.esp.net")] }, "spf:bounce.esp.net"],
    [
      "the signature before SPF",
      { spfResults: [spf("esp.net")], dkimResults: [dkim("example.com")] },
      "dkim:example.com",
    ],
    [
      "the aligned envelope before another that passes",
      { spfResults: [spf("helo.esp.net"), spf("bounce.example.com")] },
      "spf:bounce.example.com",
    ],
    ["no SPF that failed or names nobody", { spfResults: [spf("esp.net", "fail"), spf(null)] }, "ip:192.0.2.1"],
  ])("is %s", (_what, change, key) => {
    expect(sourceKeyOf(row(change), "example.com")).toBe(key);
    expect(key.startsWith(`${kindOfSource(key)}:`)).toBe(true);
  });

  test.each<[string, Partial<ReportRow>, string]>([
    [
      "the signature of its organisation",
      { headerFrom: "mail.example.com", dkimResults: [dkim("example.com")] },
      "dkim:example.com",
    ],
    [
      "none when the From is above it",
      { headerFrom: "example.com", dkimResults: [dkim("example.com")] },
      "ip:192.0.2.1",
    ],
  ])("for an enrolled domain below the organisational one is %s", (_what, change, key) => {
    expect(sourceKeyOf(row(change), "mail.example.com")).toBe(key);
  });
});

describe("what follows from a row", () => {
  const relaxed = { adkim: null, aspf: null };
  const of = (change: Partial<ReportRow>, policy: Parameters<typeof factsOf>[2] = relaxed) => {
    const { isAligned, isForwarded, isAuthenticated } = factsOf(row(change), "example.com", policy);
    return { isAligned, isForwarded, isAuthenticated };
  };
  const forwarded = [{ type: "forwarded", comment: null }] as const;

  test("the reporter's word on alignment counts", () => {
    expect(of({ dkim: "pass", spf: "fail" })).toEqual({ isAligned: true, isForwarded: false, isAuthenticated: false });
    expect(of({ dkim: "fail", spf: "pass" }).isAligned).toBe(true);
    const fails = of({ dkim: "fail", spf: "fail", dkimResults: [dkim("example.com")] });
    expect(fails).toEqual({ isAligned: false, isForwarded: false, isAuthenticated: true });
    expect(of({ dkim: "fail", dkimResults: [dkim("example.com")] }).isAligned).toBe(false);
  });

  test("where it says nothing, its checks are judged as strictly as the policy asks", () => {
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

  test("only what is not aligned was forwarded or is authenticated for somebody else", () => {
    expect(of({ dkim: "pass", reasons: forwarded, spfResults: [spf("esp.net")] })).toEqual({
      isAligned: true,
      isForwarded: false,
      isAuthenticated: false,
    });
    expect(of({ dkim: "fail", reasons: forwarded }).isForwarded).toBe(true);
  });

  test("the rank puts failures before what was passed on before what is aligned, and of each the most first", () => {
    const failing = rankOf({ isAligned: false, isForwarded: false }, 1);
    const passedOn = rankOf({ isAligned: false, isForwarded: true }, COUNT_MAX);
    const aligned = rankOf({ isAligned: true, isForwarded: false }, COUNT_MAX);
    expect(failing).toBeGreaterThan(passedOn);
    expect(rankOf({ isAligned: false, isForwarded: true }, 1)).toBeGreaterThan(aligned);
    expect(rankOf({ isAligned: true, isForwarded: false }, 2)).toBeGreaterThan(
      rankOf({ isAligned: true, isForwarded: false }, 1),
    );
    expect(RANK_STEP).toBeGreaterThan(COUNT_MAX);
  });
});
