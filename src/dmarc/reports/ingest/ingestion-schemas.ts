import {
  enumField,
  flagField,
  idField,
  integerField,
  listField,
  namedBody,
  namedResponse,
  nullableEnum,
  nullableText,
  optionalEnum,
  textField,
  timeField,
} from "../../../foundation/http/schema-fields.ts";
import { z } from "zod";
import { isoTime } from "../../../foundation/base/clock.ts";
import { isId } from "../../../foundation/base/secrets.ts";
import { findingMessage, OUTCOMES, parseFindings } from "./ingestion-finding.ts";
import type { IngestionRow } from "./ingestion-store.ts";
import { UNAUTHENTICATED } from "./rollup.ts";

const STATUSES = ["pending", "done"] as const;
const VIAS = ["smtp", "http", "import", "imap"] as const;
const REASON_CHARACTERS_MAX = 100;

/** A time in a query, in milliseconds since 1970. */
const timeParameter = (description: string) =>
  z.iso
    .datetime({ offset: true })
    .transform((value) => Date.parse(value))
    .optional()
    .meta({ description, type: "string", format: "date-time" });

/** The filters of the list of ingestions. */
export const ingestionFilters = {
  status: optionalEnum(STATUSES, "Only ingestions with this status."),
  outcome: optionalEnum(OUTCOMES, "Only ingestions with this outcome."),
  reason: z
    .string()
    .min(1)
    .max(REASON_CHARACTERS_MAX)
    .optional()
    .meta({ description: "Only ingestions with this reason, such as `foreign_domain`." }),
  via: optionalEnum(VIAS, "Only ingestions that arrived this way."),
  domain_id: z
    .string()
    .refine(isId, "Must be the id of a domain")
    .optional()
    .meta({ description: "Only what is about this domain, and mails to its reporting address.", format: "uuid" }),
  created_after: timeParameter("Only ingestions received at this time or later."),
  created_before: timeParameter("Only ingestions received before this time."),
};

const findingSchema = namedResponse("DmarcFinding", {
  outcome: enumField(OUTCOMES, "What became of this part."),
  reason: nullableText("Why, as a code; null when there is nothing to explain."),
  message: textField("The outcome and its reason in a sentence."),
  name: nullableText("The name of the MIME part or of the file in the archive."),
  report_id: nullableText("The stored report. Of a duplicate: the report that was stored before."),
  domain_id: nullableText("The enrolled domain for which it counts."),
  domain: nullableText("The domain that the report is about."),
  org_name: nullableText("The name of the reporter, as the report states it."),
  authenticated_as: nullableText(
    "Of a report that is not counted as its reporter's: the organizational domain that its mail is authenticated as. Null otherwise, and for a mail that is not authenticated.",
  ),
  external_report_id: nullableText("The report id that the reporter assigned."),
  unread_rows: integerField(
    "Rows of the report that cannot be read and are not counted; `skipped_rows` of the report says why.",
  ),
});

export const ingestionSchema = namedResponse("DmarcIngestion", {
  id: idField("The id of the ingestion."),
  via: enumField(VIAS, "How it arrived: by SMTP, HTTP upload, import or IMAP."),
  status: enumField(STATUSES, "`pending`: stored, but not read yet."),
  outcome: nullableEnum(OUTCOMES, "The most significant outcome of its findings."),
  reason: nullableText("The reason of that finding."),
  name: nullableText("The name of the file; null for mail."),
  bytes: integerField("Its size in bytes."),
  received_at: timeField("When it arrived."),
  finished_at: timeField("When it was read; null while it is pending.").nullable(),
  domain_id: nullableText("The domain whose reporting address the mail was sent to; null for files."),
  client: nullableText("The IP address of the SMTP client that delivered the mail."),
  mail_from: nullableText("The envelope sender of the mail."),
  raw_available: flagField("Whether its bytes are still kept."),
  accepted_at: timeField(
    "When you accepted the mail although it is not authenticated (`accept_unauthenticated`).",
  ).nullable(),
  findings: listField(findingSchema, "One for each part in which something was found."),
});

export const ingestionsSchema = namedResponse("DmarcIngestionList", {
  ingestions: listField(ingestionSchema, "The ingestions, newest first."),
  next_cursor: nullableText("Pass it as `cursor` to get the next page; null on the last page."),
});

export const uploadedSchema = namedResponse("DmarcUploadedReports", {
  ingestions: listField(ingestionSchema, "One for each file, in their order."),
});

/** Body of `POST …/retry`; optional. */
export const retrySchema = namedBody("DmarcRetry", {
  accept_unauthenticated: z.literal(true).optional().meta({
    description:
      "Count the reports of this mail although it is not authenticated as the reporter's, as if you had uploaded it. This cannot be undone; `accepted_at` records it.",
  }),
});

export const retriedSchema = namedResponse("DmarcRetriedIngestions", {
  retried: integerField("How many ingestions will be read again."),
});

/** An ingestion as the API shows it. */
export type IngestionView = z.output<typeof ingestionSchema>;

/** `domainIdOf`: the public id of a domain by its number; null when it was deleted. */
export const ingestionView = (row: IngestionRow, domainIdOf: (number: number) => string | null): IngestionView => ({
  id: row.id,
  via: row.via,
  status: row.status,
  outcome: row.outcome,
  reason: row.reason,
  name: row.name,
  bytes: row.bytes,
  received_at: isoTime(row.receivedAtMs),
  finished_at: row.finishedAtMs === null ? null : isoTime(row.finishedAtMs),
  domain_id: row.domain === null ? null : domainIdOf(row.domain),
  client: row.client,
  mail_from: row.mailFrom,
  raw_available: row.hasRaw,
  accepted_at: row.acceptedAtMs === null ? null : isoTime(row.acceptedAtMs),
  findings: findingViews(row),
});

/** The finding that decided the outcome; undefined while the ingestion is pending. */
export const decidingFinding = ({
  findings,
  outcome: decided,
  reason: why,
}: Pick<IngestionView, "findings" | "outcome" | "reason">): IngestionView["findings"][number] | undefined =>
  findings
    .filter(({ outcome, reason }) => outcome === decided && reason === why)
    .toSorted((a, b) => b.unread_rows - a.unread_rows)[0];

/** The findings of an ingestion with their messages. */
export const findingViews = (row: Pick<IngestionRow, "findings">): IngestionView["findings"] =>
  parseFindings(row).map(({ outcome, reason, doubt, line, author, complaint, unread_rows = 0, ...rest }) => ({
    outcome,
    reason,
    message:
      findingMessage(outcome, reason, { doubt, line, author, complaint, unread_rows, org_name: rest.org_name }) ?? "",
    ...rest,
    unread_rows,
    authenticated_as: author === undefined || author === UNAUTHENTICATED ? null : author,
  }));
