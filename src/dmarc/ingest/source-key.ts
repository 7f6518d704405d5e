import { organisationalDomain } from "../../mail/organisational-domain.ts";
import type { ReportRow } from "../report/report-row.ts";

/** What tells who sent the messages of a row: a signature, else the envelope's domain, else the address. */
export type SourceKind = "dkim" | "spf" | "ip";

/**
 * The key of the source that a row tells of, for the enrolled domain: `dkim:<d=>` of the first passing signature whose
 * domain has the organisational domain of the row's `From` (of the enrolled domain when the row names none),
 * else `spf:<domain>` of the first SPF check that passed, aligned or not, else `ip:<address>`.
 */
export const sourceKeyOf = (row: ReportRow, domain: string): string => {
  const from = row.headerFrom ?? domain;
  for (const { result, domain: signer } of row.dkimResults) {
    if (result === "pass" && signer !== null && isRelaxedAligned(signer, from)) return `dkim:${signer}`;
  }
  for (const { result, domain: sender } of row.spfResults) {
    if (result === "pass" && sender !== null) return `spf:${sender}`;
  }
  return `ip:${row.sourceIp}`;
};

/** The kind of a key that `sourceKeyOf` answered. */
export const kindOfSource = (key: string): SourceKind => {
  if (key.startsWith("dkim:")) return "dkim";
  return key.startsWith("spf:") ? "spf" : "ip";
};

/** Relaxed alignment (RFC 9989 §4.10.1): the same domain, or the same organisational domain. Both in lower-case A-labels. */
export const isRelaxedAligned = (one: string, other: string): boolean => {
  if (one === other) return true;
  const organisation = organisationalDomain(one);
  return organisation !== null && organisation === organisationalDomain(other);
};
