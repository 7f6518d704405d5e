import { AppError } from "../foundation/base/errors.ts";
import type { KeyMode } from "../foundation/base/secrets.ts";
import type { ApiKeys, IssuedKey, KeyProblem } from "./keys.ts";
import { describeKeyProblem } from "./keys.ts";
import type { AccountStore, ApiKey } from "./store.ts";

/** An API key of an account with the end of its secret, by which people recognize it. */
export interface OwnKey extends ApiKey {
  readonly ending: string;
  /** Until when the secret before the last rotation works; null when there is none. */
  readonly oldSecretUntilMs: number | null;
}

export interface OwnKeyRequest {
  readonly name: string;
  readonly mode: KeyMode;
  readonly scopes: readonly string[];
  readonly expiresAtMs: number | null;
}

const KEYS_MAX = 500;
const FIELDS: Partial<Readonly<Record<KeyProblem, string>>> = {
  name_invalid: "name",
  scope_invalid: "scopes",
  time_invalid: "expires",
};

const refusal = (problem: KeyProblem): AppError => {
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
    if (key === undefined || key.accountId !== accountId) throw refusal("unknown_key");
    return this.#withSecrets(key, nowMs);
  }

  /** Creates a key. Throws `Invalid request body` for a name, scope or time that is not possible. */
  create(accountId: string, { expiresAtMs, ...key }: OwnKeyRequest, by: string): IssuedKey {
    const account = this.store.findAccount(accountId)?.name ?? "";
    const created = this.keys.create({ account, ...key, ...(expiresAtMs === null ? {} : { expiresAtMs }), by });
    if (created.ok) return created.value;
    throw created.error === "unknown_account" ? new AppError("not_found") : refusal(created.error);
  }

  /** Replaces the secret; the old one works for `graceMs` more. */
  rotate(accountId: string, id: string, { graceMs, by }: { readonly graceMs: number; readonly by: string }): IssuedKey {
    this.#requireOwn(accountId, id);
    const rotated = this.keys.rotate(id, graceMs, by);
    if (rotated.ok) return rotated.value;
    throw refusal(rotated.error);
  }

  revoke(accountId: string, id: string, by: string): ApiKey {
    this.#requireOwn(accountId, id);
    const revoked = this.keys.revoke(id, by);
    if (revoked.ok) return revoked.value;
    throw refusal(revoked.error);
  }

  #requireOwn(accountId: string, id: string): void {
    if (this.store.findKey(id)?.accountId !== accountId) throw refusal("unknown_key");
  }

  #withSecrets(key: ApiKey, nowMs: number): OwnKey {
    const [newest, ...older] = this.store.listSecrets(key.id);
    const untilMs = Math.max(0, ...older.map(({ validUntilMs }) => validUntilMs ?? 0));
    return { ...key, ending: newest?.ending ?? "", oldSecretUntilMs: untilMs > nowMs ? untilMs : null };
  }
}
