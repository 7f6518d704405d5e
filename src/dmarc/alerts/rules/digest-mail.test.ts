import { describe, expect, test } from "bun:test";
import { composeMail } from "../../../notifications/mail/compose-mail.ts";
import { MAIL_BASE_URL, MAIL_LINKS } from "../../../testing/mailing.ts";
import { type DomainDigestFacts, dmarcDigestMail } from "./digest-mail.ts";
import { parseDay } from "../../../foundation/http/day-range.ts";
import { NO_TOTALS } from "../../insight/sources/rollup-rows.ts";
import type { Source } from "../../insight/sources/source-response.ts";

const day = (text: string): number => parseDay(text) ?? 0;

const source = (name: string, more: Partial<Source> = {}): Source => {
  const { messages = 100, aligned = 0 } = more;
  return {
    key: `org:${name}`,
    kind: "organization",
    name,
    service: null,
    service_id: null,
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
    dkim: [],
    spf: [],
    network_count: 1,
    address_count: 1,
    lookups_pending: false,
    addresses: [],
    ...more,
  };
};

const POLICY: NonNullable<DomainDigestFacts["policy"]> = {
  ...{ p: "none", sp: "none", np: "none", adkim: "r", aspf: "r", t: "n", pct: 100 },
  ...{ own: true, inherited_from: null },
};

const FACTS: DomainDigestFacts = {
  domain: { id: "018f", domain: "example.com", label: "shop", status: "active" },
  period: "weekly",
  range: { fromDay: day("2026-11-16"), toDay: day("2026-11-22") },
  totals: { ...NO_TOTALS, messages: 12_345, aligned: 12_123, forwarded: 60 },
  compared: {
    days: 6,
    now: { ...NO_TOTALS, messages: 12_345, aligned: 12_123 },
    before: { ...NO_TOTALS, messages: 11_870, aligned: 11_502 },
  },
  reports: 31,
  reporters: ["google.com", "Yahoo", "a reporter without a name", "Fastmail Pty Ltd", "gmx.net"],
  untrusted: { reports: 0, messages: 0 },
  sources: [
    source("Unauthenticated mail from 3 networks", {
      ...{ key: "unauthenticated", kind: "unauthenticated", messages: 110, rejected: 20 },
      ...{ classification: "threat", first_day: "2026-11-18" },
    }),
    source("new.example.net", { messages: 4, aligned: 4, classification: "authorized", first_day: "2026-11-18" }),
    source("mailer.example.net", { messages: 52, classification: "misconfigured" }),
    source("lists.example.org", { messages: 60, forwarded: 60, classification: "forwarder" }),
    source("example.com", { messages: 12_123, aligned: 12_123, classification: "authorized" }),
  ],
  learning: { enrolledDay: 0, reportedDays: Array.from({ length: 60 }, (_, n) => day("2026-10-01") + n) },
  lastReportAtMs: Date.UTC(2026, 10, 23, 4),
  policy: POLICY,
  failingChecks: [],
  recordToPublish: null,
  next: {
    action: "classify_sources",
    record: null,
    why: "Classify these sources: mailer.example.net.",
  },
};
const facts = (more: Partial<DomainDigestFacts> = {}): DomainDigestFacts => ({ ...FACTS, ...more });
const mailOf = (...all: Partial<DomainDigestFacts>[]) => composeMail(dmarcDigestMail(all.map(facts), 0), MAIL_LINKS);
const textOf = (more: Partial<DomainDigestFacts>) => mailOf(more).text;
const pageOf = (more: Partial<DomainDigestFacts>) => mailOf(more).html;
const DOMAIN_URL = `${MAIL_BASE_URL}/dmarc/018f`;

describe("a digest", () => {
  test("says on one page what matters", () => {
    expect(textOf({})).toBe(`example.com (shop)
2026-11-16 to 2026-11-22
12,345 messages, 98.2 % passed DMARC, 60 forwarded
+1.3 percentage points and +4 % messages on the first 6 days, compared with those of the week before
Reports about 2026-11-22 may still arrive.
Failing sources:
  - mailer.example.net, misconfigured: 52 of 52 fail
New sources:
  - new.example.net, authorized: 4 messages
Unauthenticated mail from 3 networks: 110 messages, 20 rejected, 0 quarantined
Reporters: 31 reports from google.com, Yahoo, a reporter without a name and 2 more
Status: active, p=none
Next step: Classify these sources: mailer.example.net.
Show the sources: ${DOMAIN_URL}/sources

You receive this digest as a recipient of these domains.
`);
  });

  test("of a month leads to the report of that month", () => {
    const range = { fromDay: day("2026-11-01"), toDay: day("2026-11-30") };
    expect(textOf({ period: "monthly", range })).toContain(
      `Show the report to print: ${DOMAIN_URL}/month?month=2026-11`,
    );
  });

  test.each<[string, Partial<DomainDigestFacts>, string]>([
    [
      "that there were no reports",
      { reports: 0, totals: NO_TOTALS },
      "No reports about these days. The last report arrived on 2026-11-23.",
    ],
    ["that none ever came", { reports: 0, lastReportAtMs: null }, "No reports have arrived yet."],
    ["that there was no mail", { totals: NO_TOTALS }, "\nNo mail\n"],
    ["that nothing is left to do", { next: null }, "Next step: nothing is left to do."],
    [
      "what must be fixed",
      { domain: { ...FACTS.domain, status: "action_required" }, failingChecks: ["Ours is not in rua."] },
      "PROBLEM: Ours is not in rua.",
    ],
    [
      "that nothing changed",
      { compared: { days: 6, now: FACTS.totals, before: FACTS.totals } },
      "±0 percentage points and ±0 % messages",
    ],
    [
      "that it went down",
      { compared: { ...FACTS.compared, now: { ...FACTS.totals, aligned: 11_000 } } },
      "−7.8 percentage points",
    ],
    [
      "where the policy comes from",
      { policy: { ...POLICY, inherited_from: "example.org" } },
      "p=none from example.org",
    ],
  ])("says %s", (_, more, line) => {
    expect(textOf(more)).toContain(line);
    expect(pageOf(more)).toContain(Bun.escapeHTML(line.replace("PROBLEM: ", "").trim()));
  });

  test("shows the record that is to be published", () => {
    const next = { action: "reject", record: "v=DMARC1; p=reject", why: "Now." } as const;
    const more = { next } as const;
    expect(textOf(more)).toContain(
      "Next step: Now.\nPublish this TXT record at _dmarc.example.com:\n    v=DMARC1; p=reject\n",
    );
    expect(pageOf(more)).toContain("v=DMARC1; p=reject</code>");
  });

  test.each(["fix_record", "publish_record"] as const)("says what to publish so that reports arrive: %s", (action) => {
    const next = { action, record: null, why: "Publish what dns_records says." };
    const unknown = textOf({ next });
    expect(unknown).toContain(`so that reports arrive.\nShow the records to publish: ${DOMAIN_URL}/record\n`);
    const known = textOf({
      next,
      recordToPublish: "v=DMARC1; p=none; rua=mailto:k@r.example",
    });
    expect(known).toContain("Publish this TXT record at _dmarc.example.com:\n    v=DMARC1; p=none; rua=");
    expect(known).toContain(`Check the published record: ${DOMAIN_URL}/record\n`);
    expect(unknown + known).not.toMatch(/dns_records|…|\{id\}/);
  });

  test("leads to the domains that it leaves out", () => {
    expect(composeMail(dmarcDigestMail([facts()], 3), MAIL_LINKS).text).toContain(
      `and 3 more domains.\n\nAll domains: ${MAIL_BASE_URL}/dmarc\n`,
    );
  });

  test("names five failing sources and counts the rest", () => {
    const sources = Array.from({ length: 8 }, (_, n) => source(`s${n}.example`));
    expect(textOf({ sources })).toContain("s4.example, unknown: 100 of 100 fail\n  - and 3 more");
    expect(textOf({ sources })).not.toContain("s5.example");
  });

  test("calls nothing new before the domain is learned, whatever a report with a wrong date says", () => {
    const learning = { enrolledDay: day("2026-11-16"), reportedDays: [3_500, day("2026-11-16")] };
    const sources = [source("a.example", { first_day: "2026-11-20" })];
    expect(textOf({ learning, sources })).not.toContain("New");
    expect(textOf({ sources })).toContain("New sources:\n  - a.example");
  });

  test("of a day is about one that is whole, and says so by saying nothing of late reports", () => {
    const range = { fromDay: day("2026-11-18"), toDay: day("2026-11-18") };
    const text = textOf({ period: "daily", range, compared: { ...FACTS.compared, days: 1 } });
    expect(text).toStartWith("example.com (shop)\n2026-11-18\n");
    expect(text).toContain("+4 % messages compared with the day before\nFailing");
    expect(text).not.toContain("may still arrive");
  });

  test.each<[string, Partial<DomainDigestFacts>[], string]>([
    [
      "one domain",
      [{}],
      "DMARC digest for example.com, 2026-11-16 to 2026-11-22: 12,345 messages, 98.2 % passed DMARC, 60 forwarded",
    ],
    ["one without reports", [{ reports: 0 }], "DMARC digest for example.com, 2026-11-16 to 2026-11-22: no reports"],
    ["several", [{}, {}], "DMARC digest: 2 domains"],
    ["several with a problem", [{}, { reports: 0 }], "DMARC digest: 2 domains, 1 without reports or with problems"],
  ])("about %s has a subject that says so", (_, all, subject) => {
    expect(mailOf(...all).subject).toBe(subject);
  });
});

describe("the page of a digest", () => {
  const page = (more: Partial<DomainDigestFacts> = {}) => pageOf(more);

  test("loads nothing and runs nothing", () => {
    expect(page()).not.toMatch(
      /<(script|img|link|iframe|style|form|object|svg)|\b(src|url|on\w+)\s*[=(]|<(?!a )[^>]*https?:/i,
    );
  });

  test("escapes what strangers wrote, wherever it stands", () => {
    const evil = `"><script>alert('x')</script>&<img src=x onerror=y>`;
    const html = page({
      domain: { id: "018f", domain: evil, label: evil, status: "action_required" },
      reporters: [evil],
      sources: [source(evil, { service: evil, first_day: "2026-11-18" })],
      failingChecks: [evil],
      next: { action: "wait", record: null, why: evil },
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
        .replaceAll("&quot;", '"')
        .replaceAll(/\s+/g, " ");
    for (const line of textOf({}).split("\n").slice(1)) {
      const said = line
        .replace(/^ {2}- /, "")
        .replace(/:( https:.*)?$/, "")
        .trim();
      expect(words(page())).toContain(said);
    }
  });
});
