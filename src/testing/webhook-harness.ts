import { afterEach } from "bun:test";
import type { Clock } from "../base/clock.ts";
import { createLog } from "../base/log.ts";
import { newId } from "../base/secrets.ts";
import { type Db, openDb } from "../db/open.ts";
import { createPoster } from "../net/fetch.ts";
import { createUrlPolicy } from "../net/fetch-url.ts";
import { Dispatcher } from "../webhooks/dispatcher.ts";
import { EventStore } from "../webhooks/event-store.ts";
import { WebhookSecrets } from "../webhooks/secret-store.ts";
import { createSender, type DeliveryResult, type Sender } from "../webhooks/send.ts";
import { DeliveryStore, type Delivery, type WebhookOwner } from "../webhooks/delivery-store.ts";
import { createTestClock, settle } from "./clock.ts";
import { createZoneResolver, type Zone } from "./dns-zone.ts";

/** More than the test runner's own patience lasts: a busy machine turns the loop many times before a socket answers. */
const TURNS_MAX = 2_000_000;

const LIVE_OWNER: WebhookOwner = { accountId: "account", mode: "live" };

/** Lets the event loop turn until something is so; throws when it never becomes so. */
export const until = async (claim: () => boolean, what = "what the test waits for never happened"): Promise<void> => {
  for (let turn = 0; turn < TURNS_MAX; turn++) {
    if (claim()) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  throw new Error(what);
};

const openOrThrow = (path: string): Db => {
  const opened = openDb(path);
  if (!opened.ok) throw new Error(opened.error.kind);
  return opened.value;
};

interface WebhookHarnessOptions {
  readonly zone?: Zone;
  readonly path?: string;
  readonly pendingMax?: number;
  /** Replaces the sender and with it the network. */
  readonly sender?: (clock: Clock) => Sender;
}

/** The result of an attempt without a response, with changes. */
export const deliveryResult = (changes: Partial<DeliveryResult>): DeliveryResult => ({
  ...{ delivered: false, gone: false, rejected: false, rateLimited: false, timedOut: false },
  ...{ httpStatus: null, problem: null, response: null, retryAfterMs: null },
  ...changes,
});

/** Dispatchers for the tests of one file, over a database, a literal DNS zone and receivers on 127.0.0.0/8. */
export const createWebhookHarness = () => {
  const closers: Array<() => void> = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });

  return ({ zone = {}, path = ":memory:", sender, ...limits }: WebhookHarnessOptions = {}) => {
    const clock = createTestClock();
    const db = openOrThrow(path);
    const logged: string[] = [];
    const log = createLog("warn", clock, (line) => logged.push(line));
    const random = { integer: () => 0 };
    const runtime = { db, clock, log, random };
    const store = new DeliveryStore(db);
    const events = new EventStore(db);
    /** Account and mode to their default URL. */
    const defaults = new Map<string, string>();
    const secrets = new WebhookSecrets(runtime);
    const rules = createUrlPolicy(["127.0.0.0/8"]);
    const post = createPoster({ resolver: createZoneResolver(zone), rules, clock });
    const send = sender?.(clock) ?? createSender({ post, clock, userAgent: "Postwarden/test", baseUrl: null });
    const dispatcher = new Dispatcher(runtime, {
      ...{ store, events, secrets, send },
      defaultUrl: ({ accountId, mode }) => defaults.get(`${accountId} ${mode}`) ?? null,
      ...limits,
    });
    let isOpen = true;
    const close = () => {
      if (isOpen) db.close();
      isOpen = false;
    };
    closers.push(close);

    const find = (id: string): Delivery => {
      const delivery = store.find(id);
      if (delivery === undefined) throw new Error(`no delivery ${id}`);
      return delivery;
    };
    return {
      clock,
      db,
      logged,
      store,
      events,
      defaults,
      secrets,
      dispatcher,
      close,
      find,
      /** Writes an event as a slice does, and answers its id. */
      event(
        url: string | null,
        data: unknown = {},
        { accountId, mode, subject = "target:1" }: WebhookOwner & { readonly subject?: string } = LIVE_OWNER,
      ): string {
        const id = newId();
        db.sqlite.run(
          "INSERT INTO outbox (id, account_id, mode, type, subject, data, url, created_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
          [id, accountId, mode, "test.event", subject, JSON.stringify(data), url, clock.nowMs()],
        );
        return id;
      },
      /** Moves the clock far, as if the process had been stopped meanwhile: a look a second would take the test too long. */
      async skip(ms: number): Promise<void> {
        await dispatcher.stop();
        await clock.advance(ms);
        dispatcher.start();
        await settle();
      },
      /** Lets the dispatcher look at the outbox and at what is due. */
      async look(): Promise<void> {
        dispatcher.wake();
        await settle();
      },
      /** Resolves when the last attempt of a delivery has been recorded so. */
      untilAttempts: (id: string, attempts: number) =>
        until(() => {
          const delivery = store.find(id);
          return delivery !== undefined && delivery.attempts >= attempts && dispatcher.running === 0;
        }, `${attempts} attempts of ${id}`),
      untilDelivered: (id: string) => until(() => store.find(id)?.status === "delivered", `delivery of ${id}`),
    };
  };
};
