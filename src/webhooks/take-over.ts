import { type Clock, isoTime } from "../base/clock.ts";
import type { KeyMode } from "../base/secrets.ts";
import type { Log } from "../base/log.ts";
import type { Db, Tx } from "../db/open.ts";
import type { WebhookSecrets } from "./secrets.ts";
import type { Delivery, OutboxEvent, WebhookStore } from "./store.ts";

/** Events that one transaction takes over. */
export const EVENTS_AT_ONCE_MAX = 500;
/** More than so many waiting for one URL of an account: its receiver has been away for long, and hears of no more. */
const LINE_MAX = 100_000;

export interface TakeOverDeps {
  readonly db: Db;
  readonly store: WebhookStore;
  readonly secrets: WebhookSecrets;
  readonly clock: Clock;
  readonly log: Log;
  /** Events that may wait for one URL of an account. */
  readonly lineMax?: number;
}

interface EventContent {
  readonly createdAtMs: number;
  readonly mode: KeyMode;
  readonly data: object;
}

/** The request body of an event (Standard Webhooks 1.0). The `data` of every event tells its mode. */
export const bodyOf = (type: string, { createdAtMs, mode, data }: EventContent): string =>
  JSON.stringify({ type, timestamp: isoTime(createdAtMs), data: { ...data, mode } });

/** Turns events of the outbox into deliveries, in one transaction; answers how many there were. */
export const createTakeOver = ({ db, store, secrets, clock, log, lineMax = LINE_MAX }: TakeOverDeps) => {
  const deliveryOf = ({ data, ...event }: OutboxEvent & { url: string }): Delivery => ({
    id: event.id,
    accountId: event.accountId,
    mode: event.mode,
    url: event.url,
    type: event.type,
    body: bodyOf(event.type, { ...event, data: JSON.parse(data) }),
    status: "pending",
    attempts: 0,
    dueAtMs: null,
    lastAttemptAtMs: null,
    lastHttpStatus: null,
    lastProblem: null,
    createdAtMs: event.createdAtMs,
    finishedAtMs: null,
  });

  const refusalOf = (delivery: Delivery, lengths: Map<string, number>): string | null => {
    const { accountId, mode, url } = delivery;
    const goneAtMs = store.goneSince(delivery, url);
    if (goneAtMs !== undefined) {
      return `Not sent: the receiver answered 410 on ${isoTime(goneAtMs)}. Set the URL again, or redeliver, to go on.`;
    }
    const line = `${accountId} ${mode} ${url}`;
    const length = lengths.get(line) ?? store.countLine(delivery);
    lengths.set(line, Math.min(lineMax, length + 1));
    return length < lineMax ? null : `Not sent: ${lineMax} events are waiting for this URL already.`;
  };

  const takeOne = (tx: Tx, delivery: Delivery, problem: string | null): void => {
    const nowMs = clock.nowMs();
    if (problem === null) store.insert(tx, delivery);
    else store.insert(tx, { ...delivery, status: "failed", lastProblem: problem, finishedAtMs: nowMs });
    store.removeEvent(tx, delivery.id);
    secrets.ensure(tx, delivery);
    store.wakeLine(tx, delivery, nowMs);
  };

  return async (): Promise<number> => {
    const events = store.waitingEvents(EVENTS_AT_ONCE_MAX);
    if (events.length === 0) return 0;
    const refused = await db.commit((tx) => {
      const lengths = new Map<string, number>();
      const problems: Array<{ readonly host: string; readonly problem: string }> = [];
      for (const event of events) {
        if (event.url === null) continue;
        const delivery = deliveryOf({ ...event, url: event.url });
        const problem = refusalOf(delivery, lengths);
        takeOne(tx, delivery, problem);
        if (problem !== null) problems.push({ host: new URL(event.url).host, problem });
      }
      return problems;
    });
    for (const fields of refused.slice(0, 1)) log.error("events are not sent", { ...fields, events: refused.length });
    return events.length;
  };
};
