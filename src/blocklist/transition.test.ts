import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import type { Blocklist } from "./lists/blocklist.ts";
import type { ListOutcome } from "./lists/lookup.ts";
import { TEST_LIST } from "./target-lookup.ts";
import { applyOutcomes, type KnownState } from "./check-result.ts";

/** A list of two listings, `a-1` and `a-2`. */
const listOf = (id: string): Blocklist => ({
  ...TEST_LIST,
  id,
  codes: [1, 2].flatMap((n) => TEST_LIST.codes.map((code) => ({ ...code, id: `${id}-${n}` }))),
});
const LISTS = ["a", "b", "c"].map(listOf);

const outcomeOf = (list: string, said: string): ListOutcome => {
  const base = {
    list,
    returnCodes: [],
    text: null,
    queryNames: [],
    reason: null,
    remedy: null,
    checkedAtMs: 0,
    retryAtMs: null,
  };
  if (said === "not_listed" || said === "unproven" || said === "refused" || said === "failed" || said === "skipped") {
    return { ...base, outcome: said, listings: [] };
  }
  const listings = said.split("+").map((n) => ({
    id: `${list}-${n}`,
    name: list,
    meanings: [],
    category: "spam" as const,
    severity: "high" as const,
    returnCodes: [],
  }));
  return { ...base, outcome: "listed", listings };
};

/** `a:1+2 b:not_listed`: list a has both listings, list b says no. */
const outcomesOf = (text: string): ListOutcome[] =>
  text.split(" ").map((part) => outcomeOf(part.split(":")[0] ?? "", part.split(":")[1] ?? ""));

const hasExpired = (): boolean => false;

const conclusion = (listedOn: readonly string[], said: string, mutedLists: readonly string[] = [], lists = LISTS) => {
  const before: KnownState = { status: listedOn.length > 0 ? "listed" : "clean", listedOn };
  const {
    status,
    listedOn: now,
    added,
    removed,
  } = applyOutcomes(before, outcomesOf(said), { lists, mutedLists, hasExpired });
  return { status, now, added, removed: removed.map(({ listing, reason }) => `${listing} ${reason}`) };
};

const NOTHING = { added: [], removed: [] };

describe("a finished check", () => {
  test.each([
    ["finds nothing", [], "a:not_listed b:not_listed", { status: "clean", now: [], ...NOTHING }],
    ["finds one listing", [], "a:1 b:not_listed", { status: "listed", now: ["a-1"], added: ["a-1"], removed: [] }],
    [
      "finds listings of several lists",
      [],
      "a:1+2 b:1",
      { status: "listed", now: ["a-1", "a-2", "b-1"], added: ["a-1", "a-2", "b-1"], removed: [] },
    ],
    ["finds the same again", ["a-1"], "a:1 b:not_listed", { status: "listed", now: ["a-1"], ...NOTHING }],
    [
      "finds one of two gone",
      ["a-1", "b-1"],
      "a:not_listed b:1",
      { status: "listed", now: ["b-1"], added: [], removed: ["a-1 observed"] },
    ],
    [
      "finds the last one gone",
      ["a-1"],
      "a:not_listed b:not_listed",
      { status: "clean", now: [], added: [], removed: ["a-1 observed"] },
    ],
    [
      "finds one listing in place of another of the list",
      ["a-1"],
      "a:2",
      { status: "listed", now: ["a-2"], added: ["a-2"], removed: ["a-1 observed"] },
    ],
    ["hears nothing from anybody", [], "a:refused b:failed", { status: "unknown", now: [], ...NOTHING }],
    ["asks nobody", [], "a:skipped b:skipped", { status: "unknown", now: [], ...NOTHING }],
    [
      "hears nothing from the list that lists it",
      ["a-1"],
      "a:failed b:not_listed",
      { status: "listed", now: ["a-1"], ...NOTHING },
    ],
    [
      "is refused by the list that lists it",
      ["a-1"],
      "a:refused b:not_listed",
      { status: "listed", now: ["a-1"], ...NOTHING },
    ],
    [
      "hears nothing about a listed target",
      ["a-1"],
      "a:failed b:failed",
      { status: "unknown", now: ["a-1"], ...NOTHING },
    ],
    ["hears from one list only, and that is no", [], "a:failed b:not_listed", { status: "clean", now: [], ...NOTHING }],
  ])("that %s", (_, before, said, expected) => {
    expect(conclusion(before, said)).toEqual(expected as never);
  });

  test.each([
    ["is left out where it comes", [], "a:1 b:not_listed", { status: "clean", now: [], ...NOTHING }],
    ["is no 'no' of its list", [], "a:1 b:failed", { status: "unknown", now: [], ...NOTHING }],
    ["leaves the others of its list", [], "a:1+2", { status: "listed", now: ["a-2"], added: ["a-2"], removed: [] }],
    [
      "shows that the others of its list are gone",
      ["a-2"],
      "a:1 b:not_listed",
      { status: "clean", now: [], added: [], removed: ["a-2 observed"] },
    ],
    [
      "goes where it was known still",
      ["a-1"],
      "a:1 b:not_listed",
      { status: "clean", now: [], added: [], removed: ["a-1 list_muted"] },
    ],
  ])("a muted listing %s", (_, before, said, expected) => {
    expect(conclusion(before, said, ["a-1"])).toEqual(expected as never);
  });

  test("has the reason of a removed listing", () => {
    expect(conclusion(["a-1"], "b:not_listed", ["a"]).removed).toEqual(["a-1 list_muted"]);
    expect(conclusion(["a-1"], "b:not_listed", [], LISTS.slice(1)).removed).toEqual(["a-1 list_retired"]);
    expect(conclusion(["gone-1"], "a:not_listed").removed).toEqual(["gone-1 list_retired"]);
    expect(conclusion(["a-1"], "a:skipped b:not_listed").removed).toEqual(["a-1 list_retired"]);
  });

  test("counts every list in use once", () => {
    const { counts } = applyOutcomes({ status: "clean", listedOn: [] }, outcomesOf("a:1 b:failed"), {
      lists: LISTS,
      mutedLists: ["c"],
      hasExpired,
    });
    expect(counts).toEqual({ listed: 1, not_listed: 0, unproven: 0, refused: 0, failed: 1, skipped: 1 });
  });

  test("with unproven results only is unknown, and clean with one proven result", () => {
    expect(conclusion([], "a:unproven b:unproven").status).toBe("unknown");
    expect(conclusion([], "a:unproven b:not_listed").status).toBe("clean");
  });

  test("removes an unproven listing only when it has expired", () => {
    const lettingGo = (expired: boolean) =>
      applyOutcomes({ status: "listed", listedOn: ["a-1"] }, outcomesOf("a:unproven"), {
        lists: LISTS,
        mutedLists: [],
        hasExpired: (listing, list) => expired && listing === "a-1" && list === "a",
      });
    expect(lettingGo(false)).toMatchObject({ status: "listed", listedOn: ["a-1"], removed: [] });
    expect(lettingGo(true)).toMatchObject({ status: "unknown", removed: [{ listing: "a-1", reason: "expired" }] });
  });

  test("never clears a listing by an unknown result, and its changes explain the difference", () => {
    const said = fc.constantFrom("1", "2", "1+2", "not_listed", "refused", "failed");
    const listings = fc.subarray(["a-1", "a-2", "b-1", "b-2", "c-1"]);
    fc.assert(
      fc.property(listings, said, said, said, (listedOn, a, b, c) => {
        const outcomes = outcomesOf(`a:${a} b:${b} c:${c}`);
        const end = applyOutcomes({ status: "listed", listedOn }, outcomes, {
          lists: LISTS,
          mutedLists: [],
          hasExpired,
        });
        const silent = outcomes
          .filter(({ outcome }) => outcome === "refused" || outcome === "failed")
          .map(({ list }) => list);
        for (const id of listedOn.filter((id) => silent.includes(id.slice(0, 1)))) expect(end.listedOn).toContain(id);
        const gone = end.removed.map(({ listing }) => listing);
        const explained = [...listedOn.filter((id) => !gone.includes(id)), ...end.added].toSorted();
        expect([...end.listedOn].toSorted()).toEqual(explained);
        if (silent.length === 3) expect(end).toMatchObject({ status: "unknown", added: [], removed: [] });
        else expect(end.status).toBe(end.listedOn.length > 0 ? "listed" : "clean");
      }),
    );
  });
});
