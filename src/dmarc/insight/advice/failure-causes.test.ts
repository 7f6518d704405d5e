import { describe, expect, test } from "bun:test";
import type { DkimAuthResult, SpfAuthResult } from "../../reports/report/report-row.ts";
import {
  type CauseRecord,
  causeAct,
  causeText,
  failingResults,
  isUnchecked,
  type SpikeCause,
  findCauses,
  usedAuthentication,
} from "./failure-causes.ts";

const dkim = (
  domain: string,
  selector: string | null,
  result: DkimAuthResult["result"],
  words: string | null = null,
) => ({
  domain,
  selector,
  result,
  humanResult: words,
});
const spf = (domain: string, result: SpfAuthResult["result"]): SpfAuthResult => ({
  domain,
  scope: "mfrom",
  result,
  humanResult: null,
});
const record = (
  dkimResults: readonly DkimAuthResult[],
  spfResults: readonly SpfAuthResult[],
  count = 10,
): CauseRecord => ({
  count,
  dkimResults,
  spfResults,
});

const GOOD = record(
  [dkim("example.com", "mail", "pass"), dkim("brevo.com", "b", "pass")],
  [spf("bounce.example.com", "pass")],
);

describe("the cause of failures", () => {
  test.each<[string, readonly CauseRecord[], readonly Partial<SpikeCause>[]]>([
    [
      "is the signature that fails",
      [record([dkim("example.com", "mail", "fail", "bad signature")], [spf("bounce.example.com", "pass")])],
      [{ code: "dkim_failing", domain: "example.com", selector: "mail", result: "fail: bad signature" }],
    ],
    [
      "is what most records show",
      [
        record([dkim("example.com", "mail", "permerror", "no key")], [spf("bounce.example.com", "fail")], 60),
        record([dkim("example.com", "mail", "fail")], [spf("bounce.example.com", "pass")], 40),
      ],
      [
        { code: "dkim_failing", result: "permerror: no key" },
        { code: "spf_failing", domain: "bounce.example.com", selector: null, result: "fail" },
      ],
    ],
    [
      "is the signature that is missing, and the envelope that is another one",
      [record([dkim("brevo.com", "b", "pass")], [spf("brevo.com", "pass")])],
      [
        { code: "dkim_missing", domain: "example.com", selector: "mail", result: null },
        { code: "spf_missing", domain: "bounce.example.com" },
      ],
    ],
    ["is not known when what failed still passes", [GOOD], []],
    ["is not known without records", [], []],
  ])("%s", (_, failing, causes) => {
    const found = findCauses("example.com", [GOOD], failing);
    expect(found).toHaveLength(causes.length);
    for (const [at, cause] of causes.entries()) expect(found[at]).toMatchObject(cause);
  });

  test("is no signature that was rare before, nor one of another domain", () => {
    const before = [GOOD, GOOD, GOOD, GOOD, record([dkim("example.com", "old", "pass")], [], 5)];
    const failing = [
      record(
        [dkim("example.com", "mail", "pass"), dkim("example.com", "old", "fail"), dkim("brevo.com", "b", "fail")],
        [spf("bounce.example.com", "pass")],
      ),
    ];
    expect(findCauses("example.com", before, failing)).toEqual([]);
  });

  test("knows mail that a receiver could not check by an aligned result", () => {
    expect(isUnchecked(record([dkim("example.com", "s1", "temperror")], []), "example.com")).toBe(true);
    expect(isUnchecked(record([dkim("example.net", "s1", "temperror")], []), "example.com")).toBe(false);
    expect(isUnchecked(record([dkim("example.com", "s1", "fail")], []), "example.com")).toBe(false);
  });

  test("names the new selector after a key rotation without a key", () => {
    const old = record([dkim("example.com", "k2026a", "pass")], []);
    const rotated = record([dkim("example.com", "k2026b", "permerror")], []);
    expect(findCauses("example.com", [old], [rotated])).toEqual([
      { code: "dkim_failing", domain: "example.com", selector: "k2026b", result: "permerror" },
      { code: "dkim_missing", domain: "example.com", selector: "k2026a", result: null },
    ]);
  });

  test.each<[SpikeCause, string]>([
    [
      { code: "dkim_failing", domain: "example.com", selector: "mail", result: "fail" },
      "DKIM signatures of example.com with selector mail have failed since 2026-01-30 (fail)",
    ],
    [
      { code: "dkim_missing", domain: "example.com", selector: null, result: null },
      "DKIM signatures of example.com have been missing since 2026-01-30",
    ],
    [
      { code: "dkim_failing", domain: "example.com", selector: "s1", result: "permerror" },
      "DKIM signatures of example.com with selector s1 have failed since 2026-01-30 (permerror: receivers find no key that they can use)",
    ],
    [
      { code: "spf_failing", domain: "example.com", selector: null, result: "permerror" },
      "SPF for example.com has failed since 2026-01-30 (permerror)",
    ],
    [
      { code: "spf_missing", domain: "b.example.com", selector: null, result: null },
      "mail has not used the envelope domain b.example.com since 2026-01-30",
    ],
  ])("%p reads %p", (cause, text) => {
    expect(causeText(cause, "2026-01-30")).toBe(text);
  });

  const key = { code: "dkim_failing", domain: "example.com", selector: "s1" } as const;
  const sender = { code: "spf_failing", domain: "example.com", selector: null } as const;
  test.each<[SpikeCause, string]>([
    [{ ...key, result: "permerror: no key" }, "Publish the key that Brevo signs with at s1._domainkey.example.com."],
    [
      { ...key, result: "temperror" },
      "Have the name servers of example.com respond about the key at s1._domainkey.example.com: receivers could not look it up.",
    ],
    [
      { ...key, selector: null, result: "fail" },
      "Compare the key below _domainkey.example.com with the one that Brevo signs with, and make sure that nothing changes the mail after it is signed.",
    ],
    [{ ...sender, result: "softfail" }, "Have the SPF record of example.com name the addresses of Brevo again."],
    [
      { ...sender, result: "permerror" },
      "Correct the SPF record of example.com, or one that it includes: receivers cannot evaluate it.",
    ],
    [
      { ...sender, result: "temperror" },
      "Have the name servers respond about the SPF record of example.com and what it includes: receivers could not look it up.",
    ],
  ])("%p is corrected by %p", (cause, text) => {
    expect(causeAct(cause, "Brevo")).toBe(text);
  });
});

describe("the results of failing mail", () => {
  test.each<[string | null, readonly CauseRecord[]]>([
    [null, []],
    [
      "DKIM permerror for example.com with selector s1 (99 %), SPF permerror for b.example.com",
      [
        record([dkim("example.com", "s1", "permerror")], [spf("b.example.com", "permerror")], 998),
        record([], [spf("b.example.com", "permerror")]),
      ],
    ],
    ["no DKIM signature, no SPF result", [record([], [])]],
    [
      "DKIM passes for brevo.com, which is not aligned, SPF passes for brevo.com, which is not aligned",
      [record([dkim("brevo.com", "b", "pass")], [spf("brevo.com", "pass")])],
    ],
    [
      "no DKIM signature of example.com, SPF softfail for web.host.example",
      [record([dkim("brevo.com", "b", "fail")], [spf("web.host.example", "softfail")])],
    ],
    [
      "no DKIM signature, SPF none for several domains (75 %)",
      [
        ...["a", "b", "c"].map((host) => record([], [spf(`${host}.example.com`, "none")])),
        record([], [spf("example.com", "fail")]),
      ],
    ],
    [
      "DKIM fail for example.com with selector s1 (50 %), SPF none for a.example.com",
      [
        ...["s1", "s1", "s2"].map((selector) =>
          record([dkim("example.com", selector, "fail")], [spf("a.example.com", "none")], 1),
        ),
        record([], [spf("b.example.com", "none")], 1),
        ...["k1", "k2"].map((selector) =>
          record([dkim("example.com", selector, "permerror")], [spf("a.example.com", "none")], 1),
        ),
      ],
    ],
  ])("%p", (text, failing) => {
    expect(failingResults("example.com", failing)).toBe(text);
  });
});

describe("the authentication that a source uses", () => {
  const SIGNED = record([dkim("example.com", "s1", "pass")], [spf("bounces.example.com", "pass")], 95);
  const OTHERS = record([dkim("example.com", "other", "fail")], [spf("example.com", "fail")], 4);
  const FOREIGN = record([dkim("mcsv.net", "k2", "pass")], [spf("mail.mcsv.net", "pass")], 995);

  test("has the selectors and the envelope of its mail, passing or not", () => {
    expect(usedAuthentication("example.com", [[SIGNED], [record([dkim("example.com", "s2", "fail")], [])]])).toEqual({
      selectors: new Set(["s1", "s2"]),
      usesSpf: true,
    });
  });

  test("has nothing that only single messages have", () => {
    expect(usedAuthentication("example.com", [[], [FOREIGN, OTHERS]])).toEqual({
      selectors: new Set(),
      usesSpf: false,
    });
    expect(usedAuthentication("example.com", [[SIGNED, OTHERS]]).selectors).toEqual(new Set(["s1"]));
  });
});
