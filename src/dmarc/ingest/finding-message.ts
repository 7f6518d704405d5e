import type { ReportOutcome } from "../report/outcome.ts";
import type { AuthenticationDoubt, FindingReason } from "./ingestion-finding.ts";
import { UNAUTHENTICATED } from "./rollup.ts";

const SENTENCES: Readonly<Record<FindingReason, string>> = {
  no_records: "The report is sound and tells of no mail at all.",
  no_usable_rows: "The report is sound, but none of its rows has an address and a count.",
  unused: "The mail only says that there was nothing to report.",
  failure_report:
    "It is a failure report about a single message, which is not counted. With `store_failure_reports` of the domain, what it says can be read.",
  failure_reports_limit:
    "It is a failure report, and 1,000 of that day are stored for the domain. The mail is kept; what it says is not stored.",
  delivery_report: "It is a bounce or another message of a mail system, and no report of its own.",
  tls_report: "It is a TLS report (RFC 8460).",
  entry_too_large: "A file in it unpacks to more than may be unpacked.",
  mail_too_large: "It unpacks to more than one mail or file may.",
  too_many_entries: "The archive holds more files than are looked at.",
  nested_too_deep: "It holds archives or mails in each other, deeper than is looked at.",
  gzip_damaged: "The gzip file is damaged.",
  zip_damaged: "The zip archive is damaged.",
  zip_encrypted: "The zip archive needs a password.",
  zip_method_unsupported: "The zip archive is packed in a way that is not supported.",
  doctype: "The XML has a document type, which no report has and which attacks use.",
  not_a_report: "It is XML, but no DMARC report.",
  malformed: "The XML is damaged.",
  truncated: "The report is incomplete: a piece of it is missing. It is not counted.",
  too_deep: "The XML is nested deeper than any report is.",
  too_many_records: "The report has more records than are read.",
  domain_missing: "The report does not say which domain it is about.",
  period_missing: "The report does not say which time it is about.",
  message_too_large: "The mail is larger than is read.",
  message_too_complex: "The mail has more parts, or parts in parts, than are looked at.",
  tls_report_damaged: "The TLS report is damaged.",
  no_report: "There is no report in it.",
  foreign_domain: "The report is about a domain that is not enrolled. Enrol the domain, then have it read again.",
  not_authentic:
    "The mail failed SPF, DKIM and DMARC, so its report is not counted. If you know that it is genuine, retry it with accept_unauthenticated.",
  authenticity_unknown: "The mail is not authenticated, and the domain accepts authenticated reports only.",
  other_author:
    "The mail is authenticated, but not as the reporter's, and the domain accepts authenticated reports only.",
  period_in_future: "The report is about days that are still to come.",
  period_too_long: "The report is about so many days that none can be named.",
  older_than_retention: "The report is stored, but so old that the domain's retention removes it within the hour.",
  duplicate_differs: "The report is there already, with other rows. The first one was kept.",
  replaced: "The same report came from its reporter, or was uploaded. That one counts, this one does not.",
  domain_deleted: "It was about a domain that was deleted since. What was known of it went with the domain.",
  upload_too_large: "The files of the upload unpack to more than one upload may. Have this one read again by itself.",
  internal_error: "It could not be dealt with because of a fault in Postwarden. It can be tried again.",
  gave_up: "The service ended several times while it was read. It can be tried again.",
};

const WITHOUT_REASON: Readonly<Record<ReportOutcome, string>> = {
  stored: "The report is stored.",
  duplicate: "The report is there already.",
  empty: "There is nothing to count in it.",
  quarantined: "It is kept, and not counted.",
  rejected: "It could not be read.",
};

/** Reasons that say something else where the report is stored, or stood there before. */
const WHERE_STORED: Readonly<Record<string, string>> = {
  "stored duplicate_differs": "The report is stored in place of another with other rows, whose mail was not authentic.",
  "stored tls_report": "The TLS report (RFC 8460) is stored.",
  "duplicate tls_report": "The TLS report (RFC 8460) is there already.",
  "quarantined tls_report": "It is a TLS report (RFC 8460) about no domain that is enrolled.",
};

/** What a finding says beside its codes. */
interface Details {
  readonly doubt?: AuthenticationDoubt | undefined;
  readonly line?: number | undefined;
  readonly author?: string | undefined;
  readonly org_name?: string | null;
}

/** What a finding means, in a few sentences for people; undefined for a code of another version. */
export const findingMessage = (
  outcome: string,
  reason: string | null,
  { doubt, line, author, org_name: claimed = null }: Details = {},
): string | undefined => {
  if (reason === "authenticity_unknown" && doubt !== undefined) return doubtSentence(doubt);
  if (outcome === "stored" && reason === null && author !== undefined) return untrustedSentence(author, claimed);
  if (reason === "other_author" && author !== undefined) {
    return `The mail is authenticated as ${author}, but ${claimOf(claimed)}, and the domain accepts authenticated reports only.`;
  }
  if (reason === "truncated" && line !== undefined) {
    return `The report is incomplete: a piece of it is missing at or before line ${line}. It is not counted.`;
  }
  const words: Readonly<Record<string, string>> = reason === null ? WITHOUT_REASON : SENTENCES;
  return WHERE_STORED[`${outcome} ${reason}`] ?? words[reason ?? outcome];
};

const claimOf = (name: string | null): string =>
  name === null ? "its report names no reporter" : `its report says it is from ${name}`;

const untrustedSentence = (author: string, claimed: string | null): string => {
  const mail = author === UNAUTHENTICATED ? "Its mail is not authenticated" : `Its mail is authenticated as ${author}`;
  return `The report is stored. ${mail}, but ${claimOf(claimed)}: it is counted apart, and advice leaves it out.`;
};

const doubtSentence = ({ message, again }: AuthenticationDoubt): string => {
  if (again)
    return `It is not known yet whether the mail is authenticated${message === null ? "." : `: ${message}`} It is judged again within a day.`;
  return message === null ? SENTENCES.authenticity_unknown : `${SENTENCES.authenticity_unknown} ${message}`;
};
