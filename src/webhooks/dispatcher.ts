import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/secrets.ts";
import type { Db } from "../db/open.ts";
import type { EventStore } from "./event-store.ts";
import { PACE_MS } from "./formats.ts";
import { createDeliverySlots, type DeliverySlot, type QueuedEndpoint, queuedEndpointOf } from "./delivery-slots.ts";
import { createAttemptRecorder } from "./attempt-recorder.ts";
import type { WebhookSecrets } from "./secrets.ts";
import type { Sender } from "./send.ts";
import type { Delivery, WebhookEndpoint, WebhookQueue, DeliveryStore } from "./delivery-store.ts";
import { createOutboxRelay, EVENTS_AT_ONCE_MAX, type OutboxRelayDeps } from "./outbox-relay.ts";

export interface DispatcherDeps {
  readonly db: Db;
  readonly store: DeliveryStore;
  readonly events: EventStore;
  /** The URL that all events of an account and mode go to, beside that of their subject. */
  readonly defaultUrl: OutboxRelayDeps["defaultUrl"];
  readonly secrets: WebhookSecrets;
  readonly send: Sender;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Events that may wait for one URL of an account; 100,000 unless said. */
  readonly pendingMax?: number;
}

/** A queue gives its place back after so many, so that a long one does not hold up others. */
const SENT_IN_A_ROW_MAX = 100;
/** Slices write their events without a word to anybody: the outbox is looked at this often. */
export const LOOK_EVERY_MS = 1_000;
/** URLs looked at in one go; the next look goes on behind them. */
const SCANNED_AT_ONCE_MAX = 2_000;
const DRAIN_MS_MAX = 2_000;
/** After an attempt that could not be recorded (disk full): it is made again, and the receiver must not get it in a loop. */
export const REST_MS = 60_000;
/** With so many that could not be recorded nothing else will be: nothing more is sent meanwhile. */
const RESTING_MAX = 256;

/**
 * Carries events from the outbox to their URLs. Everything that must survive is a row: what a killed process did not
 * record is sent again under the same id. The events of an account and mode about one subject go to a URL one after the other in their
 * order; many subjects and URLs are served at once, and `delivery-slots.ts` limits who may send.
 */
export const createDispatcher = (deps: DispatcherDeps) => {
  const { store, secrets, send, clock, log } = deps;
  const places = createDeliverySlots({ clock });
  /** The queues being sent. */
  const running = new Map<string, Promise<void>>();
  /** Queues whose last attempt could not be recorded: how to end their rest. */
  const resting = new Map<string, () => void>();
  /** URLs that something is due for, those that wait longest first. */
  const due = new Map<string, QueuedEndpoint>();
  /** When a URL may be called again that is paced, or has just asked to wait, on the monotonic clock. */
  const quietUntilMs = new Map<string, number>();
  const takeOver = createOutboxRelay(deps);
  const record = createAttemptRecorder(deps);
  let scanned: WebhookEndpoint | null = null;
  let cancelLook: (() => void) | null = null;
  let looking: Promise<void> | null = null;
  let lookAgain = false;
  let stopped = true;

  const isQuiet = ({ key }: QueuedEndpoint): boolean => (quietUntilMs.get(key) ?? 0) > clock.monotonicMs();
  const beQuiet = ({ key }: QueuedEndpoint, forMs: number): void => {
    quietUntilMs.set(key, Math.max(quietUntilMs.get(key) ?? 0, clock.monotonicMs() + forMs));
  };

  /** Sends one event; false when the queue is not to go on. What was cancelled, moved or put off meanwhile is left alone. */
  const sendOne = async (id: string, place: DeliverySlot, written: Array<Promise<void>>): Promise<boolean> => {
    const delivery = store.find(id);
    const isMine = delivery?.status === "pending" && delivery.url === place.seeker.url;
    const isLimited = store.pausedUntil(delivery ?? place.seeker) > clock.nowMs();
    if (stopped || !isMine || isLimited || (!place.seeker.isPaced && isQuiet(place.seeker))) return false;
    places.begin(place);
    const { eventId, url, body } = delivery;
    const { signal } = place.abort;
    const end = await send({ id: eventId, url, body, secrets: await secrets.signing(delivery), signal });
    places.ended(place, end.httpStatus !== null, end.hung);
    // Given up for the sake of others, not failed: it gets its whole time later.
    if (place.isGivenUp && end.httpStatus === null) return false;
    // The others that are sending to it stop now, not when this is written down.
    if (end.limited && end.retryAfterMs !== null) beQuiet(place.seeker, Math.min(end.retryAfterMs, LOOK_EVERY_MS));
    written.push(record(delivery, end));
    return end.taken && !place.isGivenUp;
  };

  /** Sends the first ones of a queue as long as they are taken. The next is sent while the last is being written down. */
  const sendQueue = async (head: Delivery, place: DeliverySlot): Promise<void> => {
    const written: Array<Promise<void>> = [];
    try {
      for (const { id } of store.queue(head, place.seeker.isPaced ? 1 : SENT_IN_A_ROW_MAX)) {
        if (!(await sendOne(id, place, written))) break;
      }
    } finally {
      await Promise.all(written);
    }
  };

  const begin = (head: Delivery, place: DeliverySlot): void => {
    const { seeker } = place;
    if (seeker.isPaced) beQuiet(seeker, PACE_MS);
    const rest = (cause: unknown): void => {
      log.error("a webhook could not be sent or recorded", { id: head.id, wait_ms: REST_MS, cause });
      const end = () => {
        resting.delete(queueKey(head));
        wake();
      };
      if (!stopped) resting.set(queueKey(head), clock.after(REST_MS, end));
    };
    const done = sendQueue(head, place)
      .catch(rest)
      .finally(() => {
        running.delete(queueKey(head));
        places.giveBack(place);
        if (stopped) return;
        due.delete(seeker.key);
        due.set(seeker.key, seeker);
        fill();
      });
    running.set(queueKey(head), done);
  };

  /** The first event for a URL that is due and whose queue is not being sent. */
  const nextHead = (seeker: QueuedEndpoint): Delivery | undefined =>
    store
      .dueHeads(seeker, clock.nowMs(), places.countOf(seeker) + resting.size + 1)
      .find((delivery) => !running.has(queueKey(delivery)) && !resting.has(queueKey(delivery)));

  /** Begins what can begin for a URL; false when something due has to wait. */
  const serve = (seeker: QueuedEndpoint): boolean => {
    for (;;) {
      const head = nextHead(seeker);
      if (head === undefined) return true;
      const place = isQuiet(seeker) ? null : places.take(seeker);
      if (place === null) return false;
      begin(head, place);
    }
  };

  const fill = (): void => {
    try {
      for (const [key, seeker] of due) {
        if (stopped || places.isFull() || resting.size >= RESTING_MAX) return;
        if (!isQuiet(seeker) && places.hasRoom(seeker) && serve(seeker)) due.delete(key);
      }
    } catch (cause) {
      log.error("webhooks are held up; what waits is not lost", { cause });
    }
  };

  /** Looks which URLs something is due for, some at a time, round and round. */
  const scan = (): void => {
    const nowMs = clock.nowMs();
    for (let looks = 0; looks < SCANNED_AT_ONCE_MAX && due.size < SCANNED_AT_ONCE_MAX; looks++) {
      const endpoint = store.endpointAfter(scanned);
      scanned = endpoint ?? null;
      if (endpoint === undefined) return;
      if (endpoint.dueAtMs > nowMs) continue;
      const seeker = queuedEndpointOf(endpoint);
      if (places.countOf(seeker) === 0 || nextHead(seeker) !== undefined) due.set(seeker.key, seeker);
    }
  };

  const look = async (): Promise<void> => {
    try {
      let taken = EVENTS_AT_ONCE_MAX;
      while (!stopped && taken === EVENTS_AT_ONCE_MAX) taken = await takeOver();
      if (stopped) return;
      places.review([...due.values()].some((seeker) => !isQuiet(seeker) && !places.isSlow(seeker)));
      const nowMs = clock.monotonicMs();
      for (const [key, untilMs] of quietUntilMs) if (untilMs <= nowMs) quietUntilMs.delete(key);
      scan();
      fill();
    } catch (cause) {
      log.error("webhooks are held up; what waits is not lost", { cause });
    }
  };

  const wake = (): void => {
    if (stopped) return;
    if (looking !== null) {
      lookAgain = true;
      return;
    }
    cancelLook?.();
    looking = look().finally(() => {
      looking = null;
      const isSoon = lookAgain;
      lookAgain = false;
      if (isSoon) wake();
      else if (!stopped) cancelLook = clock.after(LOOK_EVERY_MS, wake);
    });
  };

  return {
    start(): void {
      stopped = false;
      wake();
    },
    /** Looks now instead of within the second. */
    wake,
    /** Queues being sent. */
    running: (): number => running.size,
    /** Begins nothing more, and gives what is under way a moment; what does not end is sent again at the next start. */
    async stop(): Promise<void> {
      stopped = true;
      cancelLook?.();
      due.clear();
      for (const cancel of resting.values()) cancel();
      resting.clear();
      const ends = Promise.all([looking, ...running.values()]);
      await new Promise<void>((resolve) => {
        const cancel = clock.after(DRAIN_MS_MAX, resolve);
        void ends.then(() => {
          cancel();
          resolve();
        });
      });
    },
  };
};

const queueKey = ({ accountId, mode, url, subject }: WebhookQueue): string => `${accountId} ${mode} ${url} ${subject}`;

export type Dispatcher = ReturnType<typeof createDispatcher>;
