import { describe, expect, test } from "bun:test";
import { createLog } from "../foundation/base/log.ts";
import { err, ok, type Result } from "../foundation/base/errors.ts";
import type { Mail, MailFailure } from "../foundation/net/mailer.ts";
import { createBlocklistFixtures } from "../testing/blocklist-fixture.ts";
import { createTestMailing, MAIL_BASE_URL } from "../testing/mailing.ts";
import { createListingMails } from "./change-notifier.ts";

const newFixture = createBlocklistFixtures();
const MINUTE_MS = 60_000;
const LISTED = { A: ["127.0.0.2"] };

const start = () => {
  const fixture = newFixture();
  const mails: Mail[] = [];
  let answer: Result<null, MailFailure> = ok(null);
  const mailer = async (mail: Mail) => {
    mails.push(mail);
    return answer;
  };
  const { runtime, mailQueue: queue, clock } = fixture;
  const logged: string[] = [];
  const log = createLog("warn", clock, (line) => logged.push(line));
  const mailing = createTestMailing(runtime, mailer);
  const alerts = createListingMails(
    { ...runtime, log },
    { mailing, queue, digests: { queueDue: async () => undefined } },
  );
  const list = async (address: string, recipients: readonly string[] = ["ops@example.com"]) => {
    const id = fixture.add(address, { recipients, label: "outbound" });
    fixture.spamcop(address, LISTED);
    await fixture.check(id);
    return id;
  };
  const { add, check, spamcop } = fixture;
  return {
    ...{ clock, add, check, spamcop },
    alerts,
    mails,
    windows: mailing.windows,
    logged,
    list,
    fail(error: MailFailure): void {
      answer = err(error);
    },
  };
};

describe("an alert mail", () => {
  test("says what is listed where, since when, what it means and what to do", async () => {
    const { alerts, list, clock, mails } = start();
    const id = await list("8.8.4.4");
    await alerts.send();
    expect(mails).toEqual([]);
    await clock.advance(MINUTE_MS);
    await alerts.send();
    expect(mails).toHaveLength(1);
    expect(mails[0]).toMatchObject({ to: "ops@example.com", subject: "Blocklists: 8.8.4.4 is listed on SpamCop SCBL" });
    expect(mails[0]?.text).toContain("8.8.4.4 is listed on SpamCop SCBL (outbound)\nSeverity: high\n");
    expect(mails[0]?.text).toContain("Listed since 2026-01-01 00:00 UTC.");
    expect(mails[0]?.text).toContain("Find and fix the cause, then request delisting:\n    https://");
    expect(mails[0]?.text).toContain(`Open 8.8.4.4: ${MAIL_BASE_URL}/blocklists/${id}\n`);
    expect(mails[0]?.text).toContain("You receive this mail as a recipient");
    await clock.advance(60 * MINUTE_MS);
    await alerts.send();
    expect(mails).toHaveLength(1);
  });

  test("is one per recipient about all changes", async () => {
    const { alerts, list, clock, mails, spamcop, check } = start();
    const id = await list("8.8.4.4");
    await list("8.8.4.5", ["ops@example.com", "boss@example.com"]);
    spamcop("8.8.4.4", null);
    await check(id);
    await clock.advance(MINUTE_MS);
    await alerts.send();
    expect(mails.map(({ to, subject }) => [to, subject]).toSorted()).toEqual([
      ["boss@example.com", "Blocklists: 8.8.4.5 is listed on SpamCop SCBL"],
      ["ops@example.com", "Blocklists: 2 new listings, 1 delisting"],
    ]);
  });

  test("comes at most every ten minutes", async () => {
    const { alerts, list, clock, mails } = start();
    for (let n = 1; n <= 4; n++) {
      await list(`8.8.4.${n}`);
      await clock.advance(3 * MINUTE_MS);
      await alerts.send();
    }
    expect(mails).toHaveLength(1);
    await clock.advance(MINUTE_MS);
    await alerts.send();
    expect(mails.map(({ subject }) => subject)).toEqual([
      "Blocklists: 8.8.4.1 is listed on SpamCop SCBL",
      "Blocklists: 3 new listings",
    ]);
  });

  test("after a maintenance window has one section for a listing that began and ended in it", async () => {
    const { alerts, list, check, spamcop, clock, mails, windows } = start();
    const untilMs = clock.nowMs() + 3 * 60 * MINUTE_MS;
    await windows.add({ accountId: "account", mode: "live" }, { until: new Date(untilMs).toISOString() });
    const id = await list("8.8.4.4");
    await list("8.8.4.5");
    await clock.advance(60 * MINUTE_MS);
    spamcop("8.8.4.4", null);
    await check(id);
    await alerts.send();
    expect(mails).toEqual([]);
    await clock.advance(120 * MINUTE_MS);
    await alerts.send();
    expect(mails.map(({ subject }) => subject)).toEqual(["Blocklists: 1 new listing, 1 passed listing"]);
    expect(mails[0]?.text).toContain("8.8.4.4 was listed on SpamCop SCBL (outbound)\nFrom 2026-01-01 00:00 UTC to");
  });

  test("that the relay refuses is sent again, and dropped when it is refused permanently or a day old", async () => {
    const { alerts, list, clock, mails, fail, logged } = start();
    await list("8.8.4.4");
    await clock.advance(MINUTE_MS);
    fail({ isFinal: false, problem: "Not now." });
    await alerts.send();
    await alerts.send();
    expect(mails).toHaveLength(2);
    fail({ isFinal: true, problem: "No such user." });
    await alerts.send();
    await alerts.send();
    expect(mails).toHaveLength(3);
    expect(logged.filter((line) => line.includes("dropped"))).toHaveLength(1);
    await list("8.8.4.5");
    fail({ isFinal: false, problem: "Not now." });
    await clock.advance(24 * 60 * MINUTE_MS + 1);
    await alerts.send();
    await alerts.send();
    expect(mails).toHaveLength(4);
  });

  test("shows a hundred changes and counts the rest", async () => {
    const { alerts, list, clock, mails } = start();
    for (let n = 1; n <= 120; n++) await list(`8.8.4.${n}`);
    await clock.advance(MINUTE_MS);
    await alerts.send();
    expect(mails[0]?.subject).toBe("Blocklists: 120 new listings");
    expect(mails[0]?.text).toContain("and 20 more");
    expect(mails[0]?.text.match(/Severity/g)).toHaveLength(100);
  });

  test("is sent for live keys only, and to configured recipients only", async () => {
    const { alerts, add, check, clock, mails, list } = start();
    await check(add("1.2.3.4", { mode: "test", recipients: ["ops@example.com"] }));
    await list("8.8.4.4", []);
    await clock.advance(MINUTE_MS);
    await alerts.send();
    expect(mails).toEqual([]);
  });
});
