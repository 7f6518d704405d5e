import { organisationalDomain } from "../../mail/organisational-domain.ts";
import type { ReportRow } from "../report/report-row.ts";

/** What tells who sent the messages of a row: a signature, else the envelope's domain, else the address. */
export type SourceKind = "dkim" | "spf" | "ip";

/**
 * The key of the source that a row tells of, for the enrolled domain: `dkim:<d=>` of the first passing signature that is
 * aligned, else `spf:<domain>` of the first SPF check that passed, an aligned one before others, else `ip:<address>`.
 *
 * Aligned is what shares the organisational domain of the row's `From` and of the enrolled domain, in rows whose `From`
 * is the enrolled domain, one below it, or missing. A stranger's signature below a stranger's `From` proves nothing here.
 */
export const sourceKeyOf = (row: ReportRow, domain: string): string => {
  const from = row.headerFrom ?? domain;
  const isOurs = from === domain || from.endsWith(`.${domain}`);
  const isAligned = (name: string): boolean => isOurs && isRelaxedAligned(name, from) && isRelaxedAligned(name, domain);
  const signer = passing(row.dkimResults).find(isAligned);
  if (signer !== undefined) return `dkim:${signer}`;
  const senders = passing(row.spfResults);
  const sender = senders.find(isAligned) ?? senders[0];
  return sender === undefined ? `ip:${row.sourceIp}` : `spf:${sender}`;
};

const passing = (checks: readonly Pick<ReportRow["dkimResults"][number], "domain" | "result">[]): readonly string[] =>
  checks.flatMap(({ result, domain }) => (result === "pass" && domain !== null ? [domain] : []));

/** The key of all the sources that a domain has no room for: see `ingest-count.ts`. Never one that `sourceKeyOf` answers. */
export const OTHER_SOURCES = "other";

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
