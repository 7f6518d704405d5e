import { parseAddress } from "../../../foundation/mail/address.ts";
import { trimRecordSpace } from "./record-tags.ts";

/** Why receivers will not send a report to a destination. */
export type UriProblem = "uri_empty" | "uri_without_mailto" | "uri_not_mailto" | "uri_invalid";

/** One destination of `rua` or `ruf`, as written between two commas. */
export interface ReportUri {
  /** As written, without the white space around it. */
  readonly text: string;
  /** Offset in the tag's value after the last character of `text`. */
  readonly end: number;
  /** The mailbox in normal form, percent-encoding undone (RFC 6068 §2); null when there is a problem. */
  readonly address: string | null;
  /** The historic size limit of RFC 7489 §6.4 with its `!`: `!10m`. */
  readonly sizeSuffix: string | null;
  readonly problem: UriProblem | null;
}

const SIZE_SUFFIX = /!\d+[kmgt]?$/i;
const SCHEME = /^([a-z][a-z\d+.-]*):/i;
/** RFC 6068 §2 `some-delims` and `unreserved`, without the `!`, `,` and `;` that mean something else in a record (RFC 9989 §4.8). */
const UNENCODED = /[^\w.~$'*+@-]/gu;

/**
 * Reads the value of `rua` or `ruf`: URIs with commas between them (RFC 9989 §4.8), white space around them allowed. A value of
 * white space only has no URI; nothing between commas is a URI with the problem `uri_empty`.
 */
export const parseReportUris = (value: string): readonly ReportUri[] => {
  if (trimRecordSpace(value) === "") return [];
  const uris: ReportUri[] = [];
  let start = 0;
  for (const piece of value.split(",")) {
    const text = trimRecordSpace(piece);
    uris.push({ text, end: start + piece.indexOf(text) + text.length, ...readUri(text) });
    start += piece.length + 1;
  }
  return uris;
};

/** The normal form of a reporting address for comparison: case and percent-encoding do not matter. Null for an invalid one. */
export const reportAddress = (address: string): string | null => {
  const parsed = parseAddress(address);
  return parsed.ok ? parsed.value.normalized : null;
};

/** Writes an address as a `mailto:` URI that can stand in `rua`; what would end it there is percent-encoded as UTF-8 (RFC 6068 §2). */
export const mailtoUri = (address: string): string =>
  `mailto:${address
    .toWellFormed()
    .replace(UNENCODED, (character) =>
      [...new TextEncoder().encode(character)]
        .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
        .join(""),
    )}`;

type UriReading = Pick<ReportUri, "address" | "sizeSuffix" | "problem">;

const readUri = (text: string): UriReading => {
  const sizeSuffix = SIZE_SUFFIX.exec(text)?.[0] ?? null;
  const failed = (problem: UriProblem): UriReading => ({ address: null, sizeSuffix, problem });
  if (text === "") return failed("uri_empty");
  const uri = sizeSuffix === null ? text : text.slice(0, -sizeSuffix.length);
  const scheme = SCHEME.exec(uri)?.[1];
  if (scheme === undefined) return failed("uri_without_mailto");
  if (scheme.toLowerCase() !== "mailto") return failed("uri_not_mailto");
  const address = readMailto(uri.slice("mailto:".length));
  return address === null ? failed("uri_invalid") : { address, sizeSuffix, problem: null };
};

/** The mailbox of a `mailto:` URI. Header fields (`?subject=`) are dropped: reporters write their own. */
const readMailto = (rest: string): string | null => {
  const to = rest.split("?", 1)[0] ?? "";
  // Otherwise `mailto://` would be a local part that begins with slashes.
  if (/\s/u.test(to) || to.startsWith("//")) return null;
  const decoded = decodePercent(to);
  return decoded === null ? null : reportAddress(decoded);
};

const decodePercent = (text: string): string | null => {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
};
