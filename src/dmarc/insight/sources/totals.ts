import { type Counts, noCounts } from "../../reports/ingest/rollup.ts";

/** Message counts of a range of days. */
export type Totals = Readonly<Counts>;

export const NO_TOTALS: Totals = noCounts();

/** Adds counts to a sum; with a `sign` of -1, subtracts them. */
const addTo = (sum: Counts, counts: Totals, sign: 1 | -1): Counts => {
  sum.messages += sign * counts.messages;
  sum.aligned += sign * counts.aligned;
  sum.alignedDkim += sign * counts.alignedDkim;
  sum.alignedSpf += sign * counts.alignedSpf;
  sum.forwarded += sign * counts.forwarded;
  sum.authenticated += sign * counts.authenticated;
  sum.quarantined += sign * counts.quarantined;
  sum.rejected += sign * counts.rejected;
  return sum;
};

export const sumTotals = (all: readonly Totals[]): Totals => {
  const sum = noCounts();
  for (const counts of all) addTo(sum, counts, 1);
  return sum;
};

/** The sum of two counts; with a `sign` of -1, their difference. */
export const addTotals = (a: Totals, b: Totals, sign: 1 | -1): Totals => addTo(addTo(noCounts(), a, 1), b, sign);
