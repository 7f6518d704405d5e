import { and, eq, gt, isNull, or, type SQL } from "drizzle-orm";
import { newId, type Owner } from "../../foundation/base/secrets.ts";
import type { Tx } from "../../foundation/db/open.ts";
import type { DbClock } from "../../foundation/db/runtime.ts";
import { webhookSecrets } from "../../foundation/db/schema-webhooks.ts";
import { selectionOf, statements } from "../../foundation/db/statements.ts";
import { createHmac, randomBytes } from "node:crypto";

/** `validUntilMs`: null until it is replaced. */
export type WebhookSecret = Readonly<typeof webhookSecrets.$inferSelect>;

/** After a rotation the old secret also signs for this long. */
export const SECRET_GRACE_MS = 24 * 60 * 60 * 1000;

const table = webhookSecrets;
const SELECT_VALID = `SELECT ${selectionOf(table)} FROM webhook_secrets
  WHERE account_id = ? AND mode = ? AND (valid_until_ms IS NULL OR valid_until_ms > ?) ORDER BY id DESC`;
const endsAfter = (atMs: number) => or(isNull(table.validUntilMs), gt(table.validUntilMs, atMs));
const belongsTo = ({ accountId, mode }: Owner): SQL | undefined =>
  and(eq(table.accountId, accountId), eq(table.mode, mode));

/** The signing secrets of each account and mode; created on first use. */
export class WebhookSecrets {
  readonly #sql;

  constructor(private readonly runtime: DbClock) {
    const selectValid = () => runtime.db.sqlite.prepare<WebhookSecret, [string, string, number]>(SELECT_VALID);
    this.#sql = statements({ selectValid });
  }

  /** The valid secrets, newest first; creates the first one. Never empty. */
  ensure(tx: Tx, owner: Owner): readonly WebhookSecret[] {
    const valid = this.#valid(owner);
    return valid.length > 0 ? valid : [this.#insert(tx, owner)];
  }

  /** The same outside of a transaction. */
  current(owner: Owner): readonly WebhookSecret[] {
    return this.runtime.db.transact((tx) => this.ensure(tx, owner));
  }

  /** The texts of the valid secrets. Creates the first one, for deliveries from versions without secrets per mode. */
  async signing(owner: Owner): Promise<readonly string[]> {
    const valid = this.#valid(owner);
    const secrets = valid.length > 0 ? valid : await this.runtime.db.commit((tx) => this.ensure(tx, owner));
    return secrets.map(({ secret }) => secret);
  }

  /** Creates a secret; the existing ones end after 24 hours, or earlier where that was set. */
  rotate(owner: Owner): readonly WebhookSecret[] {
    const { db, clock } = this.runtime;
    return db.transact((tx) => {
      const validUntilMs = clock.nowMs() + SECRET_GRACE_MS;
      const ending = and(belongsTo(owner), endsAfter(validUntilMs));
      db.orm.update(table).set({ validUntilMs }).where(ending).run();
      this.#insert(tx, owner);
      return this.#valid(owner);
    });
  }

  #valid({ accountId, mode }: Owner): readonly WebhookSecret[] {
    return this.#sql.selectValid.all(accountId, mode, this.runtime.clock.nowMs());
  }

  #insert(_tx: Tx, { accountId, mode }: Owner): WebhookSecret {
    const { db, clock } = this.runtime;
    const values = {
      id: newId(),
      accountId,
      mode,
      secret: newWebhookSecret(),
      createdAtMs: clock.nowMs(),
      validUntilMs: null,
    };
    db.orm.insert(table).values(values).run();
    return values;
  }
}

const PREFIX = "whsec_";
const SECRET_BYTES = 32;

/** A new secret in the form of Standard Webhooks 1.0: `whsec_` and 32 random bytes in base64. */
export const newWebhookSecret = (): string => PREFIX + randomBytes(SECRET_BYTES).toString("base64");

/**
 * The headers of Standard Webhooks 1.0. `webhook-signature` has one `v1,…` (HMAC-SHA-256 of `id.timestamp.body`) for each
 * secret, so that receivers may use the old or the new one during a rotation.
 */
export const signatureHeaders = (
  secrets: readonly string[],
  {
    id,
    atMs,
    body,
  }: {
    /** The same in every attempt, so that receivers can ignore duplicates. */
    id: string;
    /** The time of the attempt: receivers refuse requests that are some minutes old. */
    atMs: number;
    body: string;
  },
): Readonly<Record<"webhook-id" | "webhook-timestamp" | "webhook-signature", string>> => {
  const timestamp = String(Math.floor(atMs / 1000));
  const sign = (secret: string) => {
    const key = Buffer.from(secret.slice(PREFIX.length), "base64");
    return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
  };
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": secrets.map(sign).join(" "),
  };
};
