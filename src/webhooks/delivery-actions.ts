import { type Clock, nextTurn } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import type { Db, Tx } from "../db/open.ts";
import type { Delivery, DeliveryFilters, DeliveryStatus, WebhookOwner, DeliveryStore } from "./delivery-store.ts";

export interface DeliveryActionsDeps {
  readonly db: Db;
  readonly store: DeliveryStore;
  readonly clock: Clock;
  /** What is due is sent at once. */
  readonly wake: () => void;
}

/** What was done to many. */
export interface BulkActionResult {
  readonly count: number;
  /** Behind which delivery to go on; null when all were seen to. */
  readonly next: string | null;
}

/** Deliveries seen to in one call, and in one transaction. */
export const MANY_MAX = 10_000;
const STEP = 200;
/** Deliveries looked at in one go where a filter passes few. */
const LOOKED_AT_ONCE = 5_000;
/** What is sent again when nobody says which. */
const UNDELIVERED: readonly DeliveryStatus[] = ["rejected", "failed"];

/** What people do to deliveries: send again, and cancel; one of them, or all that pass a filter. */
export const createDeliveryActions = ({ db, store, clock, wake }: DeliveryActionsDeps) => {
  const find = (owner: WebhookOwner, id: string): Delivery => {
    const delivery = store.find(id);
    if (delivery === undefined || delivery.accountId !== owner.accountId || delivery.mode !== owner.mode) {
      throw new AppError("not_found", { message: "There is no such delivery." });
    }
    return delivery;
  };

  const sendAgain = (tx: Tx, { id }: Delivery): boolean => {
    const delivery = store.find(id);
    if (delivery === undefined) return false;
    store.clearGone(tx, delivery, delivery.url);
    store.endPause(tx, delivery);
    if (delivery.status !== "pending") {
      store.change(tx, id, { status: "pending", attempts: 0, rejections: 0, dueAtMs: null, finishedAtMs: null });
    } else if (delivery.dueAtMs !== null) store.change(tx, id, { dueAtMs: null });
    store.wakeQueue(tx, delivery, clock.nowMs());
    return true;
  };

  const cancelOne = (tx: Tx, { id }: Delivery): boolean => {
    const delivery = store.find(id);
    if (delivery?.status !== "pending") return false;
    store.change(tx, id, { status: "cancelled", dueAtMs: null, finishedAtMs: clock.nowMs() });
    store.wakeQueue(tx, delivery, clock.nowMs());
    return true;
  };

  /** Does something to all that pass, the oldest first so that their order stays, in small transactions. */
  const doToMany = async (
    owner: WebhookOwner,
    filters: DeliveryFilters,
    { after, act }: { readonly after: string | null; readonly act: (tx: Tx, delivery: Delivery) => boolean },
  ): Promise<BulkActionResult> => {
    let behind = after;
    let [count, seen] = [0, 0];
    while (seen < MANY_MAX) {
      const page = { after: behind, looks: LOOKED_AT_ONCE, limit: STEP };
      const { rows, end } = store.listForward(owner, filters, page);
      count += await db.commit((tx) => rows.filter((row) => act(tx, row)).length);
      seen += rows.length;
      behind = end;
      if (behind === null) break;
      await nextTurn();
    }
    wake();
    return { count, next: behind };
  };

  return {
    /** Throws `not_found` for a delivery that is not there, or not the owner's. */
    find,

    /**
     * Sends an event again, under its old id: a finished one with a new schedule, a waiting one now rather than later.
     * Its place among those about the same subject stays. A URL that was turned off (410) is on again.
     */
    async redeliver(owner: WebhookOwner, id: string): Promise<Delivery> {
      const delivery = find(owner, id);
      await db.commit((tx) => sendAgain(tx, delivery));
      wake();
      return find(owner, id);
    },

    /** Gives up an event that waits; what is behind it goes on. Throws `conflict` for one that is finished, and not by this. */
    async cancel(owner: WebhookOwner, id: string): Promise<Delivery> {
      const delivery = find(owner, id);
      await db.commit((tx) => cancelOne(tx, delivery));
      wake();
      const now = find(owner, id);
      if (now.status === "cancelled") return now;
      throw new AppError("conflict", {
        message: `The delivery is ${now.status}: only a pending one can be cancelled.`,
      });
    },

    /** Sends all again that pass; where no status is given, those that were rejected or failed. */
    redeliverMany: (owner: WebhookOwner, filters: DeliveryFilters, after: string | null): Promise<BulkActionResult> =>
      doToMany(owner, { ...filters, status: filters.status ?? UNDELIVERED }, { after, act: sendAgain }),
    /** Cancels all pending ones that pass. */
    cancelMany: (owner: WebhookOwner, filters: DeliveryFilters, after: string | null): Promise<BulkActionResult> =>
      doToMany(owner, { ...filters, status: "pending" }, { after, act: cancelOne }),
  };
};

export type DeliveryActions = ReturnType<typeof createDeliveryActions>;
