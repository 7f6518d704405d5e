import { DAY_MS } from "../../../foundation/base/days.ts";
import type { StatePolicy } from "../../records/domains/domain-state.ts";
import type { DomainStatus } from "../../records/domains/domain-store.ts";
import type { HealthFinding } from "../health/health-schema.ts";
import { UNRELATED_SUFFIX } from "../sources/source-keys.ts";
import type { Source } from "../sources/source-response.ts";

/** A source, with the counts of the days that advice is about. */
export type AdvisedSource = Pick<
  Source,
  | "key"
  | "kind"
  | "name"
  | "service_id"
  | "classification"
  | "messages"
  | "aligned"
  | "forwarded"
  | "authenticated_unaligned"
  | "first_day"
  | "last_day"
  | "dkim"
  | "addresses"
>;

/** A subdomain that sent mail which passes DMARC. */
export interface AdvisedName {
  readonly name: string;
  /** Whether the name exists in the DNS; null when the DNS did not say. */
  readonly exists: boolean | null;
  readonly messages: number;
  readonly aligned: number;
}

/** Reporters that are neither known nor accepted by the owner. */
export interface UnknownReporters {
  /** The domains of these reporters. */
  readonly names: readonly string[];
  /** Messages of the last 30 days in their reports. */
  readonly messages: number;
  /** Whether known reporters cover the domain: see `ReporterStore`. Then the others change nothing. */
  readonly isCovered: boolean;
  /** Why nobody vouches for the other reports: see `unvouchedWords`. */
  readonly unvouchedWords: string;
}

/** A check of the domain that fails. */
export interface FailingCheck {
  readonly code: string;
  readonly message: string;
}

/** What advice is based on. */
export interface AdviceFacts {
  readonly domain: string;
  /** The record of another domain does not apply to the names below it (RFC 9989 §4.10.1). */
  readonly isOrganisational: boolean;
  /** As the user declared; null when the user did not. */
  readonly sendsMail: boolean | null;
  /** Whether reports can arrive, by the last DNS check. */
  readonly status: DomainStatus;
  readonly failing: readonly FailingCheck[];
  /** The text of the one record at the domain itself; null when there is none, several, or nothing is known yet. */
  readonly record: string | null;
  /** What receivers apply; null when there is no policy or nothing is known yet. */
  readonly policy: StatePolicy | null;
  /** Days of the last 30 with reports. */
  readonly reportedDays: number;
  /** The days on which the present policy (`p` and `t`) was published all day; before the enrolment, by the reports. */
  readonly policyDays: number;
  /** Reporters of the last 30 days that reported about at least two of them. */
  readonly reporters: number;
  /** Sources of the last 30 days. */
  readonly sources: readonly AdvisedSource[];
  /** Sources of the last seven days with reports: an earlier good month must not hide a bad week. */
  readonly recentSources: readonly AdvisedSource[];
  /** Days of the last 14 with reports. */
  readonly reportedLately: number;
  /** Messages of the last 14 days that passed DMARC, from any source. */
  readonly passedLately: number;
  /** Messages of the last 30 days that only reports in unauthenticated mail name. They are counted nowhere else. */
  readonly unauthenticated: number;
  /** The unknown reporters of the domain; without any, all reports decide. */
  readonly unknownReporters: UnknownReporters;
  /** Subdomains of the last 30 days. */
  readonly names: readonly AdvisedName[];
  /** Errors and warnings of the last health check, errors first. */
  readonly health: readonly AdvisedFinding[];
}

/** A finding of the health check that breaks or weakens something. */
export type AdvisedFinding = Pick<HealthFinding, "code" | "severity" | "message" | "fix">;

/** Mail that counts for enforcement: that of the user's own sources, without forwarded, forged and unknown mail. */
export interface MailWeight {
  readonly messages: number;
  readonly aligned: number;
  /** Of `messages` and `aligned`, 0 to 1; 0 without messages. */
  readonly alignedShare: number;
  /** All mail of the days but for threats. */
  readonly all: number;
  readonly forwarded: number;
  /** Unclassified sources that could be the user's. The most messages first. */
  readonly unknown: readonly AdvisedSource[];
  /** Counted sources whose mail fails, the worst first. */
  readonly failing: readonly AdvisedSource[];
}

/** An unknown source is relevant from this many messages and this share of all mail; without any authentication, from the larger share. */
const UNKNOWN_MESSAGES_MIN = 10;
const UNKNOWN_SHARE_MIN = 0.001;
const UNKNOWN_SHARE_LARGE = 0.01;
/** A source without any authentication could be the user's server when it sends for this many days. */
const PERSISTENT_DAYS = 14;

/** Sums up the sources of some days. */
export const weighMail = (sources: readonly AdvisedSource[]): MailWeight => {
  const sum = (rows: readonly AdvisedSource[], count: (row: AdvisedSource) => number): number =>
    rows.reduce((total, row) => total + count(row), 0);
  const all = sum(
    sources.filter(({ kind, classification }) => kind !== "unauthenticated" && classification !== "threat"),
    ({ messages }) => messages,
  );
  const counting = sources.filter(
    ({ classification }) => classification === "authorized" || classification === "misconfigured",
  );
  const forwarders = sources.filter(({ classification }) => classification === "forwarder");
  const messages = sum(counting, (row) => row.messages - row.forwarded);
  const aligned = sum(counting, (row) => row.aligned);
  return {
    messages,
    aligned,
    alignedShare: messages === 0 ? 0 : aligned / messages,
    all,
    forwarded: sum(counting, (row) => row.forwarded) + sum(forwarders, (row) => row.messages - row.aligned),
    unknown: sources.filter((source) => isOpen(source, all)).toSorted((a, b) => b.messages - a.messages),
    failing: counting
      .filter((row) => failingMessages(row) > 0)
      .toSorted((a, b) => failingMessages(b) - failingMessages(a)),
  };
};

/** Whether a source could be the user's, and sends enough that it has to be classified. */
const isOpen = (source: AdvisedSource, all: number): boolean => {
  const { kind, key, classification, messages, aligned, authenticated_unaligned } = source;
  if (classification !== "unknown" || kind === "unauthenticated" || key.endsWith(UNRELATED_SUFFIX)) return false;
  // `other`: addresses beyond the limit of stored sources, which nobody can classify.
  if (messages < UNKNOWN_MESSAGES_MIN || key === "other") return false;
  if (aligned > 0 || authenticated_unaligned > 0 || kind === "service") return messages >= all * UNKNOWN_SHARE_MIN;
  return messages >= all * UNKNOWN_SHARE_LARGE && isPersistent(source);
};

const isPersistent = ({ first_day, last_day }: AdvisedSource): boolean =>
  Date.parse(last_day) - Date.parse(first_day) >= PERSISTENT_DAYS * DAY_MS;

/** Messages of a source that fail DMARC and were not forwarded. */
export const failingMessages = ({ messages, aligned, forwarded }: AdvisedSource): number =>
  Math.max(0, messages - aligned - forwarded);
