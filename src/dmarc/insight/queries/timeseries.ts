import { z } from "zod";
import { countField } from "../../../foundation/http/schema-fields.ts";
import { isoDay, type DayRange } from "../../../foundation/base/days.ts";
import { percentOf } from "../sources/day-range.ts";
import type { SourceDomain } from "../sources/domain-sources.ts";
import type { RollupStore } from "../sources/rollup-store.ts";
import { NO_TOTALS } from "../sources/totals.ts";

const pointSchema = z.object({
  date: z.iso.date().meta({ description: "The UTC day." }),
  reports: countField("Number of reports."),
  messages: countField("Messages in reports."),
  aligned: countField("Messages that passed DMARC, by aligned DKIM or aligned SPF."),
  failing: countField("Messages that failed DMARC."),
  dkim_aligned: countField("Messages with an aligned DKIM signature that passed."),
  spf_aligned: countField("Messages that passed SPF for an aligned envelope domain."),
  forwarded: countField("Failing messages that the receiver recognized as forwarded."),
  quarantined: countField("Messages that receivers quarantined."),
  rejected: countField("Messages that receivers rejected."),
  aligned_percent: z.number().nullable().meta({
    description: "Share of aligned messages in percent, with one decimal; null when there are no messages.",
  }),
});

export const timeseriesSchema = z
  .object({
    domain_id: z.uuid().meta({ description: "The id of the domain." }),
    from: z.iso.date().meta({ description: "The first UTC day of the range." }),
    to: z.iso.date().meta({ description: "The last UTC day of the range, inclusive." }),
    interval: z.literal("day").meta({ description: "The length of each point." }),
    points: z.array(pointSchema).meta({ description: "Every day of the range, the oldest first." }),
  })
  .meta({ title: "DmarcTimeseries" });

export type Timeseries = Readonly<z.infer<typeof timeseriesSchema>>;

/** The messages of each day of a range; zeros on days that no report covers. */
export const timeseriesOf = (rollups: RollupStore, domain: SourceDomain, range: DayRange): Timeseries => {
  const { fromDay, toDay } = range;
  const totals = new Map(rollups.perDay(domain.number, range).map((row) => [row.day, row]));
  const reports = new Map(rollups.reportsPerDay(domain.number, range).map((row) => [row.day, row.reports]));
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
