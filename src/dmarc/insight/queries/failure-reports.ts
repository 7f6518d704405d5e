import { z } from "zod";
import { isoTime } from "../../../foundation/base/clock.ts";
import { snakeKeys } from "../../../foundation/base/key-case.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import { flagField, nullableText, textField, timeField } from "../../../foundation/http/schema-fields.ts";
import type { Caller } from "../../../foundation/http/guard.ts";
import type { FailureReportRow, FailureReportStore } from "../../reports/ingest/report-store.ts";
import type { QueryContext } from "./domain-query.ts";

export const failureReportSchema = z
  .object({
    id: z.uuid().meta({ description: "The id of the failure report." }),
    received_at: timeField("When the report was received."),
    redacted: flagField(
      "Whether local parts, names, the subject and other header fields were removed before it was stored.",
    ),
    feedback_type: nullableText("The type of feedback; `auth-failure` for DMARC."),
    auth_failure: nullableText("What failed: `dmarc`, `dkim`, `spf`, …"),
    reported_domain: nullableText("The domain that the message used in From."),
    source_ip: nullableText("The IP address that sent the message."),
    arrival_date: nullableText("When the message arrived, as the reporter writes it."),
    delivery_result: nullableText("What the receiver did with it: `delivered`, `spam`, `policy`, `reject`, `other`."),
    identity_alignment: nullableText("The mechanisms that were not aligned (RFC 9991)."),
    authentication_results: nullableText("The Authentication-Results header of the receiver."),
    original_mail_from: nullableText("The envelope sender of the message."),
    original_rcpt_to: nullableText("The envelope recipient of the message."),
    dkim_domain: nullableText("The signing domain of the DKIM signature that failed."),
    dkim_selector: nullableText("The selector of that signature."),
    dkim_identity: nullableText("The identity (`i=`) of that signature."),
    spf_dns: nullableText("The SPF record that was evaluated."),
    user_agent: nullableText("The software that generated the report."),
    ingestion_id: textField("The id of the mail that brought the report."),
  })
  .meta({ title: "DmarcFailureReport" });

export const failureReportDetailSchema = failureReportSchema
  .extend({
    headers: z
      .array(
        z.object({
          name: textField("The name of the header field."),
          value: textField("Its value."),
        }),
      )
      .meta({ description: "Header fields of the message, in order. Its body is never stored." }),
  })
  .meta({ title: "DmarcFailureReportDetail" });

/** A failure report with the header of its message. */
export type FailureReportDetail = Readonly<z.infer<typeof failureReportDetailSchema>>;
/** A failure report in a list. */
export type ShownFailureReport = Omit<FailureReportDetail, "headers">;

/** The part of a failure report that is stored as JSON. */
const storedReportSchema = failureReportDetailSchema.omit({
  id: true,
  received_at: true,
  redacted: true,
  ingestion_id: true,
});

interface FailurePage {
  readonly before: string | null;
  readonly limit: number;
}

/** Reads the failure reports of the caller's domains. Everything throws `not_found` for a domain of another account. */
export class FailureReports {
  constructor(
    private readonly deps: Pick<QueryContext, "findDomain">,
    private readonly store: Pick<FailureReportStore, "listFailures" | "findFailure">,
  ) {}

  /** The most recently received first. */
  list(caller: Caller, id: string): (page: FailurePage) => readonly ShownFailureReport[] {
    const { number } = this.deps.findDomain(caller, id);
    return (page) => this.store.listFailures(number, page).map(listView);
  }

  /** Throws `not_found`. */
  find(caller: Caller, id: string, reportId: string): FailureReportDetail {
    const row = this.store.findFailure(this.deps.findDomain(caller, id).number, reportId);
    if (row !== undefined) return detailView(row);
    throw new AppError("not_found", { message: "There is no such failure report of this domain." });
  }
}

const detailView = (row: FailureReportRow): FailureReportDetail => {
  const { headers, ...fields } = storedReportSchema.parse(snakeKeys(JSON.parse(row.body)));
  const { id, isRedacted: redacted, ingestion: ingestion_id } = row;
  return { id, received_at: isoTime(row.receivedAtMs), redacted, ...fields, ingestion_id, headers };
};

const listView = (row: FailureReportRow): ShownFailureReport => {
  const { headers: _, ...shown } = detailView(row);
  return shown;
};
