import table from "../../../../fixtures/dmarc/reporters.json" with { type: "json" };
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import { readDomain } from "./report-values.ts";
import { z } from "zod";

/** Names of the same reporter in reports, without legal forms. */
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
const LEGAL_FORM = /(?<![\s,!])[\s,!]+(?:inc|llc|ltd|corp|corporation|holdings)?\.?$/;
const LEGAL_FORMS_MAX = 3;

/** The canonical name of a reporter (lower case): `enterprise outlook` and `protection.outlook.com` are both `microsoft`. */
export const reporterBehind = (name: string): string => {
  let plain = name.trim();
  for (let n = 0; n < LEGAL_FORMS_MAX; n++) plain = plain.replace(LEGAL_FORM, "");
  const parent = plain.split(".").slice(-2).join(".");
  return SAME[plain] ?? SAME[parent] ?? plain;
};

/** The reporter that a report names. */
export interface ClaimedReporter {
  readonly orgName: string | null;
  /** The contact address. */
  readonly email: string | null;
}

/**
 * Whether the reporter that a report names belongs to the organizational domain `author`: by its name where that is a domain
 * or a large reporter's, else by the domain of its contact address.
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
 * The organizational domain of the contact address if only that distinguishes reporters of the same name, such as `Mail
 * Team`. Null where the name itself is a domain or a large reporter's.
 */
export const contactOf = ({ orgName, email }: ClaimedReporter): string | null => {
  const name = orgName?.toLowerCase() ?? "";
  return KNOWN.has(reporterBehind(name)) || domainNamed(name) !== null ? null : contactDomain(email);
};

/** The organizational domain of a name; null for a name that is not a domain. */
const domainNamed = (name: string): string | null => {
  const named = name.includes(".") ? readDomain(name) : null;
  return named === null ? null : organisationalDomain(named);
};

const contactDomain = (email: string | null): string | null => {
  const domain = email === null || !email.includes("@") ? null : readDomain(email);
  return domain === null ? null : organisationalDomain(domain);
};

const entrySchema = z.strictObject({
  /** Unique; in lower case. */
  name: z.string().regex(/^[a-z0-9][a-z0-9 .&-]*$/),
  /** Hosts, with all names below them, in which nobody else has an address. */
  hosts: z.array(z.string()),
  /** Domains in which anybody can have a mailbox: only addresses that providers reserve are the reporter's. */
  public_hosts: z.array(z.string()),
});

/** Local parts that a mailbox provider gives to nobody (RFC 2142 §4 and usual names of report senders). */
const RESERVED: ReadonlySet<string> = new Set([
  "postmaster",
  "abuse",
  "mailer-daemon",
  "noreply",
  "no-reply",
  "donotreply",
  "dmarc",
  "dmarc-noreply",
  "dmarc-reports",
  "dmarc_reports",
  "noreply-dmarc",
  "no-reply-dmarc",
  "noreply-dmarc-support",
]);

const parseTable = () => {
  const entries = z.array(entrySchema).parse(table);
  return {
    hosts: new Map(entries.flatMap(({ name, hosts }) => hosts.map((host) => [host, name] as const))),
    publicHosts: new Map(entries.flatMap((entry) => entry.public_hosts.map((host) => [host, entry.name] as const))),
  };
};

let read: ReturnType<typeof parseTable> | null = null;

/** The table, read once. Throws if it breaks the schema. */
const readTable = (): ReturnType<typeof parseTable> => {
  read ??= parseTable();
  return read;
};

/** The sender of an authenticated report mail. */
interface ReportSender {
  /** The header_from domain, in lower-case A-labels. */
  readonly domain: string;
  /** The local part of the address in From, in lower case; null when it is not known. */
  readonly localPart: string | null;
}

/**
 * The mailbox provider or report sender of `fixtures/dmarc/reporters.json` whose address is in From; null for any other. A mailbox
 * that anybody can have at a provider is not the provider.
 */
export const knownReporterOf = ({ domain, localPart }: ReportSender): string | null => {
  const { hosts, publicHosts } = readTable();
  const labels = domain.split(".");
  for (let at = 0; at < labels.length; at += 1) {
    const name = hosts.get(labels.slice(at).join("."));
    if (name !== undefined) return name;
  }
  if (localPart === null || !RESERVED.has(localPart)) return null;
  return publicHosts.get(domain) ?? null;
};
