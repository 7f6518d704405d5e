import { sumBy } from "../../../foundation/base/sums.ts";
import { isoDay } from "../../../foundation/base/days.ts";
import { type AdviceFacts, type AdviceSituation, weighMail } from "./advice-facts.ts";
import { ALIGNED_SHARE_MIN, FEW_DAYS_MIN, POLICY_AGE_MIN } from "./advice-requirements.ts";
import type { MailDay } from "./failure-history.ts";

/** The days of mail that advice is based on. */
const WINDOW_DAYS = 30;

/** Days whose mail shows how much there will be. */
const MEAN_DAYS = 7;

/**
 * The first day on which this share of the mail of these days passes, if mail goes on as on the last seven days with complete reports
 * and all of it passes.
 */
export const dayOfShare = (
  days: readonly MailDay[],
  { today, windowDays, share }: { readonly today: number; readonly windowDays: number; readonly share: number },
): number => {
  const counted = days.map(({ day, messages, aligned, forwarded }) => ({
    day,
    aligned,
    messages: messages - forwarded,
  }));
  const mean =
    sumBy(counted, ({ day, messages }) => (day < today && day >= today - MEAN_DAYS ? messages : 0)) / MEAN_DAYS;
  for (let ahead = 1; ahead < windowDays; ahead++) {
    const kept = counted.filter(({ day }) => day > today + ahead - windowDays);
    const messages = sumBy(kept, (one) => one.messages) + mean * ahead;
    const aligned = sumBy(kept, (one) => one.aligned) + mean * ahead;
    if (messages > 0 && aligned >= share * messages) return today + ahead;
  }
  return today + windowDays;
};

/** The day on which the mail of 30 days passes, when only recovered senders failed in them; see `dayOfShare`. Null without one. */
export const recoveryDay = ({ sources, ownDays, today }: AdviceFacts): number | null => {
  const hasRecovered = weighMail(sources).failing.some(({ history }) => history?.hasRecovered === true);
  return hasRecovered ? dayOfShare(ownDays, { today, windowDays: WINDOW_DAYS, share: ALIGNED_SHARE_MIN }) : null;
};

/**
 * The first day on which the next stage can be advised, if reports and mail go on as they do; null at the last stage, when time decides
 * nothing, and when the requirements show no day: too little mail, too few reporters, reports about hardly any day.
 */
export const notBeforeOf = ({ facts, stage, requirements }: Omit<AdviceSituation, "ready">): string | null => {
  const open = new Map(requirements.filter(({ met }) => !met).map((one) => [one.code, one]));
  if (stage === "reject" || open.has("messages") || open.has("reporters")) return null;
  const days = open.get("reported_days");
  const byReports = days === undefined ? 0 : reportedDay(facts, Number(days.expected));
  if (byReports === null) return null;
  const byShare = open.has("aligned_share") || open.has("recent_share") ? (recoveryDay(facts) ?? 0) : 0;
  const day = Math.max(byReports, byShare);
  return day === 0 ? null : isoDay(day);
};

/** The day on which there are enough days with reports; those about a day arrive on the next one. */
const reportedDay = ({ policyDays, policyAgeDays, reportedLately, today }: AdviceFacts, expected: number) => {
  if (reportedLately === 0) return null;
  // Only the days of the last 30 count.
  const isOften = policyDays * WINDOW_DAYS >= expected * Math.min(WINDOW_DAYS, Math.max(1, policyAgeDays));
  const rare = Math.max(FEW_DAYS_MIN - policyDays, POLICY_AGE_MIN - policyAgeDays);
  return today + Math.max(0, isOften ? expected - policyDays : rare) + 1;
};
