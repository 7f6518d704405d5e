import type { PublishedPolicy } from "../report/report.ts";
import { isForwarded, type ReportRow } from "../report/report-row.ts";
import { isRelaxedAligned, sourceKeyOf } from "./source-key.ts";

/** What follows from a row for the domain it is counted for. */
export interface RowFacts {
  /** As `sourceKeyOf` says. */
  readonly key: string;
  /** DMARC passed: aligned DKIM or aligned SPF. */
  readonly isAligned: boolean;
  readonly isDkimAligned: boolean;
  readonly isSpfAligned: boolean;
  /** Not aligned, and passed on by somebody the receiver knows. */
  readonly isForwarded: boolean;
  /** Not aligned, although DKIM or SPF passed for some domain. */
  readonly isAuthenticated: boolean;
  /** The greater the worse: see `recordRank`. */
  readonly rank: number;
}

/** What a rank has on the next better one: more than any count of messages (`COUNT_MAX`). */
export const RANK_STEP = 10_000_000_000;

/** Orders rows by what deserves a look: what fails, then what was passed on, then what is aligned; of each the most first. */
export const recordRank = (
  { isAligned, isForwarded: isPassedOn }: Pick<RowFacts, "isAligned" | "isForwarded">,
  count: number,
) => (isAligned ? 0 : isPassedOn ? 1 : 2) * RANK_STEP + count;

/**
 * Judges a row. The reporter's own word about alignment counts; where it says nothing of either, its checks are held
 * against the domain in `From` (the enrolled one when the row names none), as strictly as the report's policy asks.
 */
export const rowFacts = (row: ReportRow, domain: string, policy: Pick<PublishedPolicy, "adkim" | "aspf">): RowFacts => {
  const isSaid = row.dkim !== null || row.spf !== null;
  const from = row.headerFrom ?? domain;
  const isDkimAligned = isSaid ? row.dkim === "pass" : passesFor(row.dkimResults, from, policy.adkim);
  const isSpfAligned = isSaid ? row.spf === "pass" : passesFor(row.spfResults, from, policy.aspf);
  const isAligned = isDkimAligned || isSpfAligned;
  const passedOn = !isAligned && isForwarded(row);
  return {
    key: sourceKeyOf(row, domain),
    isAligned,
    isDkimAligned,
    isSpfAligned,
    isForwarded: passedOn,
    isAuthenticated: !isAligned && (row.dkimResults.some(isPass) || row.spfResults.some(isPass)),
    rank: recordRank({ isAligned, isForwarded: passedOn }, row.count),
  };
};

type Check = Pick<ReportRow["dkimResults"][number], "domain" | "result">;

const isPass = ({ result }: Check): boolean => result === "pass";

const passesFor = (checks: readonly Check[], from: string, mode: "r" | "s" | null): boolean =>
  checks.some(
    ({ result, domain }) =>
      result === "pass" && domain !== null && (mode === "s" ? domain === from : isRelaxedAligned(domain, from)),
  );
