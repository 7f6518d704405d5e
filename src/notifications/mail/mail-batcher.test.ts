import { afterEach, describe, expect, test } from "bun:test";
import { err, ok, type Result } from "../../foundation/base/errors.ts";
import { createLog } from "../../foundation/base/log.ts";
import { openDb } from "../../foundation/db/open.ts";
import type { Mail, MailFailure } from "../../foundation/net/mailer.ts";
import { createTestClock } from "../../testing/clock.ts";
import { createTestMailing, MAIL_BASE_URL } from "../../testing/mailing.ts";
import { MailBatcher, type QueuedMail } from "./mail-batcher.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

interface Row extends QueuedMail {
  readonly recipient: string;
  readonly account: string;
}

const closers: Array<() => void> = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

const start = () => {
  const opened = openDb(":memory:");
  if (!opened.ok) throw new Error(opened.error.kind);
  closers.push(() => opened.value.close());
  const clock = createTestClock(Date.UTC(2026, 0, 1));
  const logged: string[] = [];
  const mails: Mail[] = [];
  let rows: Row[] = [];
  let outcome: Result<null, MailFailure> = ok(null);
  const runtime = { db: opened.value, clock, log: createLog("warn", clock, (text) => logged.push(text)) };
  const mailing = createTestMailing(runtime, async (mail) => {
    mails.push(mail);
    return outcome;
  });
  const batcher = new MailBatcher<Row>(runtime, {
    name: "test mail",
    queue: {
      recipients: (after, limit) =>
        [...new Set(rows.map(({ recipient }) => recipient))]
          .filter((recipient) => recipient > after)
          .toSorted()
          .slice(0, limit),
      rowsFor: (recipient) => rows.filter((row) => row.recipient === recipient),
      remove(_tx, gone) {
        rows = rows.filter((row) => !gone.includes(row));
      },
    },
    mailing,
    compose: (batch) => {
      if (batch.some(({ id }) => id === "bug")) throw new Error("bug");
      const said = batch.filter(({ id }) => id !== "nothing").map(({ id }) => id);
      return said.length === 0 ? null : { subject: said.join(), sections: [], closing: [] };
    },
    topicOf: ({ account }) => (account === "deleted" ? null : { accountId: account, kind: "dmarc_alerts" }),
    gatherMs: MINUTE_MS,
    intervalMs: 10 * MINUTE_MS,
  });
  return {
    clock,
    logged,
    batcher,
    mails,
    subscriptions: mailing.subscriptions,
    windows: mailing.windows,
    waiting: () => rows.map(({ id }) => id),
    sent: () => mails.map(({ to, subject }) => `${to} ${subject}`),
    add: (recipient: string, id: string, account = "x", createdAtMs = clock.nowMs()) =>
      void rows.push({ id, recipient, account, createdAtMs }),
    answer(next: Result<null, MailFailure>): void {
      outcome = next;
    },
  };
};

describe("a mail", () => {
  const SUBJECT = { accountId: "x", recipient: "a@example.com", kind: "dmarc_alerts" } as const;

  test("leads to the page that stops such mail, by link and by one click (RFC 8058), the same in every mail", async () => {
    const { batcher, add, clock, mails, subscriptions } = start();
    add("a@example.com", "1");
    add("a@example.com", "2", "deleted");
    await clock.advance(MINUTE_MS);
    await batcher.send();
    const { token } = await subscriptions.open(SUBJECT);
    const url = `${MAIL_BASE_URL}/notifications/off/${token}`;
    expect(mails[0]).toMatchObject({ oneClickUrl: url, text: `Stop DMARC alerts to a@example.com: ${url}\n` });
    expect(mails[0]?.html).toContain(`<a href="${url}"`);
    expect(mails[1]).toMatchObject({ oneClickUrl: null, text: "\n" });
  });

  test("is not sent to whom has stopped it, while others and other accounts go on", async () => {
    const { batcher, add, clock, sent, waiting, subscriptions } = start();
    await subscriptions.set(SUBJECT, false);
    add("a@example.com", "1");
    add("a@example.com", "2", "y");
    add("b@example.com", "3");
    await clock.advance(MINUTE_MS);
    await batcher.send();
    expect([sent(), waiting()]).toEqual([["a@example.com 2", "b@example.com 3"], []]);
    await subscriptions.set(SUBJECT, true);
    add("a@example.com", "4");
    await clock.advance(10 * MINUTE_MS);
    await batcher.send();
    expect(sent().at(-1)).toBe("a@example.com 4");
  });
});

describe("queued mail", () => {
  test("is gathered for a minute and sent as one mail to each recipient and account", async () => {
    const { batcher, add, clock, sent, waiting } = start();
    add("a@example.com", "1");
    add("a@example.com", "2");
    add("a@example.com", "3", "y");
    add("b@example.com", "4");
    await batcher.send();
    expect(sent()).toEqual([]);
    await clock.advance(MINUTE_MS);
    await batcher.send();
    expect(sent()).toEqual(["a@example.com 1,2", "a@example.com 3", "b@example.com 4"]);
    expect(waiting()).toEqual([]);
  });

  test("that was queued while the clock was ahead waits no longer", async () => {
    const { batcher, add, clock, sent } = start();
    add("a@example.com", "1", "x", clock.nowMs() + 400 * DAY_MS);
    await batcher.send();
    expect(sent()).toEqual(["a@example.com 1"]);
  });

  test("waits for the end of a maintenance window, then is one mail, and is tried for a day from there", async () => {
    const { batcher, add, clock, sent, waiting, windows, answer } = start();
    const owner = { accountId: "x", mode: "live" } as const;
    await windows.add(owner, { until: new Date(clock.nowMs() + 3 * DAY_MS).toISOString() });
    add("a@example.com", "1");
    add("a@example.com", "2", "y");
    await clock.advance(DAY_MS);
    add("a@example.com", "3");
    await batcher.send();
    expect([sent(), waiting()]).toEqual([["a@example.com 2"], ["1", "3"]]);
    await clock.advance(2 * DAY_MS);
    answer(err({ isFinal: false, problem: "Not now." }));
    await batcher.send();
    expect(waiting()).toEqual(["1", "3"]);
    answer(ok(null));
    await clock.advance(10 * MINUTE_MS);
    await batcher.send();
    expect([sent().at(-1), waiting()]).toEqual(["a@example.com 1,3", []]);
  });

  test("reaches every recipient in one run, however many there are", async () => {
    const { batcher, add, clock, sent } = start();
    for (let n = 0; n < 250; n++) add(`${n}@example.com`, "1");
    await clock.advance(MINUTE_MS);
    await batcher.send();
    expect(new Set(sent()).size).toBe(250);
  });

  test("waits ten minutes after the last mail to its recipient, and not longer when the wall clock is set back", async () => {
    const { batcher, add, clock, sent } = start();
    add("a@example.com", "1");
    await clock.advance(MINUTE_MS);
    await batcher.send();
    clock.setWall(-DAY_MS);
    add("a@example.com", "2");
    await clock.advance(10 * MINUTE_MS - 1);
    await batcher.send();
    expect(sent()).toHaveLength(1);
    await clock.advance(1);
    await batcher.send();
    expect(sent()).toEqual(["a@example.com 1", "a@example.com 2"]);
  });

  test("with nothing left to say is removed", async () => {
    const { batcher, add, clock, sent, waiting } = start();
    add("a@example.com", "nothing");
    await clock.advance(MINUTE_MS);
    await batcher.send();
    expect([sent(), waiting()]).toEqual([[], []]);
  });

  test("that fails stops no other", async () => {
    const { batcher, add, clock, sent, logged, waiting } = start();
    add("a@example.com", "bug");
    add("a@example.com", "1", "y");
    add("b@example.com", "2");
    await clock.advance(MINUTE_MS);
    await batcher.send();
    expect(sent()).toEqual(["a@example.com 1", "b@example.com 2"]);
    expect([waiting(), logged.join()]).toEqual([["bug"], expect.stringContaining("test mail failed")]);
  });

  test.each([
    ["temporarily, stays queued", { isFinal: false, problem: "Not now." }, 0, true],
    ["for good, is dropped", { isFinal: true, problem: "No such user." }, 0, false],
    ["for a day, stays queued", { isFinal: false, problem: "Not now." }, DAY_MS, true],
    ["for longer than a day, is dropped", { isFinal: false, problem: "Not now." }, DAY_MS + 1, false],
  ] as const)("that is refused %s", async (_, failure, ageMs, isQueued) => {
    const { batcher, add, clock, answer, waiting, logged } = start();
    add("a@example.com", "1");
    await clock.advance(Math.max(MINUTE_MS, ageMs));
    answer(err(failure));
    await batcher.send();
    expect(waiting()).toEqual(isQueued ? ["1"] : []);
    expect(logged.join()).toContain(isQueued ? "will be retried" : "dropped");
  });
});
