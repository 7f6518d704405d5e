import { EVENT_DOCS } from "../service/event-docs.ts";
import { afterEach } from "bun:test";
import type { Clock } from "../foundation/base/clock.ts";
import { createLog } from "../foundation/base/log.ts";
import { newId, type Owner } from "../foundation/base/secrets.ts";
import { type Db, openDb } from "../foundation/db/open.ts";
import { createPoster, createUrlPolicy } from "../foundation/net/fetch-url.ts";
import { Dispatcher } from "../notifications/webhooks/dispatcher.ts";
import { EventStore } from "../notifications/webhooks/event-store.ts";
import { WebhookSecrets } from "../notifications/webhooks/secret-store.ts";
import { MaintenanceWindows } from "../notifications/windows/windows.ts";
import { createSender, type DeliveryResult, type Sender } from "../notifications/webhooks/send.ts";
import { DeliveryStore, type Delivery } from "../notifications/webhooks/delivery-store.ts";
import { createTestClock, settle } from "./clock.ts";
import { createZoneResolver, type Zone } from "./dns-zone.ts";

/** More than the timeout of the test runner: on a busy machine the loop turns many times before a socket responds. */
const TURNS_MAX = 2_000_000;

const LIVE_OWNER: Owner = { accountId: "account", mode: "live" };

/** Lets the event loop turn until a condition is true; throws if it never becomes true. */
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

/** Creates dispatchers for the tests of one file, with a database, a literal DNS zone and receivers on 127.0.0.0/8. */
export const createWebhookHarness = () => {
  const opened: WebhookHarness[] = [];
  afterEach(() => {
    for (const harness of opened.splice(0)) harness.close();
  });
  return (options: WebhookHarnessOptions = {}) => {
    const harness = new WebhookHarness(options);
    opened.push(harness);
    return harness;
  };
};

class WebhookHarness {
  readonly clock = createTestClock();
  readonly logged: string[] = [];
  /** Account and mode → default URL. */
  readonly defaults = new Map<string, string>();
  readonly db: Db;
  readonly store: DeliveryStore;
  readonly events: EventStore;
  readonly secrets: WebhookSecrets;
  readonly windows: MaintenanceWindows;
  dispatcher: Dispatcher;
  readonly #newDispatcher: () => Dispatcher;
  #isOpen: boolean = true;

  constructor({ zone = {}, path = ":memory:", sender, ...limits }: WebhookHarnessOptions) {
    const { clock } = this;
    this.db = openOrThrow(path);
    const log = createLog("warn", clock, (line) => this.logged.push(line));
    const runtime = { db: this.db, clock, log, random: { integer: () => 0 } };
    this.store = new DeliveryStore(this.db);
    this.events = new EventStore(this.db);
    this.secrets = new WebhookSecrets(runtime);
    this.windows = new MaintenanceWindows(runtime);
    const post = createPoster({ resolver: createZoneResolver(zone), rules: createUrlPolicy(["127.0.0.0/8"]), clock });
    const options = {
      ...{ store: this.store, events: this.events, secrets: this.secrets, windows: this.windows },
      loadDocs: async () => EVENT_DOCS,
      send:
        sender?.(clock) ??
        createSender({ post, clock, userAgent: "Postwarden/test", baseUrl: null, loadDocs: async () => EVENT_DOCS }),
      defaults: {
        findDefaults: ({ accountId, mode }: Owner) => ({
          webhookUrl: this.defaults.get(`${accountId} ${mode}`) ?? null,
        }),
      },
      ...limits,
    };
    this.#newDispatcher = () => new Dispatcher(runtime, options);
    this.dispatcher = this.#newDispatcher();
  }

  close(): void {
    if (this.#isOpen) this.db.close();
    this.#isOpen = false;
  }

  find(id: string): Delivery {
    const delivery = this.store.find(id);
    if (delivery === undefined) throw new Error(`no delivery ${id}`);
    return delivery;
  }

  /** Writes an event into the outbox and returns its id. */
  event(
    url: string | null,
    data: unknown = {},
    {
      accountId,
      mode,
      subject = "target:1",
      type = "test.event",
    }: Owner & { readonly subject?: string; readonly type?: string } = LIVE_OWNER,
  ): string {
    const id = newId();
    this.db.sqlite.run(
      "INSERT INTO outbox (id, account_id, mode, type, subject, data, url, created_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
      [id, accountId, mode, type, subject, JSON.stringify(data), url, this.clock.nowMs()],
    );
    return id;
  }

  /** Advances the clock between two dispatchers: a poll every second would take too long. */
  async skip(ms: number): Promise<void> {
    await this.dispatcher.stop();
    await this.clock.advance(ms);
    this.dispatcher = this.#newDispatcher();
    this.dispatcher.start();
    await settle();
  }

  /** Lets the dispatcher poll now. */
  async look(): Promise<void> {
    this.dispatcher.wake();
    await settle();
  }

  /** Resolves when this number of attempts of a delivery is recorded. */
  untilAttempts(id: string, attempts: number): Promise<void> {
    const hasAttempts = () => (this.store.find(id)?.attempts ?? -1) >= attempts && this.dispatcher.running === 0;
    return until(hasAttempts, `${attempts} attempts of ${id}`);
  }

  untilDelivered(id: string): Promise<void> {
    return until(() => this.store.find(id)?.status === "delivered", `delivery of ${id}`);
  }
}
