import type { StatePolicy } from "../domains/domain-state.ts";
import type { DomainStatus } from "../domains/domain-store.ts";
import type { HealthFinding } from "../health/health-finding.ts";
import { UNRELATED_SUFFIX } from "../sources/source-keys.ts";
import type { Source } from "../sources/source-response.ts";

/** A sender as far as advice looks at it; the counts are those of the days that are asked for. */
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

/** A name below the domain that sent mail which passes DMARC. */
export interface AdvisedName {
  readonly name: string;
  /** Whether the name exists in the DNS; null when that could not be found out. */
  readonly exists: boolean | null;
  readonly messages: number;
  readonly aligned: number;
}

/** A check of the domain that fails. */
export interface FailingCheck {
  readonly code: string;
  readonly message: string;
}

/** All that advice is made of. */
export interface AdviceFacts {
  readonly domain: string;
  /** Names below a domain that is not organisational have no policy of their own from it (RFC 9989 §4.10.1). */
  readonly isOrganisational: boolean;
  /** The user's word; null when there is none. */
  readonly sendsMail: boolean | null;
  /** Whether reports come here by what the DNS last said. */
  readonly status: DomainStatus;
  readonly failing: readonly FailingCheck[];
  /** The text of the one record at the domain itself; null when there is none, several, or nothing is known yet. */
  readonly record: string | null;
  /** What receivers apply; null when there is no policy or nothing is known yet. */
  readonly policy: StatePolicy | null;
  /** Days of the last 30 that reports tell of. */
  readonly reportedDays: number;
  /** Those of them that the present policy (`p` and `t`) has stood for as whole days; of days before the enrolment reports say which policy they found. */
  readonly policyDays: number;
  /** Reporters of the last 30 days that told of two days at least. */
  readonly reporters: number;
  /** Senders of the last 30 days. */
  readonly sources: readonly AdvisedSource[];
  /** Senders of the last seven days that reports tell of: an old good month must not hide a bad week. */
  readonly recentSources: readonly AdvisedSource[];
  /** Days of the last 14 that reports tell of. */
  readonly reportedLately: number;
  /** Messages of the last 14 days that passed DMARC, whoever sent them. */
  readonly passedLately: number;
  /** Messages of the last 30 days that only reports tell of whose mail is not authenticated. Nothing else here knows of them. */
  readonly unauthenticated: number;
  /** Names of the last 30 days. */
  readonly names: readonly AdvisedName[];
  /** What the last health check found wrong, errors first. */
  readonly health: readonly AdvisedFinding[];
}

/** A finding of the health check that breaks or weakens something. */
export type AdvisedFinding = Pick<HealthFinding, "code" | "severity" | "message" | "fix">;

/** Mail that counts for enforcement: that of senders which are the user's. Forwarded and forged mail does not, nor what is unknown. */
export interface MailWeight {
  readonly messages: number;
  readonly aligned: number;
  /** Of `messages` and `aligned`, 0 to 1; 0 without messages. */
  readonly alignedShare: number;
  /** All mail of the days but for threats. */
  readonly all: number;
  readonly forwarded: number;
  /** Senders that could be the user's and that nobody has classified. The most messages first. */
  readonly unknown: readonly AdvisedSource[];
  /** Senders that count and whose mail fails, the worst first. */
  readonly failing: readonly AdvisedSource[];
}

/** A sender that is unknown matters from so many messages and this share of all mail on; one that proves nothing from a larger share on. */
const UNKNOWN_MESSAGES_MIN = 10;
const UNKNOWN_SHARE_MIN = 0.001;
const UNKNOWN_SHARE_LARGE = 0.01;
/** A sender that proves nothing could be a server of the user's when it goes on for so many days. */
const PERSISTENT_DAYS = 14;
const DAY_MS = 86_400_000;

/** Weighs the senders of some days. */
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

/** Whether a sender could be the user's, and sends enough that somebody has to say what it is. */
const isOpen = (source: AdvisedSource, all: number): boolean => {
  const { kind, key, classification, messages, aligned, authenticated_unaligned } = source;
  if (classification !== "unknown" || kind === "unauthenticated" || key.endsWith(UNRELATED_SUFFIX)) return false;
  // Addresses beyond those that are kept apart: a flood, of which nobody can say more.
  if (messages < UNKNOWN_MESSAGES_MIN || key === "other") return false;
  if (aligned > 0 || authenticated_unaligned > 0 || kind === "service") return messages >= all * UNKNOWN_SHARE_MIN;
  return messages >= all * UNKNOWN_SHARE_LARGE && isPersistent(source);
};

const isPersistent = ({ first_day, last_day }: AdvisedSource): boolean =>
  Date.parse(last_day) - Date.parse(first_day) >= PERSISTENT_DAYS * DAY_MS;

/** Messages of a sender that fail DMARC and were not forwarded. */
export const failingMessages = ({ messages, aligned, forwarded }: AdvisedSource): number =>
  Math.max(0, messages - aligned - forwarded);
