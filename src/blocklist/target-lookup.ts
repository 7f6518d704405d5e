import type { ByMode } from "../foundation/base/secrets.ts";
import type { Blocklist } from "./lists/blocklist.ts";
import type { DnsblLookup } from "./lists/lookup.ts";
import type { JudgedOutcomes, ListBreaker } from "./breaker.ts";
import type { TargetRow } from "./store.ts";

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
