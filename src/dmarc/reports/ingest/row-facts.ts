import { isSameOrganisation } from "../../../foundation/mail/organisational-domain.ts";
import type { PublishedPolicy } from "../report/report.ts";
import { isForwarded, type ReportRow } from "../report/report-row.ts";
import { sourceKeyOf } from "./source-key.ts";

/** What follows from a row for the domain it is counted for. */
export interface RowFacts {
  /** See `sourceKeyOf`. */
  readonly key: string;
  /** DMARC passed: aligned DKIM or aligned SPF. */
  readonly isAligned: boolean;
  readonly isDkimAligned: boolean;
  readonly isSpfAligned: boolean;
  /** Not aligned, and forwarded by a host that the receiver trusts. */
  readonly isForwarded: boolean;
  /** Not aligned, although DKIM or SPF passed for some domain. */
  readonly isAuthenticated: boolean;
  /** The higher, the worse: see `recordRank`. */
  readonly rank: number;
}

/** The distance between ranks: more than any count of messages (`COUNT_MAX`). */
export const RANK_STEP = 10_000_000_000;

/** Orders rows: failing ones first, then forwarded ones, then aligned ones; of each those with the most messages. */
export const recordRank = (
  { isAligned, isForwarded: isRelayed }: Pick<RowFacts, "isAligned" | "isForwarded">,
  count: number,
) => (isAligned ? 0 : isRelayed ? 1 : 2) * RANK_STEP + count;

/**
 * The facts about a row. The aligned results that the report states are used. If it states neither, its checks are compared
 * with the header_from domain (the enrolled domain if the row has none), as strictly as the report's policy requires.
 */
export const rowFacts = (row: ReportRow, domain: string, policy: Pick<PublishedPolicy, "adkim" | "aspf">): RowFacts => {
  const isStated = row.dkim !== null || row.spf !== null;
  const from = row.headerFrom ?? domain;
  const isDkimAligned = isStated ? row.dkim === "pass" : passesFor(row.dkimResults, from, policy.adkim);
  const isSpfAligned = isStated ? row.spf === "pass" : passesFor(row.spfResults, from, policy.aspf);
  const isAligned = isDkimAligned || isSpfAligned;
  const isRelayed = !isAligned && isForwarded(row);
  return {
    key: sourceKeyOf(row, domain),
    isAligned,
    isDkimAligned,
    isSpfAligned,
    isForwarded: isRelayed,
    isAuthenticated: !isAligned && (row.dkimResults.some(isPass) || row.spfResults.some(isPass)),
    rank: recordRank({ isAligned, isForwarded: isRelayed }, row.count),
  };
};

type Check = Pick<ReportRow["dkimResults"][number], "domain" | "result">;

const isPass = ({ result }: Check): boolean => result === "pass";

const passesFor = (checks: readonly Check[], from: string, mode: "r" | "s" | null): boolean =>
  checks.some(
    ({ result, domain }) =>
      result === "pass" && domain !== null && (mode === "s" ? domain === from : isSameOrganisation(domain, from)),
  );
