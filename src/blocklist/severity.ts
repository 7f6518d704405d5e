import { isId } from "../foundation/base/secrets.ts";
import { SEVERITIES, type Severity } from "../foundation/base/severity.ts";

/** Defaults where neither the target nor the account sets a threshold: webhooks get everything, mail only what matters. */
export const WEBHOOK_SEVERITY_MIN: Severity = "info";
export const MAIL_SEVERITY_MIN: Severity = "medium";

/** 5 for critical down to 1 for info, so that severities can be compared; 0 means not listed. */
export const severityRankOf = (severity: Severity): number => SEVERITIES.length - SEVERITIES.indexOf(severity);

/** The severity of a rank; null for 0. */
export const severityOfRank = (rank: number): Severity | null => SEVERITIES[SEVERITIES.length - rank] ?? null;

/** The highest rank of some listings: a listing whose severity is no longer known has the lowest rank. */
export const worstRank = (severities: ReadonlyArray<Severity | null>): number =>
  Math.max(0, ...severities.map((severity) => (severity === null ? 1 : severityRankOf(severity))));

/** Whether a listing is to be reported: one whose severity is no longer known always is. */
export const isSevereEnough = (severity: Severity | null, min: Severity): boolean =>
  severity === null || severityRankOf(severity) >= severityRankOf(min);

/** A position in the order by severity, most severe first, then newest first. */
export interface SeverityPosition {
  readonly severityRank: number;
  readonly id: string;
}

/** The position of a target as a cursor: `rank.id`. */
export const severityCursor = ({ severityRank, id }: SeverityPosition): string => `${severityRank}.${id}`;

/** Whether a text can be such a cursor. */
export const isSeverityCursor = (text: string): boolean => /^[0-5]\./.test(text) && isId(text.slice(2));

export const positionOfCursor = (cursor: string): SeverityPosition => ({
  severityRank: Number(cursor[0]),
  id: cursor.slice(2),
});
