import { readDomain, readSourceIp, readText } from "./report-values.ts";

/** A header field of the message that failed, unfolded. */
export interface FailureHeader {
  readonly name: string;
  readonly value: string;
}

/** A failure report (RFC 5965, RFC 6591, RFC 9991). Nothing of the message's body. */
export interface FailureReport {
  /** `auth-failure` for DMARC; others are `abuse` and the like. */
  readonly feedbackType: string | null;
  /** What failed: `dmarc`, `dkim`, `spf` … */
  readonly authFailure: string | null;
  /** As the report states it, else the header_from domain of the message. */
  readonly reportedDomain: string | null;
  readonly sourceIp: string | null;
  readonly arrivalDate: string | null;
  readonly userAgent: string | null;
  /** The disposition of the message: `delivered`, `spam`, `policy`, `reject`, `other`. */
  readonly deliveryResult: string | null;
  /** The mechanisms that were not aligned: `dkim`, `spf`, `none` (RFC 9991). */
  readonly identityAlignment: string | null;
  readonly authenticationResults: string | null;
  readonly originalMailFrom: string | null;
  readonly originalRcptTo: string | null;
  readonly dkimDomain: string | null;
  readonly dkimSelector: string | null;
  readonly dkimIdentity: string | null;
  readonly spfDns: string | null;
  /** Of the message, in its order. */
  readonly headers: readonly FailureHeader[];
}

/** Limits of one failure report; what exceeds them is left out. */
export const FAILURE_REPORT_LIMITS = {
  /** Of the machine-readable part, and of the message's header. */
  partBytesMax: 64 * 1024,
  headersMax: 100,
  headerCharactersMax: 2_000,
  /** Of all header fields together. */
  headersCharactersMax: 32 * 1024,
} as const;

/**
 * Parses a message/feedback-report part, and the header of the enclosed message (message/rfc822 or text/rfc822-headers), if
 * any. Never throws.
 */
export const readFailureReport = (part: Uint8Array, message: Uint8Array | null = null): FailureReport => {
  const fields = new Map<string, string>();
  for (const { name, value } of headerFields(part)) {
    if (!fields.has(name.toLowerCase())) fields.set(name.toLowerCase(), value);
  }
  const field = (name: string) => cut(readText(fields.get(name) ?? ""));
  const word = (name: string) => field(name)?.toLowerCase() ?? null;
  const source = readSourceIp(field("source-ip") ?? "");
  const headers = message === null ? [] : shortHeaders(headerFields(message));
  const from = headers.find(({ name }) => name.toLowerCase() === "from")?.value ?? "";
  return {
    feedbackType: word("feedback-type"),
    authFailure: word("auth-failure"),
    reportedDomain: readDomain(field("reported-domain") ?? "") ?? fromDomain(from),
    sourceIp: typeof source === "string" ? null : source.ip,
    arrivalDate: field("arrival-date") ?? field("received-date"),
    userAgent: field("user-agent"),
    deliveryResult: word("delivery-result"),
    identityAlignment: word("identity-alignment"),
    authenticationResults: field("authentication-results"),
    originalMailFrom: field("original-mail-from"),
    originalRcptTo: field("original-rcpt-to"),
    dkimDomain: readDomain(field("dkim-domain") ?? ""),
    dkimSelector: field("dkim-selector"),
    dkimIdentity: field("dkim-identity"),
    spfDns: field("spf-dns"),
    headers,
  };
};

/** The domain of the last address of From in angle brackets, else of the last word that is an address. */
const fromDomain = (from: string): string | null => {
  // input ≤ 2,000 characters
  const address = from.match(/<[^<>]*@[^<>@]+>/g)?.at(-1) ?? /\S+@\S+$/.exec(from)?.[0] ?? "";
  return address === "" ? null : readDomain(address.replace(/[<>]/g, ""));
};

const cut = (text: string | null) =>
  text === null ? null : text.slice(0, FAILURE_REPORT_LIMITS.headerCharactersMax).toWellFormed();

/** Fields `name: value` up to the first blank line after one, unfolded (RFC 5322 §2.2.3). */
const headerFields = (bytes: Uint8Array): FailureHeader[] => {
  const text = new TextDecoder()
    .decode(bytes.subarray(0, FAILURE_REPORT_LIMITS.partBytesMax))
    .replace(/^(?:[ \t]*\r?\n)+/, "");
  const [header = ""] = text.split(/\r?\n[ \t]*\r?\n/, 1);
  return header
    .replace(/\r?\n[ \t]+/g, " ")
    .split(/\r?\n/)
    .flatMap((line) => {
      const colon = line.indexOf(":");
      const name = line.slice(0, Math.max(0, colon)).trim();
      return name === "" ? [] : [{ name, value: line.slice(colon + 1) }];
    });
};

const shortHeaders = (fields: readonly FailureHeader[]): FailureHeader[] => {
  const kept: FailureHeader[] = [];
  let characters = 0;
  for (const { name, value } of fields.slice(0, FAILURE_REPORT_LIMITS.headersMax)) {
    const header = { name: name.slice(0, 100).toWellFormed(), value: cut(readText(value)) ?? "" };
    characters += header.name.length + header.value.length;
    if (characters > FAILURE_REPORT_LIMITS.headersCharactersMax) break;
    kept.push(header);
  }
  return kept;
};

/** Replaces a local part. */
const REDACTED = "redacted";

/** Fields with addresses and names of people: only the domains are kept. */
const ADDRESS_FIELDS: ReadonlySet<string> = new Set([
  "from",
  "sender",
  "reply-to",
  "return-path",
  "to",
  "cc",
  "message-id",
  "resent-from",
  "resent-sender",
  "x-original-from",
]);
/** Fields about the path of a message and its authentication. */
const CAUSE_FIELDS: ReadonlySet<string> = new Set([
  "date",
  "received",
  "dkim-signature",
  "received-spf",
  "authentication-results",
  "arc-authentication-results",
  "list-id",
  "precedence",
  "auto-submitted",
  "x-mailer",
  "user-agent",
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
const redactText = (text: string) =>
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
const domainsOnly = (text: string) =>
  [...text.matchAll(DOMAIN_BEHIND_AT)].map(([, domain]) => `${REDACTED}@${domain}`).join(", ");

/** Removes `for <user@example.com>` and the authenticated user. */
const withoutRecipient = (received: string) =>
  received
    .replace(/\bfor\s+(?:<[^>]*>|"[^"]*"@\S+|[^\s;]+)/gi, `for ${REDACTED}`)
    // input ≤ 2,000 characters
    .replace(/\(\s*(?:smtp-)?auth[^)]*\)/gi, "(authenticated)");

const withoutSecrets = (signature: string) =>
  signature
    .split(";")
    .filter((tag) => !SECRET_DKIM_TAGS.has(tag.split("=", 1)[0]?.trim().toLowerCase() ?? ""))
    .join(";");
