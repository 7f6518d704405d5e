import { isoTime } from "../foundation/base/clock.ts";
import { wait } from "../foundation/base/wait.ts";
import { err, ok, type Result, AppError } from "../foundation/base/errors.ts";
import { type KeyMode, newApiKey, newId, readApiKey, sha256 } from "../foundation/base/secrets.ts";
import type { DbClock } from "../foundation/db/runtime.ts";
import { isName } from "./accounts.ts";
import type { AuditLog } from "./audit-store.ts";
import { rateOf } from "./billing/store.ts";
import { FORM_PROBLEMS, FORM_SCOPES, type FormSettings, readForms, type RequestedForms } from "./form-keys.ts";
import type { Authenticate } from "../foundation/http/guard.ts";
import { isScope, SCOPES } from "../foundation/http/scopes.ts";
import type { AccountStore, ApiKey, KeySecret } from "./store.ts";

const PROBLEMS = {
  unknown_key: "There is no key with this id. `postwarden keys list` lists all keys.",
  revoked_key: "The key is revoked, which is permanent. Create a new one.",
  name_invalid:
    "The name of a key must have 1 to 100 characters, without control characters or surrounding white space.",
  scope_invalid: `A scope must be one of ${SCOPES.join(", ")}.`,
  ...FORM_PROBLEMS,
  secret_key: "This is a secret key: it has no origins and limits of its own.",
  time_invalid: "The time must be in the future.",
};
export type KeyProblem = keyof typeof PROBLEMS;

export const describeKeyProblem = (problem: KeyProblem): string => PROBLEMS[problem];

/** How long the old secret of a rotated key keeps working by default. */
export const ROTATION_GRACE_MS = 24 * 60 * 60 * 1000;

const ENDING_CHARACTERS = 4;
/** `last used` of a key is stored at most this often, so that a request does not cost a write. */
const LAST_USED_STEP_MS = 60_000;
/** The keys used within this time are stored together. */
const LAST_USED_FLUSH_MS = 5_000;

export interface NewKey {
  readonly account: string;
  readonly mode: KeyMode;
  readonly name?: string;
  readonly scopes?: readonly string[];
  readonly expiresAtMs?: number | null;
  /** Makes a publishable key, for sign-up forms on pages of these origins. */
  readonly forms?: RequestedForms;
  /** The user of the dashboard who creates it. */
  readonly by?: string;
}

/** A key with its secret, which is shown only once and stored as a hash. */
export interface IssuedKey extends ApiKey {
  readonly key: string;
}

/** Creates, rotates and revokes API keys. */
export class ApiKeys {
  constructor(
    private readonly runtime: DbClock,
    private readonly store: AccountStore,
    private readonly audit: AuditLog,
  ) {}

  create(requested: NewKey): Result<IssuedKey, KeyProblem | "unknown_account"> {
    const name = requested.name ?? `${requested.mode} key`;
    const scopes = [...new Set(requested.forms === undefined ? (requested.scopes ?? SCOPES) : FORM_SCOPES)];
    const rules = requested.forms === undefined ? ok(null) : readForms(requested.forms);
    if (!rules.ok) return rules;
    const expiresAtMs = requested.expiresAtMs ?? null;
    const nowMs = this.runtime.clock.nowMs();
    if (!isName(name)) return err("name_invalid");
    if (scopes.length === 0 || !scopes.every(isScope)) return err("scope_invalid");
    if (expiresAtMs !== null && !(expiresAtMs > nowMs)) return err("time_invalid");
    return this.runtime.db.transact((tx) => {
      const account = this.store.findAccountByName(requested.account);
      if (account === undefined) return err("unknown_account");
      const base = { id: newId(), accountId: account.id, name, mode: requested.mode, scopes, expiresAtMs };
      const { key, secret } = this.#newSecret(base.id, requested.mode, rules.value !== null);
      const forms = rules.value && { ...rules.value, key };
      const apiKey = { ...base, forms, revokedAtMs: null, lastUsedAtMs: null, createdAtMs: nowMs };
      this.store.insertKey(tx, apiKey, secret);
      const expires = { expires_at: expiresAtMs === null ? null : isoTime(expiresAtMs) };
      const after = {
        name,
        mode: apiKey.mode,
        scopes,
        ...expires,
        ...(rules.value === null ? {} : { forms: rules.value }),
      };
      const { by } = requested;
      this.audit.append(tx, { action: "keys.create", accountId: account.id, subject: apiKey.id, after, by });
      return ok({ ...apiKey, key });
    });
  }

  /**
   * Replaces the secret of a key; its id, usage and rate limit stay. The old secret works for `graceMs` more. `by`: the user
   * of the dashboard who does it.
   */
  rotate(id: string, graceMs = ROTATION_GRACE_MS, by?: string): Result<IssuedKey, KeyProblem> {
    if (!(graceMs >= 0 && graceMs <= Number.MAX_SAFE_INTEGER / 2)) return err("time_invalid");
    return this.runtime.db.transact((tx) => {
      const found = this.#findUsable(id);
      if (!found.ok) return found;
      const { mode, forms } = found.value;
      const { key, secret } = this.#newSecret(id, mode, forms !== null);
      const oldUntilMs = this.runtime.clock.nowMs() + graceMs;
      this.store.replaceSecret(tx, secret, oldUntilMs);
      const changed = forms && { ...forms, key };
      if (changed !== null) this.store.changeForms(tx, id, changed);
      const after = { ending: secret.ending, old_secret_valid_until: isoTime(oldUntilMs) };
      this.audit.append(tx, { action: "keys.rotate", accountId: found.value.accountId, subject: id, after, by });
      return ok({ ...found.value, forms: changed, key });
    });
  }

  /** Changes what a publishable key may do; what is not named stays. `by`: the user of the dashboard who does it. */
  changeForms(id: string, changes: Partial<FormSettings>, by?: string): Result<ApiKey, KeyProblem> {
    return this.runtime.db.transact((tx) => {
      const found = this.#findUsable(id);
      if (!found.ok) return found;
      if (found.value.forms === null) return err("secret_key");
      const { key, ...before } = found.value.forms;
      const after = readForms({ ...before, ...changes });
      if (!after.ok) return after;
      const forms = { ...after.value, key };
      this.store.changeForms(tx, id, forms);
      const { accountId } = found.value;
      this.audit.append(tx, { action: "keys.change", accountId, subject: id, before, after: after.value, by });
      return ok({ ...found.value, forms });
    });
  }

  revoke(id: string, by?: string): Result<ApiKey, KeyProblem> {
    return this.runtime.db.transact((tx) => {
      const found = this.#findUsable(id);
      if (!found.ok) return found;
      const revokedAtMs = this.runtime.clock.nowMs();
      this.store.revokeKey(tx, id, revokedAtMs);
      const before = { name: found.value.name };
      this.audit.append(tx, { action: "keys.revoke", accountId: found.value.accountId, subject: id, before, by });
      return ok({ ...found.value, revokedAtMs });
    });
  }

  #findUsable(id: string): Result<ApiKey, KeyProblem> {
    const key = this.store.findKey(id);
    if (key === undefined) return err("unknown_key");
    return key.revokedAtMs === null ? ok(key) : err("revoked_key");
  }

  #newSecret(keyId: string, mode: KeyMode, isPublishable: boolean) {
    const key = newApiKey(mode, isPublishable);
    const ending = key.slice(-ENDING_CHARACTERS);
    const createdAtMs = this.runtime.clock.nowMs();
    const secret: KeySecret = { hash: sha256(key), keyId, ending, validUntilMs: null, createdAtMs };
    return { key, secret };
  }
}

/** Finds the caller of a request by its API key. */
export class Authenticator {
  readonly #usedAtMs = new Map<string, number>();
  #flushing: boolean = false;

  constructor(
    private readonly runtime: DbClock,
    private readonly store: AccountStore,
  ) {}

  /**
   * The caller by the `Authorization` header; undefined for a missing, malformed, unknown, revoked or expired key, and
   * `"disabled"` for a valid key of a disabled account. Reads the database in every turn of the event loop, so that a
   * change takes effect at once, whichever process made it.
   */
  readonly authenticate: Authenticate = (authorization) => {
    const key = /^Bearer +([^\s]+) *$/i.exec(authorization ?? "")?.[1];
    if (key === undefined || readApiKey(key) === null) return undefined;
    const credential = this.store.findCredential(sha256(key));
    if (credential === undefined) return undefined;
    const nowMs = this.runtime.clock.nowMs();
    const ends = [credential.revokedAtMs, credential.expiresAtMs, credential.validUntilMs];
    if (ends.some((endMs) => endMs !== null && endMs <= nowMs)) return undefined;
    if (credential.disabledAtMs !== null) return "disabled";
    const { id: keyId, accountId, mode, scopes, forms, lastUsedAtMs } = credential;
    if (lastUsedAtMs === null || Math.abs(nowMs - lastUsedAtMs) >= LAST_USED_STEP_MS) this.#noteUse(keyId, nowMs);
    return { keyId, accountId, mode, scopes, rate: rateOf(credential), forms };
  };

  #noteUse(id: string, nowMs: number) {
    this.#usedAtMs.set(id, nowMs);
    if (this.#flushing) return;
    this.#flushing = true;
    // A lost note of use does no harm, and a database that is being closed must not end the process.
    this.#flushUses().catch(() => this.#usedAtMs.clear());
  }

  async #flushUses() {
    await wait(this.runtime.clock, LAST_USED_FLUSH_MS);
    this.#flushing = false;
    const uses = [...this.#usedAtMs];
    this.#usedAtMs.clear();
    await this.runtime.db.commit((tx) => {
      for (const [id, atMs] of uses) this.store.markUsed(tx, id, atMs);
    });
  }
}

/** An API key of an account with the end of its secret, by which people recognize it. */
export interface OwnKey extends ApiKey {
  readonly ending: string;
  /** Until when the secret before the last rotation works; null when there is none. */
  readonly oldSecretUntilMs: number | null;
}

const KEYS_MAX = 500;
const FIELDS: Partial<Readonly<Record<KeyProblem, string>>> = {
  name_invalid: "name",
  scope_invalid: "scopes",
  time_invalid: "expires",
  origin_invalid: "origins",
  limit_invalid: "per_day",
};

const refusedKey = (problem: KeyProblem): AppError => {
  if (problem === "unknown_key") return new AppError("not_found", { message: "There is no key with this id." });
  return new AppError("Invalid request body", {
    issues: [{ path: FIELDS[problem] ?? "", message: describeKeyProblem(problem) }],
  });
};

/** The API keys of one account, for its owners. A key of another account does not exist here. */
export class OwnKeys {
  constructor(
    private readonly store: AccountStore,
    private readonly keys: ApiKeys,
  ) {}

  /** Keys that work first, then the newest. */
  list(accountId: string, nowMs: number): readonly OwnKey[] {
    const isOver = ({ revokedAtMs, expiresAtMs }: ApiKey) =>
      revokedAtMs !== null || (expiresAtMs !== null && expiresAtMs <= nowMs);
    return this.store
      .listKeys(accountId)
      .toSorted((a, b) => Number(isOver(a)) - Number(isOver(b)) || b.id.localeCompare(a.id))
      .slice(0, KEYS_MAX)
      .map((key) => this.#withSecrets(key, nowMs));
  }

  find(accountId: string, id: string, nowMs: number): OwnKey {
    const key = this.store.findKey(id);
    if (key === undefined || key.accountId !== accountId) throw refusedKey("unknown_key");
    return this.#withSecrets(key, nowMs);
  }

  /** Creates a key. Throws `Invalid request body` for a name, scope, time, origin or limit that is not possible. */
  create(
    accountId: string,
    key: Pick<NewKey, "mode" | "scopes" | "expiresAtMs" | "forms"> & { readonly name: string },
    by: string,
  ): IssuedKey {
    const account = this.store.findAccount(accountId)?.name ?? "";
    const created = this.keys.create({ account, ...key, by });
    if (created.ok) return created.value;
    throw created.error === "unknown_account" ? new AppError("not_found") : refusedKey(created.error);
  }

  /** Replaces the secret; the old one works for `graceMs` more. */
  rotate(accountId: string, id: string, { graceMs, by }: { graceMs: number; by: string }): IssuedKey {
    this.#requireOwn(accountId, id);
    const rotated = this.keys.rotate(id, graceMs, by);
    if (rotated.ok) return rotated.value;
    throw refusedKey(rotated.error);
  }

  changeForms(accountId: string, id: string, { by, ...changes }: FormSettings & { readonly by: string }): ApiKey {
    this.#requireOwn(accountId, id);
    const changed = this.keys.changeForms(id, changes, by);
    if (changed.ok) return changed.value;
    throw refusedKey(changed.error);
  }

  revoke(accountId: string, id: string, by: string): ApiKey {
    this.#requireOwn(accountId, id);
    const revoked = this.keys.revoke(id, by);
    if (revoked.ok) return revoked.value;
    throw refusedKey(revoked.error);
  }

  #requireOwn(accountId: string, id: string) {
    if (this.store.findKey(id)?.accountId !== accountId) throw refusedKey("unknown_key");
  }

  #withSecrets(key: ApiKey, nowMs: number): OwnKey {
    const [newest, ...older] = this.store.listSecrets(key.id);
    const untilMs = Math.max(0, ...older.map(({ validUntilMs }) => validUntilMs ?? 0));
    return { ...key, ending: newest?.ending ?? "", oldSecretUntilMs: untilMs > nowMs ? untilMs : null };
  }
}
