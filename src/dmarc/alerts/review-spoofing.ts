import { dayOfTime } from "../../base/days.ts";
import { UNAUTHENTICATED_KEY } from "../sources/unauthenticated-mail.ts";
import { isLearned } from "./learning.ts";
import { spoofingAlert } from "./alert-texts.ts";
import type { Review } from "./review.ts";
import { CAMPAIGN_GAP_DAYS, findCampaign, type ForgedDay } from "./spoofing.ts";

const WINDOW_DAYS = 35;
/** Alerts looked at for the last one. */
const ALERTS_MAX = 20;

/** Raises one alert for each spoofing campaign: far more unauthenticated mail of addresses without a proper name than usual. */
export const reviewSpoofing = ({
  domain,
  nowMs,
  today,
  recent,
  learning,
  thresholds,
  alerts,
  reading,
  rules,
  shown,
  placed,
  raise,
}: Review): boolean => {
  // None of the mail that passes, or that receivers recognize as forwarded, is of that kind.
  const { messages, aligned, forwarded } = reading.totals(domain.number, recent);
  if (messages - aligned - forwarded < thresholds.spoofing_messages) return false;
  const range = { fromDay: today - WINDOW_DAYS, toDay: today };
  const lately = shown(recent).get(UNAUTHENTICATED_KEY)?.messages ?? 0;
  if (lately < thresholds.spoofing_messages) return false;
  const pool = placed(range).filter(({ unauthenticatedKey }) => unauthenticatedKey === UNAUTHENTICATED_KEY);
  const forged = sumByDay(
    rules.sourceDays(
      domain.number,
      range,
      pool.map(({ number }) => number),
    ),
  );
  const days = [...forged].map(([day, messages]): ForgedDay => ({ day, forged: messages }));
  const campaign = findCampaign(days, { fromDay: range.fromDay, messagesMin: thresholds.spoofing_messages });
  if (campaign === null || campaign.day < recent.fromDay || !isLearned(learning, campaign.startedDay)) return false;
  // What a clock that was ahead has raised in the future hides no campaign.
  const last = alerts.listByRule(domain.number, "spoofing_campaign", ALERTS_MAX).find(({ atMs }) => atMs <= nowMs);
  if (last !== undefined && dayOfTime(last.atMs) >= campaign.startedDay - CAMPAIGN_GAP_DAYS) return false;
  const source = shown({ fromDay: campaign.startedDay, toDay: today }).get(UNAUTHENTICATED_KEY);
  raise(spoofingAlert(campaign, source));
  return false;
};

const sumByDay = (
  rows: readonly { readonly day: number; readonly messages: number }[],
): ReadonlyMap<number, number> => {
  const sums = new Map<number, number>();
  for (const { day, messages } of rows) sums.set(day, (sums.get(day) ?? 0) + messages);
  return sums;
};
