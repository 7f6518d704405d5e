import { z } from "zod";
import { POLICIES } from "../report/report-values.ts";
import { recordSchema } from "./record-schemas.ts";
import { reporterSchema } from "./reporter.ts";

const text = (description: string) => z.string().meta({ description });
const count = (description: string) => z.int().nonnegative().meta({ description });
const time = (description: string) => z.iso.datetime({ precision: 3 }).meta({ description });
const nextCursor = text("The cursor of the next page; null on the last page.").nullable();

export const AUTHENTICITIES = ["pending", "pass", "fail", "unknown"] as const;

const policy = (of: string) =>
  z
    .enum(POLICIES)
    .nullable()
    .meta({ description: `The policy for ${of}.` });
const alignment = (mechanism: string) =>
  z
    .enum(["r", "s"])
    .nullable()
    .meta({ description: `${mechanism} alignment: \`r\` relaxed, \`s\` strict.` });

const policySchema = z
  .object({
    domain: text("The domain with the DMARC record."),
    p: policy("the domain"),
    sp: policy("subdomains"),
    np: policy("subdomains that do not exist"),
    adkim: alignment("DKIM"),
    aspf: alignment("SPF"),
    pct: z.number().nullable().meta({ description: "Percentage of failing mail that the policy applies to." }),
    fo: text("When failure reports are requested.").nullable(),
    testing: z.boolean().nullable().meta({ description: "Whether the record has `t=y`." }),
    discovery_method: z
      .enum(["psl", "treewalk"])
      .nullable()
      .meta({ description: "How the reporter found the record: public suffix list or DNS tree walk." }),
  })
  .meta({
    title: "DmarcReportedPolicy",
    description: "The policy that the reporter found; null where it does not say.",
  });

const authenticitySchema = z
  .object({
    result: z.enum(AUTHENTICITIES).meta({
      description:
        "`pass`: the mail is authenticated as the reporter's. `fail`: it is not. `unknown`: there is not enough evidence. `pending`: not checked yet.",
    }),
    from: text("The header_from domain of the mail; null when there is not exactly one.").nullable(),
    spf: z
      .object({
        result: text("The SPF result, as in RFC 8601."),
        domain: text("The domain checked; null when unknown.").nullable(),
      })
      .nullable()
      .meta({ description: "The SPF result of the mail; null when the client address is unknown." }),
    dkim: z
      .array(
        z.object({
          domain: text("The signing domain.").nullable(),
          selector: text("The selector.").nullable(),
          result: text("The DKIM result, as in RFC 8601."),
          aligned: z.boolean().meta({ description: "Whether the signing domain is aligned with header_from." }),
        }),
      )
      .meta({ description: "The DKIM signatures of the mail." }),
    dmarc: z
      .object({
        result: text("The DMARC result."),
        policy: text("The policy of the header_from domain; null for none.").nullable(),
      })
      .nullable()
      .meta({ description: "The DMARC result of the mail; null without a header_from domain." }),
    message: text("The authentication results in a sentence; null while they are pending.").nullable(),
  })
  .meta({ title: "DmarcReportAuthenticity" });

export const reportSchema = z
  .object({
    id: z.uuid().meta({ description: "The id of the report." }),
    org_name: text("The reporter name in the report; null when there is none. `reporter` says who sent it.").nullable(),
    reporter: reporterSchema,
    email: text("The contact address in the report; null when there is none.").nullable(),
    report_id: text("The id that the reporter gave the report; null for none.").nullable(),
    begin: time("The beginning of the report's period."),
    end: time("The end of the report's period."),
    date: z.iso.date().meta({ description: "The UTC day that the report counts for: the middle of its period." }),
    received_at: time("When the report was received."),
    policy_domain: text("The domain that the report is about."),
    policy: policySchema,
    rows: count("Number of records."),
    messages: count("Number of messages."),
    aligned: count("Messages that passed DMARC."),
    authenticity: authenticitySchema
      .nullable()
      .meta({ description: "Authentication results of the mail that brought the report; null when none did." }),
    notices: z.array(z.string()).meta({ description: "Faults of the report that did not prevent reading it." }),
    skipped_rows: z
      .array(z.object({ reason: text("Why they were skipped."), rows: count("Number of records.") }))
      .meta({ description: "Records that could not be counted." }),
    ingestion_id: text("The id of the ingestion (mail or file) that brought the report."),
    raw_available: z.boolean().meta({ description: "Whether that mail or file is still stored." }),
  })
  .meta({ title: "DmarcReport" });

export type ShownReport = Readonly<z.infer<typeof reportSchema>>;

export const reportsSchema = z
  .object({ reports: z.array(reportSchema).meta({ description: "The reports." }), next_cursor: nextCursor })
  .meta({ title: "DmarcReportList" });

export const reportDetailSchema = reportSchema
  .extend({
    version: text("The version of the report format; null when not given.").nullable(),
    generator: text("The software that generated the report; null when not given.").nullable(),
    extra_contact_info: text("Additional contact information of the reporter; null for none.").nullable(),
    errors: z.array(z.string()).meta({ description: "Errors that the reporter states about its own processing." }),
    records: z.array(recordSchema).meta({ description: "The records, failing ones first, at most 1000." }),
    records_next_cursor: text("The cursor for `GET …/records?report=…&cursor=…`; null when all are here.").nullable(),
  })
  .meta({ title: "DmarcReportDetail" });

export type ShownReportDetail = Readonly<z.infer<typeof reportDetailSchema>>;

const sessionFields = {
  successful_sessions: count("Sessions with TLS as the policy requires."),
  failed_sessions: count("Sessions that failed."),
};

export const tlsReportSchema = z
  .object({
    id: z.uuid().meta({ description: "The id of the report." }),
    org_name: text("The name of the reporter; null when there is none.").nullable(),
    report_id: text("The id that the reporter gave the report; null for none.").nullable(),
    contact: text("The contact of the reporter; null for none.").nullable(),
    begin: time("The beginning of the report's period; null when not given.").nullable(),
    end: time("The end of the report's period; null when not given.").nullable(),
    received_at: time("When the report was received."),
    ...sessionFields,
    policies: z
      .array(
        z.object({
          domain: text("The domain that the policy is for.").nullable(),
          policy_type: text("`sts`, `tlsa` or `no-policy-found`.").nullable(),
          ...sessionFields,
          failures: z
            .array(
              z.object({
                result_type: text("The type of failure (RFC 8460 §4.3)."),
                sessions: count("Sessions that failed in this way."),
                receiving_mx_hostname: text("The MX host; null when not reported.").nullable(),
              }),
            )
            .meta({ description: "The failures by type." }),
        }),
      )
      .meta({ description: "The sessions by policy." }),
    ingestion_id: text("The id of the ingestion (mail or file) that brought the report."),
  })
  .meta({ title: "TlsReport" });

export type ShownTlsReport = Readonly<z.infer<typeof tlsReportSchema>>;

export const tlsReportsSchema = z
  .object({ tls_reports: z.array(tlsReportSchema).meta({ description: "The reports." }), next_cursor: nextCursor })
  .meta({ title: "TlsReportList" });
