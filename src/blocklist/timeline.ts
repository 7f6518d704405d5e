import { z } from "zod";
import { DAY_MS } from "../foundation/base/days.ts";
import { type Blocklist, severityOf } from "./lists/blocklist.ts";
import type { Severity } from "../foundation/base/severity.ts";
import type { TargetRow } from "./store.ts";
import type { CheckHead } from "./target-history-store.ts";

/** What is known about a target on a list: `none` where the list was not queried. */
export const LIST_STATES = ["listed", "unknown", "clean", "none"] as const;
export type ListState = (typeof LIST_STATES)[number];

/** A time during which the state did not change, from check to check. */
export interface ListSpan {
  readonly state: Exclude<ListState, "none">;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface ListTimeline {
  readonly list: string;
  readonly name: string;
  readonly severity: Severity;
  /** As the last check found it. */
  readonly now: ListState;
  readonly isMuted: boolean;
  /** Why it is unknown now, and what may help. */
  readonly reason: string | null;
  readonly remedy: string | null;
  /** Oldest first, with gaps where nothing was checked. */
  readonly spans: readonly ListSpan[];
}

export const TIMELINE_DAYS = 90;
/** Of the checks without a change, the last in each of these periods is read. Scheduled checks run every six hours or more often. */
const SAMPLE_MS = 6 * 60 * 60_000;
const OLD_SAMPLE_MS = 2 * SAMPLE_MS;
const OLD_MS = 14 * DAY_MS;
/** Without a check for longer than this nothing is known. */
const GAP_MS = 13 * 60 * 60_000;
/** Changes that are read: more only happen to a listing that comes and goes with every check. */
const CHANGES_MAX = 500;

/** The part of a stored check that a timeline needs. */
const bodySchema = z.object({
  listed_on: z.array(z.string()),
  counts: z.object({ not_listed: z.number() }),
  not_listed: z.array(z.string()).optional(),
  results: z.array(z.object({ list: z.string(), outcome: z.string() })),
});
/** Why a list gave no usable response. */
const reasonSchema = z.object({
  results: z.array(z.object({ list: z.string(), reason: z.string().nullable(), remedy: z.string().nullable() })),
});

export const timelineStartMs = (nowMs: number): number => nowMs - TIMELINE_DAYS * DAY_MS;

/** Of checks, newest first, those whose bodies a timeline needs: every change, and the last check in each period; at most 710. */
export const sampleOf = (heads: readonly CheckHead[], nowMs: number): string[] => {
  let period = Number.NaN;
  let changes = 0;
  return heads.flatMap(({ id, finishedAtMs, isChange }) => {
    const own = Math.floor(finishedAtMs / (nowMs - finishedAtMs > OLD_MS ? OLD_SAMPLE_MS : SAMPLE_MS));
    const isFirst = own !== period;
    period = own;
    if (isChange === 1) changes += 1;
    return isFirst || (isChange === 1 && changes <= CHANGES_MAX) ? [id] : [];
  });
};

interface Sample {
  readonly atMs: number;
  /** The state on a list, by the id of the list. */
  readonly stateOn: (listId: string) => ListState;
}

interface TimelineInput {
  readonly target: Pick<TargetRow, "kind" | "mutedLists">;
  /** The lists in use. */
  readonly lists: readonly Blocklist[];
  /** Newest first. */
  readonly heads: readonly CheckHead[];
  readonly bodies: ReadonlyMap<string, string>;
  readonly nowMs: number;
}

/** Each list with its states since the first check that was read, the lists that need a look first. */
export const buildTimelines = ({ target, lists, heads, bodies, nowMs }: TimelineInput): ListTimeline[] => {
  const listOf = new Map(lists.flatMap(({ id, codes }) => codes.map((code) => [code.id, id] as const)));
  const samples = heads.toReversed().flatMap(({ id, finishedAtMs }): Sample[] => {
    const body = bodies.get(id);
    return body === undefined ? [] : [{ atMs: finishedAtMs, stateOn: statesIn(body, listOf) }];
  });
  const newest = heads[0] === undefined ? undefined : bodies.get(heads[0].id);
  const reasons = newest === undefined ? [] : reasonSchema.parse(JSON.parse(newest)).results;
  const timesMs = heads.toReversed().map(({ finishedAtMs }) => finishedAtMs);
  const stretches = stretchesOf(timesMs, nowMs).map(({ fromMs, toMs }) => ({
    toMs,
    samples: samples.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs),
  }));
  return lists
    .filter(({ kinds }) => kinds.includes(target.kind))
    .map((list) => {
      const { spans, now } = timelineOf(list.id, stretches);
      const { reason = null, remedy = null } =
        (now === "unknown" ? reasons.find((result) => result.list === list.id) : undefined) ?? {};
      const isMuted = target.mutedLists.includes(list.id);
      return { list: list.id, name: list.name, severity: severityOf(list), now, isMuted, reason, remedy, spans };
    })
    .toSorted((a, b) => LIST_STATES.indexOf(a.now) - LIST_STATES.indexOf(b.now) || listedMs(b) - listedMs(a));
};

const listedMs = ({ spans }: ListTimeline): number =>
  spans.reduce((sum, { state, fromMs, toMs }) => sum + (state === "listed" ? toMs - fromMs : 0), 0);

interface Stretch {
  readonly samples: readonly Sample[];
  readonly toMs: number;
}

/** The times in which checks followed each other; the last one lasts until now if the last check is recent. */
const stretchesOf = (timesMs: readonly number[], nowMs: number) => {
  const stretches: Array<{ fromMs: number; toMs: number }> = [];
  for (const atMs of timesMs) {
    const last = stretches.at(-1);
    if (last !== undefined && atMs - last.toMs <= GAP_MS) last.toMs = atMs;
    else stretches.push({ fromMs: atMs, toMs: atMs });
  }
  const last = stretches.at(-1);
  if (last !== undefined && nowMs - last.toMs <= GAP_MS) last.toMs = nowMs;
  return stretches;
};

/** What a check found out about each list. A listing stands while its list does not respond. */
const statesIn = (text: string, listOf: ReadonlyMap<string, string>): Sample["stateOn"] => {
  const { listed_on, counts, not_listed, results } = bodySchema.parse(JSON.parse(text));
  const otherwise = not_listed === undefined && counts.not_listed > 0 ? "clean" : "none";
  const states = new Map<string, ListState>(not_listed?.map((id) => [id, "clean"]));
  // Listed without being in `listed_on`: the listing is muted.
  for (const { list, outcome } of results) states.set(list, outcome === "listed" ? "none" : "unknown");
  for (const listing of listed_on) states.set(listOf.get(listing) ?? "", "listed");
  return (id) => states.get(id) ?? otherwise;
};

const timelineOf = (listId: string, stretches: readonly Stretch[]): Pick<ListTimeline, "now" | "spans"> => {
  const spans: Array<{ state: ListSpan["state"]; fromMs: number; toMs: number }> = [];
  for (const { samples, toMs: endMs } of stretches) {
    for (const [at, { atMs, stateOn }] of samples.entries()) {
      const state = stateOn(listId);
      const toMs = samples[at + 1]?.atMs ?? endMs;
      const last = spans.at(-1);
      if (state === "none") continue;
      if (last?.state === state && last.toMs === atMs) last.toMs = toMs;
      else spans.push({ state, fromMs: atMs, toMs });
    }
  }
  return { now: stretches.at(-1)?.samples.at(-1)?.stateOn(listId) ?? "none", spans };
};
