import { z } from "zod";
import type { Runtime } from "../foundation/db/runtime.ts";
import { type Blocklist, severityOf } from "./lists/blocklist.ts";
import { type CheckView, checkView, DELISTING_REASONS } from "./check-result.ts";
import type { BlocklistStore, TargetRow } from "./store.ts";
import type { CheckFilter, EventDelivery, TargetEvent, TargetHistoryStore, CheckHead } from "./listing-store.ts";
import type { TargetLookups } from "./target-lookup.ts";
import { DAY_MS } from "../foundation/base/days.ts";
import type { Severity } from "../foundation/base/severity.ts";

/** How a change was sent. `feed_only`: below the threshold; `none`: there is no webhook. */
export type WebhookOutcome = "delivered" | "waiting" | "failed" | "feed_only" | "none";

/** A listing that was added or removed. */
export interface TargetChangeView {
  readonly atMs: number;
  readonly change: "listed" | "delisted";
  readonly listing: string;
  readonly name: string;
  /** The address, in a range. */
  readonly address: string | null;
  /** Why it was removed; null when that is not known or it was added. */
  readonly reason: (typeof DELISTING_REASONS)[number] | null;
  /** When it had been added, for a removal; null when that is not known any more. */
  readonly sinceMs: number | null;
  /** Null when the event has expired (30 days). */
  readonly webhook: WebhookOutcome | null;
  /** Recipients of alert mail; null when that is not known. */
  readonly mailedTo: number | null;
}

export interface CheckPage {
  readonly checks: readonly CheckView[];
  readonly total: number;
}

/** More checks within 90 days than an hourly schedule makes. */
const HEADS_MAX = 5_000;
/** Checks with changes that are read for the latest changes. */
const CHANGES_READ = 60;
const EVENTS_READ = 200;

const eventSchema = z.object({
  target: z.string(),
  listing: z.string(),
  checked_at: z.string(),
  check_id: z.string().nullable(),
  reason: z.enum(DELISTING_REASONS).optional(),
});

/** The history of one target: states of 90 days for each list, changes with how they were sent, checks. */
export class TargetHistory {
  constructor(
    private readonly runtime: Pick<Runtime, "clock">,
    private readonly deps: {
      store: TargetHistoryStore;
      blocklists: Pick<BlocklistStore, "checksById">;
      lookups: TargetLookups;
      /** The whole catalogue, for names. */
      catalogue: Readonly<Record<TargetRow["mode"], readonly Blocklist[]>>;
    },
  ) {}

  /** Of a target that is checked itself; a range has none. Reads at most 710 checks. */
  timelines(target: TargetRow): ListTimeline[] {
    const { store, lookups } = this.deps;
    const nowMs = this.runtime.clock.nowMs();
    const heads = store.heads(target.id, timelineStartMs(nowMs), HEADS_MAX);
    const bodies = store.bodies(sampleOf(heads, nowMs));
    return buildTimelines({ target, lists: lookups[target.mode].lists, heads, bodies, nowMs });
  }

  /** The latest changes, the newest first; muted listings included. */
  changes(target: TargetRow, limit: number): TargetChangeView[] {
    const { store } = this.deps;
    const events = store.events(target, target.id, EVENTS_READ);
    const sent = sentByKey(events, store.deliveries(events.map(({ id }) => id)));
    const checks = this.#checks(target.id, { isChange: true }, { offset: 0, limit: CHANGES_READ });
    const names = namesOf(this.deps.catalogue[target.mode]);
    const entries = checks.flatMap((check) => changesOf(check, { target, sent, names }));
    const muted = [...sent.values()].flatMap((one) => (one.isMuted ? mutedChange(one, { target, names }) : []));
    const all = [...entries, ...muted].toSorted((a, b) => b.atMs - a.atMs);
    return all.slice(0, limit).map((entry, at) => ({ ...entry, sinceMs: addedBefore(all, at) }));
  }

  /** One page of checks, the newest first. */
  page(targetId: string, filter: CheckFilter, { page, perPage }: { page: number; perPage: number }): CheckPage {
    const checks = this.#checks(targetId, filter, { offset: (page - 1) * perPage, limit: perPage });
    return { checks, total: this.deps.store.countChecks(targetId, filter) };
  }

  #checks(targetId: string, filter: CheckFilter, window: { offset: number; limit: number }): CheckView[] {
    const ids = this.deps.store.checkIds(targetId, filter, window);
    return this.deps.blocklists.checksById(ids).map(checkView);
  }
}

const namesOf = (lists: readonly Blocklist[]) =>
  new Map(lists.flatMap(({ codes }) => codes.map(({ id, name }) => [id, name])));

/** An event with what became of it. */
interface SentChange {
  readonly atMs: number;
  readonly address: string;
  readonly listing: string;
  readonly reason: z.output<typeof eventSchema>["reason"];
  readonly isMuted: boolean;
  readonly webhook: WebhookOutcome;
}

/** What identifies a change in the history and in the events. */
const keyOf = (change: TargetChangeView["change"], address: string, listing: string, at: string) =>
  [change, address, listing, at].join(" ");

const sentByKey = (
  events: readonly TargetEvent[],
  deliveries: readonly EventDelivery[],
): ReadonlyMap<string, SentChange> => {
  const byEvent = Map.groupBy(deliveries, ({ eventId }) => eventId);
  return new Map(
    events.flatMap((event) => {
      const read = eventSchema.safeParse(JSON.parse(event.data));
      if (!read.success) return [];
      const { target: address, listing, checked_at, check_id, reason } = read.data;
      const webhook = webhookOf(event, byEvent.get(event.id) ?? []);
      const atMs = Date.parse(checked_at);
      const isMuted = check_id === null && reason === "list_muted";
      const change = reason === undefined ? "listed" : "delisted";
      return [
        [keyOf(change, address, listing, checked_at), { atMs, address, listing, reason, isMuted, webhook }] as const,
      ];
    }),
  );
};

const webhookOf = ({ createdAtMs, deliveredAtMs }: TargetEvent, deliveries: readonly EventDelivery[]) => {
  const has = (...wanted: readonly EventDelivery["status"][]) =>
    deliveries.some(({ status }) => wanted.includes(status));
  if (deliveredAtMs === null || has("pending")) return "waiting";
  if (has("failed", "rejected", "cancelled")) return "failed";
  if (has("delivered")) return "delivered";
  return deliveredAtMs === createdAtMs ? "feed_only" : "none";
};

type Change = Omit<TargetChangeView, "sinceMs">;
type ChangeNames = { readonly target: TargetRow; readonly names: ReadonlyMap<string, string> };

const changesOf = (
  check: CheckView,
  { target, sent, names }: ChangeNames & { sent: ReadonlyMap<string, SentChange> },
): Change[] => {
  const at = check.finished_at ?? check.started_at;
  const changed =
    (kind: Change["change"]) =>
    (listing: string): Change => {
      const event = sent.get(keyOf(kind, check.address ?? target.value, listing, at));
      return {
        atMs: Date.parse(at),
        change: kind,
        listing,
        name: names.get(listing) ?? listing,
        address: check.address ?? null,
        reason: event?.reason ?? null,
        webhook: event?.webhook ?? null,
        mailedTo: check.mailed_to ?? null,
      };
    };
  return [...check.added.map(changed("listed")), ...check.removed.map(changed("delisted"))];
};

/** A listing that was removed because somebody muted it is in no check. */
const mutedChange = ({ atMs, address, listing, webhook }: SentChange, { target, names }: ChangeNames): Change => ({
  atMs,
  change: "delisted",
  listing,
  name: names.get(listing) ?? listing,
  reason: "list_muted",
  webhook,
  address: address === target.value ? null : address,
  mailedTo: null,
});

/** When the listing of a removal had been added. `all` are the changes, newest first. */
const addedBefore = (all: readonly Change[], at: number) => {
  const own = all[at];
  if (own === undefined || own.change === "listed") return null;
  const before = all.slice(at + 1).find(({ listing, address }) => listing === own.listing && address === own.address);
  return before?.change === "listed" ? before.atMs : null;
};

/** What is known about a target on a list: `none` where the list was not queried. */
export const LIST_STATES = ["listed", "unknown", "clean", "none"] as const;
type ListState = (typeof LIST_STATES)[number];

/** A time during which the state did not change, from check to check; `bridged`: nothing was checked, and it was listed before and after. */
export interface ListSpan {
  readonly state: Exclude<ListState, "none"> | "bridged";
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
  /** How many times it listed the target in this time, by the changes that checks found; a pause in checking ends no listing. */
  readonly listings: number;
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
  added: z.array(z.string()).default([]),
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
  /** How many listings of a list are new since the check before. */
  readonly addedBy: (listId: string) => number;
}

/** Each list with its states since the first check that was read, the lists that need a look first. */
export const buildTimelines = ({
  target,
  lists,
  heads,
  bodies,
  nowMs,
}: {
  target: Pick<TargetRow, "kind" | "mutedLists">;
  /** The lists in use. */
  lists: readonly Blocklist[];
  /** Newest first. */
  heads: readonly CheckHead[];
  bodies: ReadonlyMap<string, string>;
  nowMs: number;
}): ListTimeline[] => {
  const listOf = new Map(lists.flatMap(({ id, codes }) => codes.map((code) => [code.id, id] as const)));
  const samples = heads.toReversed().flatMap(({ id, finishedAtMs }): Sample[] => {
    const body = bodies.get(id);
    return body === undefined ? [] : [{ atMs: finishedAtMs, ...sampleIn(body, listOf) }];
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
      const { spans, now, listings } = timelineOf(list.id, stretches);
      const { reason = null, remedy = null } =
        (now === "unknown" ? reasons.find((result) => result.list === list.id) : undefined) ?? {};
      const isMuted = target.mutedLists.includes(list.id);
      const facts = { list: list.id, name: list.name, severity: severityOf(list) };
      return { ...facts, now, isMuted, reason, remedy, spans, listings };
    })
    .toSorted((a, b) => LIST_STATES.indexOf(a.now) - LIST_STATES.indexOf(b.now) || listedMs(b) - listedMs(a));
};

const listedMs = ({ spans }: ListTimeline) =>
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
const sampleIn = (text: string, listOf: ReadonlyMap<string, string>): Omit<Sample, "atMs"> => {
  const { listed_on, added, counts, not_listed, results } = bodySchema.parse(JSON.parse(text));
  const otherwise = not_listed === undefined && counts.not_listed > 0 ? "clean" : "none";
  const states = new Map<string, ListState>(not_listed?.map((id) => [id, "clean"]));
  // Listed without being in `listed_on`: the listing is muted.
  for (const { list, outcome } of results) states.set(list, outcome === "listed" ? "none" : "unknown");
  for (const listing of listed_on) states.set(listOf.get(listing) ?? "", "listed");
  return {
    stateOn: (id) => states.get(id) ?? otherwise,
    addedBy: (id) => added.filter((listing) => listOf.get(listing) === id).length,
  };
};

const timelineOf = (
  listId: string,
  stretches: readonly Stretch[],
): Pick<ListTimeline, "now" | "spans" | "listings"> => {
  const spans: Array<{ state: ListSpan["state"]; fromMs: number; toMs: number }> = [];
  let before: ListState = "none";
  let listings = 0;
  for (const { samples, toMs: endMs } of stretches) {
    for (const [at, { atMs, stateOn, addedBy }] of samples.entries()) {
      const state = stateOn(listId);
      const toMs = samples[at + 1]?.atMs ?? endMs;
      const last = spans.at(-1);
      const isSame = before === "listed" && state === "listed" && addedBy(listId) === 0;
      // What was listed before the first check has no change.
      listings += Math.max(addedBy(listId), spans.length === 0 && state === "listed" ? 1 : 0);
      before = state;
      if (state === "none") continue;
      if (last?.state === state && last.toMs === atMs) last.toMs = toMs;
      else {
        if (isSame && last !== undefined) spans.push({ state: "bridged", fromMs: last.toMs, toMs: atMs });
        spans.push({ state, fromMs: atMs, toMs });
      }
    }
  }
  return { now: stretches.at(-1)?.samples.at(-1)?.stateOn(listId) ?? "none", spans, listings };
};
