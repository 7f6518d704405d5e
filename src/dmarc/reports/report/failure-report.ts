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
  const field = (name: string): string | null => cut(readText(fields.get(name) ?? ""));
  const source = readSourceIp(field("source-ip") ?? "");
  const headers = message === null ? [] : shortHeaders(headerFields(message));
  const from = headers.find(({ name }) => name.toLowerCase() === "from")?.value ?? "";
  return {
    feedbackType: field("feedback-type")?.toLowerCase() ?? null,
    authFailure: field("auth-failure")?.toLowerCase() ?? null,
    reportedDomain: readDomain(field("reported-domain") ?? "") ?? fromDomain(from),
    sourceIp: typeof source === "string" ? null : source.ip,
    arrivalDate: field("arrival-date") ?? field("received-date"),
    userAgent: field("user-agent"),
    deliveryResult: field("delivery-result")?.toLowerCase() ?? null,
    identityAlignment: field("identity-alignment")?.toLowerCase() ?? null,
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

const cut = (text: string | null): string | null =>
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
