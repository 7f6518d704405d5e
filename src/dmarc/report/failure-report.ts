import { readDomain, readSourceIp, readText } from "./report-values.ts";

/** The machine-readable part of a failure report (RFC 5965, RFC 6591, RFC 9991), as far as it says something. */
export interface FailureReport {
  /** `auth-failure` for DMARC; `abuse` and others are somebody else's business. */
  readonly feedbackType: string | null;
  /** What failed: `dmarc`, `dkim`, `spf` … */
  readonly authFailure: string | null;
  readonly reportedDomain: string | null;
  readonly sourceIp: string | null;
  readonly arrivalDate: string | null;
}

/** The part is a handful of lines; what is longer is not read to its end. */
const PART_BYTES_MAX = 64 * 1024;

/** Reads the fields of a message/feedback-report part. Fields are `name: value` lines, folded like headers. Never throws. */
export const readFailureReport = (part: Uint8Array): FailureReport => {
  const text = new TextDecoder().decode(part.subarray(0, PART_BYTES_MAX)).replace(/\r?\n[ \t]+/g, " ");
  const fields = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon)).trim().toLowerCase();
    if (name !== "" && !fields.has(name)) fields.set(name, line.slice(colon + 1));
  }
  const field = (name: string): string | null => readText(fields.get(name) ?? "");
  const source = readSourceIp(field("source-ip") ?? "");
  return {
    feedbackType: field("feedback-type")?.toLowerCase() ?? null,
    authFailure: field("auth-failure")?.toLowerCase() ?? null,
    reportedDomain: readDomain(field("reported-domain") ?? ""),
    sourceIp: typeof source === "string" ? null : source.ip,
    arrivalDate: field("arrival-date") ?? field("received-date"),
  };
};
