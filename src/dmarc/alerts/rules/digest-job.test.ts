import { describe, expect, test } from "bun:test";
import { err, ok, type Result } from "../../../foundation/base/errors.ts";
import type { Mail, MailFailure } from "../../../foundation/net/mailer.ts";
import { createDmarcAlertHarness } from "../../../testing/dmarc-alert-harness.ts";
import { createZoneResolver } from "../../../testing/dns-zone.ts";
import { createTestMailing } from "../../../testing/mailing.ts";
import { createAdvisor } from "../../insight/advice/advisor.ts";
import { RecordStore } from "../../insight/queries/record-store.ts";
import { createAlertMails } from "./alert-mails.ts";
import { createDigestReader } from "./digest-mail.ts";
import { DigestJob } from "./digest-job.ts";
import { TagDigestStore } from "../../records/domains/tag-digest-store.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";

const newHarness = createDmarcAlertHarness();
const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
const OWN = "dkim:example.com";

const start = () => {
  const harness = newHarness();
  const { db, clock, log, domains, reading } = harness;
  const mails: Mail[] = [];
  let answer: Result<null, MailFailure> = ok(null);
  const mailer = async (mail: Mail) => {
    mails.push(mail);
    return answer;
  };
  const mailing = createTestMailing({ db, clock }, mailer);
  const advise = createAdvisor({ reading, resolver: createZoneResolver({}), clock, records: new RecordStore(db) });
  const read = createDigestReader({ reading, advise });
  const tags = new TagDigestStore(db);
  const passes = () => new DigestJob({ db, clock, log }, { domains, read, mailing, tags });
  const alertMails = createAlertMails({ db, clock, log }, mailing);
  return {
    ...harness,
    mails,
    tags,
    digests: passes(),
    restarted: passes,
    alertMails,
    add: (domain: string, more: Partial<DomainRow> = {}) =>
      harness.add(domain, {
        ...{ digest: "daily", digestDueAtMs: clock.nowMs(), createdAtMs: clock.nowMs() - 30 * DAY_MS },
        ...more,
      }),
    answer(given: Result<null, MailFailure>): void {
      answer = given;
    },
  };
};

describe("a digest that is due", () => {
  test("is not mailed about days before the enrolment, unless reports about them were imported", async () => {
    const { add, digests, mails, clock, report, today } = start();
    add("new.example.com", { createdAtMs: clock.nowMs() });
    await digests.run();
    expect(mails).toEqual([]);
    const { number } = add("imported.example.com", { createdAtMs: clock.nowMs() });
    report(number, today - 2, OWN, { messages: 50, aligned: 50 });
    await digests.run();
    expect(mails.map(({ subject }) => subject)).toEqual([
      "DMARC digest for imported.example.com, 2026-11-18: 50 messages, 100 % passed DMARC",
    ]);
  });

  test("is mailed once, and is due again the next day", async () => {
    const { add, digests, mails, find, report, today, clock } = start();
    const { number } = add("example.com");
    report(number, today - 2, OWN, { messages: 50, aligned: 50 });
    await digests.run();
    await digests.run();
    expect(mails.map(({ to, subject }) => [to, subject])).toEqual([
      ["ops@example.com", "DMARC digest for example.com, 2026-11-18: 50 messages, 100 % passed DMARC"],
    ]);
    expect(mails[0]?.html).toContain("50 messages, 100 % passed DMARC");
    expect(find(number).digestDueAtMs).toBe(Date.UTC(2026, 10, 21, 6));
    await clock.advance(18 * HOUR_MS);
    await digests.run();
    expect(mails.map(({ subject }) => subject)[1]).toContain("example.com, 2026-11-19");
  });

  test("is one mail for all domains of an account, another one for another account's", async () => {
    const { add, digests, mails } = start();
    add("example.com");
    add("example.org", { recipients: ["ops@example.com", "boss@example.com"] });
    add("example.net", { accountId: "other" });
    await digests.run();
    expect(mails.map(({ to, subject }) => `${to} ${subject}`).toSorted()).toEqual([
      "boss@example.com DMARC digest for example.org, 2026-11-18: no reports",
      "ops@example.com DMARC digest for example.net, 2026-11-18: no reports",
      "ops@example.com DMARC digest: 2 domains, 2 without reports or with problems",
    ]);
  });

  test("is not mailed for test keys, without recipients, before its time, or when it is off", async () => {
    const { add, digests, mails, find, clock } = start();
    const test = add("a.example", { mode: "test" });
    add("b.example", { recipients: [] });
    add("c.example", { digestDueAtMs: clock.nowMs() + 1 });
    add("d.example", { digest: "off" });
    add("e.example", { digestDueAtMs: null });
    await digests.run();
    expect(mails).toEqual([]);
    expect(find(test.number).digestDueAtMs).toBeGreaterThan(clock.nowMs());
  });

  test("for days is about the last period only", async () => {
    const { add, digests, mails, clock } = start();
    add("example.com", { digestDueAtMs: clock.nowMs() - 9 * DAY_MS });
    await digests.run();
    expect(mails.map(({ subject }) => subject)).toEqual(["DMARC digest for example.com, 2026-11-18: no reports"]);
  });
});

test("a digest of a domain whose record is gone holds what is to be published, and names reporters as they write", async () => {
  const { add, digests, mails, report, today, db } = start();
  const wanted = "v=DMARC1; p=none; rua=mailto:k@r.example";
  const check = { code: "record", ok: false, observed: null, expected: wanted, message: "There is no DMARC record." };
  const lastCheck = JSON.stringify({ at: "2026-11-20T11:00:00.000Z", ok: false, checks: [check] });
  const { id, number } = add("example.com", { status: "action_required", lastCheck });
  report(number, today - 2, OWN, { messages: 50, aligned: 50 });
  db.sqlite.run(
    `INSERT INTO dmarc_reports (id, domain, ingestion, org, begin_ms, end_ms, day, received_at_ms, policy_domain, policy, body,
      rows, messages, aligned, sameness, content, is_complete)
      VALUES ('1', ?, '1', 'Google.com', 0, 0, ?, 0, 'example.com', '{}', '{}', 1, 50, 50, '1', '1', 1)`,
    [number, today - 2],
  );
  await digests.run();
  for (const part of [
    "PROBLEM: There is no DMARC record.",
    `Publish this TXT record at _dmarc.example.com:\n    ${wanted}\n`,
    `Check the published record: https://verify.example.org/dmarc/${id}/record\n`,
    "Reporters: 1 report from Google.com\n",
  ])
    expect(mails[0]?.text).toContain(part);
});

describe("a digest that the relay does not take", () => {
  test("is sent again, also after a restart, and only to those who have it not yet", async () => {
    const { add, digests, restarted, mails, answer, countMails } = start();
    add("example.com");
    answer(err({ isFinal: false, problem: "Not now." }));
    await digests.run();
    expect([mails.length, countMails()]).toEqual([1, 1]);
    answer(ok(null));
    await restarted().run();
    await restarted().run();
    expect([mails.length, countMails()]).toEqual([2, 0]);
  });

  test("is given up when it is refused for good, or a day old", async () => {
    const { add, digests, answer, logged, countMails, clock } = start();
    add("example.com");
    answer(err({ isFinal: true, problem: "No such user." }));
    await digests.run();
    expect(countMails()).toBe(0);
    add("example.org");
    answer(err({ isFinal: false, problem: "Not now." }));
    await digests.run();
    expect(countMails()).toBe(1);
    await clock.advance(DAY_MS + 1);
    await digests.run();
    expect(logged.filter((line) => line.includes("dropped"))).toHaveLength(2);
  });
});

describe("a digest that waits", () => {
  test("is no alert, and an alert is no digest", async () => {
    const { add, digests, alertMails, mails, answer, db, raise, clock, countMails } = start();
    const domain = add("example.com");
    answer(err({ isFinal: false, problem: "Not now." }));
    await digests.run();
    answer(ok(null));
    await clock.advance(HOUR_MS);
    await alertMails.send();
    expect([mails.length, countMails()]).toEqual([1, 1]);
    const alert = {
      rule: "record_changed",
      subject: "x",
      data: {},
      summary: "the record changed",
      cooldown: true,
    } as const;
    db.transact((tx) => raise(tx, domain, alert, clock.nowMs()));
    await digests.run();
    expect([mails.length, countMails()]).toEqual([2, 1]);
  });

  test("does not go to whom it is no longer for", async () => {
    const { add, digests, mails, answer, db, domains, countMails } = start();
    const { number } = add("example.com");
    answer(err({ isFinal: false, problem: "Not now." }));
    await digests.run();
    db.transact((tx) => domains.update(tx, number, { recipients: [] }));
    await digests.run();
    expect([mails.length, countMails()]).toEqual([1, 0]);
  });
});

describe("the digest of a tag", () => {
  const TAG = { accountId: "account", mode: "live", tag: "client-a", digest: "daily" } as const;
  const withTag = (recipients: readonly string[] = ["it@client-a.example"]) => {
    const made = start();
    const { db, tags, clock } = made;
    const save = (more: Partial<Parameters<TagDigestStore["save"]>[1]> = {}) =>
      db.commit((tx) => tags.save(tx, { ...TAG, recipients, dueAtMs: clock.nowMs(), ...more }));
    const quiet = { digest: "off", digestDueAtMs: null, recipients: [] } as const;
    return { ...made, save, quiet };
  };

  test("is one mail about all domains with the tag, of one account and mode", async () => {
    const { add, digests, mails, save, quiet, tags, clock } = withTag();
    for (const name of ["b.example", "a.example"]) add(name, { ...quiet, tags: ["client-a"] });
    add("c.example", { ...quiet, tags: ["client-b"] });
    add("d.example", { ...quiet, tags: ["client-a"], accountId: "other" });
    await save();
    await digests.run();
    await digests.run();
    expect(mails.map(({ to, subject }) => [to, subject])).toEqual([
      ["it@client-a.example", "DMARC digest: 2 domains, 2 without reports or with problems"],
    ]);
    expect(mails[0]?.html).toMatch(/a\.example[\s\S]*b\.example/);
    expect(tags.find(TAG, "client-a")?.dueAtMs).toBeGreaterThan(clock.nowMs());
  });

  test("and that of a domain name a domain once to a recipient of both", async () => {
    const { add, digests, mails, save } = withTag(["ops@example.com"]);
    add("example.com", { tags: ["client-a"] });
    await save();
    await digests.run();
    expect(mails.map(({ subject }) => subject)).toEqual(["DMARC digest for example.com, 2026-11-18: no reports"]);
  });

  test.each([
    ["when it is off", { digest: "off" }],
    ["before its time", { dueAtMs: Date.UTC(2027, 0, 1) }],
    ["without recipients", { recipients: [] }],
    ["of test keys", { mode: "test" }],
  ] as const)("is not mailed %s", async (_, more) => {
    const { add, digests, mails, save, quiet } = withTag();
    add("a.example", { ...quiet, tags: ["client-a"] });
    await save(more);
    await digests.run();
    expect(mails).toEqual([]);
  });

  test("is not mailed to a recipient who was removed after it was queued", async () => {
    const { add, digests, answer, mails, save, quiet, clock } = withTag();
    add("a.example", { ...quiet, tags: ["client-a"] });
    await save();
    answer(err({ isFinal: false, problem: "Not now." }));
    await digests.run();
    const sent = mails.length;
    answer(ok(null));
    await save({ recipients: [], dueAtMs: null });
    await clock.advance(DAY_MS);
    await digests.run();
    expect(mails.length).toBe(sent);
  });
});
