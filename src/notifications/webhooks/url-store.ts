import { z } from "zod";
import { err, ok, type Result } from "../../foundation/base/errors.ts";
import { inSteps } from "../../foundation/base/in-steps.ts";
import type { Tx, Db } from "../../foundation/db/open.ts";
import type { DbClock } from "../../foundation/db/runtime.ts";
import type { UrlPolicy } from "../../foundation/net/fetch-url.ts";
import { channelProblem } from "../channels/channels.ts";
import { DeliveryStore, type Delivery } from "./delivery-store.ts";
import { and, asc, eq, isNull, ne, sql } from "drizzle-orm";
import { newId, type Owner } from "../../foundation/base/secrets.ts";
import { outbox } from "../../foundation/db/schema.ts";
import { webhookDeliveries } from "../../foundation/db/schema-webhooks.ts";

const URL_CHARACTERS_MAX = 2_048;
/** Deliveries about one subject that are moved: more only wait when its endpoint has been down for months. */
const MOVED_OF_SUBJECT_MAX = 10_000;
/** Deliveries to the default URL moved in one transaction. */
const MOVED_AT_ONCE_MAX = 500;

/** The webhook URL of a target, domain or job before and after a change; equal when only other fields changed. */
export interface UrlChange {
  readonly subject: string;
  readonly from: string | null;
  readonly to: string | null;
}

/** The normal form of a URL that events may be sent to; one of a service has to be complete. The error is a sentence. */
const parseUrl = (policy: UrlPolicy, text: string): Result<string, string> => {
  const parsed = policy.parse(text.trim());
  const problem = parsed.ok ? channelProblem(parsed.value.href) : parsed.error.problem;
  return parsed.ok && problem === null ? ok(parsed.value.href) : err(problem ?? "");
};

/** A webhook URL in a request body; parsed to its normal form. */
export const webhookUrlSchema = (policy: UrlPolicy) =>
  z
    .string()
    .transform((text, context) => {
      const parsed = parseUrl(policy, text);
      if (parsed.ok) return parsed.value;
      context.addIssue({ code: "custom", message: parsed.error });
      return z.NEVER;
    })
    .meta({
      description:
        "An https URL on the public internet; http and other addresses only where the operator allows them. A URL of Slack, Teams, Discord, Telegram, ntfy, PagerDuty or Opsgenie gets messages of that service.",
      maxLength: URL_CHARACTERS_MAX,
      examples: ["https://example.com/hook"],
    });

/** The webhook URLs that other parts of the service store with their targets, domains, jobs and accounts. */
export class WebhookUrls {
  readonly #store: DeliveryStore;
  readonly #moves: MoveStore;

  constructor(
    private readonly runtime: DbClock,
    private readonly policy: UrlPolicy,
  ) {
    this.#store = new DeliveryStore(runtime.db);
    this.#moves = new MoveStore(runtime.db, this.#store);
  }

  /** The normal form of a URL that events may be sent to. The error is a sentence. */
  parse(text: string): Result<string, string> {
    return parseUrl(this.policy, text);
  }

  /** Whether deliveries to a URL are disabled because its endpoint responded 410. */
  isDisabled(owner: Owner, url: string): boolean {
    return this.#store.goneSince(owner, url) !== undefined;
  }

  /** Enables deliveries to a URL again. Call it whenever a user sets a URL. */
  enable(tx: Tx, owner: Owner, url: string) {
    this.#store.clearGone(tx, owner, url);
  }

  /** Moves pending deliveries about a subject to its new URL, or cancels them when it has none. */
  move(tx: Tx, owner: Owner, { subject, from, to }: UrlChange) {
    if (from === null || from === to) return;
    this.#moves.move(tx, owner, { subject, from, to }, this.runtime.clock.nowMs(), MOVED_OF_SUBJECT_MAX);
  }

  /** The same for the default URL of an account and mode, in small transactions. */
  async moveDefault(owner: Owner, from: string, to: string | null) {
    const { db, clock } = this.runtime;
    const change = { subject: null, from, to };
    const moveSome = (tx: Tx) => this.#moves.move(tx, owner, change, clock.nowMs(), MOVED_AT_ONCE_MAX);
    await inSteps(() => db.commit(moveSome));
  }
}

/** A change of a webhook URL: pending deliveries go to the new URL, or are cancelled when there is none. */
export interface UrlMove {
  /** Of a target or domain; null: the default URL of the account. */
  readonly subject: string | null;
  readonly from: string;
  readonly to: string | null;
}

const table = webhookDeliveries;

/** Moves pending deliveries to another URL. They keep their order and start with the first attempt. */
export class MoveStore {
  constructor(
    private readonly db: Db,
    private readonly store: DeliveryStore,
  ) {}

  /** Moves up to `limit` pending deliveries and returns how many. */
  move(tx: Tx, owner: Owner, move: UrlMove, atMs: number, limit: number): number {
    const { subject, from, to } = move;
    if (subject !== null) {
      const notRelayed = and(
        eq(outbox.accountId, owner.accountId),
        eq(outbox.mode, owner.mode),
        eq(outbox.subject, subject),
        eq(outbox.url, from),
        isNull(outbox.deliveredAtMs),
      );
      this.db.orm.update(outbox).set({ url: to }).where(notRelayed).run();
    }
    const deliveries = this.#pending(owner, move, limit);
    for (const delivery of deliveries) this.#moveOne(tx, delivery, move, atMs);
    return deliveries.length;
  }

  #pending({ accountId, mode }: Owner, { subject, from }: UrlMove, limit: number): Delivery[] {
    const pending = and(
      eq(table.accountId, accountId),
      eq(table.mode, mode),
      eq(table.url, from),
      sql`status = 'pending'`,
      subject === null ? undefined : eq(table.subject, subject),
      ne(table.via, subject === null ? "subject" : "default"),
    );
    return this.db.orm.select().from(table).where(pending).orderBy(asc(table.eventId)).limit(limit).all();
  }

  #moveOne(tx: Tx, delivery: Delivery, { subject, to }: UrlMove, nowMs: number) {
    const { id, via } = delivery;
    const [leaving, staying] = subject === null ? (["default", "subject"] as const) : (["subject", "default"] as const);
    const duplicate = to === null ? undefined : this.#findPending(delivery, to);
    const restarted = { attempts: 0, rejections: 0, dueAtMs: null } as const;
    if (duplicate !== undefined) this.store.change(tx, duplicate.id, { via: "both" });
    if (via === "both") {
      this.store.change(tx, id, { via: staying });
      if (to !== null && duplicate === undefined) {
        const untried = { lastAttemptAtMs: null, lastHttpStatus: null, lastProblem: null, lastAnswer: null };
        this.store.insert(tx, [{ ...delivery, ...restarted, ...untried, id: newId(), url: to, via: leaving }]);
      }
    } else if (to !== null && duplicate === undefined) this.store.change(tx, id, { ...restarted, url: to });
    else {
      const lastProblem = "Not sent: the URL was removed or changed.";
      this.store.change(tx, id, { status: "cancelled", dueAtMs: null, lastProblem, finishedAtMs: nowMs });
    }
    this.store.wakeQueue(tx, delivery, nowMs);
    if (to !== null) this.store.wakeQueue(tx, { ...delivery, url: to }, nowMs);
  }

  /** The same event, pending for another URL. */
  #findPending({ accountId, mode, subject, eventId }: Delivery, url: string): Delivery | undefined {
    const same = and(
      eq(table.accountId, accountId),
      eq(table.mode, mode),
      eq(table.url, url),
      eq(table.subject, subject),
      eq(table.eventId, eventId),
      sql`status = 'pending'`,
    );
    return this.db.orm.select().from(table).where(same).get();
  }
}
