import table from "../../../../fixtures/dmarc/reporters.json" with { type: "json" };
import { once } from "../../../foundation/base/load-once.ts";
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import { readDomain } from "../report/report-values.ts";
import { z } from "zod";
import type { AuthenticationResults } from "../authentication/mail-authentication.ts";
import type { Tx } from "../../../foundation/db/open.ts";
import type { DomainRow, DomainStore } from "../../records/domains/domain-store.ts";
import { type ReporterStore, VOUCHED_BY_NOBODY } from "../../records/domains/reporter-store.ts";
import type { FindingReason, IngestionFinding } from "./ingestion-finding.ts";
import { isAuthenticatedAgain, type NewIngestion } from "./ingestion-store.ts";
import { type CountedReporter, UNAUTHENTICATED } from "./rollup.ts";

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

/** The table, read once. Throws if it breaks the schema. */
const readTable = once(() => {
  const entries = z.array(entrySchema).parse(table);
  return {
    hosts: new Map(entries.flatMap(({ name, hosts }) => hosts.map((host) => [host, name] as const))),
    publicHosts: new Map(entries.flatMap((entry) => entry.public_hosts.map((host) => [host, entry.name] as const))),
  };
});

/**
 * The mailbox provider or report sender of `fixtures/dmarc/reporters.json` whose address is in From; null for any other. A mailbox
 * that anybody can have at a provider is not the provider.
 */
export const knownReporterOf = ({
  domain,
  localPart,
}: {
  /** The header_from domain, in lower-case A-labels. */
  domain: string;
  /** The local part of the address in From, in lower case; null when it is not known. */
  localPart: string | null;
}): string | null => {
  const { hosts, publicHosts } = readTable();
  const labels = domain.split(".");
  for (let at = 0; at < labels.length; at += 1) {
    const name = hosts.get(labels.slice(at).join("."));
    if (name !== undefined) return name;
  }
  if (localPart === null || !RESERVED.has(localPart)) return null;
  return publicHosts.get(domain) ?? null;
};

/** What decides about the trust in a report: how it came, and the authentication results of its mail if that was authenticated. */
export interface ReportOrigin {
  readonly ingestion: NewIngestion;
  readonly authentication: AuthenticationResults | null;
}

/** Who authenticated a report. */
export interface ReportTrust {
  /** The owner handed it in or accepted it, or its mail is authenticated as the reporter's. */
  readonly isTrusted: boolean;
  /** Whether the owner handed it in or accepted it, or the reporter is known. Anybody can be another reporter. */
  readonly isKnown: boolean;
  /** Of a report that is not trusted: the organizational domain that its mail is authenticated as, or `UNAUTHENTICATED`. */
  readonly author: string | null;
  /** The organizational domain that its mail is authenticated as; null for what the owner handed in or accepted. */
  readonly authenticatedAs: string | null;
}

const BY_OWNER: ReportTrust = { isTrusted: true, isKnown: true, author: null, authenticatedAs: null };
const BY_NOBODY: ReportTrust = { isTrusted: false, isKnown: false, author: UNAUTHENTICATED, authenticatedAs: null };

/** Whether it is mail that anybody may have sent: to the receiver, or to a mailbox from which it was fetched. */
export const isUnsolicitedMail = ({ via }: Pick<NewIngestion, "via">): boolean => via === "smtp" || via === "imap";

/** Who authenticated a report that claims to be from a reporter. Test keys trust everything. */
export const reportTrust = ({ ingestion, authentication }: ReportOrigin, claimed: ClaimedReporter): ReportTrust => {
  if (!isUnsolicitedMail(ingestion) || ingestion.mode === "test") return BY_OWNER;
  const isAccepted = typeof ingestion.acceptedAtMs === "number";
  if (authentication?.authenticity === "pass" && authentication.from !== null) {
    const author = organisationalDomain(authentication.from) ?? authentication.from;
    const sender = { domain: authentication.from, localPart: authentication.localPart ?? null };
    const isKnown = isAccepted || knownReporterOf(sender) !== null;
    if (isReportersDomain(author, claimed)) return { isTrusted: true, isKnown, author: null, authenticatedAs: author };
    if (!isAccepted) return { isTrusted: false, isKnown: false, author, authenticatedAs: author };
  }
  return isAccepted ? BY_OWNER : BY_NOBODY;
};

/** The reporter under which a report is counted. */
export const countedReporter = (
  { orgName }: Pick<ClaimedReporter, "orgName">,
  { author, authenticatedAs }: ReportTrust,
): CountedReporter => ({ reporter: orgName?.toLowerCase() ?? "", author: author ?? authenticatedAs ?? "" });

/** The voucher under which a report about a day is counted, and notes its reporter. */
export const voucherFor = (
  { stores, tx }: { stores: { readonly reporters: ReporterStore }; tx: Tx },
  { number }: Pick<DomainRow, "number">,
  { claimed, trust, day }: { claimed: ClaimedReporter; trust: ReportTrust; day: number },
): number => {
  const { isTrusted, isKnown, authenticatedAs } = trust;
  if (!isTrusted) return VOUCHED_BY_NOBODY;
  const author = authenticatedAs ?? reporterBehind(claimed.orgName?.toLowerCase() ?? "");
  return stores.reporters.vouch(tx, number, { author, isKnown, day });
};

/** The fingerprint under which a report is stored. Reports of different authors are never the same report. */
export const authoredFingerprint = (fingerprint: string, { author }: ReportTrust): string =>
  author === null ? fingerprint : `${fingerprint} ${author}`;

/** Why a report does not count for a domain. */
export type ReportRefusal = Extract<FindingReason, "not_authentic" | "authenticity_unknown" | "other_author">;

/**
 * Why a report does not count for a domain; null when it does. A mail that failed authentication never counts, and one whose
 * authentication may succeed later waits for that. A domain that requires authenticated reports accepts those of the reporter.
 */
export const reportRefusal = (
  origin: ReportOrigin,
  domain: DomainRow,
  { claimed, nowMs }: { claimed: ClaimedReporter; nowMs: number },
): ReportRefusal | null => {
  const { ingestion, authentication } = origin;
  const trust = reportTrust(origin, claimed);
  if (trust.isTrusted) return null;
  if (authentication?.authenticity === "fail") return "not_authentic";
  // Without kept bytes the mail cannot be authenticated again.
  const isKept = domain.rawRetentionDays > 0;
  if (authentication?.temporary === true && isKept && isAuthenticatedAgain(ingestion.receivedAtMs, nowMs)) {
    return "authenticity_unknown";
  }
  if (!domain.requireAuthenticReports) return null;
  return trust.author === UNAUTHENTICATED ? "authenticity_unknown" : "other_author";
};

/** What the finding says about a refused report. */
export const refusedFinding = (
  { ingestion, authentication }: ReportOrigin,
  reason: ReportRefusal,
  nowMs: number,
): Pick<IngestionFinding, "outcome" | "reason" | "doubt" | "author"> => {
  const refused = { outcome: "quarantined", reason } as const;
  const from = authentication?.from ?? null;
  if (reason === "other_author" && from !== null) return { ...refused, author: organisationalDomain(from) ?? from };
  if (reason !== "authenticity_unknown") return refused;
  const isOpen = authentication === null || authentication.temporary === true;
  const again = isOpen && isAuthenticatedAgain(ingestion.receivedAtMs, nowMs);
  return { ...refused, doubt: { message: authentication?.message ?? null, again } };
};

/**
 * Finds the enrolled domain that a policy domain belongs to, with one query per policy domain. Mail to a revoked address
 * does not count for a domain that was enrolled later: that would bring the data of a deleted domain back.
 */
export const createEnrolledDomainFinder = (domains: DomainStore) => {
  const known = new Map<string, DomainRow | undefined>();
  return (ingestion: NewIngestion, policyDomain: string): DomainRow | undefined => {
    const { accountId, mode, via, domain, receivedAtMs } = ingestion;
    const key = `${accountId} ${mode} ${policyDomain}`;
    if (!known.has(key)) known.set(key, domains.findCovering({ accountId, mode }, policyDomain));
    const found = known.get(key);
    const isOlder = found !== undefined && via === "smtp" && receivedAtMs < found.createdAtMs;
    return isOlder && (domain === null || domains.findByNumber(domain) === undefined) ? undefined : found;
  };
};

export type FindEnrolledDomain = ReturnType<typeof createEnrolledDomainFinder>;
