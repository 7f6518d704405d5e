/** Forged mail of a day: unauthenticated, from addresses without a proper reverse name. */
export interface ForgedDay {
  readonly day: number;
  readonly forged: number;
}

export interface Campaign {
  /** The first day with far more forged mail than usual. */
  readonly startedDay: number;
  readonly day: number;
  readonly forged: number;
}

/** A campaign has so many times the usual number of messages a day. */
const USUAL_FACTOR = 5;
/** What is usual is derived from so many days at least, and at most. */
const USUAL_DAYS_MIN = 7;
const USUAL_DAYS_MAX = 28;
/** So many days without a campaign separate it from the next one. */
export const CAMPAIGN_GAP_DAYS = 14;

/**
 * Finds the last campaign of forged mail among some days, in any order; days without forged mail may be absent. `fromDay` is the first
 * day that is known: the days after it say what is usual. Null when there is none.
 */
export const findCampaign = (
  days: readonly ForgedDay[],
  { fromDay, messagesMin }: { readonly fromDay: number; readonly messagesMin: number },
): Campaign | null =>
  days
    .toSorted((a, b) => a.day - b.day)
    .reduce<Campaign | null>((campaign, { day, forged }) => {
      const isOver = campaign !== null && day - campaign.day > CAMPAIGN_GAP_DAYS;
      const current = isOver ? null : campaign;
      const usual = usualOf(days, fromDay, current?.startedDay ?? day);
      if (forged < messagesMin || usual === null || forged < USUAL_FACTOR * usual) return campaign;
      return { startedDay: current?.startedDay ?? day, day, forged: (current?.forged ?? 0) + forged };
    }, null);

/** The forged messages of an average day before one; null when too few days are known. */
const usualOf = (days: readonly ForgedDay[], fromDay: number, beforeDay: number): number | null => {
  const known = Math.min(USUAL_DAYS_MAX, beforeDay - fromDay);
  if (known < USUAL_DAYS_MIN) return null;
  const before = days.filter(({ day }) => day < beforeDay && day >= beforeDay - known);
  return before.reduce((sum, { forged }) => sum + forged, 0) / known;
};
