import { describe, expect, test } from "bun:test";
import { err, ok, type Result } from "../foundation/base/errors.ts";
import type { Mail, MailFailure } from "../foundation/net/mailer.ts";
import { createApps } from "../testing/app.ts";
import {
  BULK_ACCOUNT,
  type BulkHarness,
  bulkOutcome,
  createBulkHarness,
  OTHER_ACCOUNT,
} from "../testing/bulk-harness.ts";
import { BULK_PATH, postList } from "../testing/bulk-requests.ts";
import { createTestMailing, MAIL_BASE_URL } from "../testing/mailing.ts";
import { watchOthers } from "../testing/other-account.ts";
import { createListMails } from "./list-mails.ts";
import type { JobRow } from "./results/job-store.ts";

const newHarness = createBulkHarness();
const start = createApps();
const MINUTE_MS = 60_000;

/** A relay, and the service that mails through it; `restart` begins with the rows of the database only. */
const mailing = (harness: BulkHarness) => {
  const mails: Mail[] = [];
  const relay: { outcome: Result<null, MailFailure> } = { outcome: ok(null) };
  const create = () =>
    createListMails(harness.runtime, {
      jobs: harness.jobs,
      mailing: createTestMailing(harness.runtime, async (mail) => {
        mails.push(mail);
        return relay.outcome;
      }),
    });
  let current = create();
  return {
    mails,
    relay,
    send: () => current.send(),
    restart: () => {
      current = create();
    },
  };
};

const emails = ["a@a.example", "b@b.example", "c@c.example"];

const finish = async (harness: BulkHarness, jobs: readonly JobRow[]): Promise<void> => {
  const { runner } = harness.start({
    attempt: async ({ email }) => bulkOutcome(email.startsWith("a") ? "mailbox_exists" : "mailbox_not_found"),
  });
  for (const job of jobs) runner.add(job);
  for (let turn = 0; turn < 20; turn++) await harness.clock.advance(100);
};

const order = (harness: BulkHarness, name: string, notifyEmail: string | null, accountId = BULK_ACCOUNT) =>
  harness.order(emails, accountId, { name, notifyEmail });

describe("a list that has ended", () => {
  test("is mailed once to the one who wanted it, and to nobody else", async () => {
    const harness = newHarness();
    const { mails, send, restart } = mailing(harness);
    const jobs = [
      await order(harness, "mine.csv", "ada@shop.example"),
      await order(harness, "silent.csv", null),
      await order(harness, "theirs.csv", "bob@other.example", OTHER_ACCOUNT),
    ];
    await send();
    expect(mails).toEqual([]);
    await finish(harness, jobs);
    await send();
    expect(mails.map(({ to, subject }) => [to, subject])).toEqual([
      ["ada@shop.example", "mine.csv is done"],
      ["bob@other.example", "theirs.csv is done"],
    ]);
    expect(mails[0]?.text).toContain(`See the results: ${MAIL_BASE_URL}/lists/${jobs[0]?.id}`);
    expect(mails[0]?.text).toContain("Deliverable: 1\n  - Undeliverable: 2");
    for (const { text, html } of mails.slice(0, 1))
      for (const other of ["theirs", "bob@", "silent"]) expect(text + html).not.toContain(other);
    restart();
    await harness.clock.advance(60 * MINUTE_MS);
    await send();
    expect(mails).toHaveLength(2);
  });

  test("is mailed after a restart and after a relay that was away, and dropped by one that refuses it", async () => {
    const harness = newHarness();
    const { mails, send, restart, relay } = mailing(harness);
    await finish(harness, [await order(harness, "one.csv", "ada@shop.example")]);
    relay.outcome = err({ isFinal: false, problem: "away" });
    await send();
    restart();
    relay.outcome = ok(null);
    await send();
    await send();
    expect(mails).toHaveLength(2);
    await finish(harness, [await order(harness, "two.csv", "gone@shop.example")]);
    relay.outcome = err({ isFinal: true, problem: "550 no such user" });
    await send();
    await send();
    expect(mails).toHaveLength(3);
  });

  test("that was cancelled or failed is mailed, too; several are in one mail", async () => {
    const harness = newHarness();
    const { mails, send } = mailing(harness);
    const [cancelled, failed] = [
      await order(harness, "cancelled.csv", "ada@shop.example"),
      await order(harness, "failed.csv", "ada@shop.example"),
    ];
    harness.db.transact((tx) => harness.writer.abort(tx, cancelled, "cancelled"));
    harness.db.transact((tx) => harness.writer.abort(tx, failed, "failed"));
    await send();
    expect(mails.map(({ subject }) => subject)).toEqual(["2 lists have ended"]);
    expect(mails[0]?.text).toContain("cancelled.csv was cancelled\n0 of 3 addresses finished");
    expect(mails[0]?.text).toContain("failed.csv failed\nPROBLEM: An error of this service");
    await finish(harness, [await order(harness, "soon.csv", "ada@shop.example")]);
    await send();
    expect(mails).toHaveLength(1);
    await harness.clock.advance(5 * MINUTE_MS);
    await send();
    expect(mails.map(({ subject }) => subject)).toEqual(["2 lists have ended", "soon.csv is done"]);
  });

  test("is not mailed when it is verified again already, or was removed", async () => {
    const harness = newHarness();
    const { mails, send } = mailing(harness);
    const [again, removed] = [
      await order(harness, "again.csv", "ada@shop.example"),
      await order(harness, "removed.csv", "ada@shop.example"),
    ];
    await finish(harness, [again, removed]);
    harness.db.transact((tx) => {
      harness.jobs.queueAgain(tx, again.number, { subStatuses: [], rows: 0, addresses: 0 });
      harness.jobs.hide(tx, removed.number);
      harness.jobs.remove(tx, removed.number);
    });
    await send();
    expect(mails).toEqual([]);
  });

  test("with an address that was erased meanwhile, or of a test key, queues no mail", async () => {
    const harness = newHarness();
    const { mails, send } = mailing(harness);
    const erased = await order(harness, "erased.csv", "[erased]");
    const test = await order(harness, "test.csv", "ada@shop.example");
    harness.db.sqlite.run("UPDATE bulk_jobs SET mode = 'test' WHERE number = ?", [test.number]);
    await finish(harness, [erased]);
    harness.db.transact((tx) => harness.writer.abort(tx, harness.jobs.getExisting(test.number), "cancelled"));
    await send();
    expect(mails).toEqual([]);
    expect(harness.db.sqlite.query("SELECT * FROM bulk_mails").all()).toEqual([]);
  });
});

describe("the address in an order", () => {
  const RELAY = { NOTIFY_SMTP_URL: "smtp://127.0.0.1:25", NOTIFY_FROM: "postwarden@example.com" };

  test("is accepted where mail may be sent to it", async () => {
    const app = start({ settings: { ...RELAY, NOTIFY_DOMAINS: "shop.example" } });
    const key = app.newKey();
    const body = { emails: ["mailbox_exists@a.example"], notify_email: " Ada@Shop.example " };
    const created = await watchOthers(app.db.sqlite, { accountId: app.accountId() }, () =>
      postList(app, { key, body }),
    );
    expect([created.value.status, created.value.body.mail_configured]).toEqual([202, true]);
    expect(app.db.sqlite.query("SELECT notify_email FROM bulk_jobs").get()).toEqual({
      notify_email: "ada@shop.example",
    });
    const form = new FormData();
    form.append("notify_email", "ada@shop.example");
    form.append("file", new Blob(["mailbox_exists@b.example\n"]), "a.csv");
    const request = new Request(`http://localhost${BULK_PATH}`, {
      ...{ method: "POST", body: form, headers: { authorization: `Bearer ${key.key}` } },
    });
    expect(await (await app.handle(request)).json()).toMatchObject({ mail_configured: true });
  });

  test.each([
    [
      { ...RELAY, NOTIFY_DOMAINS: "shop.example" },
      "eve@evil.example",
      "this service sends alert mail to addresses at shop.example only",
    ],
    [RELAY, "no address", "Must be an email address"],
    [{}, "ada@shop.example", "This service does not send mail"],
  ])("with %p: %s is refused", async (settings, address, reason) => {
    const app = start({ settings });
    const key = app.newKey();
    const { status, text } = await postList(app, { key, body: { emails: ["a@a.example"], notify_email: address } });
    expect([status, text]).toEqual([400, expect.stringContaining(reason)]);
    expect(text).toContain("notify_email");
    expect(app.db.sqlite.query("SELECT count(*) AS jobs FROM bulk_jobs").get()).toEqual({ jobs: 0 });
  });
});
