import { sumBy, sumFields, sumOf } from "../../../foundation/base/sums.ts";
import { z } from "zod";
import type { Alert, AlertUpdate } from "../../records/domains/alert-store.ts";
import { nextTurn } from "../../../foundation/base/clock.ts";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { parseDay } from "../../../foundation/http/day-range.ts";
import { integerField, nullableText, textField } from "../../../foundation/http/schema-fields.ts";
import { action, type MailBlock, formatCount, plural, shortName } from "../../../notifications/mail/mail-content.ts";
import { isNameAwaited, NAME_WAIT_MS, SOURCE_KINDS } from "../../insight/sources/source-identity.ts";
import { isSendingService } from "../../records/services/services.ts";
import { isForeign } from "../../insight/sources/domain-sources.ts";
import type { KeyedSource } from "../../insight/sources/source-keys.ts";
import { type Source, sourceSchema } from "../../insight/sources/source-response.ts";
import {
  alertRule,
  SENDER_FIELDS,
  domainLink,
  items,
  type LinkedDomain,
  passed,
  readAlertBody,
  sourceLink,
  texts,
} from "./alert-rule.ts";
import { findOwnNewcomers, isAlignedSource } from "./own-newcomers.ts";
import {
  ALERT_DAYS,
  judgeNewcomer,
  NO_ALERTS,
  type ReviewFacts,
  type RuleResult,
  subjectOfMany,
} from "./review-facts.ts";
import { groupNewSources } from "./volume-days.ts";

/** A sender of aligned mail is alerted from this many messages. */
const ALIGNED_MESSAGES_MIN = 5;
/** The days of unaligned mail that decide whether a sender was known before its mail became aligned. */
const KNOWN_DAYS = 35;
const ALERT_SOURCES_MAX = 10;
/** Stored sources that are judged in one turn of the event loop. */
const JUDGED_PER_TURN = 500;
/** For this long after its alert, a stranger at another domain is part of that alert. */
const TOLD_DAYS = 14;
const OTHER_DOMAINS_MAX = 100;
/** Signatures, envelope domains and addresses of a source in an event. */
const EVIDENCE_MAX = 3;

export const eventSourceSchema = z.object({
  key: textField("Key of the source, as in `GET …/sources`."),
  name: textField("Display name of the source."),
  kind: z.enum(SOURCE_KINDS).describe("Kind of the source, as in `GET …/sources`."),
  service: nullableText("The sending service; null when it is not a known one."),
  classification: z
    .enum(["authorized", "misconfigured", "forwarder", "unknown", "threat"])
    .describe("Classification of the source."),
  ...SENDER_FIELDS,
  dkim: sourceSchema.shape.dkim,
  spf: sourceSchema.shape.spf,
  addresses: sourceSchema.shape.addresses,
});
type EventSource = z.output<typeof eventSourceSchema>;

export const EVENT_SOURCE_EXAMPLE: EventSource = {
  key: "service:brevo",
  name: "Brevo",
  kind: "service",
  service: "Brevo",
  classification: "misconfigured",
  first_day: "2026-01-01",
  messages: 412,
  aligned: 0,
  dkim: [{ domain: "brevo.com", selector: null, aligned: false, messages: 412 }],
  spf: [{ domain: "ab.d.mailin.fr", messages: 412 }],
  addresses: [
    {
      ip: "192.0.2.10",
      reverse_name: "ab.d.mailin.fr",
      confirmed: true,
      asn: 200484,
      as_name: "SENDINBLUE",
      country: "FR",
    },
  ],
};

/**
 * New sources whose mail could be the user's: it is aligned, or authenticates for some domain, or comes from a known service or the
 * domain's own network. Unauthenticated mail of others raises no alert, however much it is: see `spoofing-campaign.ts`.
 */
const findNewSources = async (facts: ReviewFacts): Promise<RuleResult> => {
  const { domain, nowMs, recent, rules } = facts;
  const unreviewed = new Set(rules.unreviewedSources(domain.number));
  if (unreviewed.size === 0) return NO_ALERTS;
  await nextTurn();
  // All sources are identified only where one of these need not wait any longer.
  if (domain.mode === "live" && !rules.hasReviewable(domain.number, nowMs - NAME_WAIT_MS))
    return { ...NO_ALERTS, isPending: true };
  const keyed = await facts.keyedSources(recent);
  await nextTurn();
  const reviewed = keyed.filter((source) => !unreviewed.has(source.number) && hasEvidence(source));
  const reviewedByKey = Map.groupBy(reviewed, ({ shownKey }) => shownKey);
  const candidates = Map.groupBy(
    keyed.filter(({ number }) => unreviewed.has(number)),
    ({ shownKey }) => shownKey,
  );
  const reviewedSources: number[] = [];
  const found: FoundSource[] = [];
  let isPending = false;
  let weighing: Weighing | null = null;
  let judgedNow = 0;
  for (const [key, members] of candidates) {
    if (judgedNow >= JUDGED_PER_TURN) {
      await nextTurn();
      judgedNow = 0;
    }
    judgedNow += members.length;
    const isNamePending = members.some((member) => isNameAwaited(member, domain, nowMs));
    isPending ||= isNamePending;
    if (isNamePending) continue;
    weighing ??= await openWeighing(facts);
    const reviewedOfKey = reviewedByKey.get(key) ?? [];
    for (const { members: judged, judgement, subject, source } of await judgeGroup(
      { key, members, reviewed: reviewedOfKey },
      weighing,
    )) {
      const waiting = judged.filter((member) => awaitsName(member, facts));
      isPending ||= judgement === "wait" && waiting.length > 0;
      if (judgement === "wait") continue;
      reviewedSources.push(...judged.flatMap((member) => (waiting.includes(member) ? [] : member.number)));
      if (judgement === "alert" && source !== undefined) found.push({ subject, source });
    }
  }
  const { isTold, updates } = findTold(found, facts);
  const byMessages = found.filter((one) => !isTold(one)).toSorted((a, b) => b.source.messages - a.source.messages);
  return { alerts: groupNewSources(byMessages, facts).map(newSourcesAlert), updates, reviewedSources, isPending };
};

/** Whether nothing ties a source to the domain: a service that sends for customers may be its own supplier. */
const isStranger = ({ kind, service_id, classification, aligned }: Source) =>
  classification === "unknown" && aligned === 0 && kind !== "own" && !isSendingService(service_id);

/**
 * Strangers about which the same recipients have an alert of another domain: they raise no further one, and that alert names this domain,
 * too.
 */
const findTold = (found: readonly FoundSource[], { domain, nowMs, rules }: ReviewFacts) => {
  const strangers = found.filter(({ source }) => isStranger(source));
  const alerts = strangers.length === 0 ? [] : rules.alertsElsewhere(domain, "new_source", nowMs - TOLD_DAYS * DAY_MS);
  const told = new Set<string>();
  const updates = alerts.flatMap(({ id, body }): readonly AlertUpdate[] => {
    const { summary, data: stored } = readAlertBody(body);
    const read = data.safeParse(stored).data;
    const same = strangers.filter(({ source }) => read?.sources.some(({ key }) => key === source.key));
    const fresh = same.filter(({ source }) => !told.has(source.key));
    if (read === undefined || fresh.length === 0) return [];
    for (const { source } of fresh) told.add(source.key);
    const others = [...new Set([...read.other_domains, domain.domain])].slice(0, OTHER_DOMAINS_MAX);
    return [{ id, summary, data: { ...read, other_domains: others } }];
  });
  return { isTold: ({ source }: FoundSource) => told.has(source.key), updates };
};

interface FoundSource {
  readonly subject: string;
  readonly source: Source;
}

/** What the weight of a new source is measured by. */
interface Weighing {
  readonly facts: ReviewFacts;
  /** The sources of the days that raise alerts, by their keys. */
  readonly sources: ReadonlyMap<string, Source>;
  /** The messages of all of them but threats. */
  readonly messages: number;
}

const openWeighing = async (facts: ReviewFacts): Promise<Weighing> => {
  const sources = await facts.sources(facts.recent);
  const messages = sumBy([...sources.values()], (source) => (source.classification === "threat" ? 0 : source.messages));
  return { facts, sources, messages };
};

/** The new stored sources of a key, and those that were reviewed. */
interface NewGroup {
  readonly key: string;
  readonly members: readonly KeyedSource[];
  readonly reviewed: readonly KeyedSource[];
}

/** Judges the new stored sources of a key: together, but for those that only count as the domain's own. */
const judgeGroup = async ({ key, members, reviewed }: NewGroup, weighing: Weighing) => {
  const { facts, sources } = weighing;
  const context = { facts, sentEnough: (source: Source) => sentEnough(source, weighing) };
  const newcomers = key === "own" ? findOwnNewcomers(members, reviewed, context) : [];
  const apart = new Set(newcomers.flatMap((newcomer) => newcomer.members));
  const others = members.filter((member) => !apart.has(member));
  if (others.length === 0) return newcomers;
  const source = sources.get(key);
  const isKnown = await wasReviewed(others, reviewed, facts);
  const judgement = isKnown ? "reviewed" : judgeSource(key, others, source, weighing);
  return [...newcomers, { members: others, subject: key, source, judgement }];
};

/** Aligned mail is reviewed again when the reverse name of its address is known: it may show another sender. */
const awaitsName = (member: KeyedSource, { domain, today }: ReviewFacts) =>
  domain.mode === "live" && member.isNamePending && isAlignedSource(member) && member.firstDay >= today - ALERT_DAYS;

const data = z.object({
  count: integerField(
    "Number of new sources; more than ten come as one event, and so do those of an incident of new addresses (`dmarc.volume_spike`).",
  ),
  sources: z.array(eventSourceSchema).describe("The ten with the most messages."),
  other_domains: z
    .array(z.string())
    .default([])
    .describe(
      "Other domains of the account, with the same recipients and webhook, at which some of these senders appeared within 14 days: they raise no alert there. Empty in the event; the list of alerts has them.",
    ),
});
export const NEW_SOURCE = alertRule({
  name: "new_source",
  words: "New sender",
  description: "A new sender whose mail could be yours.",
  summary: "A source that was not seen before sends mail with a domain in From",
  title: "new senders",
  data,
  example: { count: 1, sources: [EVENT_SOURCE_EXAMPLE], other_domains: [] },
  review: findNewSources,
  mail: ({ count, sources, other_domains: others }, domain) => [
    items(
      sources.map((source) => ({ text: `${sourceName(source)}: ${passed(source)}` })),
      count,
    ),
    others.length === 0 ? null : texts(`The same senders also use ${others.join(", ")} in From.`),
    action(adviceOn(sources)),
    sourcesLink(sources, domain, { one: "Classify it", all: "Show the sources" }),
  ],
  open: {
    days: 14,
    facts: (store, domains) => store.classifiedSources(domains),
    holds: ({ number, data: { sources } }, classified) =>
      sources.some(({ key }) => !classified.has(`${number} ${key}`)),
    attention: ({ count, sources, other_domains: others }, { domain, path }) => {
      const [first] = sources;
      const { messages, aligned } = sumFields(sources, "messages", "aligned");
      const isOne = count === 1 && first !== undefined;
      return {
        severity: "warn",
        label: "New sender",
        title: isOne
          ? `${shortName(first.name)} began to send as ${domain}${alsoAs(others)}`
          : `${formatCount(count)} new senders began to send as ${domain}${alsoAs(others)}`,
        detail: `${plural(messages, "message")} in 7 days, ${formatCount(aligned)} aligned. ${isOne ? "Is it yours?" : "Are they yours?"}`,
        action: { text: "Classify", path: isOne ? sourcePath(path, first.key) : `${path}/sources?class=unknown` },
      };
    },
  },
});

const alsoAs = (others: readonly string[]): string =>
  others.length === 0
    ? ""
    : others.length === 1
      ? ` and ${others[0]}`
      : ` and ${formatCount(others.length)} other domains`;

const adviceOn = (sources: readonly EventSource[]) => {
  if (sources.every(({ key }) => key === "own"))
    return "If it is yours, acknowledge the alert. If not, remove what authorizes it from the SPF record, and renew the DKIM key.";
  return sources.length === 1
    ? "If it is yours, classify it as authorized. If not, classify it as a threat."
    : "Classify each source: authorized if it is yours, a threat if not.";
};

/** A source in a list of mail. */
export const sourceName = ({ name, service, classification }: EventSource): string => {
  const known = service === null || service === name ? "" : ` (${shortName(service)})`;
  return `${shortName(name)}${known}, ${classification}`;
};

/** The page of the only source; otherwise of all of them. */
export const sourcesLink = (
  sources: readonly EventSource[],
  domain: LinkedDomain,
  texts: { readonly one: string; readonly all: string },
): MailBlock => {
  const [only, ...others] = sources;
  const link = only === undefined || others.length > 0 ? null : sourceLink(domain, only, texts.one);
  return link ?? domainLink(domain, "sources", texts.all);
};

/** The page of a source, below that of its domain. */
export const sourcePath = (path: string, key: string): string =>
  `${path}/sources/${encodeURIComponent(key.toWellFormed())}`;

const hasEvidence = ({ evidence: { signer, envelope, foreign } }: KeyedSource) =>
  signer !== null || envelope !== null || foreign !== null;

const signsForDomain = ({ evidence: { signer } }: KeyedSource) => signer !== null;

/**
 * Whether a source is among those that were reviewed. One that signs for the domain now, and never did before, counts as reviewed only
 * if it sent enough to be noticed: otherwise a few messages would hide that somebody can sign for the domain.
 */
const wasReviewed = async (
  members: readonly KeyedSource[],
  reviewed: readonly KeyedSource[],
  facts: ReviewFacts,
): Promise<boolean> => {
  if (reviewed.length === 0) return false;
  if (reviewed.some(isAlignedSource) || !members.some(signsForDomain)) return true;
  const { today, domain, thresholds, rollups } = facts;
  const range = { fromDay: today - KNOWN_DAYS, toDay: today };
  const numbers = new Set(reviewed.map(({ number }) => number));
  const messages = sumBy(await facts.keyedSources(range), ({ number, totals }) =>
    numbers.has(number) ? totals.messages : 0,
  );
  const all = sumOf(rollups.reportsPerDay(domain.number, range), "messages");
  return messages >= thresholds.new_source_messages && messages * 100 >= thresholds.new_source_percent * all;
};

const judgeSource = (
  key: string,
  members: readonly KeyedSource[],
  source: Source | undefined,
  weighing: Weighing,
): ReturnType<typeof judgeNewcomer> => {
  const { facts } = weighing;
  // Earlier mail without a signature does not make a signature known.
  const signing = members.filter(signsForDomain);
  const seenDay = Math.min(...(signing.length > 0 ? signing : members).map((member) => member.firstDay));
  const isOlder = source !== undefined && signing.length === 0;
  const firstDay = isOlder ? Math.min(seenDay, parseDay(source.first_day) ?? seenDay) : seenDay;
  if (source?.classified_by === "user") return "reviewed";
  // An identity without evidence leaves no other trace than its alert.
  if (facts.alerts.lastRaisedMs(facts.domain.number, "new_source", key) !== null) return "reviewed";
  const hasWeight = source !== undefined && couldBeOwn(source, members) && sentEnough(source, weighing);
  return judgeNewcomer({ firstDay, hasWeight }, facts);
};

const couldBeOwn = (source: Source, members: readonly KeyedSource[]) => {
  const { kind, service_id, aligned, authenticated_unaligned } = source;
  // A forwarder that turns out to be none later is still new then.
  if (isForeign(source)) return false;
  if (aligned > 0 || authenticated_unaligned > 0) return true;
  return kind === "own" || isSendingService(service_id) || members.some(({ isBesideOwn }) => isBesideOwn);
};

/** A few messages that pass DMARC are enough; other mail needs a number of messages and a share of the domain's mail. */
const sentEnough = ({ messages, aligned }: Source, { facts: { thresholds }, messages: all }: Weighing) => {
  if (aligned >= ALIGNED_MESSAGES_MIN) return true;
  if (messages < thresholds.new_source_messages) return false;
  return messages * 100 >= thresholds.new_source_percent * all;
};

/** One source, or many together; the most messages first. */
const newSourcesAlert = (newcomers: readonly FoundSource[]): Alert => {
  const sources = newcomers.map(({ source }) => source);
  const [first] = sources;
  const isOne = sources.length === 1 && first !== undefined;
  const found: z.output<typeof data> = {
    count: sources.length,
    sources: sources.slice(0, ALERT_SOURCES_MAX).map(eventSource),
    other_domains: [],
  };
  return {
    rule: "new_source",
    subject:
      newcomers.length === 1 ? (newcomers[0]?.subject ?? "") : subjectOfMany(newcomers.map((one) => one.subject)),
    data: found,
    summary: isOne ? `new source ${nameWithSelector(first)}: ${passed(first)}` : `${sources.length} new sources`,
    cooldown: true,
  };
};

/** A source as it stands in an event. */
export const eventSource = (source: Source): EventSource => {
  const { key, name, kind, service, classification, first_day, messages, aligned, dkim, spf, addresses } = source;
  return {
    key,
    name,
    kind,
    service,
    classification,
    first_day,
    messages,
    aligned,
    dkim: dkim.slice(0, EVIDENCE_MAX),
    spf: spf.slice(0, EVIDENCE_MAX),
    addresses: addresses.slice(0, EVIDENCE_MAX),
  };
};

/** The name of a source, with the selector that it signs with for the domain. */
const nameWithSelector = ({ name, dkim }: Source) => {
  const own = dkim.find(({ aligned, selector }) => aligned && selector !== null);
  return own === undefined ? name : `${name} (signs as ${own.domain}, selector ${own.selector})`;
};
