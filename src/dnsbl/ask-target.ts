import type { ListAnswer, ListAsker } from "./ask-list.ts";
import type { Blocklist } from "./blocklist.ts";
import type { Decoded } from "./decode.ts";

/** The answers for all forms of a target (host, registrable domain) as one. */
export interface TargetAnswer extends Omit<ListAnswer, "question"> {
  readonly questions: readonly string[];
  /** The form that the outcome came from. */
  readonly prefix: string;
}

/**
 * Asks one list for every form of a target. A listing of one form is a listing; else what is unknown of one form makes
 * the whole unknown. An answer outside 127/8 to one form makes all of them worthless. `prefixes` is never empty.
 */
export const askTarget = async (
  asker: ListAsker,
  list: Blocklist,
  { prefixes, signal }: { readonly prefixes: readonly string[]; readonly signal?: AbortSignal | undefined },
): Promise<TargetAnswer> => {
  const asked = await Promise.all(
    prefixes.map(async (prefix) => ({ prefix, ...(await asker.ask(list, prefix, signal)) })),
  );
  const decisive = asked.toSorted((a, b) => rank(a.decoded) - rank(b.decoded))[0];
  if (decisive === undefined) throw new Error("A list was asked about a target without any form.");
  return {
    prefix: decisive.prefix,
    decoded:
      decisive.decoded.outcome === "listed" ? mergeListings(asked.map(({ decoded }) => decoded)) : decisive.decoded,
    questions: asked.map(({ question }) => question),
    answers: [...new Set(asked.flatMap(({ answers }) => answers))],
    ttlS: Math.min(...asked.map(({ ttlS }) => ttlS)),
  };
};

const PRECEDENCE = ["listed", "refused", "failed", "not_listed"] as const;

const rank = (decoded: Decoded): number =>
  decoded.outcome === "failed" && decoded.cause === "outside_loopback" ? -1 : PRECEDENCE.indexOf(decoded.outcome);

const mergeListings = (all: readonly Decoded[]): Decoded => {
  const listings = all.flatMap((decoded) => (decoded.outcome === "listed" ? decoded.listings : []));
  return {
    outcome: "listed",
    listings: listings.filter(({ id }, index) => listings.findIndex((other) => other.id === id) === index),
  };
};
