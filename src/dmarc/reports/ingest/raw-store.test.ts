import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { newId } from "../../../foundation/base/secrets.ts";
import type { Db } from "../../../foundation/db/open.ts";
import {
  createIngestHarness,
  INGEST_OWNER,
  type IngestHarness,
  type IngestHarnessOptions,
} from "../../../testing/ingest-harness.ts";
import { silentLog } from "../../../testing/silent-log.ts";
import { possibleKeysOf } from "../../insight/sources/source-keys.ts";
import { openRetention } from "../open.ts";
import { RawStore, WHOLE_BYTES_MAX } from "./raw-store.ts";

const createHarness = createIngestHarness();
const newHarness = (options: IngestHarnessOptions = {}) => {
  const harness = createHarness(options);
  const { db, clock } = harness;
  return { ...harness, retention: openRetention({ db, clock, log: silentLog }, possibleKeysOf, 90) };
};
const MIB = 1024 * 1024;

/** No two chunks have the same bytes. */
const bytesOf = (size: number): Uint8Array =>
  Buffer.alloc(size, Buffer.from(Array.from({ length: 251 }, (_, at) => at)));

const newMail = (bytes: Uint8Array) => ({ id: newId(), bytes });

const insertIngestion = (harness: IngestHarness, mail: ReturnType<typeof newMail>) =>
  harness.db.commit((tx) =>
    harness.store.insertPending(tx, { ...harness.incoming(mail.bytes), id: mail.id, receivedAtMs: 1 }),
  );

const sizes = (harness: IngestHarness) => ["dmarc_ingestions", "dmarc_raw", "dmarc_raw_chunks"].map(harness.count);

/** Counts the bytes of blobs that each transaction writes or removes. */
const measured = (blobBytes: number[]) => {
  const stored =
    "SELECT (SELECT coalesce(sum(length(bytes)), 0) FROM dmarc_raw) + (SELECT coalesce(sum(length(bytes)), 0) FROM dmarc_raw_chunks) n";
  return (db: Db): Db => ({
    ...db,
    commit: (work) =>
      db.commit((tx) => {
        const count = () => db.sqlite.query<{ n: number }, []>(stored).get()?.n ?? 0;
        const before = count();
        const value = work(tx);
        blobBytes.push(Math.abs(count() - before));
        return value;
      }),
  });
};

/** Fails as a full disk does at the commit with this number, and at `more` after it. */
const failingAt = (number: number, more = 0) => {
  let commits = 0;
  return (db: Db): Db => ({
    ...db,
    commit: (work) => {
      commits += 1;
      const isFull = commits >= number && commits <= number + more;
      return isFull ? Promise.reject(Object.assign(new Error("full"), { code: "SQLITE_FULL" })) : db.commit(work);
    },
  });
};

describe("the bytes of a mail", () => {
  test.each([0, 1, 16 * 1024, 16 * 1024 + 1, WHOLE_BYTES_MAX, WHOLE_BYTES_MAX + 1, 3 * MIB + 16 * 1024, 3 * MIB + 77])(
    "are found as they came, %i of them, written ahead or not",
    async (size) => {
      const harness = newHarness();
      const [ahead, within] = [newMail(bytesOf(size)), newMail(bytesOf(size))];
      await harness.store.raw.adding([ahead], () => insertIngestion(harness, ahead));
      await insertIngestion(harness, within);
      for (const { id, bytes } of [ahead, within])
        expect(Buffer.compare((await harness.store.raw.find(id)) ?? Buffer.from("none"), bytes)).toBe(0);
      expect(await harness.store.raw.find(newId())).toBeUndefined();
    },
  );

  test("are written and removed half a mebibyte at a time, in mails, in uploads, and by the retention", async () => {
    const blobBytes: number[] = [];
    const harness = newHarness({ around: measured(blobBytes) });
    const id = await harness.queue.add(harness.incoming(bytesOf(5 * MIB), { via: "smtp" }));
    await harness.ingestions.ingestFiles([2, 4].map((size) => harness.incoming(bytesOf(size * MIB))));
    await harness.ingestions.readAgain(INGEST_OWNER, [id]);
    expect(sizes(harness)).toEqual([3, 3, 22]);
    await harness.clock.advance(91 * DAY_MS);
    await harness.retention.expireRaw();
    expect(sizes(harness)).toEqual([3, 0, 0]);
    expect(Math.max(...blobBytes)).toBeLessThanOrEqual(WHOLE_BYTES_MAX);
    expect(blobBytes.filter((bytes) => bytes > MIB / 4).length).toBe(2 * 22);
  });

  test("are not found once they are removed, also when that happens while they are read", async () => {
    const harness = newHarness();
    const mail = newMail(bytesOf(3 * MIB));
    await insertIngestion(harness, mail);
    const found = harness.store.raw.find(mail.id);
    harness.db.transact((tx) => harness.store.raw.remove(tx, mail.id));
    expect(await found).toBeUndefined();
    await harness.store.raw.removeStray();
    expect(await harness.store.raw.find(mail.id)).toBeUndefined();
    expect(sizes(harness)).toEqual([1, 0, 0]);
  });

  test("are not found when some of them are missing", async () => {
    const harness = newHarness();
    const mail = newMail(bytesOf(3 * MIB));
    await insertIngestion(harness, mail);
    const found = harness.store.raw.find(mail.id);
    harness.db.sqlite.run("DELETE FROM dmarc_raw_chunks WHERE chunk = 2");
    expect(await found).toBeUndefined();
  });
});

describe("a mail that cannot be stored", () => {
  test.each([1, 2, 3, 4, 5])("because the disk is full at transaction %i leaves nothing", async (number) => {
    const harness = newHarness({ around: failingAt(number) });
    const mail = harness.incoming(bytesOf(3 * MIB + 20_000));
    await expect(harness.queue.add(mail)).rejects.toThrow("full");
    expect(sizes(harness)).toEqual([0, 0, 0]);
    const id = await harness.queue.add(mail);
    expect(await harness.store.raw.find(id)).toHaveLength(mail.bytes.byteLength);
    expect(sizes(harness)).toEqual([1, 1, 7]);
  });

  test("leaves those of the same upload that were stored", async () => {
    const harness = newHarness();
    const [stored, failed] = [newMail(bytesOf(2 * MIB)), newMail(bytesOf(2 * MIB))];
    const adding = harness.store.raw.adding([stored, failed], async () => {
      await insertIngestion(harness, stored);
      throw new Error("full");
    });
    await expect(adding).rejects.toThrow("full");
    expect(sizes(harness)).toEqual([1, 1, 4]);
    expect(await harness.store.raw.find(stored.id)).toHaveLength(2 * MIB);
  });

  test("and cannot be removed either, is removed at the next start", async () => {
    const harness = newHarness({ around: failingAt(3, 1) });
    await expect(harness.queue.add(harness.incoming(bytesOf(3 * MIB)))).rejects.toThrow("full");
    expect(sizes(harness)).toEqual([0, 1, 2]);
    await harness.retention.expireRaw();
    expect(sizes(harness)).toEqual([0, 1, 2]);
    await harness.ingest.removeIncomplete();
    expect(sizes(harness)).toEqual([0, 0, 0]);
  });

  test("is whole when another process began to remove it while it arrived", async () => {
    const removals: Promise<void>[] = [];
    const harness = newHarness({
      around: (db) => ({
        ...db,
        commit: (work) => {
          removals.push(new RawStore(db).removeStray({ unfinished: true }));
          return db.commit(work);
        },
      }),
    });
    const mail = harness.incoming(bytesOf(4 * MIB));
    const id = await harness.queue.add(mail);
    expect(removals.length).toBeGreaterThan(8);
    await Promise.all(removals);
    expect(await harness.store.raw.find(id)).toEqual(Buffer.from(mail.bytes));
    expect(sizes(harness)).toEqual([1, 1, 8]);
  });
});

describe("an act of the audit log that stores a large mail", () => {
  test.each([
    ["stores", "is recorded with its ingestion", false],
    ["fails", "is not recorded", true],
  ])("and %s, %s", async (_, __, isFailing) => {
    const harness = newHarness();
    const { db, store } = harness;
    const mail = newMail(bytesOf(2 * MIB));
    const seen: number[][] = [];
    const entry = () => seen.push(sizes(harness)) > 0;
    const write = () => (isFailing ? Promise.reject(new Error("full")) : insertIngestion(harness, mail));
    const act = db.perform({ entry, work: () => store.raw.adding([mail], write) });
    if (isFailing) await expect(act).rejects.toThrow("full");
    else await act;
    expect(seen).toEqual(isFailing ? [] : [[1, 1, 4]]);
  });
});

describe("stray chunks", () => {
  test("are looked at again when they are removed: their mail may have been stored meanwhile", async () => {
    const complete: Array<() => void> = [];
    const harness = newHarness({
      around: (db) => ({
        ...db,
        commit: (work) => {
          complete.pop()?.();
          return db.commit(work);
        },
      }),
    });
    const mail = newMail(bytesOf(2 * MIB));
    const { db, store } = harness;
    db.transact((tx) => store.raw.add(tx, mail));
    complete.push(() => {
      const row = { ...harness.incoming(mail.bytes), id: mail.id, receivedAtMs: 1 };
      db.transact((tx) => store.insertPending(tx, row));
    });
    await store.raw.removeStray({ unfinished: true });
    expect(complete).toEqual([]);
    expect(await store.raw.find(mail.id)).toEqual(Buffer.from(mail.bytes));
  });

  test("are removed; those of mails that are there, or are arriving, are not", async () => {
    const harness = newHarness();
    const mails = Array.from({ length: 60 }, (_, n) => newMail(bytesOf(17 * 1024 + n)));
    for (const mail of mails) await insertIngestion(harness, mail);
    const arriving = newMail(bytesOf(2 * MIB));
    harness.db.transact((tx) => new RawStore(harness.db).add(tx, arriving));
    const [removed, kept] = [mails.filter((_, n) => n % 2 === 0), mails.filter((_, n) => n % 2 === 1)];
    harness.db.transact((tx) => {
      for (const { id } of removed) harness.store.raw.remove(tx, id);
    });
    await harness.store.raw.removeStray({ from: removed[20]?.id ?? "" });
    expect(sizes(harness)).toEqual([60, 31, 30 + 20 + 4]);
    await harness.store.raw.removeStray();
    expect(sizes(harness)).toEqual([60, 31, 30 + 4]);
    for (const { id, bytes } of [...kept, arriving])
      expect(await harness.store.raw.find(id)).toEqual(Buffer.from(bytes));
    expect(harness.all(`SELECT 1 FROM dmarc_ingestions WHERE account_id = '${INGEST_OWNER.accountId}'`)).toHaveLength(
      60,
    );
  });
});
