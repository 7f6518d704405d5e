import { afterEach, expect, test } from "bun:test";
import type { Fact } from "./facts.ts";
import { type Db, openDb } from "./open.ts";

let db: Db | null = null;
afterEach(() => db?.close());

const open = () => {
  const opened = openDb(":memory:");
  if (!opened.ok) throw new Error(opened.error.kind);
  db = opened.value;
  const facts: Fact[] = [];
  opened.value.onCommitted((fact) => facts.push(fact));
  return { db: opened.value, facts };
};

const credits = (count: number): Fact => ({ kind: "credits", move: "hold", credits: count });

test("a fact is passed on when its transaction is committed, not before", async () => {
  const { db, facts } = open();
  const committed = db.commit((tx) => {
    db.note(tx, credits(1));
    db.note(tx, credits(2));
    expect(facts).toEqual([]);
  });
  await committed;
  db.transact((tx) => db.note(tx, credits(3)));
  db.transactUnsynced((tx) => db.note(tx, credits(4)));
  expect(facts).toEqual([1, 2, 3, 4].map(credits));
});

test("what a transaction that throws has noted is not passed on", () => {
  const { db, facts } = open();
  const fail = () =>
    db.transact((tx) => {
      db.note(tx, credits(1));
      throw new Error("undone");
    });
  expect(fail).toThrow("undone");
  db.transact((tx) => db.note(tx, credits(2)));
  expect(facts).toEqual([credits(2)]);
});

test("a write that throws takes only its own facts out of the common transaction", async () => {
  const { db, facts } = open();
  const writes = [
    db.commit((tx) => db.note(tx, credits(1))),
    db.commit((tx) => {
      db.note(tx, credits(2));
      throw new Error("undone");
    }),
    db.commit((tx) => db.note(tx, credits(3))),
  ];
  const settled = await Promise.allSettled(writes);
  expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(facts).toEqual([credits(1), credits(3)]);
});

test("a common transaction that SQLite rolls back passes nothing on", async () => {
  const { db, facts } = open();
  const write = db.commit((tx) => {
    db.note(tx, credits(1));
    db.sqlite.run("ROLLBACK");
    throw new Error("as when the disk is full");
  });
  await expect(write).rejects.toThrow();
  await db.commit((tx) => db.note(tx, credits(2)));
  expect(facts).toEqual([credits(2)]);
});
