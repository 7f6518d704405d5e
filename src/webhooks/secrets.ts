import type { Clock } from "../base/clock.ts";
import { newId } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import { newWebhookSecret } from "./signature.ts";
import type { WebhookSecret, WebhookSecretStore } from "./secret-store.ts";
import type { WebhookOwner } from "./delivery-store.ts";

/** How long the old secret goes on signing beside the new one. */
export const SECRET_GRACE_MS = 24 * 60 * 60 * 1000;

/** The signing secrets: one for the live and one for the test events of an account, made when first needed; two for a day after a rotation. */
export const createWebhookSecrets = ({ db, store, clock }: { db: Db; store: WebhookSecretStore; clock: Clock }) => {
  const add = (tx: Tx, { accountId, mode }: WebhookOwner): WebhookSecret => {
    const secret = {
      id: newId(),
      ...{ accountId, mode },
      secret: newWebhookSecret(),
      createdAtMs: clock.nowMs(),
      validUntilMs: null,
    };
    store.insertSecret(tx, secret);
    return secret;
  };

  /** Makes sure that there is one, and answers those in force, the newest first. Never empty. */
  const ensure = (tx: Tx, owner: WebhookOwner): readonly WebhookSecret[] => {
    const known = store.secretsAt(owner, clock.nowMs());
    return known.length > 0 ? known : [add(tx, owner)];
  };

  return {
    ensure,
    /** Those that sign now, as texts; makes the first one: what waits from before secrets had a mode is signed, too. */
    async signing(owner: WebhookOwner): Promise<readonly string[]> {
      const known = store.secretsAt(owner, clock.nowMs());
      const all = known.length > 0 ? known : await db.commit((tx) => ensure(tx, owner));
      return all.map(({ secret }) => secret);
    },
    /** The secrets in force, the newest first; makes the first one. */
    current: (owner: WebhookOwner): readonly WebhookSecret[] => db.transact((tx) => ensure(tx, owner)),
    /** A new secret. Those there were sign for a day more. */
    rotate: (owner: WebhookOwner): readonly WebhookSecret[] =>
      db.transact((tx) => {
        store.endSecrets(tx, owner, clock.nowMs() + SECRET_GRACE_MS);
        add(tx, owner);
        return store.secretsAt(owner, clock.nowMs());
      }),
  };
};

export type WebhookSecrets = ReturnType<typeof createWebhookSecrets>;
