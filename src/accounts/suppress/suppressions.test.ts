import { describe, expect, test } from "bun:test";
import { openDb } from "../../foundation/db/open.ts";
import { createTestClock } from "../../testing/clock.ts";
import { SuppressionStore, suppressionHash, Suppressions } from "./store.ts";

const create = () => {
  const db = openDb(":memory:");
  if (!db.ok) throw new Error(db.error.kind);
  return new Suppressions({ db: db.value, clock: createTestClock() }, new SuppressionStore(db.value));
};

describe("the list of what is not to be mailed", () => {
  test.each([
    ["trap@example.com", "trap@example.com", "trap@example.com"],
    ["TRAP@Example.COM", "trap@example.com", "trap@example.com"],
    ["example.com", "anybody@example.com", "example.com"],
    ["example.com", "anybody@deep.sub.example.com", "example.com"],
    ["example.com", "anybody@a.b.c.d.e.f.g.h.i.j.k.example.com", "example.com"],
    ["example.com", "anybody@a.b.c.d.e.example.com", "example.com"],
    ["bücher.example", "a@xn--bcher-kva.example", "xn--bcher-kva.example"],
    ["example.com", "a@notexample.com", null],
    ["sub.example.com", "a@example.com", null],
    ["trap@example.com", "trap2@example.com", null],
  ])("%p on the list, asked for %p: %p", (entry, email, hit) => {
    const suppressions = create();
    suppressions.add([entry], null);
    expect(suppressions.match(email)).toBe(hit);
  });

  test("of several entries, the closest one is named", () => {
    const suppressions = create();
    suppressions.add(["example.com", "sub.example.com", "a@sub.example.com"], null);
    expect(suppressions.match("a@sub.example.com")).toBe("a@sub.example.com");
    expect(suppressions.match("b@sub.example.com")).toBe("sub.example.com");
    expect(suppressions.match("b@other.example.com")).toBe("example.com");
  });

  test("adding says what was new, and the same again is no error", () => {
    const suppressions = create();
    expect(suppressions.add(["a@example.com", "A@example.com", "example.org"], "complaints")).toEqual({
      ok: true,
      value: { added: 2, known: 0 },
    });
    expect(suppressions.add(["example.org"], null)).toEqual({ ok: true, value: { added: 0, known: 1 } });
    expect(suppressions.list().map(({ entry, note }) => [entry, note])).toEqual([
      ["a@example.com", "complaints"],
      ["example.org", "complaints"],
    ]);
  });

  test("one wrong entry adds nothing, and each wrong one is named", () => {
    const suppressions = create();
    const result = suppressions.add(["good@example.com", "no at", "x@@y", "localhost"], null);
    expect(result.ok).toBe(false);
    if (!result.ok) expect(result.error).toHaveLength(3);
    expect(suppressions.list()).toEqual([]);
  });

  test("removing answers what was there", () => {
    const suppressions = create();
    suppressions.add(["a@example.com"], null);
    expect(suppressions.remove(["A@example.com", "b@example.com", "nonsense entry"])).toEqual(["a@example.com"]);
    expect(suppressions.list()).toEqual([]);
  });

  test("a long import is complete", () => {
    const suppressions = create();
    const entries = Array.from({ length: 2_500 }, (_, n) => `n${n}@example.com`);
    expect(suppressions.add(entries, null)).toEqual({ ok: true, value: { added: 2_500, known: 0 } });
    expect(suppressions.match("n2499@example.com")).toBe("n2499@example.com");
  });
});

describe("an erased address", () => {
  const erase = (isKept: boolean) => {
    const opened = openDb(":memory:");
    if (!opened.ok) throw new Error(opened.error.kind);
    const { value: db } = opened;
    const suppressions = new Suppressions({ db, clock: createTestClock() }, new SuppressionStore(db));
    suppressions.add(["trap@example.com"], "by phone");
    const isErased = db.transact((tx) => suppressions.erase(tx, "trap@example.com", { isKept }));
    return { db, suppressions, isErased };
  };
  const HASH = suppressionHash("trap@example.com");

  test("stays on the list as a hash, without its note, and is matched, known and removed as before", () => {
    const { db, suppressions, isErased } = erase(true);
    expect(isErased).toBe(true);
    expect(db.transact((tx) => suppressions.erase(tx, "trap@example.com", { isKept: true }))).toBe(true);
    expect(suppressions.list().map(({ entry, note }) => [entry, note])).toEqual([[HASH, null]]);
    expect([suppressions.match("trap@example.com"), suppressions.match("trap2@example.com")]).toEqual([HASH, null]);
    expect(suppressions.add(["TRAP@example.com"], "again")).toEqual({ ok: true, value: { added: 0, known: 1 } });
    expect(suppressions.list()).toHaveLength(1);
    expect(suppressions.remove(["Trap@example.com"])).toEqual(["trap@example.com"]);
    expect(suppressions.list()).toEqual([]);
  });

  test("is found by the whole address, and by no part of it", () => {
    const { suppressions } = erase(true);
    const search = (text: string) => suppressions.search({ text, after: "", limit: 10 }).map(({ entry }) => entry);
    expect(search("Trap@Example.com")).toEqual([HASH]);
    expect(search("trap@")).toEqual([]);
    expect(suppressions.count()).toBe(1);
  });

  test("is not put on the list by its erasure, and can leave it", () => {
    const { db, suppressions, isErased } = erase(false);
    expect(isErased).toBe(true);
    expect(suppressions.list()).toEqual([]);
    expect(db.transact((tx) => suppressions.erase(tx, "other@example.com", { isKept: true }))).toBe(false);
    expect(suppressions.list()).toEqual([]);
  });

  test("leaves the list by its hash, too", () => {
    const { suppressions } = erase(true);
    expect(suppressions.remove([HASH])).toEqual([HASH]);
    expect(suppressions.match("trap@example.com")).toBeNull();
  });
});
