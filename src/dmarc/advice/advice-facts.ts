import type { StatePolicy } from "../domains/domain-state.ts";
import type { DomainStatus } from "../domains/domain-store.ts";
import type { Classification } from "../reading/reading-store.ts";

/** A sender as far as advice looks at it; the counts are those of the days that are asked for. */
export interface AdvisedSource {
  readonly key: string;
  readonly name: string;
  readonly classification: Classification;
  readonly messages: number;
  readonly aligned: number;
  /** Not aligned, but passed on by somebody the receiver knows. */
  readonly forwarded: number;
}

/** A name below the domain that sent mail which passes DMARC. */
export interface AdvisedName {
  readonly name: string;
  /** Whether the name exists in the DNS; null when that could not be found out. */
  readonly exists: boolean | null;
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
  /** Those of them that the present policy (`p` and `t`) has stood for as whole days. */
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
}

/** Mail that counts for enforcement: without what others pass on, and without what is forged. */
export interface MailWeight {
  readonly messages: number;
  readonly aligned: number;
  /** Of `messages` and `aligned`, 0 to 1; 0 without messages. */
  readonly alignedShare: number;
  /** All mail of the days. */
  readonly all: number;
  readonly forwarded: number;
  /** Senders that nobody has judged, with weight. The most messages first. */
  readonly unknown: readonly AdvisedSource[];
  /** Senders that count and whose mail fails, the worst first. */
  readonly failing: readonly AdvisedSource[];
}

/** A sender that nobody knows matters from so many messages, or from this share of all mail. */
const UNKNOWN_MESSAGES_MIN = 10;
const UNKNOWN_SHARE_MIN = 0.01;

/** Weighs the senders of some days. */
export const weigh = (sources: readonly AdvisedSource[]): MailWeight => {
  const sum = (rows: readonly AdvisedSource[], count: (row: AdvisedSource) => number): number =>
    rows.reduce((total, row) => total + count(row), 0);
  const all = sum(sources, ({ messages }) => messages);
  const counting = sources.filter(
    ({ classification }) => classification !== "forwarder" && classification !== "threat",
  );
  const passedOn = sources.filter(({ classification }) => classification === "forwarder");
  const messages = sum(counting, (row) => row.messages - row.forwarded);
  const aligned = sum(counting, (row) => row.aligned);
  return {
    messages,
    aligned,
    alignedShare: messages === 0 ? 0 : aligned / messages,
    all,
    forwarded: sum(counting, (row) => row.forwarded) + sum(passedOn, (row) => row.messages - row.aligned),
    unknown: sources
      .filter(({ classification, messages: count }) => classification === "unknown" && hasWeight(count, all))
      .toSorted((a, b) => b.messages - a.messages),
    failing: counting.filter((row) => failingOf(row) > 0).toSorted((a, b) => failingOf(b) - failingOf(a)),
  };
};

const hasWeight = (messages: number, all: number): boolean =>
  messages > 0 && (messages >= UNKNOWN_MESSAGES_MIN || messages >= all * UNKNOWN_SHARE_MIN);

/** Messages of a sender that fail DMARC and were not passed on. */
const failingOf = ({ messages, aligned, forwarded }: AdvisedSource): number =>
  Math.max(0, messages - aligned - forwarded);
