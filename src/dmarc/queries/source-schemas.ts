import { z } from "zod";
import { reporterSchema } from "./reporter.ts";
import { rangeFields } from "../sources/day-range.ts";
import { CLASSIFICATIONS } from "../sources/rollup-store.ts";
import { isSourceKey } from "../sources/source-identity.ts";
import { sourceSchema } from "../sources/source-response.ts";

const count = z.int().nonnegative();
const date = z.iso.date();
const percent = z.number().nullable().meta({ description: "One decimal; null when there are no messages." });

/** The query of what has a range and nothing else. */
export const rangeSchema = z.strictObject(rangeFields);

/** The filters of the list of sources. */
export const sourceFiltersSchema = z.strictObject({
  ...rangeFields,
  classification: z.enum(CLASSIFICATIONS).optional(),
  unauthenticated: z.enum(["summary", "by_network"]).optional(),
});

const classification = z.enum(CLASSIFICATIONS).nullable().meta({
  description: "What the source is. It overrides the automatic classification; null restores that.",
});

/** Body of `PATCH …/sources/{key}`. */
export const sourceChangeSchema = z.strictObject({ classification }).meta({ title: "DmarcSourceChange" });

const KEYS_MAX = 500;

/** Body of `PATCH …/sources`. */
export const sourcesChangeSchema = z
  .strictObject({
    keys: z
      .array(z.string().refine(isSourceKey, "Must be the key of a source, as /sources returns it"))
      .min(1)
      .max(KEYS_MAX)
      .meta({
        description: "Keys of sources, or networks of unauthenticated mail (`net:192.0.2.0/24`).",
        examples: [["org:example.net"]],
      }),
    classification,
  })
  .meta({ title: "DmarcSourcesChange" });

/** TLS reports have no filters. */
export const noReportFiltersSchema = z.strictObject({});

export const summarySchema = z
  .object({
    domain_id: z.uuid(),
    domain: z.string(),
    from: date,
    to: date,
    reports: count,
    reporters: count,
    messages: count,
    aligned: count.meta({ description: "Passed DMARC: by aligned DKIM or aligned SPF." }),
    failing: count,
    aligned_percent: percent,
    unauthenticated_messages: count.meta({
      description:
        "Messages of reports that rest on nobody's word: their mail is not authenticated as the reporter's. They are counted here, and advice leaves them out.",
    }),
    unauthenticated_percent: percent,
    unauthenticated_reports: count.meta({ description: "The reports that tell of them." }),
    unauthenticated_note: z
      .string()
      .nullable()
      .meta({ description: "How much rests on such reports, in a sentence; null when nothing does." }),
    dkim_aligned: count,
    spf_aligned: count,
    forwarded: count.meta({ description: "Of those failing: recognized as forwarded by the receiver." }),
    authenticated_unaligned: count.meta({ description: "Of those failing: DKIM or SPF passed for another domain." }),
    dispositions: z.object({ none: count, quarantine: count, reject: count }),
    classes: z
      .array(z.object({ classification: z.enum(CLASSIFICATIONS), sources: count, messages: count, aligned: count }))
      .meta({ description: "Always all five." }),
    top_sources: z.array(sourceSchema).meta({ description: "The five that need attention most." }),
    top_reporters: z
      .array(
        z.object({
          org_name: z.string().nullable(),
          reporter: reporterSchema,
          reports: count,
          messages: count,
          aligned: count,
        }),
      )
      .meta({
        description:
          "The ten that tell of the most messages, by the name that they last wrote; upper and lower case make no difference. Whoever gives the name of another reporter is a reporter of its own.",
      }),
    names: z.array(z.object({ header_from: z.string().nullable(), messages: count, aligned: count })).meta({
      description: "The names in From, twenty at most; null stands for all that are not at or below the domain.",
    }),
    first_day: date.nullable().meta({ description: "The first day that any report tells of, whatever the range." }),
    last_day: date.nullable(),
  })
  .meta({ title: "DmarcSummary" });

export type ShownSummary = Readonly<z.infer<typeof summarySchema>>;

export const timeseriesSchema = z
  .object({
    domain_id: z.uuid(),
    from: date,
    to: date,
    interval: z.literal("day"),
    points: z
      .array(
        z.object({
          date,
          reports: count,
          messages: count,
          aligned: count,
          failing: count,
          dkim_aligned: count,
          spf_aligned: count,
          forwarded: count,
          quarantined: count,
          rejected: count,
          aligned_percent: percent,
        }),
      )
      .meta({ description: "Every day of the range, the oldest first." }),
  })
  .meta({ title: "DmarcTimeseries" });

export type ShownTimeseries = Readonly<z.infer<typeof timeseriesSchema>>;

export const sourcesSchema = z
  .object({ sources: z.array(sourceSchema), next_cursor: z.string().nullable() })
  .meta({ title: "DmarcSourceList" });
