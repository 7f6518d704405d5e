import { isoDay, type DayRange } from "../../base/days.ts";
import { percentOf } from "../sources/day-range.ts";
import type { ShownTimeseries } from "./source-schemas.ts";
import { NO_TOTALS, type RollupStore } from "../sources/rollup-store.ts";
import type { SourceDomain } from "../sources/domain-sources.ts";

/** How a domain fared on each day of a range; a day without mail is there with zeros. */
export const timeseriesOf = (store: RollupStore, domain: SourceDomain, range: DayRange): ShownTimeseries => {
  const { fromDay, toDay } = range;
  const totals = new Map(store.perDay(domain.number, range).map((row) => [row.day, row]));
  const reports = new Map(store.reportsPerDay(domain.number, range).map((row) => [row.day, row.reports]));
  const points = Array.from({ length: toDay - fromDay + 1 }, (_, index) => {
    const day = fromDay + index;
    const { messages, aligned, ...rest } = totals.get(day) ?? NO_TOTALS;
    return {
      date: isoDay(day),
      reports: reports.get(day) ?? 0,
      messages,
      aligned,
      failing: messages - aligned,
      dkim_aligned: rest.alignedDkim,
      spf_aligned: rest.alignedSpf,
      forwarded: rest.forwarded,
      quarantined: rest.quarantined,
      rejected: rest.rejected,
      aligned_percent: percentOf(aligned, messages),
    };
  });
  return { domain_id: domain.id, from: isoDay(fromDay), to: isoDay(toDay), interval: "day", points };
};
