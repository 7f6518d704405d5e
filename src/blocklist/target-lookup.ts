import fixture from "../../fixtures/test-keys-blacklist.json" with { type: "json" };
import type { ByMode } from "../foundation/base/secrets.ts";
import type { Blocklist } from "./lists/blocklist.ts";
import type { DnsblLookup, ListOutcome } from "./lists/lookup.ts";
import type { JudgedOutcomes, ListBreaker } from "./breaker.ts";
import type { TargetRow } from "./store.ts";
import { z } from "zod";
import type { Clock } from "../foundation/base/clock.ts";

/** The lists that targets of one mode are checked on. */
export interface TargetLookup {
  /** The lists in use. */
  readonly lists: readonly Blocklist[];
  /** Looks up a target in some of these lists. */
  check(target: TargetRow, lists: readonly Blocklist[], signal: AbortSignal): Promise<JudgedOutcomes>;
}

/** Real lists for live keys, the test list for test keys; selected by the mode of the target. */
export type TargetLookups = ByMode<TargetLookup>;

/** Queries DNS blocklists: a list's health first, and a change is confirmed; a list that changes too many targets is held back. */
export const createLiveLookup = (
  lists: readonly Blocklist[],
  { lookup, breaker }: { readonly lookup: DnsblLookup; readonly breaker: ListBreaker },
): TargetLookup => ({
  lists,
  async check(target, some, signal) {
    const options = { previous: target.listedOn, muted: target.mutedLists, signal };
    return breaker.judge(target, some, await lookup.checkAll(target, some, options));
  },
});

const table = z
  .strictObject({
    list: z.string(),
    answer: z.string(),
    text: z.string(),
    listed: z.array(z.string()),
    unknown: z.array(z.string()),
  })
  .parse(fixture);

/** The only list of test keys. It exists in this program only. */
export const TEST_LIST: Blocklist = {
  id: table.list,
  name: "The test list",
  operator: "Postwarden (test keys)",
  kinds: ["ipv4", "ipv6", "domain"],
  scope: "single",
  zone: null,
  keyedZone: null,
  key: null,
  domainForm: "host",
  codes: [
    {
      matches: [],
      id: table.list,
      name: "The test list",
      meaning: "Test keys report this target as listed.",
      category: "spam",
      severity: "high",
    },
  ],
  refusals: [],
  ignores: [],
  testPoints: {},
  defaultEnabled: false,
  switchedOn: null,
  usage: null,
  budget: { queriesPerDay: null, spacingMs: null },
  delistUrl: null,
  lookupUrl: null,
  confidence: "A",
  notes: null,
};

/** The lists of each mode: the catalogue for live keys, the test list for test keys. */
export type ListsByMode = ByMode<readonly Blocklist[]>;
export const listsByMode = (live: readonly Blocklist[]): ListsByMode => ({ live, test: [TEST_LIST] });

/** Looks up targets of test keys in the test list (contract §3): the same result for every call, without network access. */
export const createTestLookup = (clock: Clock): TargetLookup => ({
  lists: [TEST_LIST],
  check: async ({ value }, lists) => ({
    outcomes: lists.map(() => testOutcome(value, clock.nowMs())),
    heldUntilMs: null,
  }),
});

const testOutcome = (value: string, atMs: number): ListOutcome => {
  const base = {
    list: table.list,
    queryNames: [],
    text: null,
    reason: null,
    remedy: null,
    checkedAtMs: atMs,
    retryAtMs: null,
  };
  if (table.unknown.includes(value)) {
    const reason = "The test list refuses queries about this target.";
    return { ...base, outcome: "refused", listings: [], returnCodes: [], reason };
  }
  if (!table.listed.includes(value)) return { ...base, outcome: "not_listed", listings: [], returnCodes: [] };
  const listings = TEST_LIST.codes.map(({ id, name, meaning, category, severity }) => ({
    id,
    name,
    meanings: [meaning],
    category,
    severity,
    returnCodes: [table.answer],
  }));
  return { ...base, outcome: "listed", listings, returnCodes: [table.answer], text: table.text };
};
