import { cached } from "../../foundation/base/cached.ts";
import { readAddressCell } from "../../foundation/mail/address-in-cell.ts";
import { describeProblem } from "../../foundation/mail/address-problem.ts";
import { suggestAddress, suggestDomain } from "../../verify/suggestion.ts";

/** What can be said about the text of a cell without any lookup. */
export interface AddressHints {
  /** The address that was probably meant (`did_you_mean`). */
  readonly suggestion: string | null;
  /** Why the cell does not hold an address, as a sentence. */
  readonly problem: string | null;
}

export const NO_HINTS: AddressHints = { suggestion: null, problem: null };

/** Domains in the cache; far fewer are frequent in a list of a million rows. */
const DOMAINS_CACHED_MAX = 10_000;
const hasSuggestedDomain = cached(DOMAINS_CACHED_MAX, (domain) => suggestDomain(domain) !== null);

/** Whether there is a suggestion for addresses of this domain. Cached: an export asks for every row. */
export const hasSuggestion = (normalizedEmail: string): boolean =>
  hasSuggestedDomain(normalizedEmail.slice(normalizedEmail.lastIndexOf("@") + 1));

/** The hints for a cell. Derived from its text, so nothing is stored. */
export const addressHints = (submittedEmail: string): AddressHints => {
  const read = readAddressCell(submittedEmail);
  if (!read.ok) return { suggestion: null, problem: describeProblem(read.error) };
  return { suggestion: suggestAddress(read.value.address), problem: null };
};
