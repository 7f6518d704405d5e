import { z } from "zod";
import { reporterSchema } from "./reporter.ts";
import { isId } from "../../base/secrets.ts";
import { rangeFields } from "../sources/day-range.ts";
import { DISPOSITIONS, OVERRIDES, readDomain, readSourceIp } from "../report/report-values.ts";
import { isSourceKey } from "../sources/source-identity.ts";

const time = z.iso.datetime({ precision: 3 });

const ip = z.string().transform((text, context): string => {
  const source = readSourceIp(text);
  if (typeof source !== "string") return source.ip;
  context.addIssue({ code: "custom", message: "An IPv4 or IPv6 address is needed" });
  return z.NEVER;
});

const domain = z.string().transform((text, context): string => {
  const read = readDomain(text);
  if (read !== null) return read;
  context.addIssue({ code: "custom", message: "A domain name is needed" });
  return z.NEVER;
});

/** The name of a reporter, as its reports say it, in any case; empty for those without a name. */
export const reporterFilter = z.string().transform((text) => text.toLowerCase());

/** The filters of the list of records. */
export const recordFiltersSchema = z.strictObject({
  ...rangeFields,
  source: z.string().refine(isSourceKey, "Must be the key of a source, as /sources returns it").optional(),
  source_ip: ip.optional(),
  disposition: z.enum(DISPOSITIONS).optional(),
  aligned: z
    .enum(["true", "false"])
    .transform((text) => text === "true")
    .optional(),
  header_from: domain.optional(),
  reporter: reporterFilter.optional(),
  report: z.string().refine(isId, "The id of a report is needed").optional(),
});

export type RecordFilters = z.output<typeof recordFiltersSchema>;

const aligned = z.enum(["pass", "fail"]).nullable();

export const recordSchema = z
  .object({
    date: z.iso.date().meta({ description: "The UTC day that most of the report is about." }),
    source_ip: z.string(),
    reverse_name: z.string().nullable().meta({ description: "When it leads back to the address." }),
    asn: z.int().positive().nullable().meta({ description: "The AS that announces the address; null when unknown." }),
    as_name: z.string().nullable(),
    country: z
      .string()
      .nullable()
      .meta({ description: "ISO 3166 alpha-2: where the network is registered, or what POSTWARDEN_GEOIP_DB says." }),
    source: z.string().meta({ description: "The key of the source that it is counted to." }),
    source_name: z.string(),
    count: z.int().positive(),
    aligned: z.boolean().meta({ description: "Whether DMARC passed." }),
    dkim: aligned.meta({ description: "The aligned result; null when the reporter does not say." }),
    spf: aligned,
    disposition: z.enum(DISPOSITIONS).nullable(),
    forwarded: z.boolean(),
    header_from: z.string().nullable(),
    envelope_from: z.string().nullable(),
    envelope_to: z.string().nullable(),
    reasons: z.array(z.object({ type: z.enum(OVERRIDES), comment: z.string().nullable() })),
    dkim_results: z.array(
      z.object({
        domain: z.string().nullable(),
        selector: z.string().nullable(),
        result: z.string(),
        human_result: z.string().nullable(),
      }),
    ),
    spf_results: z.array(
      z.object({
        domain: z.string().nullable(),
        scope: z.enum(["mfrom", "helo"]).nullable(),
        result: z.string(),
        human_result: z.string().nullable(),
      }),
    ),
    report: z.object({
      id: z.uuid(),
      org_name: z.string().nullable(),
      reporter: reporterSchema,
      report_id: z.string().nullable(),
      begin: time,
      end: time,
    }),
  })
  .meta({ title: "DmarcRecord" });

export type ShownRecord = Readonly<z.infer<typeof recordSchema>>;

/** A line of the export of all domains. */
export const exportedRecordSchema = recordSchema
  .extend({
    domain_id: z.uuid(),
    domain: z.string(),
    cursor: z.string().meta({ description: "Resumes the export behind this record." }),
  })
  .meta({ title: "DmarcExportedRecord" });

export type ExportedRecord = Readonly<z.infer<typeof exportedRecordSchema>>;

export const recordsSchema = z
  .object({ records: z.array(recordSchema), next_cursor: z.string().nullable() })
  .meta({ title: "DmarcRecordList" });
