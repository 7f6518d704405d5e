import { mostFirst, sumBy } from "../../../foundation/base/sums.ts";
import { DAY_MS } from "../../../foundation/base/days.ts";
import type { Source } from "../sources/source-response.ts";
import { isSendingService } from "../../records/services/services.ts";
import { UNRELATED_SUFFIX } from "../sources/source-keys.ts";
import type { HealthFinding } from "../health/health-schema.ts";
import type { DomainStatus } from "../../records/domains/domain-store.ts";
import type { StatePolicy } from "../../records/domains/domain-state.ts";
import type { AdviceRequirement, AdviceStage } from "./advice-model.ts";
import type { FailureDetail, FailureHistory, MailDay } from "./failure-history.ts";

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
> & {
  /** Whether reverse DNS lookups for most of its mail may still show who it is: see `isNameAwaited`. */
  readonly isAwaited: boolean;
  /** When its mail failed; null where it did not, and for sources with hardly any failures. */
  readonly history: FailureHistory | null;
  /** The names of the sources of which this is the sum: see `bundleStrangers`. */
  readonly bundled?: readonly string[];
};

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
interface FailingCheck {
  readonly code: string;
  readonly message: string;
}

/** Mail of the user's own sources since the present policy began, at most of 90 days, of a domain with little mail. */
interface LittleMail {
  readonly messages: number;
  readonly failing: number;
  /** Reporters, each with at least two days. */
  readonly reporters: number;
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
  /** Days since the present policy was published, or is first known: at the enrolment, or from reports of before. */
  readonly policyAgeDays: number;
  /** Reporters of the last 30 days that reported about at least two of them. */
  readonly reporters: number;
  /** Sources of the last 30 days. */
  readonly sources: readonly AdvisedSource[];
  /** Sources of the last seven days with reports: an earlier good month must not hide a bad week. */
  readonly recentSources: readonly AdvisedSource[];
  /** Messages of own sources in these days that failed because receivers could not look up a key or record (`temperror`). */
  readonly recentUnchecked: () => number;
  /** Null with 100 messages of own sources in the last 30 days. */
  readonly little: LittleMail | null;
  /** What the records of a source show about its failures; null for one without a history. */
  readonly detailOf: (key: string) => FailureDetail | null;
  /** The mail of own sources by day, of the last 30 days; none where no sender has recovered from failures. */
  readonly ownDays: readonly MailDay[];
  /** The day of the advice. */
  readonly today: number;
  /**
   * Since how many days reports have shown no mail that passes, where that is at least 14 days and none passed in 45 days; null
   * otherwise.
   */
  readonly silentDays: number | null;
  /** The record that says that the domain sends no mail (`v=spf1 -all`) or receives none (a null MX); null without one. */
  readonly declaredSilent: string | null;
  /** Titles of the open alerts. */
  readonly openAlerts: readonly string[];
  /** Days of the last 14 with reports. */
  readonly reportedLately: number;
  /** Messages of the last 14 days that passed DMARC, from any source. */
  readonly passedLately: number;
  /** Messages of the last 30 days that only reports in unauthenticated mail name. They are counted nowhere else. */
  readonly unauthenticated: number;
  /** The reporters that these reports name. */
  readonly unauthenticatedNames: readonly string[];
  /** The unknown reporters of the domain; without any, all reports decide. */
  readonly unknownReporters: UnknownReporters;
  /** Subdomains of the last 30 days. */
  readonly names: readonly AdvisedName[];
  /** Errors and warnings of the last health check, errors first. */
  readonly health: readonly AdvisedFinding[];
}

/** A finding of the health check that breaks or weakens something. */
export interface AdvisedFinding extends Pick<HealthFinding, "code" | "severity" | "message" | "fix"> {
  /** The DKIM key that it is about; null for others. */
  readonly key: {
    readonly selector: string;
    /** Whether reports about the last seven days name the selector. */
    readonly isInUse: boolean;
    /** Whether no signature ever passed with it, and SPF proves that mail of the domain's own senders has them. */
    readonly isNeverValid: boolean;
  } | null;
}

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

/**
 * An unknown source is relevant from this many messages and this share of all mail; without any authentication, and for mail of a
 * provider's users that may have been forwarded, from the larger share.
 */
const UNKNOWN_MESSAGES_MIN = 10;
const UNKNOWN_SHARE_MIN = 0.001;
const UNKNOWN_SHARE_LARGE = 0.01;
/** A source without any authentication could be the user's server when it sends for this many days. */
const PERSISTENT_DAYS = 14;

/** Sums up the sources of some days. */
export const weighMail = (sources: readonly AdvisedSource[]): MailWeight => {
  const sum = (rows: readonly AdvisedSource[], count: (row: AdvisedSource) => number) => sumBy(rows, count);
  const all = sum(
    sources.filter(({ kind, classification }) => kind !== "unauthenticated" && classification !== "threat"),
    ({ messages }) => messages,
  );
  const counting = sources.filter(isCounted);
  const forwarders = sources.filter(({ classification }) => classification === "forwarder");
  const messages = sum(counting, (row) => row.messages - row.forwarded);
  const aligned = sum(counting, (row) => row.aligned);
  return {
    messages,
    aligned,
    alignedShare: messages === 0 ? 0 : aligned / messages,
    all,
    forwarded: sum(counting, (row) => row.forwarded) + sum(forwarders, (row) => row.messages - row.aligned),
    unknown: sources.filter((source) => isOpen(source, all)).toSorted(mostFirst("messages")),
    failing: counting
      .filter((row) => failingMessages(row) > 0)
      .toSorted((a, b) => failingMessages(b) - failingMessages(a)),
  };
};

/** Whether a source could be the user's, and sends enough that it has to be classified. */
const isOpen = (source: AdvisedSource, all: number) => {
  const { kind, key, classification, service_id, messages, aligned, authenticated_unaligned } = source;
  if (classification !== "unknown" || kind === "unauthenticated") return false;
  // `other`: addresses beyond the limit of stored sources, which nobody can classify.
  if (messages < UNKNOWN_MESSAGES_MIN || key === "other") return false;
  const isOthers = key.endsWith(UNRELATED_SUFFIX);
  const isProven = aligned > 0 || authenticated_unaligned > 0 || isSendingService(service_id);
  if (!isOthers && isProven) return messages >= all * UNKNOWN_SHARE_MIN;
  const direct = isOthers ? failingMessages(source) : messages;
  return direct >= Math.max(UNKNOWN_MESSAGES_MIN, all * UNKNOWN_SHARE_LARGE) && isPersistent(source);
};

const isPersistent = ({ first_day, last_day }: AdvisedSource) =>
  Date.parse(last_day) - Date.parse(first_day) >= PERSISTENT_DAYS * DAY_MS;

/** Messages of a source that fail DMARC and were not forwarded. */
export const failingMessages = ({
  messages,
  aligned,
  forwarded,
}: Pick<AdvisedSource, "messages" | "aligned" | "forwarded">): number => Math.max(0, messages - aligned - forwarded);

/** Whether mail of a source counts as the user's own. */
export const isCounted = ({ classification }: Pick<AdvisedSource, "classification">) =>
  classification === "authorized" || classification === "misconfigured";

/** A new failure is one of the last days, with more than single messages. */
const NEW_FAILURE_DAYS = 7;
const NEW_FAILURES_MIN = 10;

/** The counted sources that used to pass and fail now, the newest failure first. */
export const newFailures = ({ sources, today }: Pick<AdviceFacts, "sources" | "today">): readonly AdvisedSource[] => {
  const since = ({ history }: AdvisedSource) => history?.sinceDay ?? 0;
  return sources
    .filter((source) => {
      const { history } = source;
      if (history === null || !isCounted(source) || history.hasRecovered || !history.hasPassedBefore) return false;
      return history.lastDay > today - NEW_FAILURE_DAYS && history.failing >= NEW_FAILURES_MIN;
    })
    .toSorted((a, b) => since(b) - since(a));
};

/** The share of mail that passes when the failures of recovered sources are left out; 1 without messages. */
export const shareWithoutRecovered = ({ messages, aligned, failing }: MailWeight): number => {
  const recovered = sumBy(
    failing.filter(({ history }) => history?.hasRecovered === true),
    failingMessages,
  );
  return messages - recovered <= 0 ? 1 : aligned / (messages - recovered);
};

/** What a step is chosen by. */
export interface AdviceSituation {
  readonly facts: AdviceFacts;
  readonly stage: AdviceStage;
  readonly requirements: readonly AdviceRequirement[];
  readonly ready: boolean;
}
