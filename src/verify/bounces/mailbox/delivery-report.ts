import { readHeaderFields } from "../../../foundation/mail/mime-header.ts";
import type { MimePart } from "../../../foundation/mail/mime-reader.ts";
import { parseAddress } from "../../../foundation/mail/address.ts";

/** What a mail server reports about a recipient (RFC 3464 §2.3). */
export interface ReportedRecipient {
  /** `failed`, `delayed`, `delivered`, `relayed` or `expanded`; in lower case. */
  readonly action: string;
  /** The addresses (normalized) that the field may stand for; none when it holds no mail address. */
  readonly final: readonly string[];
  /** Empty where the field is missing. */
  readonly original: readonly string[];
  readonly status: string | null;
  readonly diagnostic: string | null;
}

/** A mail about mail that did not arrive, or may not have. */
export interface DeliveryReport {
  readonly recipients: readonly ReportedRecipient[];
  /** The message that came back, or its header; null when the report has neither. */
  readonly returned: Uint8Array | null;
}

const STATUS_BYTES_MAX = 256 * 1024;
/** One message has one recipient in its header: reports with more are of software, or an attack. */
export const REPORTED_RECIPIENTS_MAX = 100;
const FIELD_CHARACTERS_MAX = 4_000;

/** RFC 3464, and RFC 6533 for addresses in UTF-8. */
const STATUS_TYPES: ReadonlySet<string> = new Set(["message/delivery-status", "message/global-delivery-status"]);
const RETURNED_TYPES: ReadonlySet<string> = new Set([
  "message/rfc822",
  "text/rfc822-headers",
  "message/global",
  "message/global-headers",
]);

/** Reads a delivery status notification (RFC 3464); null for any other message, and beyond the limits. */
export const readDeliveryReport = (parts: readonly MimePart[]): DeliveryReport | null => {
  const at = parts.findIndex(({ contentType }) => STATUS_TYPES.has(contentType));
  const status = parts[at];
  if (status === undefined || status.bytes.length > STATUS_BYTES_MAX) return null;
  const recipients = groupsOf(status.bytes).flatMap(recipientOf);
  if (recipients.length === 0 || recipients.length > REPORTED_RECIPIENTS_MAX) return null;
  const returned = parts.slice(at + 1).find(({ contentType }) => RETURNED_TYPES.has(contentType));
  return { recipients, returned: returned?.bytes ?? null };
};

const LF = 10;

/** The fields of each group: lines until an empty one. */
const groupsOf = (bytes: Uint8Array): ReadonlyArray<ReadonlyMap<string, string>> => {
  const groups: Uint8Array[][] = [[]];
  for (let start = 0; start < bytes.length;) {
    const lf = bytes.indexOf(LF, start);
    const end = lf === -1 ? bytes.length : lf;
    const line = bytes.subarray(start, end);
    if (line.every((byte) => byte <= 32)) groups.push([]);
    else groups.at(-1)?.push(line);
    start = end + 1;
  }
  return groups.filter((lines) => lines.length > 0).map(readHeaderFields);
};

const recipientOf = (fields: ReadonlyMap<string, string>): ReportedRecipient[] => {
  const field = (name: string) => fields.get(name)?.slice(0, FIELD_CHARACTERS_MAX) ?? "";
  if (!fields.has("final-recipient")) return [];
  const { text: diagnostic } = typed(field("diagnostic-code"));
  return [
    {
      action: /^[a-z]+/.exec(field("action").trim().toLowerCase())?.[0] ?? "",
      final: addressesIn(field("final-recipient"), false),
      original: addressesIn(field("original-recipient"), true),
      status: /^\s*([245]\.\d{1,3}\.\d{1,3})(?![\d.])/.exec(field("status"))?.[1] ?? null,
      diagnostic: diagnostic === "" ? null : diagnostic,
    },
  ];
};

/** `smtp; 550 5.1.1 …`: a type and a text. */
const typed = (field: string): { readonly type: string; readonly text: string } => {
  const at = field.indexOf(";");
  return { type: field.slice(0, Math.max(at, 0)).trim().toLowerCase(), text: field.slice(at + 1).trim() };
};

/**
 * The addresses that a field may stand for. `Original-Recipient` is the decoded ORCPT (RFC 3464 §2.3.1), but some servers copy it
 * as xtext (RFC 3461 §4): then both are possible, the decoded one first.
 */
const addressesIn = (field: string, mayBeXtext: boolean): readonly string[] => {
  const { type, text } = typed(field);
  if (type !== "rfc822" && type !== "utf-8") return [];
  const bare = text.replace(/^<(.*)>$/s, "$1");
  const written = type === "utf-8" ? withCodePoints(bare) : bare;
  const texts = mayBeXtext ? [decodeXtext(written), written] : [written];
  const addresses = texts.flatMap((one) => {
    const address = parseAddress(one);
    return address.ok ? [address.value.normalized] : [];
  });
  return [...new Set(addresses)];
};

/** `+` and two hexadecimal digits in upper case stand for a character (RFC 3461 §4). */
const decodeXtext = (text: string): string =>
  text.replace(/\+([\dA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

const CODE_POINT_MAX = 0x10_ffff;

/** `\x{20AC}` (RFC 6533 §3). */
const withCodePoints = (text: string): string =>
  text.replace(/\\x\{([\dA-Fa-f]{2,6})\}/g, (whole, hex: string) => {
    const point = Number.parseInt(hex, 16);
    return point <= CODE_POINT_MAX ? String.fromCodePoint(point) : whole;
  });
