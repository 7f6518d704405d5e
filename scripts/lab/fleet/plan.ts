import type { FleetRecords } from "./dns.ts";
import type { Chance } from "./chance.ts";

/** What a sender is, as an experienced administrator says who knows everything. */
export type Kind = "authorized" | "misconfigured" | "forwarder" | "threat" | "unknown";

/** A host that hands mail to receivers. */
export interface Host {
  readonly ip: string;
}

export interface Signed {
  readonly domain: string;
  readonly selector: string;
  readonly result: "pass" | "fail" | "temperror" | "permerror";
}

/** How a message looks to the receiver. */
export interface Mail {
  readonly headerFrom: string;
  readonly envelope: string;
  readonly spf: { readonly domain: string; readonly result: "pass" | "fail" | "softfail" | "neutral" | "none" };
  readonly dkim: readonly Signed[];
  /** Why a receiver may override its policy: a list that seals (ARC), a list, or a forwarder that it knows. */
  readonly passedOn: "arc" | "list" | "forwarder" | null;
}

/** One true sender of a domain. Days are counted from the start of the simulation, which is a Monday. */
export interface Stream {
  /** What an administrator calls it. */
  readonly who: string;
  /** The truth; further ones are also right by an expert's view. */
  readonly accept: readonly [Kind, ...Kind[]];
  /** Forgers and passers-by, whom nobody needs told apart from each other. */
  readonly isPooled?: boolean;
  readonly volume: (day: number, chance: Chance) => number;
  /** The hosts in use on a day. */
  readonly hosts: (day: number, chance: Chance) => readonly Host[];
  readonly mail: (day: number, host: Host, chance: Chance) => Mail;
}

/** Something that an owner must be told, once. */
export interface PlannedEvent {
  readonly what: string;
  readonly day: number;
  /** Alerted within this number of days. */
  readonly within: number;
  /** The rule must be one of these, and the text must fit. */
  readonly rules: readonly string[];
  readonly about: RegExp | null;
  /** What the text must name for the owner to know the cause. */
  readonly cause: RegExp | null;
  /** Also right: not told at all (it may be, once). */
  readonly isOptional?: boolean;
  /** The day on which it is over: one more message that says so is right. */
  readonly endDay?: number;
  /** Rules that may tell of the same thing beside. */
  readonly beside?: readonly string[];
}

/** What the advice should say on a day (noon). */
export interface Checkpoint {
  readonly day: number;
  /** Right next steps; null stands for none. */
  readonly actions: ReadonlyArray<string | null>;
  /** What the step, its reason and the open requirements must name. */
  readonly names: RegExp | null;
  /** What the step and its reason must not say. */
  readonly never?: RegExp;
  /** The stage of enforcement, where it matters. */
  readonly stage?: string;
  /** What the record to publish must look like. */
  readonly record?: RegExp;
  readonly expert: string;
}

export interface DnsChange {
  readonly day: number;
  readonly name: string;
  /** Null removes the name. */
  readonly records: FleetRecords | null;
}

export interface DomainPlan {
  readonly name: string;
  readonly theme: string;
  /** The record of a day behind `v=DMARC1; `, `{rua}` for our address; null: none. */
  readonly record: (day: number) => string | null;
  readonly streams: readonly Stream[];
  /** Names of reporters, see `reporters.ts`. */
  readonly reporters: readonly string[];
  readonly events: readonly PlannedEvent[];
  readonly checkpoints: readonly Checkpoint[];
  readonly dns: readonly DnsChange[];
  readonly enrolDay?: number;
  /** Other records for some hours. */
  readonly lapses?: ReadonlyArray<{
    readonly day: number;
    readonly hours: readonly [from: number, to: number];
    readonly record: string;
  }>;
  /** Days on which the DNS fails for its record, by day and night. */
  readonly isUnreachable?: (day: number) => boolean;
  /** Addresses whose reverse names the DNS does not say for some hours from the beginning of a day. */
  readonly unanswered?: ReadonlyArray<{ readonly ip: string; readonly day: number; readonly hours: number }>;
  /** Days on which no reporter sends anything. */
  readonly isSilent?: (day: number) => boolean;
  /** What the owner sets, by PATCH. */
  readonly changes?: ReadonlyArray<{ readonly day: number; readonly body: Readonly<Record<string, unknown>> }>;
  /** Forged every day, so that its digests must say so. */
  readonly isForgedSteadily?: boolean;
  /** Somebody mails forged reports about it. */
  readonly isReportForged?: boolean;
}

/** The last day about which receivers report. */
export const END = 74;

export const WEEK = 7;
/** 0 is Monday, for days before the start as well. */
export const weekdayOf = (day: number): number => ((day % WEEK) + WEEK) % WEEK;
export const isWeekend = (day: number): boolean => weekdayOf(day) >= 5;

/** About `count`, give or take a few percent. */
const about = (count: number, chance: Chance): number => Math.max(0, Math.round(count * (0.92 + 0.16 * chance.next())));

type Volume = Stream["volume"];

/** Mail of an office: little on weekends. */
export const office =
  (count: number, weekend = 0.25): Volume =>
  (day, chance) =>
    about(isWeekend(day) ? count * weekend : count, chance);
/** The same every day. */
export const daily =
  (count: number): Volume =>
  (_day, chance) =>
    about(count, chance);
/** On one day of the week, 0 is Monday. */
export const weekly =
  (weekday: number, count: number): Volume =>
  (day, chance) =>
    weekdayOf(day) === weekday ? about(count, chance) : 0;
/** Every thirty days. */
export const monthly =
  (first: number, count: number): Volume =>
  (day, chance) =>
    day >= first && (day - first) % 30 === 0 ? about(count, chance) : 0;
/** Now and then: on each day between none and `most`, mostly none. */
export const rarely =
  (probability: number, most: number): Volume =>
  (_day, chance) =>
    chance.hits(probability) ? chance.whole(1, most) : 0;
/** Another part of the usual mail on one day: a holiday. */
export const holiday =
  (on: number, part: number, volume: Volume): Volume =>
  (day, chance) =>
    Math.round(volume(day, chance) * (day === on ? part : 1));
/** From one day up to another, without it. */
export const between =
  (from: number, to: number, volume: Volume): Volume =>
  (day, chance) =>
    day >= from && day < to ? volume(day, chance) : 0;
