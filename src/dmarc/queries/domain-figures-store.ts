import type { DayRange } from "../../base/days.ts";
import type { Db } from "../../db/open.ts";

/** How the mail of a domain fared on a day. */
export interface DomainDay {
  readonly domain: number;
  readonly day: number;
  readonly messages: number;
  readonly aligned: number;
}

/** Reads the daily sums of many domains at once, out of what reporters told of each day: far fewer rows than there are sources. */
export const createDomainFiguresStore = ({ sqlite }: Pick<Db, "sqlite">) => {
  const days = sqlite.prepare<DomainDay, [string, number, number]>(
    `SELECT domain, day, sum(messages) messages, sum(aligned) aligned FROM dmarc_daily_reporters
      WHERE domain IN (SELECT value FROM json_each(?)) AND day BETWEEN ? AND ? GROUP BY domain, day`,
  );
  return {
    /** Days without mail are not among the answers. */
    domainDays: (numbers: readonly number[], { fromDay, toDay }: DayRange): DomainDay[] =>
      days.all(JSON.stringify(numbers), fromDay, toDay),
  };
};

export type DomainFiguresStore = ReturnType<typeof createDomainFiguresStore>;
