import { organisationalDomain } from "../../mail/organisational-domain.ts";
import { readDomain } from "./report-values.ts";

/** Names that mean the same reporter, as they stand in reports, without what names a legal form. */
const SAME: Readonly<Record<string, string>> = {
  "amazon-ses": "amazon-ses",
  "amazonses.com": "amazon-ses",
  aol: "yahoo",
  "aol.com": "yahoo",
  "enterprise outlook": "microsoft",
  fastmail: "fastmail",
  "fastmail pty": "fastmail",
  "fastmail.com": "fastmail",
  "fastmaildmarc.com": "fastmail",
  google: "google",
  "google.com": "google",
  "hotmail.com": "microsoft",
  microsoft: "microsoft",
  "microsoft.com": "microsoft",
  mimecast: "mimecast",
  "mimecast.com": "mimecast",
  "mimecast.org": "mimecast",
  "mimecastreport.com": "mimecast",
  oath: "yahoo",
  office365: "microsoft",
  outlook: "microsoft",
  "outlook.com": "microsoft",
  yahoo: "yahoo",
  "yahoo.com": "yahoo",
  "yahooinc.com": "yahoo",
};
const KNOWN: ReadonlySet<string> = new Set(Object.values(SAME));
const LEGAL_FORM = /[\s,!]+(?:inc|llc|ltd|corp|corporation|holdings)?\.?$/;
const LEGAL_FORMS_MAX = 3;

/** Who is behind the name of a reporter (lower case): `enterprise outlook` and `protection.outlook.com` are one. */
export const reporterBehind = (name: string): string => {
  let plain = name.trim();
  for (let n = 0; n < LEGAL_FORMS_MAX; n++) plain = plain.replace(LEGAL_FORM, "");
  const parent = plain.split(".").slice(-2).join(".");
  return SAME[plain] ?? SAME[parent] ?? plain;
};

/** Who a report says it is from. */
export interface ClaimedReporter {
  readonly orgName: string | null;
  /** The contact address. */
  readonly email: string | null;
}

/**
 * Whether a report is from the organisational domain `author` by what it says itself: by its name where that is a domain or
 * that of a large reporter, else by the domain of its contact address.
 */
export const isReportersDomain = (author: string, { orgName, email }: ClaimedReporter): boolean => {
  const name = orgName?.toLowerCase() ?? "";
  const behind = reporterBehind(name);
  if (KNOWN.has(behind)) return behind === reporterBehind(author);
  const organisation = domainNamed(name);
  if (organisation !== null) return organisation === author;
  return contactDomain(email) === author;
};

/**
 * The organisational domain of the contact address where it is all that tells reporters of one name apart: anybody may call
 * himself `Mail Team`. Null where the name itself is a domain or that of a large reporter.
 */
export const contactOf = ({ orgName, email }: ClaimedReporter): string | null => {
  const name = orgName?.toLowerCase() ?? "";
  return KNOWN.has(reporterBehind(name)) || domainNamed(name) !== null ? null : contactDomain(email);
};

/** The organisational domain that a name is, or is below; null for one that is no domain. */
const domainNamed = (name: string): string | null => {
  const named = name.includes(".") ? readDomain(name) : null;
  return named === null ? null : organisationalDomain(named);
};

const contactDomain = (email: string | null): string | null => {
  const domain = email === null || !email.includes("@") ? null : readDomain(email);
  return domain === null ? null : organisationalDomain(domain);
};
