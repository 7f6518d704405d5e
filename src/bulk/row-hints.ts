import { readAddressCell } from "../mail/address-in-cell.ts";
import { describeProblem } from "../mail/address-problem.ts";
import { suggestAddress } from "../verify/suggestion.ts";

/** What the text of a cell alone says; null where there is nothing to say. */
export interface RowHints {
  /** The address that was perhaps meant. */
  readonly suggestion: string | null;
  /** Why the cell holds no address, as a sentence. */
  readonly problem: string | null;
}

/** Did-you-mean of a cell, or why it holds no address. Needs nothing but the text, so nothing of it is stored. */
export const hintsOf = (submittedEmail: string): RowHints => {
  const read = readAddressCell(submittedEmail);
  if (!read.ok) return { suggestion: null, problem: describeProblem(read.error) };
  return { suggestion: suggestAddress(read.value.address), problem: null };
};
