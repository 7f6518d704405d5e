import { z } from "zod";
import { rangeFields } from "../sources/day-range.ts";
import { reporterSchema } from "./reporter.ts";
import { recordSchema, reporterFilter } from "./record-schemas.ts";
import { POLICIES } from "../report/report-values.ts";

const time = z.iso.datetime({ precision: 3 });
const count = z.int().nonnegative();
const text = z.string().nullable();
const cursor = z.string().nullable();

export const AUTHENTICITIES = ["pending", "pass", "fail", "unknown"] as const;

/** The filters of the list of reports. */
export const reportFiltersSchema = z.strictObject({
  ...rangeFields,
  reporter: reporterFilter.optional(),
  authenticity: z.enum(AUTHENTICITIES).optional(),
  trusted: z
    .enum(["true", "false"])
    .transform((text) => text === "true")
    .optional(),
});

export type ReportFilters = z.output<typeof reportFiltersSchema>;

const policySchema = z
  .object({
    domain: z.string(),
    p: z.enum(POLICIES).nullable(),
    sp: z.enum(POLICIES).nullable(),
    np: z.enum(POLICIES).nullable(),
    adkim: z.enum(["r", "s"]).nullable(),
    aspf: z.enum(["r", "s"]).nullable(),
    pct: z.number().nullable(),
    fo: text,
    testing: z.boolean().nullable(),
    discovery_method: z.enum(["psl", "treewalk"]).nullable(),
  })
  .meta({
    title: "DmarcReportedPolicy",
    description: "The policy that the reporter found. Null is what it does not say.",
  });

const authenticitySchema = z
  .object({
    result: z
      .enum(AUTHENTICITIES)
      .meta({ description: "Whether the mail that brought the report is from whom it says." }),
    from: text.meta({ description: "The domain in its From." }),
    spf: z.object({ result: z.string(), domain: text }).nullable(),
    dkim: z.array(z.object({ domain: text, selector: text, result: z.string(), aligned: z.boolean() })),
    dmarc: z.object({ result: z.string(), policy: text }).nullable(),
    message: text,
  })
  .meta({ title: "DmarcReportAuthenticity" });

const reportFields = {
  id: z.uuid(),
  org_name: text.meta({ description: "The name that the report gives. Who sent it, `reporter` says." }),
  reporter: reporterSchema,
  email: text,
  report_id: text.meta({ description: "The id that the reporter gave it." }),
  begin: time,
  end: time,
  date: z.iso.date().meta({ description: "The UTC day that it is counted for: that of the middle of its period." }),
  received_at: time,
  policy_domain: z.string(),
  policy: policySchema,
  rows: count,
  messages: count,
  aligned: count,
  authenticity: authenticitySchema.nullable().meta({ description: "Null when it came in no mail." }),
  notices: z.array(z.string()).meta({ description: "What was not as it should be, and was read nevertheless." }),
  skipped_rows: z
    .array(z.object({ reason: z.string(), rows: count }))
    .meta({ description: "Rows that could not be counted." }),
  ingestion_id: z.string(),
  raw_available: z.boolean(),
};

export const reportSchema = z.object(reportFields).meta({ title: "DmarcReport" });

export type ShownReport = Readonly<z.infer<typeof reportSchema>>;

export const reportsSchema = z
  .object({ reports: z.array(reportSchema), next_cursor: cursor })
  .meta({ title: "DmarcReportList" });

export const reportDetailSchema = z
  .object({
    ...reportFields,
    version: text,
    generator: text,
    extra_contact_info: text,
    errors: z.array(z.string()).meta({ description: "What the reporter says went wrong on its side." }),
    records: z.array(recordSchema).meta({ description: "The worst first, 1000 at most." }),
    records_next_cursor: cursor.meta({ description: "For `GET …/records?report=…&cursor=…`, when there are more." }),
  })
  .meta({ title: "DmarcReportDetail" });

export type ShownReportDetail = Readonly<z.infer<typeof reportDetailSchema>>;

export const tlsReportSchema = z
  .object({
    id: z.uuid(),
    org_name: text,
    report_id: text,
    contact: text,
    begin: time.nullable(),
    end: time.nullable(),
    received_at: time,
    successful_sessions: count,
    failed_sessions: count,
    policies: z.array(
      z.object({
        domain: text,
        policy_type: text,
        successful_sessions: count,
        failed_sessions: count,
        failures: z.array(z.object({ result_type: z.string(), sessions: count, receiving_mx_hostname: text })),
      }),
    ),
    ingestion_id: z.string(),
  })
  .meta({ title: "TlsReport" });

export type ShownTlsReport = Readonly<z.infer<typeof tlsReportSchema>>;

export const tlsReportsSchema = z
  .object({ tls_reports: z.array(tlsReportSchema), next_cursor: cursor })
  .meta({ title: "TlsReportList" });
