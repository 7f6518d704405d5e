import { expect, test } from "bun:test";
import { readEmbeddedCatalogue } from "../blocklist/lists/catalogue.ts";
import type { ListOutcome } from "../blocklist/lists/lookup.ts";
import type { Target } from "../blocklist/lists/query-name.ts";
import { createTestClock } from "../testing/clock.ts";
import { checkListings, type LookUp } from "./listings-check.ts";

const lists = readEmbeddedCatalogue().lists.slice(0, 4);
const outcomeOf = (at: number, outcome: ListOutcome["outcome"]): ListOutcome => ({
  list: lists[at]?.id ?? "",
  outcome,
  listings:
    outcome === "listed"
      ? [{ id: "x", name: "Policy", severity: "low", category: "policy", meanings: [], returnCodes: [] }]
      : [],
  ...{ returnCodes: [], text: null, queryNames: [], reason: null, remedy: null, checkedAtMs: 0, retryAtMs: null },
});

const look = (outcomes: readonly ListOutcome["outcome"][]) =>
  checkListings("203.0.114.9", {
    ...{ lists, clock: createTestClock() },
    lookUp: async () => outcomes.map((outcome, at) => outcomeOf(at, outcome)),
  });

test.each<[string, readonly ListOutcome["outcome"][], string, RegExp]>([
  ["on none", ["not_listed", "not_listed", "skipped", "failed"], "ok", /on none of the 2 blocklists that gave/],
  [
    "on one",
    ["listed", "not_listed", "skipped", "refused"],
    "warn",
    /on 1 of 3 blocklists: .* \(Policy.*Run: postwarden/,
  ],
  ["on four", ["listed", "listed", "listed", "listed"], "warn", /on 4 of 4 blocklists: [^;]*(;[^;]*){2,5}\. Run/],
  [
    "unknown",
    ["refused", "failed", "unproven", "skipped"],
    "warn",
    /not known whether .*: no list gave a usable response/,
  ],
])("an address %s", async (_, outcomes, state, message) => {
  const found = await look(outcomes);
  expect([found.check, found.state]).toEqual(["egress_listed", state as "ok"]);
  expect(found.message).toMatch(message);
});

test("lists that are silent are given up after ten seconds", async () => {
  const clock = createTestClock();
  const lookUp: LookUp = () => new Promise(() => undefined);
  const checking = checkListings("203.0.114.9", { lists, clock, lookUp });
  await clock.advance(10_000);
  expect((await checking).message).toContain("not every list responded within 10 seconds");
});

test.each<[string, Target["kind"]]>([
  ["203.0.114.9", "ipv4"],
  ["2001:db8::9", "ipv6"],
])("%s is looked up as an address of its family", async (address, kind) => {
  const targets: Target[] = [];
  const lookUp: LookUp = async (target) => {
    targets.push(target);
    return [];
  };
  await checkListings(address, { lists, clock: createTestClock(), lookUp });
  expect(targets).toEqual([{ kind, value: address }]);
});
