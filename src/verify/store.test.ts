import { afterEach, describe, expect, test } from "bun:test";
import { type Db, openDb } from "../foundation/db/open.ts";
import { evidenceWith, findingWith } from "../testing/evidence.ts";
import { packEvidence, VerificationStore, type VerificationRow } from "./store.ts";

const opened: Db[] = [];
afterEach(() => {
  for (const db of opened.splice(0)) db.close();
});

const idOf = (at: number): string => `019aa0d6-5b7e-7c31-9f4c-${String(at).padStart(12, "0")}`;

const storeOf = () => {
  const result = openDb(":memory:");
  if (!result.ok) throw new Error("no database");
  const db = result.value;
  opened.push(db);
  const store = new VerificationStore(db);
  const insert = (at: number, parts: Partial<VerificationRow> = {}): string => {
    const email = `a${at}@x.example`;
    const row: VerificationRow = {
      id: idOf(at),
      accountId: "account-1",
      keyId: "key-1",
      mode: "live",
      email,
      normalizedEmail: email,
      source: null,
      status: "pending",
      verdict: null,
      subStatus: null,
      result: null,
      createdAtMs: at,
      completedAtMs: null,
      dueAtMs: at,
      attempts: 0,
      ...parts,
    };
    db.transact((tx) => store.insert(tx, row));
    return row.id;
  };
  const end = (id: string, subStatus: "mailbox_exists" | "catch_all" = "mailbox_exists") =>
    db.transact((tx) =>
      store.complete(tx, id, { verdict: "deliverable", subStatus, result: "{}", completedAtMs: 99, attempts: 1 }),
    );
  return { db, store, insert, end };
};

describe("the end of a verification", () => {
  test("comes once", () => {
    const { store, insert, end } = storeOf();
    const id = insert(1);
    expect([end(id), end(id, "catch_all")]).toEqual([true, false]);
    expect(store.find(id)).toMatchObject({
      status: "completed",
      verdict: "deliverable",
      subStatus: "mailbox_exists",
      result: "{}",
      completedAtMs: 99,
      dueAtMs: null,
      attempts: 1,
    });
  });

  test("of one that does not exist is none", () => expect(storeOf().end(idOf(1))).toBe(false));

  test("takes it out of what is due, and cannot be postponed", () => {
    const { db, store, insert, end } = storeOf();
    const id = insert(1);
    end(id);
    expect(db.transact((tx) => store.postpone(tx, id, 5, 2))).toBe(false);
    expect(store.find(id)).toMatchObject({ dueAtMs: null, attempts: 1 });
    expect(store.due({ dueAtMs: -1, id: "" }, 100, 10)).toEqual([]);
  });
});

test("what is due comes in the order of its time and id, from behind the mark, up to the limit", () => {
  const { db, store, insert } = storeOf();
  insert(3, { dueAtMs: 20 });
  insert(1, { dueAtMs: 20 });
  insert(2, { dueAtMs: 10 });
  insert(4, { dueAtMs: 31 });
  const due = (after: { dueAtMs: number; id: string }, limit = 10) => store.due(after, 30, limit).map(({ id }) => id);
  expect(due({ dueAtMs: -1, id: "" })).toEqual([idOf(2), idOf(1), idOf(3)]);
  expect(due({ dueAtMs: -1, id: "" }, 2)).toEqual([idOf(2), idOf(1)]);
  expect(due({ dueAtMs: 20, id: idOf(1) })).toEqual([idOf(3)]);
  expect(store.nextDueMs(30)).toBe(31);
  expect(store.nextDueMs(31)).toBeNull();
  db.transact((tx) => store.postpone(tx, idOf(1), 40, 1));
  expect(due({ dueAtMs: -1, id: "" })).toEqual([idOf(2), idOf(3)]);
  expect(store.find(idOf(1))).toMatchObject({ status: "pending", dueAtMs: 40, attempts: 1 });
});

test("one address is pending once for an account and mode, and may be ordered again when it has ended", () => {
  const { store, insert, end } = storeOf();
  const same = { normalizedEmail: "ada@x.example" };
  const first = insert(1, same);
  expect(() => insert(2, same)).toThrow("UNIQUE");
  insert(3, { ...same, mode: "test" });
  insert(4, { ...same, accountId: "account-2" });
  expect(store.findPending("account-1", "live", "ada@x.example")?.id).toBe(first);
  end(first);
  expect(store.findPending("account-1", "live", "ada@x.example")).toBeUndefined();
  insert(5, same);
});

test("the latest evidence stands", () => {
  const { db, store, insert } = storeOf();
  const id = insert(1);
  expect(store.findEvidence(id)).toBeUndefined();
  const [one, two] = [evidenceWith(), evidenceWith({ findings: [findingWith()] })];
  for (const evidence of [one, two]) db.transact((tx) => store.saveEvidence(tx, [id, packEvidence(evidence)]));
  expect(store.findEvidence(id)).toEqual(two);
});

test("evidence that an older version stored as JSON is read", () => {
  const { db, store, insert } = storeOf();
  const id = insert(1);
  const evidence = evidenceWith();
  db.sqlite.run("INSERT INTO verification_evidence VALUES (?, ?)", [id, JSON.stringify(evidence)]);
  expect(store.findEvidence(id)).toEqual(evidence);
});

test("a verification is removed with its evidence unless it is pending", () => {
  const { db, store, insert, end } = storeOf();
  const [ended, pending] = [insert(1), insert(2)];
  for (const id of [ended, pending]) db.transact((tx) => store.saveEvidence(tx, [id, packEvidence(evidenceWith())]));
  end(ended);
  expect(db.transact((tx) => [ended, pending].map((id) => store.remove(tx, id)))).toEqual([true, false]);
  expect([ended, pending].map((id) => [store.find(id)?.id, store.findEvidence(id)])).toEqual([
    [undefined, undefined],
    [pending, evidenceWith()],
  ]);
});
