import { type Signals, SUB_STATUS_SCORES, type SubStatus, type Verdict } from "./result.ts";

/** The range of `quality_score` by verdict (contract §4). */
const QUALITY_RANGE: Readonly<Record<Verdict, readonly [number, number]>> = {
  deliverable: [80, 100],
  risky: [30, 79],
  undeliverable: [0, 20],
};

/** What a signal deducts, in addition to the sub_status that it may have decided. */
const DEDUCTIONS: ReadonlyArray<{ signal: keyof Signals; value: Signals[keyof Signals]; points: number }> = [
  { signal: "mx", value: "warn", points: 5 },
  { signal: "catch_all", value: "warn", points: 5 },
  { signal: "catch_all", value: "unknown", points: 8 },
  { signal: "role_account", value: "warn", points: 5 },
  { signal: "disposable", value: "fail", points: 5 },
  { signal: "toxic", value: "fail", points: 5 },
  { signal: "dnsbl", value: "warn", points: 5 },
  { signal: "greylisting", value: "warn", points: 2 },
];

/** An acceptance is one-sided as long as the reply to a random recipient is unknown. */
const ONE_SIDED_CONFIDENCE = 70;
const NEEDS_CATCH_ALL: ReadonlySet<SubStatus> = new Set(["mailbox_exists", "role_account"]);

/** How a quality score comes about. */
export interface QualityParts {
  /** The points of the sub_status. */
  readonly base: number;
  /** What signals take from it. */
  readonly deductions: ReadonlyArray<{ readonly signal: keyof Signals; readonly points: number }>;
  /** Within the range of the verdict. */
  readonly score: number;
  readonly range: readonly [lowest: number, highest: number];
}

export const qualityParts = (verdict: Verdict, subStatus: SubStatus, signals: Signals): QualityParts => {
  const deductions = DEDUCTIONS.filter(({ signal, value }) => signals[signal] === value);
  const { quality: base } = SUB_STATUS_SCORES[subStatus];
  const range = QUALITY_RANGE[verdict];
  const sum = base - deductions.reduce((points, deduction) => points + deduction.points, 0);
  return { base, deductions, range, score: Math.min(range[1], Math.max(range[0], sum)) };
};

export const qualityScore = (verdict: Verdict, subStatus: SubStatus, signals: Signals): number =>
  qualityParts(verdict, subStatus, signals).score;

/** Why `confidenceScore` is lower than that of the sub_status; null when it is not. */
export const confidenceReason = (subStatus: SubStatus, signals: Signals): string | null => {
  if (NEEDS_CATCH_ALL.has(subStatus) && signals.catch_all !== "pass")
    return "It is not known whether the server accepts every recipient.";
  if (subStatus === "mailbox_not_found" && signals.catch_all === "warn")
    return "The server accepts other recipients that do not exist.";
  return null;
};

export const confidenceScore = (subStatus: SubStatus, signals: Signals): number => {
  const isLowered = confidenceReason(subStatus, signals) !== null;
  return isLowered ? ONE_SIDED_CONFIDENCE : SUB_STATUS_SCORES[subStatus].confidence;
};
