import { nextTurn } from "../../foundation/base/clock.ts";
import { AppError } from "../../foundation/base/errors.ts";
import type { Tx } from "../../foundation/db/open.ts";
import type { DbClock } from "../../foundation/db/runtime.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { Delivery, DeliveryFilters, DeliveryStatus, DeliveryStore } from "./delivery-store.ts";
import type { Owner } from "../../foundation/base/secrets.ts";

/** The result of a call that changes many deliveries. */
export interface BulkActionResult {
  readonly count: number;
  /** The id after which to continue; null when all are done. */
  readonly next: string | null;
}

/** Deliveries changed in one call, and in one transaction. */
export const CHANGED_MAX = 10_000;
const CHANGED_AT_ONCE = 200;
/** Deliveries examined at once where a filter matches few. */
const EXAMINED_AT_ONCE = 5_000;
/** What is redelivered by default. */
const UNDELIVERED: readonly DeliveryStatus[] = ["rejected", "failed"];

/** Redelivers and cancels deliveries: one, or all that match a filter. Without a dispatcher, the one of another process sees the changes at its next poll. */
export class DeliveryActions {
  constructor(
    private readonly runtime: DbClock,
    private readonly store: DeliveryStore,
    private readonly dispatcher: Dispatcher | null,
  ) {}

  /** Throws `not_found` for a delivery that does not exist or belongs to another account or mode. */
  find(owner: Owner, id: string): Delivery {
    const delivery = this.store.find(id);
    if (delivery?.accountId === owner.accountId && delivery.mode === owner.mode) return delivery;
    throw new AppError("not_found", { message: "There is no webhook delivery with this id." });
  }

  /**
   * Sends an event again with the same id: a finished delivery with a new schedule, a pending one now. It keeps its place
   * in its queue. A URL that was disabled (410) is enabled.
   */
  async redeliver(owner: Owner, id: string): Promise<Delivery> {
    const delivery = this.find(owner, id);
    await this.runtime.db.commit((tx) => this.#redeliver(tx, delivery));
    this.dispatcher?.wake();
    return this.find(owner, id);
  }

  /** Cancels a pending delivery; the next of its queue is sent. Throws `conflict` when it is finished otherwise. */
  async cancel(owner: Owner, id: string): Promise<Delivery> {
    const delivery = this.find(owner, id);
    await this.runtime.db.commit((tx) => this.#cancel(tx, delivery));
    this.dispatcher?.wake();
    const now = this.find(owner, id);
    if (now.status === "cancelled") return now;
    throw new AppError("conflict", {
      message: `Only a pending delivery can be cancelled; this one is ${now.status}.`,
    });
  }

  /** Redelivers all that match; without a status those that are rejected or failed. */
  redeliverMany(owner: Owner, filters: DeliveryFilters, after: string | null): Promise<BulkActionResult> {
    const undelivered = { ...filters, status: filters.status ?? UNDELIVERED };
    return this.#changeMany(owner, undelivered, { after, change: (tx, delivery) => this.#redeliver(tx, delivery) });
  }

  /** Cancels all pending deliveries that match. */
  cancelMany(owner: Owner, filters: DeliveryFilters, after: string | null): Promise<BulkActionResult> {
    const pending = { ...filters, status: "pending" } as const;
    return this.#changeMany(owner, pending, { after, change: (tx, delivery) => this.#cancel(tx, delivery) });
  }

  /** Changes all that match in small transactions, oldest first, so that their order is kept. */
  async #changeMany(
    owner: Owner,
    filters: DeliveryFilters,
    { after, change }: { after: string | null; change: (tx: Tx, delivery: Delivery) => boolean },
  ): Promise<BulkActionResult> {
    let next = after;
    let [count, seen] = [0, 0];
    while (seen < CHANGED_MAX) {
      const page = { after: next, looks: EXAMINED_AT_ONCE, limit: CHANGED_AT_ONCE };
      const { rows, next: behind } = this.store.listForward(owner, filters, page);
      count += await this.runtime.db.commit((tx) => rows.filter((row) => change(tx, row)).length);
      seen += rows.length;
      next = behind;
      if (next === null) break;
      await nextTurn();
    }
    this.dispatcher?.wake();
    return { count, next };
  }

  #redeliver(tx: Tx, { id }: Delivery) {
    const delivery = this.store.find(id);
    if (delivery === undefined) return false;
    this.store.clearGone(tx, delivery, delivery.url);
    this.store.endPause(tx, delivery);
    if (delivery.status !== "pending") {
      const restarted = { status: "pending", attempts: 0, rejections: 0, dueAtMs: null, finishedAtMs: null } as const;
      this.store.change(tx, id, restarted);
    } else if (delivery.dueAtMs !== null) this.store.change(tx, id, { dueAtMs: null });
    this.store.wakeQueue(tx, delivery, this.runtime.clock.nowMs());
    return true;
  }

  #cancel(tx: Tx, { id }: Delivery) {
    const delivery = this.store.find(id);
    if (delivery?.status !== "pending") return false;
    const nowMs = this.runtime.clock.nowMs();
    this.store.change(tx, id, { status: "cancelled", dueAtMs: null, finishedAtMs: nowMs });
    this.store.wakeQueue(tx, delivery, nowMs);
    return true;
  }
}
