import { inTurns } from "../../../foundation/base/in-steps.ts";
import { sumBy } from "../../../foundation/base/sums.ts";
import { z } from "zod";
import { type DayRange, isoDay } from "../../../foundation/base/days.ts";
import { entryOf } from "../../reports/ingest/rollup.ts";
import { dayField, integerField, nullableText, textField } from "../../../foundation/http/schema-fields.ts";
import { parseDay } from "../../../foundation/http/day-range.ts";
import { action, formatCount, plural, shortName } from "../../../notifications/mail/mail-content.ts";
import type { DmarcAlertRow } from "../../records/domains/alert-store.ts";
import { isForeign } from "../../insight/sources/domain-sources.ts";
import { isNameAwaited } from "../../insight/sources/source-identity.ts";
import type { KeyedSource } from "../../insight/sources/source-keys.ts";
import { alertRule, domainLink, readAlertBody, sourceLink, texts } from "./alert-rule.ts";
import type { SourceDay } from "./alert-rule-store.ts";
import { sourcePath } from "./new-sources.ts";
import { ALERT_DAYS, NO_ALERTS, type ReviewFacts, type RuleResult } from "./review-facts.ts";
import {
  INCIDENT_DAYS_MAX,
  judgeVolume,
  NEW_ADDRESSES,
  REPORTED_DAYS_MIN,
  USUAL_DAYS,
  type VolumeChange,
  type VolumeDay,
} from "./volume-days.ts";

/** A source that sends on fewer of the days before cannot be compared with itself. */
const ACTIVE_DAYS_MIN = 4;
/** A new address counts from this many messages a day: receivers of a newsletter forward a few from many addresses. */
const ADDRESS_MESSAGES_MIN = 10;
/** New addresses of one new organization count as no more than this: a service that is new is alerted as a new source. */
const ADDRESSES_OF_ONE_MAX = 5;
/** A source that sent aligned mail this long ago is known. */
const KNOWN_AFTER_DAYS = 7;
/** A seasonal campaign may repeat what was sent within this time; then half as much was usual once. */
const SEASON_DAYS = 400;
const SEASON_PART = 1 / 2;
/** At least this part of the messages must be seen by receivers that had reported before. */
const KNOWN_REPORTERS_PART = 1 / 2;
/** Alerts read to find the incidents. */
const ALERTS_MAX = 200;
const SIGNATURES_MAX = 5;
/** Addresses that are new have no first mail of their own to wait for: the reported days decide. */
const EVER = 0;

/** Far more aligned mail than usual: of a source, or from new addresses. */
const findVolumeSpikes = async (facts: ReviewFacts): Promise<RuleResult> => {
  const { domain, today, recent, alerts, rollups, rules, thresholds } = facts;
  const incidents = Map.groupBy(
    alerts.listByRule(domain.number, "volume_spike", ALERTS_MAX).flatMap(readIncident),
    ({ subject }) => subject,
  );
  const range = { fromDay: today - USUAL_DAYS - ALERT_DAYS, toDay: today };
  const days = rollups.reportsPerDay(domain.number, range).filter(({ messages }) => messages > 0);
  const isNew = days.length < REPORTED_DAYS_MIN;
  const isQuiet = days.every(
    ({ day, aligned }) =>
      day < recent.fromDay || aligned < Math.min(thresholds.volume_spike_messages, newAddressMessages(facts)),
  );
  if ((isNew || isQuiet) && [...incidents.values()].every(([last]) => last?.isEnded !== false)) return NO_ALERTS;
  const mail: Mail = {
    facts,
    incidents,
    keyed: await facts.keyedSources(range),
    rows: await inTurns(rules.sourceDays(domain.number, range, "aligned")),
    reportedDays: new Set(days.map(({ day }) => day)),
  };
  const found = [...(await sourceSpikes(mail)), ...newAddressSpikes(mail)];
  return {
    alerts: found.filter(({ change }) => change.state !== "grew").map(spikeAlert),
    updates: found.flatMap((spike) => {
      const [last] = incidents.get(spike.subject) ?? [];
      if (last === undefined || spike.change.state === "started") return [];
      // The first alert shows the total of the whole incident also after its end.
      const { data, summary } = spikeAlert({ ...spike, change: { ...spike.change, state: "grew" } });
      return [{ id: last.id, data, summary }];
    }),
    isPending: mail.keyed.some(
      (source) => isFresh(source, recent.fromDay) && isNameAwaited(source, facts.domain, facts.nowMs),
    ),
  };
};

interface Incident {
  readonly id: string;
  readonly subject: string;
  readonly startedDay: number;
  readonly day: number;
  readonly messages: number;
  readonly usual: number;
  readonly isEnded: boolean;
}

/** What the two searches read. */
interface Mail {
  readonly facts: ReviewFacts;
  /** By their subjects, newest first. */
  readonly incidents: ReadonlyMap<string, readonly Incident[]>;
  readonly keyed: readonly KeyedSource[];
  /** Days with aligned mail. */
  readonly rows: readonly SourceDay[];
  readonly reportedDays: ReadonlySet<number>;
}

interface Spike {
  readonly subject: string;
  readonly name: string;
  readonly change: VolumeChange;
  readonly addresses: number;
  readonly signatures: SpikeData["signatures"];
}

const newAddressMessages = ({ thresholds }: ReviewFacts) => thresholds.volume_spike_addresses * ADDRESS_MESSAGES_MIN;

const measureOf = ({ facts, reportedDays }: Mail, messagesMin: number, activeDaysMin: number) => ({
  today: facts.today,
  messagesMin,
  activeDaysMin,
  reportedDays,
  factor: facts.thresholds.volume_spike_factor,
});

/** Sources with far more aligned mail than on any day before. */
const sourceSpikes = async (mail: Mail): Promise<readonly Spike[]> => {
  const { facts, incidents, keyed, rows } = mail;
  const keys = new Map(keyed.map(({ number, shownKey }) => [number, shownKey]));
  const byKey = Map.groupBy(rows, ({ source }) => keys.get(source) ?? "");
  const measure = measureOf(mail, facts.thresholds.volume_spike_messages, ACTIVE_DAYS_MIN);
  const firstDays = firstDaysOf(keyed);
  const spikes: Spike[] = [];
  for (const [key, of] of byKey) {
    if (facts.domain.bulkSenders.includes(key)) continue;
    const firstDay = firstDays.get(key) ?? Number.POSITIVE_INFINITY;
    const change = judgeVolume(daysOf(of), incidents.get(key) ?? [], firstDay, measure);
    if (change === null) continue;
    const source = (await facts.sources(facts.recent)).get(key);
    const numbers = [...new Set(of.map((row) => row.source))];
    const isNews = change.state === "started";
    if (isNews && (source === undefined || isForeign(source) || !(await isUnseen(mail, change, numbers)))) continue;
    const { name } = source ??
      (await facts.sources({ fromDay: change.startedDay, toDay: facts.today })).get(key) ?? { name: key };
    spikes.push({ subject: key, name, change, addresses: 0, signatures: [] });
  }
  return spikes;
};

/** The first day of each source in any report, by its key. */
const firstDaysOf = (keyed: readonly KeyedSource[]): ReadonlyMap<string, number> => {
  const days = new Map<string, number>();
  for (const { shownKey, firstDay } of keyed) days.set(shownKey, Math.min(firstDay, days.get(shownKey) ?? firstDay));
  return days;
};

const daysOf = (rows: readonly SourceDay[]): readonly VolumeDay[] =>
  [...Map.groupBy(rows, ({ day }) => day)].map(([day, of]) => ({ day, messages: sumBy(of, ({ aligned }) => aligned) }));

/**
 * Whether nothing explains the start of an incident: no season in which the source sent half as much, and no receiver that only began to
 * report then.
 */
const isUnseen = async ({ facts }: Mail, { startedDay, day }: VolumeChange, numbers: readonly number[]) => {
  const { domain, rules, rollups, records } = facts;
  const read = async (range: DayRange) => daysOf(await inTurns(rules.sourceDays(domain.number, range, numbers)));
  const season = await read({ fromDay: startedDay - SEASON_DAYS, toDay: startedDay - USUAL_DAYS - 1 });
  const incident = { fromDay: startedDay, toDay: day };
  const since = await inTurns(records.reporterDays(numbers, incident));
  const all = sumBy(since, ({ aligned }) => aligned);
  const peak = Math.max(...(await read(incident)).map((one) => one.messages));
  if (season.some(({ messages }) => messages >= SEASON_PART * peak)) return false;
  const before = { fromDay: startedDay - USUAL_DAYS, toDay: startedDay - 1 };
  const known = new Set(rollups.reporters(domain.number, before).map(({ reporter }) => reporter));
  return sumBy(since, ({ aligned, reporter }) => (known.has(reporter) ? aligned : 0)) >= KNOWN_REPORTERS_PART * all;
};

const isFresh = ({ evidence, firstDay }: KeyedSource, fromDay: number) => evidence.ip !== null && firstDay >= fromDay;

/** Aligned mail from many addresses that never sent any before: a DKIM replay, a stolen key, an SPF record that allows too much. */
const newAddressSpikes = (mail: Mail): readonly Spike[] => {
  const { facts, incidents } = mail;
  const fresh = freshAddresses(mail);
  const past = incidents.get(NEW_ADDRESSES) ?? [];
  const addressesMin = facts.thresholds.volume_spike_addresses;
  const perDay = [...Map.groupBy(fresh, ({ firstDay }) => firstDay)].map(([day, of]) => ({
    day,
    messages: countAddresses(of),
  }));
  const begun = judgeVolume(
    perDay,
    past.map((one) => ({ ...one, isEnded: true, usual: 0 })),
    EVER,
    measureOf(mail, addressesMin, 0),
  );
  const [last] = past;
  const isOpen = last !== undefined && !last.isEnded && last.startedDay >= facts.today - INCIDENT_DAYS_MAX;
  const startedDay = isOpen ? last.startedDay : begun?.startedDay;
  if (startedDay === undefined) return [];
  const among = fresh.filter((one) => one.firstDay >= startedDay);
  const days = daysOf(among.flatMap(({ rows }) => rows));
  const measure = measureOf(mail, newAddressMessages(facts) / 2, 0);
  const opened = { startedDay, day: startedDay, messages: 0, usual: 0, isEnded: false };
  const change = judgeVolume(days, [isOpen ? last : opened], EVER, measure);
  if (change === null) return [];
  const spike = {
    subject: NEW_ADDRESSES,
    name: "new addresses",
    addresses: among.length,
    signatures: signaturesOf(among),
  };
  return [{ ...spike, change: isOpen ? change : { ...change, state: "started" } }];
};

interface FreshAddress {
  readonly key: string;
  readonly firstDay: number;
  readonly signed: ReadonlyArray<readonly [domain: string, selector: string | null]>;
  readonly rows: readonly SourceDay[];
}

/** Addresses with aligned mail that no report named before, without those of known services and of known organizations. */
const freshAddresses = ({ facts, keyed, rows, reportedDays }: Mail): readonly FreshAddress[] => {
  const fromDay = Math.min(...reportedDays);
  const rowsOf = Map.groupBy(rows, ({ source }) => source);
  const known = new Map<string, number>();
  for (const { shownKey, firstDay, number } of keyed)
    if (rowsOf.has(number)) known.set(shownKey, Math.min(firstDay, known.get(shownKey) ?? firstDay));
  const byIp = Map.groupBy(keyed, ({ evidence }) => evidence.ip ?? "");
  return [...byIp].flatMap(([ip, members]) => {
    const firstDay = Math.min(...members.map((member) => member.firstDay));
    const own = members.flatMap(({ number }) => rowsOf.get(number) ?? []);
    if (ip === "" || firstDay <= fromDay || own.length === 0) return [];
    if (members.some(({ identity }) => identity.service !== null)) return [];
    if (members.some((member) => isNameAwaited(member, facts.domain, facts.nowMs))) return [];
    const [first] = members;
    const key = first?.shownKey ?? "";
    const isKnown = key !== "own" && (known.get(key) ?? firstDay) < firstDay - KNOWN_AFTER_DAYS;
    const isHeavy = daysOf(own).some(({ messages }) => messages >= ADDRESS_MESSAGES_MIN);
    if (isKnown || !isHeavy) return [];
    const signed = members.flatMap(({ evidence: { signer, selector } }) =>
      signer === null ? [] : [[signer, selector] as const],
    );
    return [{ key, firstDay, signed, rows: own }];
  });
};

const countAddresses = (addresses: readonly FreshAddress[]) =>
  sumBy([...Map.groupBy(addresses, ({ key }) => key)], ([key, of]) =>
    key === "own" ? of.length : Math.min(of.length, ADDRESSES_OF_ONE_MAX),
  );

const signaturesOf = (addresses: readonly FreshAddress[]): SpikeData["signatures"] => {
  const counts = new Map<string, { domain: string; selector: string | null; addresses: number }>();
  for (const [domain, selector] of addresses.flatMap(({ signed }) => signed))
    entryOf(counts, `${domain} ${selector ?? ""}`, () => ({ domain, selector, addresses: 0 })).addresses++;
  return [...counts.values()].toSorted((a, b) => b.addresses - a.addresses).slice(0, SIGNATURES_MAX);
};

const dataSchema = z.object({
  state: z.enum(["started", "ended"]).describe("`started`: its totals are updated while the incident lasts."),
  reason: z
    .enum(["volume", "new_addresses"])
    .describe("`volume`: a source sent far more than on any day before. `new_addresses`: many addresses are new."),
  source: nullableText("Key of the source, as in `GET …/sources`; null for `new_addresses`."),
  name: textField("Display name of the source."),
  started_day: dayField("First day of the incident."),
  day: dayField("Its last day so far."),
  messages: integerField("Messages that passed DMARC from the first to the last day."),
  usual_messages: integerField("The most messages of a day before; 0 for `new_addresses`."),
  addresses: integerField("New addresses; 0 for `volume`."),
  signatures: z
    .array(
      z.object({
        domain: textField("Signing domain."),
        selector: nullableText("Selector; null where reports do not give it."),
        addresses: integerField("New addresses whose mail has this signature."),
      }),
    )
    .describe("The aligned DKIM signatures of mail from new addresses, at most five."),
});
type SpikeData = z.output<typeof dataSchema>;

export const VOLUME_SPIKE = alertRule({
  name: "volume_spike",
  words: "Volume",
  description: "Far more mail passes DMARC than usual: of a sender, or from many new addresses.",
  summary:
    "A source sends far more mail that passes DMARC than on any day before, or many new addresses do; once when it starts, and once when it ends",
  title: (text) => (text("state") === "ended" ? "mail volume is usual again" : "far more mail than usual passes DMARC"),
  data: dataSchema,
  example: {
    state: "started",
    reason: "volume",
    source: "service:microsoft-365",
    name: "Microsoft 365",
    started_day: "2026-01-01",
    day: "2026-01-02",
    messages: 3_120,
    usual_messages: 96,
    addresses: 0,
    signatures: [],
  },
  review: findVolumeSpikes,
  // New sources of such an incident are alerted together.
  reviewRank: 2,
  mail: (data, domain) => [
    texts(factsOf(data)),
    ...(data.state === "ended" ? [] : [action(adviceOf(data))]),
    data.source === null
      ? domainLink(domain, "sources", "Show the senders")
      : sourceLink(domain, { key: data.source, name: data.name }, "Show the sender"),
  ],
  open: {
    days: INCIDENT_DAYS_MAX,
    topics: ({ source }) => [source ?? NEW_ADDRESSES],
    holds: ({ data: { state } }) => state !== "ended",
    attention: (data, { domain, path }) => ({
      severity: "warn",
      label: "Volume",
      title:
        data.source === null
          ? `${newAddresses(data.addresses)} send mail that passes as ${domain}`
          : `${shortName(data.name)} sends far more than usual as ${domain}`,
      detail: `${factsOf(data)} ${adviceOf(data)}`,
      action: { text: "See the mail", path: data.source === null ? `${path}/sources` : sourcePath(path, data.source) },
    }),
  },
});

const newAddresses = (count: number) => `${formatCount(count)} new address${count === 1 ? "" : "es"}`;

const factsOf = ({ messages, started_day, day, usual_messages, addresses, source, signatures }: SpikeData): string => {
  const when = started_day === day ? `on ${day}` : `from ${started_day} to ${day}`;
  const many = `${plural(messages, "message")} passed DMARC ${when}`;
  if (source !== null) return `${many}. Before, it was at most ${formatCount(usual_messages)} a day.`;
  const [first] = signatures;
  const signed =
    first === undefined
      ? "None has a DKIM signature of the domain: SPF passed."
      : `Most are signed as ${first.domain}${first.selector === null ? "" : ` with selector ${first.selector}`}.`;
  return `${many}, from ${newAddresses(addresses)}. ${signed}`;
};

const adviceOf = ({ source, signatures }: SpikeData): string => {
  if (source !== null)
    return "If you know of no campaign, look for a compromised account or web form at this sender, and change its passwords and keys. If it is a campaign, mark the source as a bulk sender.";
  return signatures.length === 0
    ? "If these are not your servers, find the part of your SPF record that allows them, and remove it."
    : "If these are not your servers, somebody sends a message that you signed again and again (DKIM replay), or has your key. Publish a new key under another selector, sign with it, and remove the old one.";
};

const spikeAlert = ({ subject, name, change, addresses, signatures }: Spike) => {
  const data: SpikeData = {
    state: change.state === "ended" ? "ended" : "started",
    reason: subject === NEW_ADDRESSES ? NEW_ADDRESSES : "volume",
    source: subject === NEW_ADDRESSES ? null : subject,
    name,
    started_day: isoDay(change.startedDay),
    day: isoDay(change.day),
    messages: change.messages,
    usual_messages: change.usual,
    addresses,
    signatures: [...signatures],
  };
  const who = data.source === null ? newAddresses(addresses) : name;
  const usual = data.source === null ? "" : `, at most ${formatCount(change.usual)} a day before`;
  const summary =
    data.state === "ended"
      ? `${who}: the volume is back to usual after ${plural(change.messages, "message")} since ${data.started_day}`
      : `${who}: ${plural(change.messages, "message")} passed DMARC since ${data.started_day}${usual}`;
  return { rule: "volume_spike", subject, data, summary, cooldown: false };
};

/** None for an alert of another version. */
const readIncident = ({ id, subject, body }: DmarcAlertRow): Incident[] => {
  const read = dataSchema.safeParse(readAlertBody(body).data);
  if (!read.success) return [];
  const { state, started_day, day, messages, usual_messages: usual } = read.data;
  const [startedDay, lastDay] = [parseDay(started_day) ?? 0, parseDay(day) ?? 0];
  return [{ id, subject, startedDay, day: lastDay, messages, usual, isEnded: state === "ended" }];
};
