import { z } from "zod";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { Blocklist } from "./lists/blocklist.ts";
import { type CheckView, checkView } from "./check-body.ts";
import type { BlocklistStore, TargetRow } from "./store.ts";
import type { CheckFilter, EventDelivery, TargetEvent, TargetHistoryStore } from "./target-history-store.ts";
import type { TargetLookups } from "./target-lookup.ts";
import { buildTimelines, type ListTimeline, sampleOf, timelineStartMs } from "./timeline.ts";
import { DELISTING_REASONS } from "./transition.ts";

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

export interface TargetHistoryDeps {
  readonly store: TargetHistoryStore;
  readonly blocklists: Pick<BlocklistStore, "checksById">;
  readonly lookups: TargetLookups;
  /** The whole catalogue, for names. */
  readonly catalogue: Readonly<Record<TargetRow["mode"], readonly Blocklist[]>>;
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
    private readonly deps: TargetHistoryDeps,
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
  page(
    targetId: string,
    filter: CheckFilter,
    { page, perPage }: { readonly page: number; readonly perPage: number },
  ): CheckPage {
    const checks = this.#checks(targetId, filter, { offset: (page - 1) * perPage, limit: perPage });
    return { checks, total: this.deps.store.countChecks(targetId, filter) };
  }

  #checks(targetId: string, filter: CheckFilter, window: { offset: number; limit: number }): CheckView[] {
    const ids = this.deps.store.checkIds(targetId, filter, window);
    return this.deps.blocklists.checksById(ids).map(checkView);
  }
}

const namesOf = (lists: readonly Blocklist[]): ReadonlyMap<string, string> =>
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
const keyOf = (change: TargetChangeView["change"], address: string, listing: string, at: string): string =>
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
  { target, sent, names }: ChangeNames & { readonly sent: ReadonlyMap<string, SentChange> },
): Change[] => {
  const at = check.finished_at ?? check.started_at;
  const changed =
    (kind: Change["change"]) =>
    (listing: string): Change => {
      const event = sent.get(keyOf(kind, check.address ?? target.value, listing, at));
      return {
        ...{ atMs: Date.parse(at), change: kind, listing, name: names.get(listing) ?? listing },
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
  ...{ atMs, change: "delisted", listing, name: names.get(listing) ?? listing, reason: "list_muted", webhook },
  address: address === target.value ? null : address,
  mailedTo: null,
});

/** When the listing of a removal had been added. `all` are the changes, newest first. */
const addedBefore = (all: readonly Change[], at: number): number | null => {
  const own = all[at];
  if (own === undefined || own.change === "listed") return null;
  const before = all.slice(at + 1).find(({ listing, address }) => listing === own.listing && address === own.address);
  return before?.change === "listed" ? before.atMs : null;
};
