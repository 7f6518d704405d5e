import { inTurns } from "../../../foundation/base/in-steps.ts";
import { sumBy, sumOf } from "../../../foundation/base/sums.ts";
import { z } from "zod";
import { dayField, integerField } from "../../../foundation/http/schema-fields.ts";
import { dayOfTime, isoDay } from "../../../foundation/base/days.ts";
import { action, formatCount, plural } from "../../../notifications/mail/mail-content.ts";
import type { Source } from "../../insight/sources/source-response.ts";
import { UNAUTHENTICATED_KEY } from "../../insight/sources/source-keys.ts";
import type { DmarcAlertRow } from "../../records/domains/alert-store.ts";
import { parseDay } from "../../../foundation/http/day-range.ts";
import { alertRule, domainLink, readAlertBody, texts } from "./alert-rule.ts";
import { sourcePath } from "./new-sources.ts";
import { isLearned, NO_ALERTS, type ReviewFacts, type RuleResult } from "./review-facts.ts";

/** Forged mail of a day: unauthenticated, from addresses without a proper reverse name. */
export interface ForgedDay {
  readonly day: number;
  readonly forged: number;
}

interface Campaign {
  /** The first day with far more forged mail than usual. */
  readonly startedDay: number;
  readonly day: number;
  readonly forged: number;
}

const WINDOW_DAYS = 35;
/** A campaign has this many times the usual number of messages a day. */
const USUAL_FACTOR = 5;
/** The usual number is the average of this many days at least, and at most. */
const USUAL_DAYS_MIN = 7;
const USUAL_DAYS_MAX = 28;
/** A campaign that lasts longer is summed up over this time. */
const CAMPAIGN_DAYS_MAX = 120;
/** Longer than this without a campaign day, and the next one is a campaign of its own. */
const CAMPAIGN_GAP_DAYS = 14;
/** Alerts read to find the last one. */
const ALERTS_MAX = 20;

/** A spoofing campaign, once: far more unauthenticated mail from addresses without a proper reverse name than usual. */
const findSpoofingCampaign = async (facts: ReviewFacts): Promise<RuleResult> => {
  const { domain, nowMs, today, recent, learning, thresholds, alerts, rollups } = facts;
  const messagesMin = thresholds.spoofing_messages;
  // Mail that passes, or that receivers recognize as forwarded, is none of it.
  const failing = sumBy(rollups.reportsPerDay(domain.number, recent), ({ messages, aligned }) => messages - aligned);
  if (failing < messagesMin) return NO_ALERTS;
  if (failing - (await inTurns(rollups.totals(domain.number, recent))).forwarded < messagesMin) return NO_ALERTS;
  if (((await facts.sources(recent)).get(UNAUTHENTICATED_KEY)?.messages ?? 0) < messagesMin) return NO_ALERTS;
  // Alerts in the future, raised while the clock was ahead, do not count.
  const last = alerts.listByRule(domain.number, "spoofing_campaign", ALERTS_MAX).find(({ atMs }) => atMs <= nowMs);
  const alerted = last === undefined ? null : readAlerted(last);
  // A campaign is summed up from its start, and its start depends on the days before it.
  const fromDay = Math.min(today - WINDOW_DAYS, (alerted?.startedDay ?? today) - USUAL_DAYS_MAX);
  const range = { fromDay: Math.max(fromDay, today - CAMPAIGN_DAYS_MAX), toDay: today };
  const numbers = (await facts.keyedSources(range)).flatMap(({ number, unauthenticatedKey }) =>
    unauthenticatedKey === UNAUTHENTICATED_KEY ? [number] : [],
  );
  const perDay = await inTurns(rollups.perDayOf(domain.number, range, numbers));
  const days = perDay.map(({ day, messages }) => ({ day, forged: messages }));
  const campaign = findCampaign(days, { fromDay: range.fromDay, messagesMin });
  if (campaign === null || campaign.day < recent.fromDay || !isLearned(learning, campaign.startedDay)) return NO_ALERTS;
  const isAlerted = last !== undefined && dayOfTime(last.atMs) >= campaign.startedDay - CAMPAIGN_GAP_DAYS;
  if (isAlerted && (alerted === null || campaign.forged <= alerted.messages)) return NO_ALERTS;
  const source = (await facts.sources({ fromDay: campaign.startedDay, toDay: today })).get(UNAUTHENTICATED_KEY);
  const alert = campaignAlert(campaign, source);
  // A campaign that goes on changes the totals of its alert, and sends no further mail.
  return isAlerted ? { alerts: [], updates: [{ ...alert, id: last.id }] } : { alerts: [alert] };
};

/** Null for an alert of another version. */
const readAlerted = ({ body }: Pick<DmarcAlertRow, "body">) => {
  const read = data.safeParse(readAlertBody(body).data);
  return read.success ? { startedDay: parseDay(read.data.started_day) ?? 0, messages: read.data.messages } : null;
};

const data = z.object({
  started_day: dayField("First day of the campaign."),
  day: dayField("The last day of it so far."),
  messages: integerField("Unauthenticated messages of the campaign."),
  networks: integerField("Networks that sent them."),
  quarantined: integerField("Messages of these that receivers quarantined."),
  rejected: integerField("Messages of these that receivers rejected."),
});

export const SPOOFING_CAMPAIGN = alertRule({
  name: "spoofing_campaign",
  words: "Spoofing",
  description: "Far more unauthenticated mail than usual.",
  summary:
    "Far more unauthenticated mail than usual comes from addresses without a proper reverse name; once for each campaign",
  title: "spoofing campaign, all messages unauthenticated",
  incident: (text) => ({ about: [text("started_day")], ends: false, severity: "medium" }),
  data,
  example: {
    started_day: "2026-01-01",
    day: "2026-01-01",
    messages: 312,
    networks: 41,
    quarantined: 0,
    rejected: 312,
  },
  review: findSpoofingCampaign,
  mail: ({ messages, rejected, quarantined }, domain) => [
    texts(`Receivers rejected ${formatCount(rejected)} and quarantined ${formatCount(quarantined)} of these messages.`),
    // Receivers apply the policy already: nothing is left to do.
    ...((rejected + quarantined) * 2 >= messages
      ? []
      : [action("With p=reject, receivers refuse such mail."), domainLink(domain, "advice", "Your next step")]),
  ],
  open: {
    days: 7,
    lastDay: ({ day }) => day,
    topics: () => [""],
    attention: ({ started_day, messages, networks, quarantined, rejected }, { domain, path }) => {
      const stopped = quarantined + rejected;
      const outcome =
        stopped === 0
          ? "Receivers delivered them: the policy asks for nothing else."
          : `Receivers stopped ${formatCount(stopped)} of them.`;
      return {
        severity: "warn",
        label: "Spoofing",
        title: `Somebody forges mail from ${domain}`,
        detail: `${plural(messages, "message")} from ${plural(networks, "network")} since ${started_day}, all unauthenticated. ${outcome}`,
        action: { text: "See the mail", path: sourcePath(path, UNAUTHENTICATED_KEY) },
      };
    },
  },
});

/**
 * The last campaign among some days, in any order; days without forged mail may be absent. `fromDay` is the first day that is known.
 * Null when there is none.
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
      const usual = usualBefore(days, fromDay, current?.startedDay ?? day);
      if (forged < messagesMin || usual === null || forged < USUAL_FACTOR * usual) return campaign;
      return { startedDay: current?.startedDay ?? day, day, forged: (current?.forged ?? 0) + forged };
    }, null);

/** The forged messages of an average day before one; null when too few days are known. */
const usualBefore = (days: readonly ForgedDay[], fromDay: number, beforeDay: number) => {
  const known = Math.min(USUAL_DAYS_MAX, beforeDay - fromDay);
  if (known < USUAL_DAYS_MIN) return null;
  const before = days.filter(({ day }) => day < beforeDay && day >= beforeDay - known);
  return sumOf(before, "forged") / known;
};

/** `source` is the unauthenticated mail since the campaign started. */
const campaignAlert = ({ startedDay, day, forged }: Campaign, source: Source | undefined) => {
  const networks = source?.network_count ?? 0;
  const since = isoDay(startedDay);
  const found: z.output<typeof data> = {
    started_day: since,
    day: isoDay(day),
    messages: forged,
    networks,
    quarantined: source?.quarantined ?? 0,
    rejected: source?.rejected ?? 0,
  };
  const summary = `spoofing campaign since ${since}: ${plural(forged, "message")} from ${plural(networks, "network")}, all unauthenticated`;
  return { rule: "spoofing_campaign", subject: since, data: found, summary, cooldown: false };
};
