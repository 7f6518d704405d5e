import { describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dayOfTime } from "../../../foundation/base/days.ts";
import type { Db } from "../../../foundation/db/open.ts";
import { ImapFailure, IMAP_MESSAGE_BYTES_MAX } from "../../../foundation/net/imap-client.ts";
import type { ImapMark } from "../../../foundation/net/imap-session.ts";
import { sampleReportMail } from "../../../testing/dmarc-reports.ts";
import { createIngestHarness, type IngestHarness, type IngestHarnessOptions } from "../../../testing/ingest-harness.ts";
import { createMailboxHarness, FakeFolder } from "../../../testing/mailbox-harness.ts";
import { MAILBOX_DAY_BYTES_MAX, UNMARKED_MAX } from "../../../foundation/mailbox/mailbox-sync.ts";

const newHarness = createIngestHarness();
const mail = (reportId: string, domain = "example.com") => sampleReportMail({ reportId, domain });
const lunch = "From: a@b.example\r\nSubject: lunch\r\n\r\nHow about lunch?\r\n";

const start = (options: IngestHarnessOptions = {}, after?: ImapMark) => {
  const harness = newHarness(options);
  harness.enrol("example.com");
  harness.ingester.start();
  return { harness, folder: new FakeFolder(), mailbox: createMailboxHarness(harness, after) };
};

const outcomes = (harness: IngestHarness) =>
  harness
    .all<{ outcome: string; n: number }>("SELECT outcome, count(*) AS n FROM dmarc_ingestions GROUP BY 1 ORDER BY 1")
    .map(({ outcome, n }) => `${n} ${outcome}`);

describe("a sync", () => {
  test("stores new messages in the order of their UIDs, flags them, and does nothing the next time", async () => {
    const { harness, folder, mailbox } = start();
    folder.deliver(9, mail("2")).deliver(4, mail("1"));
    expect(await mailbox.pass(folder)).toBe("done");
    expect(folder.log).toEqual(["read 4", "read 9", "seen 4,9"]);
    expect([outcomes(harness), mailbox.state()?.lastUid]).toEqual([["2 stored"], 9]);
    expect(await mailbox.pass(folder)).toBe("done");
    expect(folder.log).toHaveLength(3);
    folder.deliver(10, mail("3"));
    await mailbox.pass(folder);
    expect(folder.log.slice(3)).toEqual(["read 10", "seen 10"]);
    expect(harness.rollups()).toEqual(harness.recount());
  });

  test("never marks a message that is not durable", async () => {
    const disk: { isFull: boolean } = { isFull: true };
    const around = (db: Db): Db => ({
      ...db,
      commit: (work) =>
        disk.isFull ? Promise.reject(Object.assign(new Error("full"), { code: "SQLITE_FULL" })) : db.commit(work),
    });
    const { harness, folder, mailbox } = start({ around });
    folder.deliver(1, mail("1"));
    expect(mailbox.pass(folder)).rejects.toThrow("full");
    expect(folder.log).toEqual([]);
    disk.isFull = false;
    expect(await mailbox.pass(folder)).toBe("done");
    expect([folder.log, outcomes(harness)]).toEqual([["read 1", "seen 1"], ["1 stored"]]);
  });

  test("leaves mail without a report unmarked, keeps nothing of it, and does not fetch it again", async () => {
    const { harness, folder, mailbox } = start({}, { kind: "delete" });
    const holiday = `${lunch}\r\n${"photo ".repeat(10_000)}`;
    folder.deliver(1, lunch).deliver(2, mail("1")).deliver(3, holiday);
    await mailbox.pass(folder);
    await mailbox.pass(folder);
    expect(folder.log).toEqual(["read 1", "read 2", "read 3", "delete 2"]);
    expect(["dmarc_ingestions", "dmarc_raw", "dmarc_raw_chunks"].map(harness.count)).toEqual([1, 1, 0]);
    expect(mailbox.store.countMarks()).toBe(0);
  });

  test("leaves a report that cannot be read unmarked, and lists it", async () => {
    const { harness, folder, mailbox } = start({}, { kind: "move", folder: "Done" });
    folder.deliver(1, mail("1")).deliver(2, "<?xml version='1.0'?><!DOCTYPE x><feedback></feedback>");
    await mailbox.pass(folder);
    expect([folder.log, outcomes(harness)]).toEqual([
      ["read 1", "read 2", "move 1"],
      ["1 rejected", "1 stored"],
    ]);
  });

  test("flags quarantined messages instead of deleting them", async () => {
    const { harness, folder, mailbox } = start({}, { kind: "delete" });
    folder.deliver(1, mail("1")).deliver(2, mail("2", "elsewhere.example")).deliver(3, mail("1"));
    await mailbox.pass(folder);
    expect(folder.log.slice(3).toSorted()).toEqual(["delete 1,3", "seen 2"]);
    expect(outcomes(harness)).toEqual(["1 duplicate", "1 quarantined", "1 stored"]);
  });

  test("continues when the server refuses to mark messages, and logs it", async () => {
    const { folder, mailbox } = start();
    folder.deliver(1, mail("1"));
    folder.onMark = () => false;
    expect(await mailbox.pass(folder)).toBe("done");
    expect(mailbox.refusals).toEqual(["The IMAP server refuses to flag messages that were stored."]);
    folder.onMark = () => true;
    await mailbox.pass(folder.deliver(2, mail("2")));
    expect([mailbox.refusals.at(-1), folder.log.at(-1)]).toEqual([null, "seen 2"]);
  });
});

describe("after a crash", () => {
  test("between storing and flagging, the message is flagged and not stored again", async () => {
    const path = join(mkdtempSync(join(tmpdir(), "postwarden-mailbox-")), "a.db");
    const { harness, folder, mailbox } = start({ path });
    folder.deliver(1, mail("1"));
    folder.onMark = () => {
      throw new ImapFailure("broken", "The service was killed here.");
    };
    expect(mailbox.pass(folder)).rejects.toThrow("killed");
    await harness.ingester.idle();
    folder.onMark = () => true;
    const after = newHarness({ path });
    await createMailboxHarness(after).pass(folder);
    expect([folder.log, outcomes(after)]).toEqual([["read 1", "seen 1"], ["1 stored"]]);
  });

  test("within a group, stored messages are not fetched again", async () => {
    const { harness, folder, mailbox } = start();
    folder.deliver(1, mail("1")).deliver(2, mail("2"));
    folder.poison.add(2);
    expect(mailbox.pass(folder)).rejects.toThrow("broke");
    await harness.ingester.idle();
    expect([mailbox.state()?.lastUid, mailbox.store.countMarks()]).toEqual([0, 1]);
    folder.poison.clear();
    await mailbox.pass(folder);
    expect(folder.log.filter((line) => line === "read 1")).toHaveLength(1);
    expect(outcomes(harness)).toEqual(["2 stored"]);
  });
});

test("after a change of UIDVALIDITY the folder is read again, and nothing is counted twice", async () => {
  const { harness, folder, mailbox } = start();
  folder.deliver(5, mail("1"));
  await mailbox.pass(folder);
  folder.messages.clear();
  folder.uidValidity = "8";
  folder.deliver(1, mail("1")).deliver(2, mail("2"));
  await mailbox.pass(folder);
  expect([outcomes(harness), mailbox.state()?.lastUid]).toEqual([["1 duplicate", "2 stored"], 2]);
  expect(harness.rollups()).toEqual(harness.recount());
});

test("a message that always ends the connection is skipped in the end, and all others are fetched", async () => {
  const { harness, folder, mailbox } = start();
  for (const uid of [1, 2, 3, 4]) folder.deliver(uid, mail(String(uid)));
  folder.poison.add(3);
  let failures = 0;
  for (; failures < 20; failures += 1) {
    const result = await mailbox.pass(folder).catch(() => null);
    if (result === "done") break;
  }
  expect(failures).toBeLessThan(10);
  expect(outcomes(harness)).toEqual(["3 stored"]);
  expect(mailbox.logged.join()).toContain("skipping a message");
  expect(folder.log).not.toContain("seen 3");
});

test("messages that a server names without having them take one pass for each hundred, and none behind them is lost", async () => {
  const { harness, folder, mailbox } = start();
  const uidsAfter = folder.uidsAfter.bind(folder);
  folder.uidsAfter = async (uid, limit) =>
    uid < 300 ? Array.from({ length: limit }, (_, at) => uid + 1 + at) : uidsAfter(uid, limit);
  folder.sizes = async (uids) => new Map(uids.flatMap((uid) => (uid > 300 ? [[uid, 100] as const] : [])));
  folder.deliver(301, mail("1"));
  const passes: string[] = [];
  while (passes.at(-1) !== "done" && passes.length < 10) passes.push(await mailbox.pass(folder));
  expect(passes).toEqual(["open", "open", "open", "done"]);
  expect(outcomes(harness)).toEqual(["1 stored"]);
});

test("a message that is too large is never read", async () => {
  const { folder, mailbox } = start();
  folder.deliver(1, new Uint8Array(IMAP_MESSAGE_BYTES_MAX + 1)).deliver(2, mail("2"));
  expect(await mailbox.pass(folder)).toBe("done");
  expect([folder.log, mailbox.state()?.lastUid]).toEqual([["read 2", "seen 2"], 2]);
});

describe("nothing is fetched or flagged", () => {
  test("while the disk is low", async () => {
    const { harness, folder } = start();
    const mailbox = createMailboxHarness(harness, { kind: "seen" }, () => true);
    folder.deliver(1, mail("1"));
    expect([await mailbox.pass(folder), folder.log]).toEqual(["paused", []]);
  });

  test("beyond the daily limit, and resumes on the next day", async () => {
    const { harness, folder, mailbox } = start();
    await mailbox.pass(folder);
    const day = dayOfTime(harness.clock.nowMs());
    harness.db.transact((tx) => mailbox.store.addUsage(tx, "mailbox", { day, bytes: MAILBOX_DAY_BYTES_MAX }));
    folder.deliver(1, mail("1"));
    expect([await mailbox.pass(folder), folder.log]).toEqual(["paused", []]);
    await harness.clock.advance(24 * 3_600_000);
    expect([await mailbox.pass(folder), folder.log]).toEqual(["done", ["read 1", "seen 1"]]);
  });

  test("while too many messages wait to be read", async () => {
    const harness = newHarness();
    const [folder, mailbox] = [new FakeFolder(), createMailboxHarness(harness)];
    for (let uid = 1; uid <= UNMARKED_MAX + 50; uid += 1) folder.deliver(uid, mail(String(uid)));
    expect(await mailbox.pass(folder)).toBe("open");
    expect(folder.log).toHaveLength(UNMARKED_MAX);
  });
});

test("mail from a mailbox is not trusted unless it is authenticated", async () => {
  const finding = { authenticity: "unknown", from: null, spf: null, dkim: [], dmarc: null, message: "" } as const;
  const { harness, folder, mailbox } = start({ authenticate: async () => finding });
  folder.deliver(1, mail("1"));
  await mailbox.pass(folder);
  expect(harness.all("SELECT via FROM dmarc_ingestions")).toEqual([{ via: "imap" }]);
  expect(harness.all("SELECT is_trusted FROM dmarc_daily")).toEqual([{ is_trusted: 0 }]);
});

test("signatures are verified as of the time at which the mailbox received the mail", async () => {
  const judged: (number | undefined)[] = [];
  const finding = { authenticity: "unknown", from: null, spf: null, dkim: [], dmarc: null, message: "" } as const;
  const { harness, folder, mailbox } = start({
    authenticate: async ({ receivedAtMs }) => {
      judged.push(receivedAtMs);
      return finding;
    },
  });
  const nowMs = harness.clock.nowMs();
  for (const [uid, atMs] of [nowMs - 86_400_000, nowMs + 86_400_000, null].entries()) {
    folder.deliveredAtMs = atMs;
    await mailbox.pass(folder.deliver(uid + 1, mail(String(uid))));
  }
  expect(judged).toEqual([nowMs - 86_400_000, nowMs, nowMs]);
});
