import { and, asc, eq, gt, isNull, or, sql } from "drizzle-orm";
import type { FormRules } from "../foundation/base/form-rules.ts";
import type { Db, Tx } from "../foundation/db/open.ts";
import { accounts, apiKeys, keySecrets } from "../foundation/db/schema.ts";
import { statements } from "../foundation/db/statements.ts";
import { TurnReads } from "../foundation/db/turn-reads.ts";

/** `disabledAtMs`: null while it is enabled. */
export type Account = Readonly<Omit<typeof accounts.$inferSelect, "creditsAvailable" | "creditsHeld" | "deletedAtMs">>;

export type ApiKey = Readonly<typeof apiKeys.$inferSelect>;

/** One of a key's secrets: its SHA-256, never itself. `validUntilMs` is set when a rotation has replaced it. */
export type KeySecret = Readonly<typeof keySecrets.$inferSelect>;

/** What a request may do, found by the hash of its secret. */
export type Credential = Omit<ApiKey, "name" | "createdAtMs"> &
  Pick<Account, "plan" | "disabledAtMs" | "ratePerSecond" | "rateBurst"> &
  Pick<KeySecret, "validUntilMs">;

type StoredCredential = Omit<Credential, "scopes" | "forms"> & {
  readonly scopes: string;
  readonly forms: string | null;
};

/** Prepared for what every request needs: drizzle's mapping of a row costs several times as much as SQLite. */
const prepareAll = ({ sqlite, orm }: Db) =>
  statements({
    findAccount: () =>
      orm
        .select()
        .from(accounts)
        .where(eq(accounts.id, sql.placeholder("id")))
        .prepare(),
    findCredential: () =>
      sqlite.prepare<StoredCredential, [string]>(
        `SELECT s.valid_until_ms AS validUntilMs, k.id, k.account_id AS accountId, k.mode, k.scopes,
        k.expires_at_ms AS expiresAtMs, k.revoked_at_ms AS revokedAtMs, k.last_used_at_ms AS lastUsedAtMs, k.forms,
        a.plan, a.rate_per_second AS ratePerSecond, a.rate_burst AS rateBurst, a.disabled_at_ms AS disabledAtMs
      FROM key_secrets s JOIN api_keys k ON k.id = s.key_id JOIN accounts a ON a.id = k.account_id WHERE s.hash = ?`,
      ),
    formOrigins: () =>
      sqlite.prepare<{ origin: string }, [number]>(
        `SELECT DISTINCT o.value AS origin FROM api_keys k JOIN json_each(k.forms, '$.origins') o WHERE k.forms IS NOT NULL
        AND k.revoked_at_ms IS NULL AND (k.expires_at_ms IS NULL OR k.expires_at_ms > ?)`,
      ),
    countSince: () =>
      sqlite.prepare<{ count: number }, [string, string]>(
        "SELECT count(*) AS count FROM verifications WHERE key_id = ? AND id >= ?",
      ),
    markUsed: () => sqlite.prepare<unknown, [number, string]>("UPDATE api_keys SET last_used_at_ms = ? WHERE id = ?"),
  });

/** Accounts, their API keys and the secrets of these. */
export class AccountStore {
  readonly #statements;
  readonly #credentials: TurnReads<Credential>;

  constructor(private readonly db: Db) {
    this.#statements = prepareAll(db);
    this.#credentials = new TurnReads(db);
  }

  insertAccount(_tx: Tx, account: Account) {
    this.db.orm.insert(accounts).values(account).run();
  }

  updateAccount(_tx: Tx, id: string, change: Partial<Omit<Account, "id" | "createdAtMs">>) {
    this.db.orm.update(accounts).set(change).where(eq(accounts.id, id)).run();
  }

  findAccount(id: string): Account | undefined {
    return this.#statements.findAccount.get({ id });
  }

  findAccountByName(name: string): Account | undefined {
    return this.db.orm
      .select()
      .from(accounts)
      .where(and(eq(accounts.name, name), isNull(accounts.deletedAtMs)))
      .get();
  }

  listAccounts(): Account[] {
    return this.db.orm.select().from(accounts).where(isNull(accounts.deletedAtMs)).orderBy(asc(accounts.name)).all();
  }

  hasAccounts(): boolean {
    return this.db.orm.select({ id: accounts.id }).from(accounts).limit(1).get() !== undefined;
  }

  insertKey(_tx: Tx, key: ApiKey, secret: KeySecret) {
    this.db.orm.insert(apiKeys).values(key).run();
    this.db.orm.insert(keySecrets).values(secret).run();
  }

  /** Adds a new secret to a key; its other secrets expire at `oldUntilMs`, or earlier where that was set before. */
  replaceSecret(_tx: Tx, secret: KeySecret, oldUntilMs: number) {
    const stillValid = or(isNull(keySecrets.validUntilMs), gt(keySecrets.validUntilMs, oldUntilMs));
    const isOfKey = and(eq(keySecrets.keyId, secret.keyId), stillValid);
    this.db.orm.update(keySecrets).set({ validUntilMs: oldUntilMs }).where(isOfKey).run();
    this.db.orm.insert(keySecrets).values(secret).run();
  }

  changeForms(_tx: Tx, id: string, forms: FormRules) {
    this.db.orm.update(apiKeys).set({ forms }).where(eq(apiKeys.id, id)).run();
  }

  revokeKey(_tx: Tx, id: string, atMs: number) {
    const isUnrevoked = and(eq(apiKeys.id, id), isNull(apiKeys.revokedAtMs));
    this.db.orm.update(apiKeys).set({ revokedAtMs: atMs }).where(isUnrevoked).run();
  }

  markUsed(_tx: Tx, id: string, atMs: number) {
    this.#statements.markUsed.run(atMs, id);
  }

  /** The origins of all publishable keys that are valid. */
  formOrigins(nowMs: number): ReadonlySet<string> {
    return new Set(this.#statements.formOrigins.all(nowMs).map(({ origin }) => origin));
  }

  /** How many verifications of a key began since a time: the ids begin with theirs (UUIDv7). */
  verificationsSince(keyId: string, sinceMs: number): number {
    const hex = sinceMs.toString(16).padStart(12, "0");
    return this.#statements.countSince.get(keyId, `${hex.slice(0, 8)}-${hex.slice(8)}`)?.count ?? 0;
  }

  findKey(id: string): ApiKey | undefined {
    return this.db.orm.select().from(apiKeys).where(eq(apiKeys.id, id)).get();
  }

  listKeys(accountId?: string): ApiKey[] {
    const isOfAccount = accountId === undefined ? undefined : eq(apiKeys.accountId, accountId);
    return this.db.orm.select().from(apiKeys).where(isOfAccount).orderBy(asc(apiKeys.id)).all();
  }

  /** A key's secrets, newest first. */
  listSecrets(keyId: string): KeySecret[] {
    const newestFirst = sql`created_at_ms desc, rowid desc`;
    return this.db.orm.select().from(keySecrets).where(eq(keySecrets.keyId, keyId)).orderBy(newestFirst).all();
  }

  findCredential(hash: string): Credential | undefined {
    return this.#credentials.get(hash, () => {
      const stored = this.#statements.findCredential.get(hash);
      return stored === null
        ? undefined
        : {
            ...stored,
            scopes: JSON.parse(stored.scopes),
            forms: stored.forms === null ? null : JSON.parse(stored.forms),
          };
    });
  }
}
