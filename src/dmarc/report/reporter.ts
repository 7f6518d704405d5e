import { organisationalDomain } from "../../mail/organisational-domain.ts";
import { readDomain } from "./report-values.ts";

/** Names that mean the same reporter, as they stand in reports, without what names a legal form. */
const SAME: Readonly<Record<string, string>> = {
  aol: "yahoo",
  "aol.com": "yahoo",
  "enterprise outlook": "microsoft",
  google: "google",
  "google.com": "google",
  "hotmail.com": "microsoft",
  microsoft: "microsoft",
  "microsoft.com": "microsoft",
  oath: "yahoo",
  office365: "microsoft",
  outlook: "microsoft",
  "outlook.com": "microsoft",
  yahoo: "yahoo",
  "yahoo.com": "yahoo",
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
  const named = name.includes(".") ? readDomain(name) : null;
  const organisation = named === null ? null : organisationalDomain(named);
  if (organisation !== null) return organisation === author;
  const contact = email === null || !email.includes("@") ? null : readDomain(email);
  return contact !== null && organisationalDomain(contact) === author;
};
