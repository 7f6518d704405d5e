import type { FailureHeader, FailureReport } from "./failure-report.ts";

/** Replaces a local part. */
const REDACTED = "redacted";

/** Fields with addresses and names of people: only the domains are kept. */
const ADDRESS_FIELDS: ReadonlySet<string> = new Set([
  ...["from", "sender", "reply-to", "return-path", "to", "cc", "message-id"],
  ...["resent-from", "resent-sender", "x-original-from"],
]);
/** Fields about the path of a message and its authentication. */
const CAUSE_FIELDS: ReadonlySet<string> = new Set([
  ...["date", "received", "dkim-signature", "received-spf", "authentication-results", "arc-authentication-results"],
  ...["list-id", "precedence", "auto-submitted", "x-mailer", "user-agent"],
]);

/** Names of properties before an address that are kept: `smtp.mailfrom=`, `header.i=`, `envelope-from=`, `i=` … */
const PROPERTY = /^(?:smtp\.[a-z]+|header\.[a-z]+|envelope-from|mailfrom|from|identity|i)=/i;
const QUOTED_LOCAL_PART = /"(?:[^"\\]|\\.){0,200}"@/g;
/** Each run of characters of a local part, and what follows: every character is looked at once, whatever the text is. */
const LOCAL_PART = /([^\s<>()[\]",;:@]+)(@?)/g;
const ENCODED_RUN = /[^\s<>"]+/g;
const ENCODED_AT = "%40";
const DOMAIN_BEHIND_AT = /@((?:[\p{L}\p{N}_-]+\.)*[\p{L}\p{N}_-]+|\[[^\]\s]{1,60}\])/gu;
/** Signed copies of header fields, and the signature itself. */
const SECRET_DKIM_TAGS: ReadonlySet<string> = new Set(["z", "b"]);

/**
 * Removes personal data from a failure report: local parts, display names, recipients, subject, and every header field that
 * is not needed to find the cause. Domains, IP addresses, selectors and results are kept (compare RFC 6590).
 */
export const redactFailureReport = (report: FailureReport): FailureReport => ({
  ...report,
  authenticationResults: report.authenticationResults && redactText(report.authenticationResults),
  originalMailFrom: report.originalMailFrom && domainsOnly(report.originalMailFrom),
  originalRcptTo: report.originalRcptTo && domainsOnly(report.originalRcptTo),
  dkimIdentity: report.dkimIdentity && domainsOnly(report.dkimIdentity),
  dkimSelector: report.dkimSelector && redactText(report.dkimSelector),
  spfDns: report.spfDns && redactText(report.spfDns),
  userAgent: report.userAgent && redactText(report.userAgent),
  arrivalDate: report.arrivalDate && redactText(report.arrivalDate),
  headers: report.headers.flatMap(redactHeader),
});

const redactHeader = ({ name, value }: FailureHeader): readonly FailureHeader[] => {
  const field = name.toLowerCase();
  if (ADDRESS_FIELDS.has(field)) return [{ name, value: domainsOnly(value) }];
  if (!CAUSE_FIELDS.has(field)) return [];
  if (field === "received") return [{ name, value: redactText(withoutRecipient(value)) }];
  if (field === "dkim-signature") return [{ name, value: redactText(withoutSecrets(value)) }];
  if (field === "list-id") return [{ name, value: redactText(/<[^<>]*>/.exec(value)?.[0] ?? "") }];
  return [{ name, value: redactText(value) }];
};

/** The text with the local parts of all addresses removed. */
const redactText = (text: string): string =>
  text
    .replace(QUOTED_LOCAL_PART, `${REDACTED}@`)
    .replace(LOCAL_PART, (match, run: string, at: string) => {
      if (at === "") return match;
      const property = PROPERTY.exec(run)?.[0] ?? "";
      return run === property ? match : `${property}${REDACTED}@`;
    })
    .replace(ENCODED_RUN, (run) => {
      const at = run.lastIndexOf(ENCODED_AT);
      return at <= 0 ? run : `${REDACTED}${run.slice(at)}`;
    });

/** `redacted@example.com` for each address, and nothing else. */
const domainsOnly = (text: string): string =>
  [...text.matchAll(DOMAIN_BEHIND_AT)].map(([, domain]) => `${REDACTED}@${domain}`).join(", ");

/** Removes `for <user@example.com>` and the authenticated user. */
const withoutRecipient = (received: string): string =>
  received
    .replace(/\bfor\s+(?:<[^>]*>|"[^"]*"@\S+|[^\s;]+)/gi, `for ${REDACTED}`)
    // input ≤ 2,000 characters
    .replace(/\(\s*(?:smtp-)?auth[^)]*\)/gi, "(authenticated)");

const withoutSecrets = (signature: string): string =>
  signature
    .split(";")
    .filter((tag) => !SECRET_DKIM_TAGS.has(tag.split("=", 1)[0]?.trim().toLowerCase() ?? ""))
    .join(";");
