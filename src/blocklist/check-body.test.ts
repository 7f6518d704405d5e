import { expect, test } from "bun:test";
import { hasExpired } from "./check-result.ts";
import type { CheckRow } from "./store.ts";

const result = (list: string, outcome: string, listings: readonly string[] = []) => ({
  ...{ list, outcome, listings, codes: [], text: null, reason: null, remedy: null, zone: null, delist_url: null },
});

const checkWith = (...results: ReadonlyArray<ReturnType<typeof result>>): CheckRow => ({
  id: "check",
  targetId: "target",
  trigger: "scheduled",
  startedAtMs: 0,
  finishedAtMs: 0,
  status: "listed",
  isChange: false,
  body: JSON.stringify({
    listed_on: ["zrd"],
    added: [],
    removed: [],
    counts: { listed: 0, not_listed: 0, refused: 0, failed: 0, skipped: 0 },
    results,
  }),
});

const unrepeated = checkWith(result("list", "unproven"));

test.each<[claim: string, earlier: readonly CheckRow[], expired: boolean]>([
  ["after four checks without it, the present one included", [unrepeated, unrepeated, unrepeated], true],
  ["not after three", [unrepeated, unrepeated], false],
  [
    "not when one of the checks found it",
    [unrepeated, unrepeated, unrepeated, checkWith(result("list", "listed", ["zrd"]))],
    false,
  ],
  [
    "not by checks in which the list did not answer",
    [unrepeated, unrepeated, checkWith(result("list", "failed"))],
    false,
  ],
  ["not by what another list said", [unrepeated, unrepeated, checkWith(result("other", "unproven"))], false],
])("a listing of a list without test points expires %s", (_, earlier, expired) => {
  expect(hasExpired(earlier, "zrd", "list")).toBe(expired);
});
