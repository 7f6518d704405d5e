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

export const qualityScore = (verdict: Verdict, subStatus: SubStatus, signals: Signals): number => {
  const off = DEDUCTIONS.filter(({ signal, value }) => signals[signal] === value);
  const score = SUB_STATUS_SCORES[subStatus].quality - off.reduce((sum, { points }) => sum + points, 0);
  const [lowest, highest] = QUALITY_RANGE[verdict];
  return Math.min(highest, Math.max(lowest, score));
};

/** How certain a sub_status is. A no that only follows from a random recipient being accepted is one-sided, too. */
export const confidenceScore = (subStatus: SubStatus, signals: Signals): number => {
  const isOneSided = NEEDS_CATCH_ALL.has(subStatus) && signals.catch_all !== "pass";
  const isByContrast = subStatus === "mailbox_not_found" && signals.catch_all === "warn";
  return isOneSided || isByContrast ? ONE_SIDED_CONFIDENCE : SUB_STATUS_SCORES[subStatus].confidence;
};
