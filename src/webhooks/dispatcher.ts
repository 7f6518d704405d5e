import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/secrets.ts";
import type { Db } from "../db/open.ts";
import { createRecorder } from "./recorder.ts";
import type { EventStore } from "./event-store.ts";
import type { WebhookSecrets } from "./secrets.ts";
import type { Sender } from "./send.ts";
import type { Delivery, WebhookStore } from "./store.ts";
import { createTakeOver, EVENTS_AT_ONCE_MAX, type TakeOverDeps } from "./take-over.ts";

export interface DispatcherDeps {
  readonly db: Db;
  readonly store: WebhookStore;
  readonly events: EventStore;
  /** The URL that all events of an account and mode go to, beside that of their subject. */
  readonly defaultUrl: TakeOverDeps["defaultUrl"];
  readonly secrets: WebhookSecrets;
  readonly send: Sender;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Events that may wait for one URL of an account; 100,000 unless said. */
  readonly pendingMax?: number;
}

/** Receivers that are called at once: far more than can be slow at a time. */
export const LINES_AT_ONCE_MAX = 256;
/** A line gives its place back after so many, so that a long one does not hold up others. */
const SENT_IN_A_ROW_MAX = 100;
/** Slices write their events without a word to anybody: the outbox is looked at this often. */
export const LOOK_EVERY_MS = 1_000;
const DRAIN_MS_MAX = 2_000;
/** After an attempt that could not be recorded (disk full): it is made again, and the receiver must not get it in a loop. */
export const REST_MS = 60_000;

/**
 * Carries events from the outbox to their URLs. Everything that must survive is a row: what a killed process did not
 * record is sent again under the same id. The events of an account and mode for one URL go one after the other in their order;
 * many URLs are served at once, so that a slow one holds up nobody else.
 */
export const createDispatcher = (deps: DispatcherDeps) => {
  const { store, secrets, send, clock, log } = deps;
  const running = new Map<string, Promise<void>>();
  /** Lines whose last attempt could not be recorded: how to end their rest. */
  const resting = new Map<string, () => void>();
  const takeOver = createTakeOver(deps);
  const record = createRecorder(deps);
  let cancelLook: (() => void) | null = null;
  let looking: Promise<void> | null = null;
  let lookAgain = false;
  let stopped = true;

  /** Sends the first ones of a line as long as they are taken. The next is sent while the last is being written down. */
  const sendLine = async (head: Delivery): Promise<void> => {
    const written: Array<Promise<void>> = [];
    try {
      for (const delivery of store.queue(head, SENT_IN_A_ROW_MAX)) {
        if (stopped) break;
        const { eventId: id, url, body } = delivery;
        const end = await send({ id, url, body, secrets: await secrets.signing(delivery) });
        const recorded = record(delivery, end);
        written.push(recorded);
        if (!end.taken) break;
      }
    } finally {
      await Promise.all(written);
    }
  };

  const begin = (head: Delivery, line: string): void => {
    const rest = (cause: unknown): void => {
      log.error("a webhook could not be sent or recorded", { id: head.id, wait_ms: REST_MS, cause });
      const end = () => {
        resting.delete(line);
        wake();
      };
      if (!stopped) resting.set(line, clock.after(REST_MS, end));
    };
    const done = sendLine(head)
      .catch(rest)
      .finally(() => {
        running.delete(line);
        wake();
      });
    running.set(line, done);
  };

  const beginDue = (): void => {
    for (const head of store.dueHeads(clock.nowMs(), LINES_AT_ONCE_MAX * 2)) {
      const line = `${head.accountId} ${head.mode} ${head.url} ${head.subject}`;
      if (running.size + resting.size >= LINES_AT_ONCE_MAX) return;
      if (!running.has(line) && !resting.has(line)) begin(head, line);
    }
  };

  const look = async (): Promise<void> => {
    try {
      let taken = EVENTS_AT_ONCE_MAX;
      while (!stopped && taken === EVENTS_AT_ONCE_MAX) taken = await takeOver();
      if (!stopped) beginDue();
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
    /** Lines being sent. */
    running: (): number => running.size,
    /** Begins nothing more, and gives what is under way a moment; what does not end is sent again at the next start. */
    async stop(): Promise<void> {
      stopped = true;
      cancelLook?.();
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

export type Dispatcher = ReturnType<typeof createDispatcher>;
