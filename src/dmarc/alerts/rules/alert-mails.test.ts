import { describe, expect, test } from "bun:test";
import { err, ok, type Result } from "../../../foundation/base/errors.ts";
import type { Mail, MailFailure } from "../../../foundation/net/mailer.ts";
import { createDmarcAlertHarness } from "../../../testing/dmarc-alert-harness.ts";
import { createTestMailing, MAIL_BASE_URL } from "../../../testing/mailing.ts";
import { createAlertMails } from "./alert-mails.ts";
import { findAlertRule } from "./alert-rules.ts";
import { failureAlert } from "./failure-spikes.ts";
import { SOURCE_EXAMPLE } from "../../insight/queries/query-examples.ts";
import { sourceSchema } from "../../insight/sources/source-response.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import type { Alert } from "../../records/domains/alert-store.ts";

const newHarness = createDmarcAlertHarness();
const MINUTE_MS = 60_000;
const PARSED_SOURCE = sourceSchema.parse(SOURCE_EXAMPLE);
const RECORD = "v=DMARC1; p=none; rua=mailto:k@r.example";
const NAME = { first_day: "2026-11-20", messages: 1, aligned: 0 };

const start = () => {
  const harness = newHarness();
  const mails: Mail[] = [];
  let answer: Result<null, MailFailure> = ok(null);
  const mailer = async (mail: Mail) => {
    mails.push(mail);
    return answer;
  };
  const { db, clock, log, raise } = harness;
  let serial = 0;
  return {
    ...harness,
    mails,
    sender: createAlertMails({ db, clock, log }, createTestMailing({ db, clock }, mailer)),
    raiseFor(domain: DomainRow, more: Partial<Alert> = {}): void {
      const subject = String(serial++);
      const alert: Alert = { rule: "record_changed", subject, data: {}, summary: "the record changed", cooldown: true };
      db.transact((tx) => raise(tx, domain, { ...alert, ...more }, clock.nowMs()));
    },
    fail(error: MailFailure): void {
      answer = err(error);
    },
  };
};

describe("an alert mail", () => {
  test("says in its subject what happened, and in text and HTML what and who", async () => {
    const { add, sender, raiseFor, clock, mails, today } = start();
    const change = {
      ...({ key: "service:brevo", state: "started", startedDay: today - 1, day: today } as const),
      ...{ messages: 430, failing: 412, share: 412 / 430, usualShare: 0.01 },
    };
    const causes = [{ code: "dkim_failing", domain: "example.com", selector: "mail", result: "fail" }] as const;
    const source = { ...PARSED_SOURCE, name: "Brevo", service: "Brevo" };
    raiseFor(add("example.com", { label: "shop" }), failureAlert([{ change, source, causes }]));
    await sender.send();
    expect(mails).toEqual([]);
    await clock.advance(MINUTE_MS);
    await sender.send();
    expect(mails).toHaveLength(1);
    const what = "Brevo: 95.8 % of the mail fails DMARC, usually 1 %";
    const cause = "DKIM signatures of example.com with selector mail have failed since 2026-11-19 (fail)";
    const subject = `example.com: ${what}: ${cause}`;
    expect(mails[0]).toMatchObject({ to: "ops@example.com", subject });
    for (const body of [mails[0]?.text, mails[0]?.html]) {
      expect(body).toContain(subject);
      expect(body).toContain("shop, 2026-11-20 12:00 UTC");
      expect(body).toContain("Brevo, misconfigured: 412 of 430 messages failed DMARC");
      expect(body).toContain("DKIM signatures of example.com with selector mail have failed since 2026-11-19 (fail).");
      expect(body).toContain("Show what fails and how to fix it");
    }
    await clock.advance(60 * MINUTE_MS);
    await sender.send();
    expect(mails).toHaveLength(1);
  });

  test("is one for all that happened, to each recipient", async () => {
    const { add, sender, raiseFor, clock, mails } = start();
    raiseFor(add("example.com"));
    raiseFor(add("example.org", { recipients: ["ops@example.com", "boss@example.com"] }));
    await clock.advance(MINUTE_MS);
    await sender.send();
    expect(mails.map(({ to, subject }) => [to, subject]).toSorted()).toEqual([
      ["boss@example.com", "example.org: the record changed"],
      ["ops@example.com", "DMARC: 2 alerts for 2 domains"],
    ]);
  });

  test("is sent at most every ten minutes", async () => {
    const { add, sender, raiseFor, clock, mails } = start();
    const domain = add("example.com");
    for (let n = 1; n <= 4; n++) {
      raiseFor(domain);
      await clock.advance(3 * MINUTE_MS);
      await sender.send();
    }
    expect(mails).toHaveLength(1);
    await clock.advance(MINUTE_MS);
    await sender.send();
    expect(mails.map(({ subject }) => subject)).toEqual([
      "example.com: the record changed",
      "DMARC: 3 alerts for example.com",
    ]);
  });

  test("leaves out a problem that ended before it, and keeps its end and those of other domains", async () => {
    const { add, sender, raiseFor, clock, mails } = start();
    const [first, second] = [add("example.com"), add("example.net")];
    const change = (status: string) =>
      ({ rule: "status_changed", data: { status }, summary: `now ${status}` }) as const;
    raiseFor(first, change("action_required"));
    raiseFor(second, change("action_required"));
    raiseFor(first, change("active"));
    await clock.advance(MINUTE_MS);
    await sender.send();
    expect(mails.map(({ subject }) => subject)).toEqual(["DMARC: 2 alerts for 2 domains"]);
    expect(mails[0]?.text).toContain("example.com: now active");
    expect(mails[0]?.text).toContain("example.net: now action_required");
    expect(mails[0]?.text).not.toContain("example.com: now action_required");
  });

  test("that the relay does not take is sent again, and dropped when it is refused for good or a day old", async () => {
    const { add, sender, raiseFor, clock, mails, fail, logged, countMails } = start();
    const domain = add("example.com");
    raiseFor(domain);
    await clock.advance(MINUTE_MS);
    fail({ isFinal: false, problem: "Not now." });
    await sender.send();
    await sender.send();
    expect([mails.length, countMails()]).toEqual([2, 1]);
    fail({ isFinal: true, problem: "No such user." });
    await sender.send();
    await sender.send();
    expect([mails.length, countMails()]).toEqual([3, 0]);
    expect(logged.filter((line) => line.includes("dropped"))).toHaveLength(1);
    raiseFor(domain);
    fail({ isFinal: false, problem: "Not now." });
    await clock.advance(24 * 60 * MINUTE_MS + 1);
    await sender.send();
    await sender.send();
    expect([mails.length, countMails()]).toEqual([4, 0]);
  });

  test("lists a hundred alerts and counts the rest", async () => {
    const { add, sender, raiseFor, clock, mails } = start();
    const domain = add("example.com");
    for (let n = 1; n <= 120; n++) raiseFor(domain);
    await clock.advance(MINUTE_MS);
    await sender.send();
    expect(mails[0]?.subject).toBe("DMARC: 120 alerts for example.com");
    expect(mails[0]?.text).toContain("and 20 more");
    expect(mails[0]?.text.match(/the record changed/g)).toHaveLength(100);
  });

  test("about a domain that was deleted meanwhile is not sent, and removed", async () => {
    const { add, db, domains, sender, raiseFor, clock, mails, countMails } = start();
    const domain = add("example.com");
    raiseFor(domain);
    db.transact((tx) => domains.markDeleted(tx, domain.number, clock.nowMs()));
    await clock.advance(MINUTE_MS);
    await sender.send();
    expect([mails.length, countMails()]).toEqual([0, 0]);
  });

  const CHECK = { code: "record", ok: false, observed: null, expected: null, message: "None." };
  const MADE_SOURCE = { ...PARSED_SOURCE, service: null };

  test.each<[string, string, Readonly<Record<string, unknown>>, string[]]>([
    [
      "which checks fail",
      "status_changed",
      {
        checks: [
          { ...CHECK, message: "No rua." },
          { ...CHECK, ok: true, message: "Fine." },
        ],
      },
      ["  - No rua.\n", `Show the records to publish: ${MAIL_BASE_URL}/dmarc/`, "/record\n"],
    ],
    [
      "the record to publish, where it is known",
      "status_changed",
      { checks: [{ ...CHECK, observed: "v=DMARC1; p=none", expected: RECORD }] },
      [
        `Publish this TXT record at _dmarc.example.com:\n    ${RECORD}\n`,
        "Check the published record: https://verify.example",
      ],
    ],
    [
      "no record that was cut",
      "status_changed",
      { checks: [{ ...CHECK, expected: "v=DMARC1; rua=…" }] },
      ["Show the records to publish: "],
    ],
    [
      "how to classify one new source, whatever its key",
      "new_source",
      { sources: [{ ...MADE_SOURCE, key: "spf:a'b $(x).example" }] },
      ["If it is yours, classify it as authorized.", "/sources/spf%3Aa%27b%20%24(x).example\n"],
    ],
    [
      "where many new sources are",
      "new_source",
      { count: 2, sources: [MADE_SOURCE, MADE_SOURCE] },
      ["Show the sources: https://", "/sources\n"],
    ],
    [
      "both records",
      "record_changed",
      { previous_record: null, record: "v=DMARC1; p=none" },
      ["  - Before: no record", "  - Now: v=DMARC1; p=none", "If you did not make this change"],
    ],
    [
      "how to restore a record that is gone",
      "record_changed",
      { previous_record: RECORD, record: null },
      [`publish this TXT record at _dmarc.example.com:\n    ${RECORD}\n`],
    ],
    [
      "the weak record",
      "policy_weakened",
      { record: "v=DMARC1; p=none" },
      ["  - Record at the last check: v=DMARC1; p=none", "If you did not make this change"],
    ],
    [
      "ten of the names",
      "new_subdomain",
      { count: 12, names: Array.from({ length: 10 }, (_, n) => ({ ...NAME, name: `n${n}` })) },
      ["  - n0: 1 message, 0 passed DMARC", "  - n9: 1", "  - and 2 more"],
    ],
    ["at least its summary, whatever the data is", "new_source", { sources: 5 }, ["the record changed"]],
  ])("says %s", async (_, rule, change, parts) => {
    const { add, sender, raiseFor, clock, mails } = start();
    raiseFor(add("example.com"), { rule, data: { ...findAlertRule(rule)?.example, ...change } });
    await clock.advance(MINUTE_MS);
    await sender.send();
    for (const part of parts) expect(mails[0]?.text).toContain(part);
    expect(mails[0]?.text).not.toMatch(/\{id\}|\{key\}|undefined|GET |curl|\/v1\//);
  });

  test("ends with the page that stops such mail to its recipient", async () => {
    const { add, sender, raiseFor, clock, mails } = start();
    raiseFor(add("example.com"));
    await clock.advance(MINUTE_MS);
    await sender.send();
    expect(mails[0]?.text).toMatch(
      /\nStop DMARC alerts to ops@example\.com: https:\/\/verify\.example\.org\/notifications\/off\/\w{43}\n$/,
    );
  });

  test("names no action when the domain is active again", async () => {
    const { add, sender, raiseFor, clock, mails } = start();
    raiseFor(add("example.com"), {
      rule: "status_changed",
      data: { ...findAlertRule("status_changed")?.example, status: "active" },
    });
    await clock.advance(MINUTE_MS);
    await sender.send();
    expect(mails[0]?.text).not.toContain("/record");
  });

  test("escapes what strangers wrote, and keeps it on its line", async () => {
    const { add, sender, raiseFor, clock, mails } = start();
    const name = `<script>alert(1)</script>\r\nBcc: x\u202e`;
    const source = { ...PARSED_SOURCE, name, service: null };
    raiseFor(add("example.com"), {
      rule: "new_source",
      summary: `new source ${name}`,
      data: { count: 1, sources: [source] },
    });
    await clock.advance(MINUTE_MS);
    await sender.send();
    expect(mails[0]?.html).not.toContain("<script");
    expect(mails[0]?.html).toContain("&lt;script&gt;");
    expect(mails[0]?.subject).toBe("example.com: new source <script>alert(1)</script> Bcc: x");
    expect(mails[0]?.text).not.toMatch(/^Bcc/m);
  });
});
