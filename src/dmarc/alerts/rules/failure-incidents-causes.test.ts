import { describe, expect, test } from "bun:test";
import type { DkimAuthResult, SpfAuthResult } from "../../reports/report/report-row.ts";
import { type CauseRecord, causeText, type SpikeCause, findCauses } from "./failure-incidents.ts";

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
});
