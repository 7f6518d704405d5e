import { checkBodySchema } from "./check-body.ts";
import type { CheckRow } from "./store.ts";

/** Checks, the present one included, in which the list was asked and did not repeat the listing. */
const CHECKS_MIN = 4;

/**
 * Whether a listing of a list without test points has expired: none of the `earlier` checks, which are all within the
 * time that a listing stands unrepeated, found it, and in enough of them the list was asked and did not repeat it.
 */
export const hasExpired = (earlier: readonly CheckRow[], listing: string, list: string): boolean => {
  const results = earlier.map(({ body }) => checkBodySchema.parse(JSON.parse(body)).results);
  if (results.some((all) => all.some(({ listings }) => listings.includes(listing)))) return false;
  const unrepeated = results.filter((all) => all.some((one) => one.list === list && one.outcome === "unproven"));
  return unrepeated.length + 1 >= CHECKS_MIN;
};
