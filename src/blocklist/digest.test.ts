import { describe, expect, test } from "bun:test";
import { createBlocklistFixtures } from "../testing/blocklist-fixture.ts";
import { composeMail } from "../notifications/mail/compose-mail.ts";
import { MAIL_LINKS } from "../testing/mailing.ts";
import { listingMail } from "./change-notifier.ts";
import { type DigestFacts, type DigestListing, digestOf, listingDigestMail } from "./digest.ts";
import { ListingDigests, type DueDigest } from "./digest-queue.ts";
import { listsByMode } from "./target-lookup.ts";

const NOTHING: DigestFacts = {
  period: "daily",
  sinceMs: 0,
  listings: [],
  changes: [],
  listsInTrouble: [],
  isWhole: true,
};
const LISTING: DigestListing = {
  ...{
    targetId: "018f",
    target: "198.51.100.7",
    label: "out\n1",
    name: "SpamCop",
    severity: "high",
    meaning: "Reported as spam.",
  },
  ...{
    since: "2026-01-01T00:00:00.000Z",
    delistUrl: "https://d.example/",
    isAcknowledged: false,
    isAboveThreshold: true,
  },
};

const mailOf = (facts: DigestFacts) => listingDigestMail(digestOf(facts));

describe("a digest", () => {
  test("with nothing to report is not sent, except weekly to recipients of the account", () => {
    expect(mailOf(NOTHING)).toBeNull();
    expect(mailOf({ ...NOTHING, period: "weekly", isWhole: false })).toBeNull();
    expect(mailOf({ ...NOTHING, period: "weekly" })?.subject).toBe("Blocklists, weekly: no listings that need action");
    const minor = [
      { ...LISTING, isAboveThreshold: false },
      { ...LISTING, isAcknowledged: true },
    ];
    expect(mailOf({ ...NOTHING, listings: minor })).toBeNull();
  });

  test("shows the most severe first, and counts acknowledged listings and those below the threshold", () => {
    const mail = mailOf({
      ...NOTHING,
      listings: [
        LISTING,
        { ...LISTING, target: "198.51.100.8", severity: "critical", label: null },
        { ...LISTING, isAboveThreshold: false },
        { ...LISTING, isAcknowledged: true, severity: "critical" },
      ],
      changes: [
        { came: false, target: "a.example", label: null, name: "DBL", severity: null, at: "2026-01-01T05:00:00.000Z" },
      ],
      listsInTrouble: [{ name: "URIBL", kind: "domain", reason: "Refused.", remedy: "Use a resolver of your own." }],
    });
    expect(mail?.subject).toBe("Blocklists, daily: 2 listings, most severe: 198.51.100.8 (critical)");
    expect(mail === null ? "" : composeMail(mail, MAIL_LINKS).text).toBe(`Listed now
  - critical: 198.51.100.8 is listed on SpamCop since 2026-01-01
    Reported as spam.
    Request delisting: https://d.example/
    https://verify.example.org/blocklists/018f
  - high: 198.51.100.7 (out 1) is listed on SpamCop since 2026-01-01
    Reported as spam.
    Request delisting: https://d.example/
    https://verify.example.org/blocklists/018f

Changes since 1970-01-01 00:00 UTC
  - 2026-01-01 05:00 UTC: a.example no longer listed on DBL

Blocklists that cannot be used at present
  - URIBL (domain): Refused. Use a resolver of your own.
The health of the blocklists: https://verify.example.org/blocklists/lists

Not shown: 1 listing below the alert threshold, 1 acknowledged listing.

All targets: https://verify.example.org/blocklists
`);
  });

  test("is bounded", () => {
    const mail = mailOf({ ...NOTHING, listings: Array.from({ length: 150 }, () => LISTING) });
    const text = mail === null ? "" : composeMail(mail, MAIL_LINKS).text;
    expect(text.match(/is listed on SpamCop/g)).toHaveLength(100);
    expect(text).toContain("and 50 more");
  });

  test("is queued with the listings that it shows, however many there are", () => {
    const listings = Array.from({ length: 5_000 }, () => LISTING);
    expect(JSON.stringify(digestOf({ ...NOTHING, listings })).length).toBeLessThan(50_000);
  });
});

describe("digests that are due", () => {
  const newFixture = createBlocklistFixtures();
  const DUE: DueDigest = {
    ...{ accountId: "account", mode: "live", period: "daily", severityMin: null },
    recipients: ["all@example.com"],
  };
  const newQueue = (due: readonly DueDigest[]) => {
    const fixture = newFixture({ pbl: "low" });
    const postponed: Array<number | null> = [];
    const overview = {
      changesSince: async () => ({ listed: 0, delisted: 0, is_complete: true, recent: [] }),
      listsInTrouble: () => [],
    };
    const { store, listings, mailQueue, lists } = fixture;
    const queue = new ListingDigests(fixture.runtime, {
      ...{ store, listings, overview, mailQueue, catalogue: listsByMode(lists) },
      defaults: {
        dueDigests: () => [...due],
        postponeDigest: (_tx, _owner, dueAtMs) => void postponed.push(dueAtMs),
      },
    });
    const mailTo = (recipient: string) => {
      const rows = mailQueue.rowsFor(recipient).filter(({ body }) => body.includes("digest"));
      const mail = rows.length === 0 ? null : listingMail(rows);
      return mail === null ? null : composeMail(mail, MAIL_LINKS);
    };
    return { fixture, queue, postponed, mailTo };
  };

  test("are queued once, to the account about all targets and to those of a target about that one", async () => {
    const { fixture, queue, postponed, mailTo } = newQueue([DUE]);
    const listed = fixture.add("8.8.8.8", { recipients: ["one@example.com"] });
    const minor = fixture.add("8.8.4.4", { recipients: ["two@example.com"] });
    fixture.spamcop("8.8.8.8", { A: ["127.0.0.2"] });
    fixture.zen("8.8.4.4", { A: ["127.0.0.10"] });
    await fixture.check(listed);
    await fixture.check(minor);
    await queue.queueDue();
    expect(postponed).toEqual([Date.parse("2026-01-01T06:00:00.000Z")]);
    expect(mailTo("all@example.com")?.text).toContain("high: 8.8.8.8 is listed on SpamCop SCBL since 2026-01-01");
    expect(mailTo("all@example.com")?.text).toContain("Not shown: 1 listing below the alert threshold");
    expect(mailTo("one@example.com")?.text).not.toContain("Not shown");
    // A nuisance list is no reason for a mail of its own.
    expect(mailTo("two@example.com")).toBeNull();
  });

  test("of test keys are not mailed", async () => {
    const { fixture, queue, postponed, mailTo } = newQueue([{ ...DUE, mode: "test", period: "weekly" }]);
    fixture.add("8.8.8.8");
    await queue.queueDue();
    expect(postponed).toHaveLength(1);
    expect(mailTo("all@example.com")).toBeNull();
  });
});
