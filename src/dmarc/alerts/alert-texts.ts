import { isoDay, dayOfTime } from "../../base/days.ts";
import { isoTime } from "../../base/clock.ts";
import type { Campaign } from "./spoofing.ts";
import type { Alert } from "../domains/raise.ts";
import type { Source } from "../sources/source-response.ts";

/** Sources and names told of in one event. */
const TOLD_MAX = 10;
const SHARE_DIGITS = 10_000;
/** Signatures, envelope domains and addresses of a source in an event. */
const PROOFS_MAX = 3;

/** A name below the domain that was not seen in `From` before, with its mail of the last days. */
export interface NewName {
  readonly name: string;
  readonly first_day: string;
  readonly messages: number;
  readonly aligned: number;
}

/** New senders: one, or many at once. The most messages first; never empty. */
export const sourcesAlert = (sources: readonly Source[]): Alert => {
  const [first] = sources;
  const isOne = sources.length === 1 && first !== undefined;
  return {
    rule: "new_source",
    subject: isOne ? first.key : subjectOfMany(sources.map(({ key }) => key)),
    data: { count: sources.length, sources: sources.slice(0, TOLD_MAX).map(toldSource) },
    summary: isOne
      ? `new source ${called(first)}: ${plural(first.messages, "message")}, ${first.aligned} passed DMARC`
      : `${sources.length} new sources`,
    cooldown: true,
  };
};

/** New names in `From`: one, or many at once. The most messages first; never empty. */
export const namesAlert = (names: readonly NewName[]): Alert => {
  const [first] = names;
  const isOne = names.length === 1 && first !== undefined;
  return {
    rule: "new_subdomain",
    subject: isOne ? first.name : subjectOfMany(names.map(({ name }) => name)),
    data: { count: names.length, names: names.slice(0, TOLD_MAX) },
    summary: isOne
      ? `new subdomain ${first.name}: ${plural(first.messages, "message")}, ${first.aligned} passed DMARC`
      : `${names.length} new subdomains`,
    cooldown: true,
  };
};

/** A spoofing campaign; `source` is the unauthenticated mail since it started. */
export const spoofingAlert = ({ startedDay, day, forged }: Campaign, source: Source | undefined): Alert => {
  const networks = source?.network_count ?? 0;
  return {
    rule: "spoofing_campaign",
    subject: isoDay(startedDay),
    data: {
      started_day: isoDay(startedDay),
      day: isoDay(day),
      messages: forged,
      networks,
      quarantined: source?.quarantined ?? 0,
      rejected: source?.rejected ?? 0,
    },
    summary: `spoofing campaign since ${isoDay(startedDay)}: ${plural(forged, "message")} from ${plural(networks, "network")}, all unauthenticated`,
    cooldown: false,
  };
};

/** Reports stopped; `lastDay` is the last day that any report is about. It is told once until reports come again. */
export const silenceAlert = (lastReportAtMs: number, lastDay: number): Alert => ({
  rule: "reports_stopped",
  subject: isoDay(dayOfTime(lastReportAtMs)),
  data: { last_report_at: isoTime(lastReportAtMs), last_day: isoDay(lastDay) },
  summary: `no reports since ${isoDay(dayOfTime(lastReportAtMs))}`,
  cooldown: false,
});

/** Other newcomers on the same day are another subject. */
export const subjectOfMany = (keys: readonly string[]): string =>
  `many:${Bun.hash(keys.toSorted().join("\n")).toString(16)}`;

/** A source as events name it. */
export const toldSource = ({
  key,
  name,
  kind,
  service,
  classification,
  first_day,
  messages,
  aligned,
  dkim,
  spf,
  addresses,
}: Source) => ({
  key,
  name,
  kind,
  service,
  classification,
  first_day,
  messages,
  aligned,
  dkim: dkim.slice(0, PROOFS_MAX),
  spf: spf.slice(0, PROOFS_MAX),
  addresses: addresses.slice(0, PROOFS_MAX),
});

/** The name of a source, with the selector that it signs with for the domain. */
const called = ({ name, dkim }: Source): string => {
  const own = dkim.find(({ aligned, selector }) => aligned && selector !== null);
  return own === undefined ? name : `${name} (signs as ${own.domain}, selector ${own.selector})`;
};

const plural = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

/** A share with four digits. */
export const shareOf = (part: number, whole: number): number =>
  Math.round((part / whole) * SHARE_DIGITS) / SHARE_DIGITS;
