import { type MimeMessage, readMessage } from "../../../foundation/mail/message.ts";
import type { MimePart } from "../../../foundation/mail/mime-reader.ts";
import { type FailureReport, readFailureReport } from "./failure-report.ts";
import {
  empty,
  type ReportReading,
  type RejectReason,
  quarantined,
  reportReading,
  rejected,
  countMessages,
  type Report,
} from "./report.ts";
import {
  findXmlInText,
  kindOfPayload,
  createUnpackBudget,
  UNPACK_LIMITS,
  type UnpackBudget,
  type Unpacked,
  unpack,
} from "./unpack.ts";
import { createReadingBudget, type ReadingBudget, readReport } from "./read-report.ts";
import { readTlsReport, type TlsReport } from "./tls-report.ts";

/**
 * Unpacks and parses whatever may contain reports: a mail, an archive, XML, a TLS report. Returns at least one reading, and
 * one for each report, rejected entry and other recognized message; images, signatures and text are ignored if there is
 * anything else. `UNPACK_LIMITS` apply to all of it together. Never throws, whatever the bytes.
 */
export const readReportFile = async (
  bytes: Uint8Array,
  name: string | null = null,
  budget: UnpackBudget = createUnpackBudget(),
): Promise<ReportReading[]> => {
  const within: Within = { budget, reading: createReadingBudget(), depth: 0 };
  const readings =
    kindOfPayload(bytes) === "message" ? await readMail(bytes, within) : await readPart({ bytes, name }, within);
  return readings.length > 0 ? readings : [rejected("no_report", name)];
};

interface Within {
  readonly budget: UnpackBudget;
  readonly reading: ReadingBudget;
  /** How deep this mail is nested in others. */
  readonly depth: number;
}

const readMail = async (bytes: Uint8Array, within: Within): Promise<ReportReading[]> => {
  const message = await readMessage(bytes);
  if (!message.ok) return [rejected(message.error)];
  const { kind, parts } = message.value;
  if (kind === "failure_report") return [failureReading(message.value)];
  // A bounce contains a report that somebody sent under our name: it must not count.
  if (kind === "delivery_report") return [quarantined("delivery_report")];
  const readings: ReportReading[] = [];
  for (const part of parts) readings.push(...(await readPart(part, within)));
  const telling = readings.filter(({ reason }) => reason !== "unused");
  if (telling.length > 0) return telling;
  if (readings.length > 0) return [empty("unused")];
  if (isFailureReportInWords(message.value)) return [quarantined("failure_report")];
  return isFromMailSystem(message.value) ? [quarantined("delivery_report")] : [];
};

/** Failure reports as plain text, as some Exim configurations send them: recognized by their subject only. */
const isFailureReportInWords = ({ subject }: MimeMessage) =>
  /\bdmarc\b.*\b(?:failure|forensic)\s+report\b/i.test(subject ?? "");

/** Bounces without the content type of a bounce: those of qmail and of many forwarders. */
const isFromMailSystem = ({ from, subject }: MimeMessage) =>
  /^(?:mailer-daemon|postmaster)@/i.test(from ?? "") &&
  /undeliver|returned|failure|failed|rejected|delivery status/i.test(subject ?? "");

/** Content types of the enclosed message that failed, or of its header (RFC 5965 §2). */
const ENCLOSED: ReadonlySet<string> = new Set([
  "message/rfc822",
  "text/rfc822-headers",
  "text/rfc822",
  "message/global",
  "message/global-headers",
]);

const failureReading = ({ parts }: MimeMessage): ReportReading => {
  const part = parts.find(({ contentType }) => contentType === "message/feedback-report");
  if (part === undefined) return quarantined("failure_report");
  const original = parts.find(({ contentType }) => ENCLOSED.has(contentType));
  return quarantined("failure_report", { failureReport: readFailureReport(part.bytes, original?.bytes ?? null) });
};

const readPart = async (part: Pick<MimePart, "bytes" | "name">, within: Within): Promise<ReportReading[]> => {
  const readings: ReportReading[] = [];
  const waiting = await unpack(part.bytes, part.name, within.budget);
  // Shifted, so that the bytes of parsed ones can be freed.
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    readings.push(...(await readUnpacked(next, within)));
  }
  return readings;
};

const readUnpacked = async (found: Unpacked, within: Within): Promise<ReportReading[]> => {
  const { name } = found;
  switch (found.kind) {
    case "refused":
      return [rejected(found.reason, name)];
    case "xml":
      return [await readXml(found, within)];
    case "json":
      return readJson(found.bytes, name);
    case "unused":
      return [empty("unused", { name })];
    case "message": {
      if (within.depth >= UNPACK_LIMITS.depthMax) return [rejected("nested_too_deep", name)];
      const readings = await readMail(found.bytes, { ...within, depth: within.depth + 1 });
      // A text that begins with "Hello:" looks like a message, too.
      return readings.length > 0 ? readings : readXmlInText(found, within);
    }
    case "other":
      return readXmlInText(found, within);
    default:
      return found satisfies never;
  }
};

type Document = Exclude<Unpacked, { kind: "refused" }>;

const readXmlInText = async (found: Document, within: Within): Promise<ReportReading[]> => {
  const bytes = findXmlInText(found.bytes);
  const reading = bytes === null ? null : await readXml({ ...found, bytes }, within);
  // A text that quotes some XML is not a damaged report.
  return reading === null || reading.reason === "not_a_report" ? [] : [reading];
};

const readXml = async ({ bytes, name, isTruncated }: Document, within: Within): Promise<ReportReading> => {
  const report = await readReport(bytes, within.reading);
  if (report.ok) return reportReading(report.value, name);
  const { problem, line } = report.error;
  return rejected(isTruncated && problem !== "doctype" ? "truncated" : problem, name, line);
};

const readJson = (bytes: Uint8Array, name: string | null): ReportReading[] => {
  const report = readTlsReport(bytes);
  if (report.ok) return [quarantined("tls_report", { name, tlsReport: report.value })];
  // Other JSON is ignored; truncated JSON may have been a report.
  const reason: RejectReason = "tls_report_damaged";
  return report.error === "damaged" ? [rejected(reason, name)] : [];
};

/**
 * What `postwarden inspect report` prints for a file or mail; null stands for one that is too large. The field names are part
 * of the interface. `input` is the path of the file, the same in every line of a file that holds several reports; `#2` and so
 * on behind it for the further mails of a mailbox.
 */
export const inspectBytes = async (input: string, bytes: Uint8Array | null) => {
  const readings = bytes === null ? [rejected("entry_too_large")] : await readReportFile(bytes, input);
  return readings.map((reading) => inspectionOf(input, reading));
};

const inspectionOf = (input: string, { outcome, reason, line, report, tlsReport, failureReport }: ReportReading) => ({
  input,
  outcome,
  reason,
  /** Only for XML that is `truncated`: the line, from 1, at which a part is missing. */
  ...(line === null ? {} : { line }),
  report: report === null ? null : inspectedReport(report),
  ...(tlsReport === null ? {} : { tls_report: inspectedTlsReport(tlsReport) }),
  ...(failureReport === null ? {} : { failure_report: inspectedFailure(failureReport) }),
});

const inspectedTlsReport = ({ orgName, reportId, beginMs, endMs, policies }: TlsReport) => ({
  org_name: orgName,
  report_id: reportId,
  begin: beginMs === null ? null : new Date(beginMs).toISOString(),
  end: endMs === null ? null : new Date(endMs).toISOString(),
  policies: policies.map(({ domain, policyType, successfulSessions, failedSessions, failures }) => ({
    domain,
    policy_type: policyType,
    successful_sessions: successfulSessions,
    failed_sessions: failedSessions,
    failures: failures.map(({ resultType, sessions, mxHost }) => ({
      result_type: resultType,
      mx_host: mxHost ?? null,
      sessions,
    })),
  })),
});

/** Without the addresses of people and the header of the message. */
const inspectedFailure = (failure: FailureReport) => ({
  feedback_type: failure.feedbackType,
  auth_failure: failure.authFailure,
  reported_domain: failure.reportedDomain,
  source_ip: failure.sourceIp,
  arrival_date: failure.arrivalDate,
  delivery_result: failure.deliveryResult,
  dkim_domain: failure.dkimDomain,
  dkim_selector: failure.dkimSelector,
});

const inspectedReport = (report: Report) => ({
  org_name: report.orgName,
  report_id: report.reportId,
  /** ISO 8601 in UTC with milliseconds. */
  begin: new Date(report.beginMs).toISOString(),
  end: new Date(report.endMs).toISOString(),
  domain: report.policy.domain,
  /** Rows that can be counted, and their messages. */
  rows: report.rows.length,
  messages: countMessages(report),
  /** Only of a report with rows that cannot be read: their number by reason. */
  ...(report.skippedRows.length === 0 ? {} : { skipped_rows: report.skippedRows }),
});
