import { z } from "zod";
import {
  booleanParameter,
  nextCursorField,
  nullableText,
  textField,
  timeField,
} from "../../../foundation/http/schema-fields.ts";
import { isId } from "../../../foundation/base/secrets.ts";
import { DISPOSITIONS, OVERRIDES, readDomain, readSourceIp } from "../../reports/report/report-values.ts";
import { rangeFields } from "../../../foundation/http/day-range.ts";
import { isSourceKey } from "../sources/source-identity.ts";
import { reporterSchema } from "./reporter.ts";

const ip = z.string().transform((text, context): string => {
  const source = readSourceIp(text);
  if (typeof source !== "string") return source.ip;
  context.addIssue({ code: "custom", message: "Must be an IPv4 or IPv6 address" });
  return z.NEVER;
});

const domain = z.string().transform((text, context): string => {
  const read = readDomain(text);
  if (read !== null) return read;
  context.addIssue({ code: "custom", message: "Must be a domain name" });
  return z.NEVER;
});

/** The name of a reporter in any case; empty for those without a name. */
export const reporterFilter = z.string().transform((text) => text.toLowerCase());

/** The filters of the list of records. */
export const recordFilters = {
  ...rangeFields,
  source: z
    .string()
    .refine(isSourceKey, "Must be the key of a source, as /sources returns it")
    .optional()
    .meta({ description: "Only records of the source with this key." }),
  source_ip: ip.optional().meta({ description: "Only records from this IP address." }),
  disposition: z.enum(DISPOSITIONS).optional().meta({ description: "Only records with this disposition." }),
  aligned: booleanParameter("`true`: only records that passed DMARC. `false`: only those that failed."),
  header_from: domain.optional().meta({ description: "Only records with this domain in From." }),
  reporter: reporterFilter
    .optional()
    .meta({ description: "Only records of this reporter name, ignoring case; empty: without a name." }),
  report: z
    .string()
    .refine(isId, "Must be the id of a report")
    .optional()
    .meta({ description: "Only records of the report with this id; whatever its day, unless a range is given." }),
};

export type RecordFilters = z.output<z.ZodObject<typeof recordFilters>>;

const alignedResult = (mechanism: string) =>
  z
    .enum(["pass", "fail"])
    .nullable()
    .meta({ description: `The aligned ${mechanism} result; null when the reporter does not give it.` });

const resultFields = {
  result: textField("The result, as in RFC 8601 §2.7."),
  human_result: nullableText("The explanation of the reporter; null for none."),
};

export const recordSchema = z
  .object({
    date: z.iso.date().meta({ description: "The UTC day of the middle of the report's period." }),
    source_ip: textField("The IP address that sent the messages."),
    reverse_name: nullableText("The reverse DNS name, if it resolves to the address; otherwise null."),
    asn: z.int().positive().nullable().meta({ description: "The AS that announces the address; null when unknown." }),
    as_name: nullableText("The name of that AS; null when unknown."),
    country: nullableText(
      "ISO 3166-1 alpha-2 country of the network's registration, or from POSTWARDEN_GEOIP_DB; null when unknown.",
    ),
    source: textField("The key of the source that the record belongs to."),
    source_name: textField("The display name of that source."),
    count: z.int().positive().meta({ description: "Number of messages." }),
    aligned: z.boolean().meta({ description: "Whether the messages passed DMARC." }),
    dkim: alignedResult("DKIM"),
    spf: alignedResult("SPF"),
    disposition: z
      .enum(DISPOSITIONS)
      .nullable()
      .meta({ description: "What the receiver did with the messages; null when the reporter does not say." }),
    forwarded: z.boolean().meta({ description: "Whether the receiver recognized the messages as forwarded." }),
    header_from: nullableText("The domain in From; null when the reporter does not give it."),
    envelope_from: nullableText("The envelope domain (MAIL FROM); null when the reporter does not give it."),
    envelope_to: nullableText("The recipient domain; null when the reporter does not give it."),
    reasons: z
      .array(
        z.object({
          type: z.enum(OVERRIDES).meta({ description: "The kind of override." }),
          comment: nullableText("The comment of the reporter; null for none."),
        }),
      )
      .meta({ description: "Why the receiver did not apply the policy." }),
    dkim_results: z
      .array(
        z.object({
          domain: nullableText("The signing domain (`d=`); null when not reported."),
          selector: nullableText("The selector (`s=`); null when not reported."),
          ...resultFields,
        }),
      )
      .meta({ description: "The DKIM signatures that the receiver checked." }),
    spf_results: z
      .array(
        z.object({
          domain: nullableText("The domain checked; null when not reported."),
          scope: z
            .enum(["mfrom", "helo"])
            .nullable()
            .meta({ description: "`mfrom`: the envelope domain; `helo`: the HELO name; null when not reported." }),
          ...resultFields,
        }),
      )
      .meta({ description: "The SPF checks of the receiver." }),
    report: z
      .object({
        id: z.uuid().meta({ description: "The id of the report." }),
        org_name: nullableText("The reporter name in the report; null when there is none."),
        reporter: reporterSchema,
        report_id: nullableText("The id that the reporter gave the report; null for none."),
        begin: timeField("The beginning of the report's period."),
        end: timeField("The end of the report's period."),
      })
      .meta({ description: "The report that the record is from." }),
  })
  .meta({ title: "DmarcRecord" });

export type ShownRecord = Readonly<z.infer<typeof recordSchema>>;

/** A line of the export of all domains. */
export const exportedRecordSchema = recordSchema
  .extend({
    domain_id: z.uuid().meta({ description: "The id of the domain." }),
    domain: textField("The domain."),
    cursor: textField("Resumes the export after this record."),
  })
  .meta({ title: "DmarcExportedRecord" });

export type ExportedRecord = Readonly<z.infer<typeof exportedRecordSchema>>;

export const recordsSchema = z
  .object({
    records: z.array(recordSchema).meta({ description: "The records." }),
    next_cursor: nextCursorField,
  })
  .meta({ title: "DmarcRecordList" });
