import type { Clock } from "../base/clock.ts";
import { newId } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import { newWebhookSecret } from "./signature.ts";
import type { WebhookSecret, WebhookStore } from "./store.ts";

/** How long the old secret goes on signing beside the new one. */
export const SECRET_GRACE_MS = 24 * 60 * 60 * 1000;

/** The secrets of accounts: one each, made when it is first needed; two for a day after a rotation. */
export const createWebhookSecrets = ({ db, store, clock }: { db: Db; store: WebhookStore; clock: Clock }) => {
  const add = (tx: Tx, accountId: string): WebhookSecret => {
    const secret = {
      id: newId(),
      accountId,
      secret: newWebhookSecret(),
      createdAtMs: clock.nowMs(),
      validUntilMs: null,
    };
    store.insertSecret(tx, secret);
    return secret;
  };

  /** Makes sure that there is one, and answers those in force, the newest first. Never empty. */
  const ensure = (tx: Tx, accountId: string): readonly WebhookSecret[] => {
    const known = store.secretsAt(accountId, clock.nowMs());
    return known.length > 0 ? known : [add(tx, accountId)];
  };

  return {
    ensure,
    /** Those that sign now, as texts; empty before the first use. */
    signing: (accountId: string): readonly string[] =>
      store.secretsAt(accountId, clock.nowMs()).map(({ secret }) => secret),
    /** The secrets in force, the newest first; makes the first one. */
    current: (accountId: string): readonly WebhookSecret[] => db.transact((tx) => ensure(tx, accountId)),
    /** A new secret. Those there were sign for a day more. */
    rotate: (accountId: string): readonly WebhookSecret[] =>
      db.transact((tx) => {
        store.endSecrets(tx, accountId, clock.nowMs() + SECRET_GRACE_MS);
        add(tx, accountId);
        return store.secretsAt(accountId, clock.nowMs());
      }),
  };
};

export type WebhookSecrets = ReturnType<typeof createWebhookSecrets>;
