import { type KeyMode, newId } from "../base/secrets.ts";
import type { Db, Tx } from "./open.ts";
import { outbox } from "./schema.ts";

/** An event to write; its id is assigned on insert. */
export interface NewEvent {
  readonly accountId: string;
  readonly mode: KeyMode;
  readonly type: string;
  /** What the event is about. Events of one subject are delivered in order. */
  readonly subject: `${"target" | "domain" | "job" | "list"}:${string}`;
  readonly data: object;
  /** The webhook URL of the subject; null when it has none. The account's default URL is added on delivery. */
  readonly url: string | null;
  readonly createdAtMs: number;
  /** The event is listed in the feed but not delivered. */
  readonly isFeedOnly?: boolean;
}

/** Writes an event into the outbox, in the transaction that changes the state. The outbox relay creates its deliveries. */
export const insertEvent = (db: Db, _tx: Tx, { data, isFeedOnly = false, ...event }: NewEvent): void => {
  const deliveredAtMs = isFeedOnly ? event.createdAtMs : null;
  db.orm
    .insert(outbox)
    .values({ ...event, id: newId(), data: JSON.stringify(data), deliveredAtMs })
    .run();
};
