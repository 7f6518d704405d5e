import { SEVERITIES, type Severity } from "../dnsbl/blocklist.ts";

/** 5 for critical down to 1 for info, so that "at least" is a comparison; 0 where nothing is listed. */
export const severityRankOf = (severity: Severity): number => SEVERITIES.length - SEVERITIES.indexOf(severity);

/** The severity of a rank; null for 0. */
export const severityOfRank = (rank: number): Severity | null => SEVERITIES[SEVERITIES.length - rank] ?? null;

/** The rank of what is listed: a listing whose severity is no longer known counts as the least. */
export const worstRank = (severities: ReadonlyArray<Severity | null>): number =>
  Math.max(0, ...severities.map((severity) => (severity === null ? 1 : severityRankOf(severity))));
