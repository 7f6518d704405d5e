import { readAddressCell } from "../mail/address-in-cell.ts";
import { describeProblem } from "../mail/address-problem.ts";
import { suggestAddress, suggestDomain } from "../verify/suggestion.ts";

/** What the text of a cell alone says; null where there is nothing to say. */
export interface RowHints {
  /** The address that was perhaps meant. */
  readonly suggestion: string | null;
  /** Why the cell holds no address, as a sentence. */
  readonly problem: string | null;
}

export const NO_HINTS: RowHints = { suggestion: null, problem: null };

/** Domains whose suggestion is known: a list of a million rows has far fewer that are frequent. */
const DOMAINS_CACHED_MAX = 10_000;
const isSlip = new Map<string, boolean>();

/** Whether anything is suggested for the addresses of a domain: what is asked a million times in an export. */
export const hasSuggestion = (normalizedEmail: string): boolean => {
  const domain = normalizedEmail.slice(normalizedEmail.lastIndexOf("@") + 1);
  const known = isSlip.get(domain);
  if (known !== undefined) return known;
  if (isSlip.size >= DOMAINS_CACHED_MAX) isSlip.clear();
  const has = suggestDomain(domain) !== null;
  isSlip.set(domain, has);
  return has;
};

/** Did-you-mean of a cell, or why it holds no address. Needs nothing but the text, so nothing of it is stored. */
export const addressHints = (submittedEmail: string): RowHints => {
  const read = readAddressCell(submittedEmail);
  if (!read.ok) return { suggestion: null, problem: describeProblem(read.error) };
  return { suggestion: suggestAddress(read.value.address), problem: null };
};
