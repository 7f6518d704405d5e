import { isoTime } from "../../foundation/base/clock.ts";
import { newId } from "../../foundation/base/secrets.ts";
import type { Tx } from "../../foundation/db/open.ts";
import type { DbClock } from "../../foundation/db/runtime.ts";
import { channelOf } from "../channels/channels.ts";
import { type HeldEvent, SUMMARY_TYPE, summaryOf } from "../channels/summary.ts";
import type { MaintenanceWindows } from "../windows/windows.ts";
import type { Delivery, DeliveryStore, WebhookEndpoint } from "./delivery-store.ts";
import { eventBody } from "./event-store.ts";
import { HoldStore } from "../windows/window-store.ts";
import type { LoadEventDocs } from "./send.ts";

/** Events of one message; more than that are in another one. */
const EVENTS_MAX = 1_000;
/** How long nothing is held after the longest wait. */
const PAUSE_MS = 60 * 60_000;

export interface HoldDeps {
  readonly store: DeliveryStore;
  readonly windows: Pick<MaintenanceWindows, "mustWait">;
  readonly loadDocs: LoadEventDocs;
}

/**
 * Keeps deliveries to channels during maintenance windows. That a URL has been held is in a row, so that its events are summarized after
 * the window, also when the service was restarted meanwhile.
 */
export class Holds {
  readonly #store: HoldStore;

  constructor(
    private readonly runtime: DbClock,
    private readonly deps: HoldDeps,
  ) {
    this.#store = new HoldStore(runtime.db);
  }

  /** `hold`: a window is on; `release`: one was on, and `release` has to be called; `none`: nothing to do. */
  stateOf(endpoint: WebhookEndpoint): "hold" | "release" | "none" {
    const sinceMs = this.#store.sinceMs(endpoint);
    if (sinceMs !== undefined && sinceMs > this.runtime.clock.nowMs()) return "none";
    if (this.deps.windows.mustWait(endpoint, sinceMs ?? this.runtime.clock.nowMs())) return "hold";
    return sinceMs === undefined ? "none" : "release";
  }

  /** Remembers that a URL is held. */
  hold(tx: Tx, endpoint: WebhookEndpoint) {
    this.#store.insert(tx, endpoint, this.runtime.clock.nowMs());
  }

  /** Puts a message about all that happened in place of the deliveries that wait. Those that have to be sent themselves stay. */
  async release(endpoint: WebhookEndpoint) {
    const docs = await this.deps.loadDocs();
    const { db } = this.runtime;
    await db.commit((tx) => {
      const sinceMs = this.#store.sinceMs(endpoint);
      if (sinceMs === undefined) return;
      const rows = this.deps.store.untried(endpoint, EVENTS_MAX);
      const held = rows.map((row): HeldEvent<Delivery> => ({ row, body: row.body }));
      const hasIncidents = channelOf(endpoint.url)?.hasIncidents === true;
      const summary = summaryOf(held, { docs, hasIncidents });
      // Events that are sent themselves stay: nothing but them is no reason to look again.
      if (rows.length < EVENTS_MAX || summary === null) this.#end(tx, endpoint);
      if (summary !== null) this.#summarize(tx, endpoint, { sinceMs, ...summary });
    });
  }

  /** A window that is still on after the longest wait holds nothing for an hour, so that what waited is sent. */
  #end(tx: Tx, endpoint: WebhookEndpoint) {
    this.#store.remove(tx, endpoint);
    const nowMs = this.runtime.clock.nowMs();
    if (this.deps.windows.mustWait(endpoint, nowMs)) this.#store.insert(tx, endpoint, nowMs + PAUSE_MS);
  }

  #summarize(
    tx: Tx,
    endpoint: WebhookEndpoint,
    { sinceMs, rows, data }: { sinceMs: number; rows: readonly Delivery[]; data: object },
  ) {
    const { store } = this.deps;
    const nowMs = this.runtime.clock.nowMs();
    const [first] = rows;
    if (first === undefined) return;
    const { mode } = first;
    const id = newId();
    const times = { since: isoTime(sinceMs), until: isoTime(nowMs) };
    const body = eventBody(SUMMARY_TYPE, { createdAtMs: nowMs, mode, data: { ...times, ...data } });
    const summary = { ...first, id, eventId: id, type: SUMMARY_TYPE, subject: "", body, createdAtMs: nowMs };
    for (const row of rows) {
      store.change(tx, row.id, { status: "summarized", dueAtMs: null, finishedAtMs: nowMs });
    }
    store.insert(tx, [{ ...summary, dueAtMs: null }]);
    store.wakeQueues(tx, [...rows, { ...endpoint, subject: "" }], nowMs);
  }
}
