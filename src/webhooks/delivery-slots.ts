import type { Clock } from "../base/clock.ts";
import { isPaced } from "./formats.ts";
import type { WebhookEndpoint } from "./delivery-store.ts";

/** Requests on their way at once, all in all: the platform has 256 for the whole process, and test calls need some. */
export const FAST_MAX = 144;
export const SLOW_MAX = 96;
/** Of the fast places those that URLs may take which have not answered yet: the rest is for those that have. */
export const UNKNOWN_MAX = 112;
/** Of one account and of one host. */
const FAST_PER_OWNER_MAX = 104;
const UNKNOWN_PER_OWNER_MAX = 80;
const SLOW_PER_OWNER_MAX = 64;
/** Requests at once for one URL that answers; one for any other. */
export const PER_URL_MAX = 8;
/** Who has not answered by then is slow: its place is for others. */
export const SLOW_AFTER_MS = 1_000;
/** URLs whose behaviour is remembered; the one that was heard of longest ago goes first. */
const REMEMBERED_MAX = 10_000;

type Standing = "answers" | "unknown" | "slow";

/** A URL that wants to send, with what its limits go by. */
export interface QueuedEndpoint extends WebhookEndpoint {
  readonly key: string;
  readonly host: string;
  /** Its receiver wants one request at a time. */
  readonly isPaced: boolean;
}

/** A place that a queue of a URL has while it is being sent. */
export interface DeliverySlot {
  readonly seeker: QueuedEndpoint;
  readonly abort: AbortController;
  lane: "fast" | "slow";
  readonly standing: Standing;
  /** On the monotonic clock: when the present request began. */
  sinceMs: number;
  /** Whether the present request was given up so that others get the place. */
  isGivenUp: boolean;
}

export const queuedEndpointOf = ({ accountId, mode, url }: WebhookEndpoint): QueuedEndpoint => ({
  ...{ accountId, mode, url },
  key: `${accountId} ${mode} ${url}`,
  host: new URL(url).host,
  isPaced: isPaced(url),
});

/**
 * Who may send now. A URL that answered has places that nobody else can take; one that let its last request hang goes to a lane of
 * its own. A request that hangs moves there, too; when that lane is full and others wait, it is given up and gets its
 * turn there later, with the whole time. So neither many hanging URLs nor an account with many of them hold up others for long.
 */
export const createDeliverySlots = ({ clock }: { readonly clock: Clock }) => {
  const places = new Set<DeliverySlot>();
  const standings = new Map<string, Standing>();
  const counts = new Map<string, number>();

  const count = (key: string): number => counts.get(key) ?? 0;
  const keysOf = ({ seeker, lane, standing }: DeliverySlot): string[] => {
    const groups = [lane, ...(lane === "fast" && standing === "unknown" ? ["unknown"] : [])];
    const scopes = ["", `account ${seeker.accountId}`, `host ${seeker.host}`];
    return [`url ${seeker.key}`, ...groups.flatMap((group) => scopes.map((scope) => `${group} ${scope}`))];
  };
  const add = (place: DeliverySlot, by: 1 | -1): void => {
    for (const key of keysOf(place)) {
      const now = count(key) + by;
      if (now === 0) counts.delete(key);
      else counts.set(key, now);
    }
  };
  const fits = (group: string, { accountId, host }: QueuedEndpoint, all: number, each: number): boolean =>
    count(`${group} `) < all && count(`${group} account ${accountId}`) < each && count(`${group} host ${host}`) < each;

  const standingOf = ({ key }: QueuedEndpoint): Standing => standings.get(key) ?? "unknown";

  const laneFor = (seeker: QueuedEndpoint): DeliverySlot["lane"] | null => {
    const standing = standingOf(seeker);
    const perUrl = standing === "answers" && !seeker.isPaced ? PER_URL_MAX : 1;
    if (count(`url ${seeker.key}`) >= perUrl) return null;
    if (standing === "slow") return fits("slow", seeker, SLOW_MAX, SLOW_PER_OWNER_MAX) ? "slow" : null;
    if (!fits("fast", seeker, FAST_MAX, FAST_PER_OWNER_MAX)) return null;
    if (standing === "answers") return "fast";
    return fits("unknown", seeker, UNKNOWN_MAX, UNKNOWN_PER_OWNER_MAX) ? "fast" : null;
  };

  return {
    /** Whether there is a place for a URL. */
    hasRoom: (seeker: QueuedEndpoint): boolean => laneFor(seeker) !== null,
    /** Whether the last request to a URL hung. */
    isSlow: (seeker: QueuedEndpoint): boolean => standingOf(seeker) === "slow",
    /** How many places a URL has. */
    countOf: ({ key }: QueuedEndpoint): number => count(`url ${key}`),
    /** A place for a URL; null while it has to wait. */
    take(seeker: QueuedEndpoint): DeliverySlot | null {
      const lane = laneFor(seeker);
      if (lane === null) return null;
      const abort = new AbortController();
      const standing = standingOf(seeker);
      const place: DeliverySlot = { seeker, abort, lane, standing, sinceMs: clock.monotonicMs(), isGivenUp: false };
      places.add(place);
      add(place, 1);
      return place;
    },
    giveBack(place: DeliverySlot): void {
      if (places.delete(place)) add(place, -1);
    },
    /** Whether nothing at all can begin. */
    isFull: (): boolean => count("fast ") >= FAST_MAX && count("slow ") >= SLOW_MAX,

    /** The next request of a place begins. */
    begin(place: DeliverySlot): void {
      place.sinceMs = clock.monotonicMs();
    },
    /** A request ended: whether it was answered at all, and in time to be no burden to others. */
    ended({ seeker: { key }, sinceMs }: DeliverySlot, isAnswered: boolean, isHung: boolean): void {
      standings.delete(key);
      const wasQuick = clock.monotonicMs() - sinceMs < SLOW_AFTER_MS;
      if (isHung) standings.set(key, "slow");
      else if (isAnswered && wasQuick) standings.set(key, "answers");
      const [oldest] = standings.keys();
      if (standings.size > REMEMBERED_MAX && oldest !== undefined) standings.delete(oldest);
    },

    /** Moves requests that hang out of the fast places; where that cannot be and others wait, gives them up. */
    review(othersWait: boolean): void {
      for (const place of places) {
        if (place.lane === "slow" || clock.monotonicMs() - place.sinceMs < SLOW_AFTER_MS) continue;
        if (fits("slow", place.seeker, SLOW_MAX, SLOW_PER_OWNER_MAX)) {
          add(place, -1);
          place.lane = "slow";
          add(place, 1);
        } else if (othersWait && !place.isGivenUp) {
          place.isGivenUp = true;
          place.abort.abort();
        }
      }
    },
  };
};

export type DeliverySlots = ReturnType<typeof createDeliverySlots>;
