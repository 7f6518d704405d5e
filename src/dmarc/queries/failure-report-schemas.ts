import { z } from "zod";

const text = z.string().nullable();

/** A failure report in the list. */
export const failureReportSchema = z
  .object({
    id: z.uuid(),
    received_at: z.iso.datetime({ precision: 3 }),
    redacted: z.boolean().meta({
      description: "Whether local parts, names, the subject and other header fields were removed before it was stored.",
    }),
    feedback_type: text.meta({ description: "`auth-failure` for DMARC." }),
    auth_failure: text.meta({ description: "What failed: `dmarc`, `dkim`, `spf`, …" }),
    reported_domain: text,
    source_ip: text,
    arrival_date: text.meta({ description: "When the message arrived, as the reporter writes it." }),
    delivery_result: text.meta({ description: "What became of it: `delivered`, `spam`, `policy`, `reject`, `other`." }),
    identity_alignment: text.meta({ description: "The mechanisms that were not aligned; RFC 9991." }),
    authentication_results: text,
    original_mail_from: text,
    original_rcpt_to: text,
    dkim_domain: text,
    dkim_selector: text,
    dkim_identity: text,
    spf_dns: text,
    user_agent: text.meta({ description: "The program that reports." }),
    ingestion_id: z.string().meta({ description: "The mail that brought it." }),
  })
  .meta({ title: "DmarcFailureReport" });

/** A failure report with the header of its message. */
export const failureReportDetailSchema = failureReportSchema
  .extend({
    headers: z
      .array(z.object({ name: z.string(), value: z.string() }))
      .meta({ description: "Header fields of the message, in its order. Its body is never stored." }),
  })
  .meta({ title: "DmarcFailureReportDetail" });

export const failureReportsSchema = z
  .object({ failure_reports: z.array(failureReportSchema), next_cursor: text })
  .meta({ title: "DmarcFailureReportList" });

export type ShownFailureReport = Readonly<z.infer<typeof failureReportSchema>>;
export type ShownFailureReportDetail = Readonly<z.infer<typeof failureReportDetailSchema>>;
