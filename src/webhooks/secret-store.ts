import { and, desc, eq, gt, isNull, or, type SQL } from "drizzle-orm";
import type { Db, Tx } from "../db/open.ts";
import { webhookSecrets } from "../db/schema-webhooks.ts";
import type { WebhookOwner } from "./delivery-store.ts";

export interface WebhookSecret extends WebhookOwner {
  readonly id: string;
  readonly secret: string;
  readonly createdAtMs: number;
  readonly validUntilMs: number | null;
}

export const createWebhookSecretStore = (db: Db) => {
  const secretsOf = ({ accountId, mode }: WebhookOwner): SQL | undefined =>
    and(eq(webhookSecrets.accountId, accountId), eq(webhookSecrets.mode, mode));

  return {
    insertSecret: (_tx: Tx, secret: WebhookSecret): void => void db.orm.insert(webhookSecrets).values(secret).run(),
    /** Those that sign at this moment, the newest first. */
    secretsAt: (owner: WebhookOwner, nowMs: number): WebhookSecret[] =>
      db.orm
        .select()
        .from(webhookSecrets)
        .where(and(secretsOf(owner), or(isNull(webhookSecrets.validUntilMs), gt(webhookSecrets.validUntilMs, nowMs))))
        .orderBy(desc(webhookSecrets.id))
        .all(),
    /** The present secrets end at `untilMs`, or earlier where that was so already. */
    endSecrets: (_tx: Tx, owner: WebhookOwner, untilMs: number): void =>
      void db.orm
        .update(webhookSecrets)
        .set({ validUntilMs: untilMs })
        .where(and(secretsOf(owner), or(isNull(webhookSecrets.validUntilMs), gt(webhookSecrets.validUntilMs, untilMs))))
        .run(),
  };
};

export type WebhookSecretStore = ReturnType<typeof createWebhookSecretStore>;
