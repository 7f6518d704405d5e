import { describe, expect, test } from "bun:test";
import { type DigestFacts, sectionOf } from "./digest.ts";
import { digestHtml } from "./digest-html.ts";
import { digestSubject, digestText } from "./digest-text.ts";
import { parseDay } from "../reading/range.ts";
import { NO_TOTALS } from "../reading/reading-store.ts";
import type { ShownSource } from "../reading/source-view.ts";

const day = (text: string): number => parseDay(text) ?? 0;

const source = (name: string, more: Partial<ShownSource> = {}): ShownSource => {
  const { messages = 100, aligned = 0 } = more;
  return {
    key: `spf:${name}`,
    kind: "spf",
    name,
    service: null,
    classification: "unknown",
    classified_by: "service",
    messages,
    aligned,
    failing: messages - aligned,
    aligned_percent: null,
    dkim_aligned: 0,
    spf_aligned: 0,
    forwarded: 0,
    authenticated_unaligned: 0,
    quarantined: 0,
    rejected: 0,
    first_day: "2026-01-01",
    last_day: "2026-11-22",
    addresses: [],
    ...more,
  };
};

const POLICY: NonNullable<DigestFacts["policy"]> = {
  ...{ p: "none", sp: "none", np: "none", adkim: "r", aspf: "r", t: "n", pct: 100 },
  ...{ own: true, inherited_from: null },
};

const FACTS: DigestFacts = {
  domain: { domain: "example.com", label: "shop", status: "active" },
  period: "weekly",
  range: { fromDay: day("2026-11-16"), toDay: day("2026-11-22") },
  totals: { ...NO_TOTALS, messages: 12_345, aligned: 12_123, forwarded: 60 },
  previous: { ...NO_TOTALS, messages: 11_870, aligned: 11_502 },
  reports: 31,
  reporters: ["google.com", "yahoo", "", "fastmail pty ltd", "gmx.net"],
  sources: [
    source("198.51.100.0/24", { kind: "network", messages: 110, classification: "threat", first_day: "2026-11-18" }),
    source("mailer.example.net", { messages: 52, classification: "misconfigured" }),
    source("lists.example.org", { messages: 60, forwarded: 60, classification: "forwarder" }),
    source("example.com", { messages: 12_123, aligned: 12_123, classification: "authorized" }),
  ],
  firstDay: day("2026-01-01"),
  lastReportAtMs: Date.UTC(2026, 10, 23, 4),
  policy: POLICY,
  failingChecks: [],
  advice: {
    stage: "monitoring",
    next: {
      action: "classify_sources",
      record: null,
      why: "Say of each of these sources what it is: mailer.example.net.",
    },
  },
};
const facts = (more: Partial<DigestFacts> = {}): DigestFacts => ({ ...FACTS, ...more });
const textOf = (more: Partial<DigestFacts>) => digestText([sectionOf(facts(more))], 0);

describe("a digest", () => {
  test("says on one page what matters", () => {
    expect(textOf({})).toBe(`example.com (shop), 2026-11-16 to 2026-11-22
============================================
12,345 messages, 98.2 % passed DMARC, 60 passed on by forwarders
+1.3 points and +4 % messages against the week before
Failing sources:
  - 198.51.100.0/24, threat: 110 of 110 fail
  - mailer.example.net, misconfigured: 52 of 52 fail
New sources:
  - 198.51.100.0/24, threat: 110 messages
Reporters: 31 reports from google.com, yahoo, one without a name and 2 more
Status: active, p=none
Next step: Say of each of these sources what it is: mailer.example.net.

You get this digest because you are a recipient of these domains. PATCH /v1/dmarc/domains/{id} with digest or recipients changes that.
`);
  });

  test.each<[string, Partial<DigestFacts>, string]>([
    [
      "that there were no reports",
      { reports: 0, totals: NO_TOTALS },
      "No reports about this time. The last one arrived on 2026-11-23.",
    ],
    ["that none ever came", { reports: 0, firstDay: null, lastReportAtMs: null }, "No reports have come yet."],
    ["that there was no mail", { totals: NO_TOTALS }, "\nNo mail\n"],
    ["that nothing is left to do", { advice: { stage: "reject", next: null } }, "Next step: nothing is left to do."],
    [
      "what must be mended",
      { domain: { ...FACTS.domain, status: "action_required" }, failingChecks: ["Ours is not in rua."] },
      "PROBLEM: Ours is not in rua.",
    ],
    ["that nothing changed", { previous: FACTS.totals }, "±0 points and ±0 % messages"],
    ["that it went down", { totals: { ...FACTS.totals, aligned: 11_000 } }, "−7.8 points"],
    [
      "where the policy comes from",
      { policy: { ...POLICY, inherited_from: "example.org" } },
      "p=none from example.org",
    ],
  ])("says %s", (_, more, line) => {
    expect(textOf(more)).toContain(line);
    expect(digestHtml("t", [sectionOf(facts(more))], 0)).toContain(
      Bun.escapeHTML(line.replace("PROBLEM: ", "").replace("Next step: ", "").trim()),
    );
  });

  test("shows the record that is to be published", () => {
    const next = { action: "reject", record: "v=DMARC1; p=reject", why: "Now." } as const;
    expect(textOf({ advice: { stage: "quarantine", next } })).toContain("Next step: Now.\n  v=DMARC1; p=reject\n");
    expect(digestHtml("t", [sectionOf(facts({ advice: { stage: "quarantine", next } }))], 0)).toContain(
      "v=DMARC1; p=reject</code>",
    );
  });

  test("names five failing sources and counts the rest", () => {
    const sources = Array.from({ length: 8 }, (_, n) => source(`s${n}.example`));
    expect(textOf({ sources })).toContain("s4.example, unknown: 100 of 100 fail\n  - and 3 more");
    expect(textOf({ sources })).not.toContain("s5.example");
  });

  test("calls nothing new in the first week of a domain", () => {
    expect(
      textOf({ firstDay: day("2026-11-16"), sources: [source("a.example", { first_day: "2026-11-20" })] }),
    ).not.toContain("New");
  });

  test.each<[string, Partial<DigestFacts>[], string]>([
    [
      "one domain",
      [{}],
      "DMARC digest for example.com, 2026-11-16 to 2026-11-22: 12,345 messages, 98.2 % passed DMARC, 60 passed on by forwarders",
    ],
    ["one without reports", [{ reports: 0 }], "DMARC digest for example.com, 2026-11-16 to 2026-11-22: no reports"],
    ["several", [{}, {}], "DMARC digest: 2 domains"],
    ["several with a problem", [{}, { reports: 0 }], "DMARC digest: 2 domains, 1 without reports or with problems"],
  ])("about %s has a subject that says so", (_, all, subject) => {
    expect(digestSubject(all.map((more) => sectionOf(facts(more))))).toBe(subject);
  });
});

describe("the page of a digest", () => {
  const page = (more: Partial<DigestFacts> = {}) => digestHtml("Digest", [sectionOf(facts(more))], 0);

  test("loads nothing and runs nothing", () => {
    expect(page()).not.toMatch(
      /<(script|img|link|iframe|style|form|object|svg)|\b(src|href|url|on\w+)\s*[=(]|https?:/i,
    );
  });

  test("escapes what strangers wrote, wherever it stands", () => {
    const evil = `"><script>alert('x')</script>&<img src=x onerror=y>`;
    const html = page({
      domain: { domain: evil, label: evil, status: "action_required" },
      reporters: [evil],
      sources: [source(evil, { service: evil, first_day: "2026-11-18" })],
      failingChecks: [evil],
      advice: { stage: "none", next: { action: "wait", record: null, why: evil } },
    });
    expect(html).not.toMatch(/<script|<img/);
    expect(html.match(/&lt;script&gt;/g)?.length).toBeGreaterThanOrEqual(7);
    expect(page({ reporters: ["a\u202Eb\u0000c\nd"] })).toContain("a b c d");
  });

  test("cuts names that have no end", () => {
    const html = page({ sources: [source("a".repeat(5_000))] });
    expect(html).toContain(`${"a".repeat(119)}…`);
    expect(html).not.toContain("a".repeat(120));
  });

  test("says the same as the text", () => {
    const words = (markup: string) =>
      markup
        .replace(/<[^>]*>/g, " ")
        .replaceAll("&#x27;", "'")
        .replaceAll(/\s+/g, " ");
    for (const line of textOf({}).split("\n").slice(2)) {
      const said = line
        .replace(/^ {2}- /, "")
        .replace(/:$/, "")
        .replace(/, (threat|misconfigured): /, ", $1 : ")
        .replace("Next step: ", "")
        .trim();
      expect(words(page())).toContain(said);
    }
  });
});
