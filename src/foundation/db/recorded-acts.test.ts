import { afterEach, describe, expect, test } from "bun:test";
import { nextTurn } from "../base/clock.ts";
import { type Db, openDb } from "./open.ts";

const opened: Db[] = [];
afterEach(() => {
  for (const db of opened.splice(0)) db.close();
});

/** A database with a table of changes and one of entries. */
const start = () => {
  const made = openDb(":memory:");
  if (!made.ok) throw new Error("no database");
  const db = made.value;
  opened.push(db);
  db.sqlite.run("CREATE TABLE changes (n INTEGER)");
  db.sqlite.run("CREATE TABLE entries (n INTEGER)");
  const change = (): void => void db.sqlite.run("INSERT INTO changes VALUES (1)");
  const entry = (): boolean => {
    db.sqlite.run("INSERT INTO entries SELECT count(*) FROM changes");
    return true;
  };
  /** How many changes there were when each entry was written. */
  const entries = () => db.sqlite.query("SELECT n FROM entries").values().flat();
  const changes = () => db.sqlite.query("SELECT n FROM changes").values().length;
  const refuse = () =>
    db.sqlite.run("CREATE TRIGGER full BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'no entry'); END");
  return { db, change, entry, entries, changes, refuse };
};

describe("the entry of an act", () => {
  test("is written once, by the first transaction that changes a row, of either kind", async () => {
    for (const kind of ["commit", "transact"] as const) {
      const { db, change, entry, entries } = start();
      const work = async () => {
        await db[kind](() => undefined);
        await db[kind](change);
        expect(entries()).toEqual([1]);
        await db[kind](change);
        return "value";
      };
      expect(await db.perform({ entry, work })).toBe("value");
      expect(entries()).toEqual([1]);
    }
  });

  test("that cannot be written takes its change with it, of either kind and nested", async () => {
    const { db, change, entry, changes, refuse } = start();
    refuse();
    const nested = () => db.transact(() => db.transact(change));
    for (const work of [async () => db.transact(change), () => db.commit(change), async () => nested()])
      await expect(db.perform({ entry, work })).rejects.toThrow("no entry");
    expect(changes()).toBe(0);
  });

  test("is undone with its transaction, and written by the next one", async () => {
    const { db, change, entry, entries } = start();
    const fail = (): never => {
      change();
      throw new Error("failed");
    };
    const work = async () => {
      expect(() => db.transact(fail)).toThrow("failed");
      await expect(db.commit(fail)).rejects.toThrow("failed");
      // The inner transaction is part of one that fails.
      const outer = () => {
        db.transact(change);
        throw new Error("failed");
      };
      expect(() => db.transact(outer)).toThrow("failed");
      expect(entries()).toEqual([]);
      await Promise.all([db.commit(change), db.commit(change)]);
    };
    await db.perform({ entry, work });
    expect(entries()).toEqual([1]);
  });

  test("without a change is written at the end, unless the act says otherwise or fails", async () => {
    const { db, entry, entries } = start();
    await db.perform({ entry, work: async () => "read" });
    expect(entries()).toEqual([0]);
    await db.perform({ entry, work: async () => "refused", isRecordedUnchanged: (value) => value !== "refused" });
    await expect(db.perform({ entry, work: () => Promise.reject(new Error("failed")) })).rejects.toThrow("failed");
    expect(entries()).toEqual([0]);
  });

  test("that is not known yet is written by a later transaction", async () => {
    const { db, change, entry, entries } = start();
    let isKnown: boolean = false;
    const work = async () => {
      await db.commit(change);
      isKnown = true;
      await db.commit(change);
    };
    await db.perform({ entry: () => isKnown && entry(), work });
    expect(entries()).toEqual([2]);
  });

  test("is not written by transactions of other acts, of work apart, or by unsynced ones", async () => {
    const { db, change, entry, entries, changes } = start();
    const begun = Promise.withResolvers<void>();
    const act = db.perform({ entry, work: () => begun.promise.then(() => db.commit(change)) });
    await db.commit(change);
    db.transact(change);
    await db.perform({
      entry: () => true,
      async work() {
        await db.apart(() => db.commit(change));
        db.transactUnsynced(change);
        await db.commit(change);
      },
    });
    expect(entries()).toEqual([]);
    begun.resolve();
    await act;
    expect([entries(), changes()]).toEqual([[6], 6]);
  });

  test("is not written again by what the act leaves running", async () => {
    const { db, change, entry, entries } = start();
    const left: Promise<void>[] = [];
    await db.perform({
      entry,
      async work() {
        left.push(
          nextTurn()
            .then(nextTurn)
            .then(() => db.commit(change)),
        );
      },
    });
    await Promise.all(left);
    expect(entries()).toEqual([0]);
  });

  test("belongs to two acts at the same time separately", async () => {
    const { db, change, entries } = start();
    const entryOf = (n: number) => () => {
      db.sqlite.run("INSERT INTO entries VALUES (?)", [n]);
      return true;
    };
    const work = () => nextTurn().then(() => db.commit(change));
    await Promise.all([10, 20].map((n) => db.perform({ entry: entryOf(n), work })));
    expect(entries()).toEqual([10, 20]);
  });
});
