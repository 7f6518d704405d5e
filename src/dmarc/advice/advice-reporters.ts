import { reporterBehind } from "../report/reporter.ts";

/** What somebody reports once may be anybody's word about one day. */
const DAYS_MIN = 2;

/**
 * How many reporters told of two days at least; `days` has for each day who reported: the domain that their mail is
 * authenticated as, or the name in reports that the owner handed in.
 */
export const countReporters = (days: readonly (readonly string[])[]): number => {
  const told = new Map<string, number>();
  for (const names of days) {
    for (const reporter of new Set(names.map(reporterBehind))) told.set(reporter, (told.get(reporter) ?? 0) + 1);
  }
  return [...told.values()].filter((count) => count >= DAYS_MIN).length;
};
