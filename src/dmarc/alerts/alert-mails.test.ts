import { describe, expect, test } from "bun:test";
import { err, ok, type Result } from "../../base/errors.ts";
import type { Mail, MailFailure } from "../../net/mailer.ts";
import { createDmarcAlertWorlds } from "../../testing/dmarc-alert-world.ts";
import { createAlertMails } from "./alert-mails.ts";
import { failureAlert } from "./failure-texts.ts";
import { SOURCE_EXAMPLE } from "../queries/query-examples.ts";
import { sourceSchema } from "../sources/source-response.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import type { Alert } from "../domains/raise.ts";

const newWorld = createDmarcAlertWorlds();
const MINUTE_MS = 60_000;
const PARSED_SOURCE = sourceSchema.parse(SOURCE_EXAMPLE);
const WANTED = "v=DMARC1; p=none; rua=mailto:k@r.example";
const MADE_SOURCE = { key: "spf:a", name: "a", service: null, classification: "unknown", messages: 1, aligned: 0 };
const BASE_URL = "https://verify.example.org";

const start = () => {
  const world = newWorld();
  const mails: Mail[] = [];
  let answer: Result<null, MailFailure> = ok(null);
  const mailer = async (mail: Mail) => {
    mails.push(mail);
    return answer;
  };
  const { db, alerts: store, clock, log, raise } = world;
  let serial = 0;
  return {
    ...world,
    mails,
    sender: createAlertMails({ db, store, mailer, clock, log, baseUrl: BASE_URL }),
    tell(domain: DomainRow, more: Partial<Alert> = {}): void {
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
  test("says in its subject what happened, and in text and page what and who", async () => {
    const { add, sender, tell, clock, mails, today } = start();
    const change = {
      ...({ key: "service:brevo", state: "started", startedDay: today - 1, day: today } as const),
      ...{ messages: 430, failing: 412, share: 412 / 430, usualShare: 0.01 },
    };
    const causes = [{ code: "dkim_failing", domain: "example.com", selector: "mail", result: "fail" }] as const;
    const source = { ...PARSED_SOURCE, name: "Brevo", service: "Brevo" };
    tell(add("example.com", { label: "shop" }), failureAlert([{ change, source, causes }]));
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
      expect(body).toContain("Brevo, misconfigured: 412 of 430 messages fail DMARC");
      expect(body).toContain("DKIM signatures of example.com with selector mail have failed since 2026-11-19 (fail).");
      expect(body).toContain("The failing records, with what receivers saw");
    }
    await clock.advance(60 * MINUTE_MS);
    await sender.send();
    expect(mails).toHaveLength(1);
  });

  test("is one for all that happened, to each who wants it", async () => {
    const { add, sender, tell, clock, mails } = start();
    tell(add("example.com"));
    tell(add("example.org", { recipients: ["ops@example.com", "boss@example.com"] }));
    await clock.advance(MINUTE_MS);
    await sender.send();
    expect(mails.map(({ to, subject }) => [to, subject]).toSorted()).toEqual([
      ["boss@example.com", "example.org: the record changed"],
      ["ops@example.com", "DMARC: 2 alerts for 2 domains"],
    ]);
  });

  test("comes at most every ten minutes", async () => {
    const { add, sender, tell, clock, mails } = start();
    const domain = add("example.com");
    for (let n = 1; n <= 4; n++) {
      tell(domain);
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

  test("that the relay does not take is sent again, and given up when it is refused for good or a day old", async () => {
    const { add, sender, tell, clock, mails, fail, logged, countMails } = start();
    const domain = add("example.com");
    tell(domain);
    await clock.advance(MINUTE_MS);
    fail({ isFinal: false, problem: "Not now." });
    await sender.send();
    await sender.send();
    expect([mails.length, countMails()]).toEqual([2, 1]);
    fail({ isFinal: true, problem: "No such user." });
    await sender.send();
    await sender.send();
    expect([mails.length, countMails()]).toEqual([3, 0]);
    expect(logged.filter((line) => line.includes("given up"))).toHaveLength(1);
    tell(domain);
    fail({ isFinal: false, problem: "Not now." });
    await clock.advance(24 * 60 * MINUTE_MS + 1);
    await sender.send();
    await sender.send();
    expect([mails.length, countMails()]).toEqual([4, 0]);
  });

  test("tells of a hundred alerts and counts the rest", async () => {
    const { add, sender, tell, clock, mails } = start();
    const domain = add("example.com");
    for (let n = 1; n <= 120; n++) tell(domain);
    await clock.advance(MINUTE_MS);
    await sender.send();
    expect(mails[0]?.subject).toBe("DMARC: 120 alerts for example.com");
    expect(mails[0]?.text).toContain("and 20 more");
    expect(mails[0]?.text.match(/the record changed/g)).toHaveLength(100);
  });

  test("about a domain that was deleted meanwhile is not sent, and forgotten", async () => {
    const { add, db, domains, sender, tell, clock, mails, countMails } = start();
    const domain = add("example.com");
    tell(domain);
    db.transact((tx) => domains.markDeleted(tx, domain.number, clock.nowMs()));
    await clock.advance(MINUTE_MS);
    await sender.send();
    expect([mails.length, countMails()]).toEqual([0, 0]);
  });

  test.each<[string, Partial<Alert>, string[]]>([
    [
      "which checks fail",
      {
        rule: "status_changed",
        data: {
          checks: [
            { ok: false, message: "No rua." },
            { ok: true, message: "Fine." },
          ],
        },
      },
      ["  - No rua.", "What to publish:\n    curl -s 'https://verify.example.org/v1/dmarc/domains/", "/dns' -H"],
    ],
    [
      "the record to publish, where it is known",
      {
        rule: "status_changed",
        data: {
          checks: [
            { code: "record", ok: true, observed: "v=DMARC1; p=none", expected: WANTED, message: "One." },
            {
              code: "reporting_address",
              ok: false,
              observed: null,
              expected: "mailto:k@r.example",
              message: "No rua.",
            },
          ],
        },
      },
      [
        `This TXT record should stand at _dmarc.example.com:\n    ${WANTED}\n`,
        "curl -s -X POST 'https://verify.example",
      ],
    ],
    [
      "no record that was not kept whole",
      {
        rule: "status_changed",
        data: {
          checks: [{ code: "record", ok: false, observed: null, expected: "v=DMARC1; rua=…", message: "None." }],
        },
      },
      ["/dns' -H"],
    ],
    [
      "how one new source is told apart, whatever its name",
      {
        rule: "new_source",
        data: {
          sources: [
            {
              key: "spf:a'b $(x).example",
              name: "x",
              service: null,
              classification: "unknown",
              messages: 1,
              aligned: 0,
            },
          ],
        },
      },
      [`/sources/spf%3Aa%27b%20%24(x).example' -H "Authorization: Bearer $KEY" -d '{"classification":"authorized"}'`],
    ],
    [
      "where many new sources are",
      { rule: "new_source", data: { count: 2, sources: [MADE_SOURCE, MADE_SOURCE] } },
      ["/sources' -H"],
    ],
    [
      "both records",
      { rule: "record_changed", data: { previous_record: null, record: "v=DMARC1; p=none" } },
      ["  - Before: no record", "  - Now: v=DMARC1; p=none", "Was that you?"],
    ],
    [
      "the weak record",
      { rule: "policy_weakened", data: { record: "v=DMARC1; p=none" } },
      ["  - Record: v=DMARC1; p=none", "Was that you?"],
    ],
    [
      "ten of the names",
      {
        rule: "new_subdomain",
        data: { count: 12, names: Array.from({ length: 10 }, (_, n) => ({ name: `n${n}`, messages: 1, aligned: 0 })) },
      },
      ["  - n0: 1 message, 0 passed DMARC", "  - n8: 1", "  - and 3 more"],
    ],
    [
      "at least its summary, whatever the data is",
      { rule: "new_source", data: { sources: 5 } },
      ["the record changed"],
    ],
  ])("says %s", async (_, more, parts) => {
    const { add, sender, tell, clock, mails } = start();
    tell(add("example.com"), more);
    await clock.advance(MINUTE_MS);
    await sender.send();
    for (const part of parts) expect(mails[0]?.text).toContain(part);
    expect(mails[0]?.text).not.toMatch(/\{id\}|\{key\}|undefined|GET /);
  });

  test("says how it is ended, for a domain by name", async () => {
    const { add, sender, tell, clock, mails } = start();
    const domain = add("example.com");
    tell(domain);
    await clock.advance(MINUTE_MS);
    await sender.send();
    expect(mails[0]?.text).toEndWith(
      `For example.com this removes all recipients: curl -s -X PATCH '${BASE_URL}/v1/dmarc/domains/${domain.id}' -H "Authorization: Bearer $KEY" -d '{"recipients":[]}'\n`,
    );
  });

  test("asks for nothing when all is well again", async () => {
    const { add, sender, tell, clock, mails } = start();
    tell(add("example.com"), { rule: "status_changed", data: { status: "active", checks: [] } });
    await clock.advance(MINUTE_MS);
    await sender.send();
    expect(mails[0]?.text).not.toContain("/dns");
  });

  test("escapes what strangers wrote, and keeps it on its line", async () => {
    const { add, sender, tell, clock, mails } = start();
    const name = `<script>alert(1)</script>\r\nBcc: x\u202e`;
    const source = { name, service: null, classification: "unknown", messages: 1, aligned: 0 };
    tell(add("example.com"), {
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
