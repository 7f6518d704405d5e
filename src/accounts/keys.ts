import type { Clock } from "../base/clock.ts";
import { wait } from "../base/wait.ts";
import { err, ok, type Result } from "../base/errors.ts";
import { equalInConstantTime, type KeyMode, newApiKey, newId, readApiKey, sha256 } from "../base/secrets.ts";
import type { Db } from "../db/open.ts";
import { isName } from "./accounts.ts";
import { rateOf } from "../billing/plans.ts";
import type { Caller } from "../http/guard.ts";
import { isScope, SCOPES } from "../http/scopes.ts";
import type { AccountStore, ApiKey } from "./store.ts";

export interface KeysDeps {
  readonly db: Db;
  readonly store: AccountStore;
  readonly clock: Clock;
}

export type KeyProblem =
  "unknown_account" | "unknown_key" | "revoked_key" | "name_invalid" | "scope_invalid" | "time_invalid";

const PROBLEMS: Readonly<Record<KeyProblem, string>> = {
  unknown_account: "There is no account of that name. `postwarden accounts list` shows those that exist.",
  unknown_key: "There is no key with that id. `postwarden keys list` shows those that exist.",
  revoked_key: "The key has been revoked; a revoked key stays so. Create a new one.",
  name_invalid: "A key's name has 1 to 100 characters, none of them control characters.",
  scope_invalid: `A scope is one of ${SCOPES.join(", ")}.`,
  time_invalid: "A time in the future is needed.",
};

export const describeKeyProblem = (problem: KeyProblem): string => PROBLEMS[problem];

/** How long the old secret of a rotated key goes on working, unless told otherwise. */
export const ROTATION_GRACE_MS = 24 * 60 * 60 * 1000;

const ENDING_CHARACTERS = 4;
/** "Last used" is written down this often at most, so that a request does not cost a write. */
const LAST_USED_FLUSH_MS = 5_000;

export interface NewKey {
  readonly account: string;
  readonly mode: KeyMode;
  readonly name?: string;
  readonly scopes?: readonly string[];
  readonly expiresAtMs?: number;
}

/** A key with its secret, which is shown this once and stored only as a hash. */
export interface IssuedKey extends ApiKey {
  readonly key: string;
}

export const createKeys = ({ db, store, clock }: KeysDeps) => {
  const newSecret = (keyId: string, mode: KeyMode) => {
    const key = newApiKey(mode);
    const ending = key.slice(-ENDING_CHARACTERS);
    return { key, secret: { hash: sha256(key), keyId, ending, validUntilMs: null, createdAtMs: clock.nowMs() } };
  };

  const usable = (id: string): Result<ApiKey, KeyProblem> => {
    const key = store.findKey(id);
    if (key === undefined) return err("unknown_key");
    return key.revokedAtMs === null ? ok(key) : err("revoked_key");
  };

  return {
    create(wanted: NewKey): Result<IssuedKey, KeyProblem> {
      const name = wanted.name ?? `${wanted.mode} key`;
      const scopes = [...new Set(wanted.scopes ?? SCOPES)];
      const expiresAtMs = wanted.expiresAtMs ?? null;
      if (!isName(name)) return err("name_invalid");
      if (scopes.length === 0 || !scopes.every(isScope)) return err("scope_invalid");
      if (expiresAtMs !== null && !(expiresAtMs > clock.nowMs())) return err("time_invalid");
      return db.transact((tx) => {
        const account = store.findAccountByName(wanted.account);
        if (account === undefined) return err("unknown_account");
        const base = { id: newId(), accountId: account.id, name, mode: wanted.mode, scopes, expiresAtMs };
        const apiKey = { ...base, revokedAtMs: null, lastUsedAtMs: null, createdAtMs: clock.nowMs() };
        const { key, secret } = newSecret(apiKey.id, wanted.mode);
        store.insertKey(tx, apiKey, secret);
        return ok({ ...apiKey, key });
      });
    },

    /** A new secret for the same key: its id, usage and rate-limit budget stay. The old secret works for `graceMs` more. */
    rotate(id: string, graceMs = ROTATION_GRACE_MS): Result<IssuedKey, KeyProblem> {
      if (!(graceMs >= 0 && graceMs <= Number.MAX_SAFE_INTEGER / 2)) return err("time_invalid");
      return db.transact((tx) => {
        const found = usable(id);
        if (!found.ok) return found;
        const { key, secret } = newSecret(id, found.value.mode);
        store.replaceSecret(tx, secret, clock.nowMs() + graceMs);
        return ok({ ...found.value, key });
      });
    },

    revoke(id: string): Result<ApiKey, KeyProblem> {
      return db.transact((tx) => {
        const found = usable(id);
        if (!found.ok) return found;
        store.revokeKey(tx, id, clock.nowMs());
        return ok({ ...found.value, revokedAtMs: clock.nowMs() });
      });
    },
  };
};

export type Keys = ReturnType<typeof createKeys>;

/**
 * Finds who sends a request by its `Authorization` header: undefined for no key, a malformed, unknown, revoked or
 * expired one. Every request asks the database, so a revocation counts at once, whichever process made it.
 */
export const createAuthenticator = ({ db, store, clock }: KeysDeps) => {
  const usedAtMs = new Map<string, number>();
  let flushing = false;

  const flushUses = async (): Promise<void> => {
    await wait(clock, LAST_USED_FLUSH_MS);
    flushing = false;
    const uses = [...usedAtMs];
    usedAtMs.clear();
    await db.commit((tx) => {
      for (const [id, atMs] of uses) store.markUsed(tx, id, atMs);
    });
  };

  const noteUse = (id: string): void => {
    usedAtMs.set(id, clock.nowMs());
    if (flushing) return;
    flushing = true;
    // A lost note of use harms nobody, and a database that is being closed must not take the process down.
    flushUses().catch(() => usedAtMs.clear());
  };

  return (authorization: string | null): Caller | undefined => {
    const key = /^Bearer +([^\s]+) *$/i.exec(authorization ?? "")?.[1];
    if (key === undefined || readApiKey(key) === null) return undefined;
    const hash = sha256(key);
    const credential = store.findCredential(hash);
    if (credential === undefined || !equalInConstantTime(credential.hash, hash)) return undefined;
    const nowMs = clock.nowMs();
    const ends = [credential.revokedAtMs, credential.expiresAtMs, credential.validUntilMs];
    if (ends.some((endMs) => endMs !== null && endMs <= nowMs)) return undefined;
    noteUse(credential.id);
    const { id: keyId, accountId, mode, scopes, plan } = credential;
    return { keyId, accountId, mode, scopes, rate: rateOf(plan) };
  };
};

export type Authenticator = ReturnType<typeof createAuthenticator>;
