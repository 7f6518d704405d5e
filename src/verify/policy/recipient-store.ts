import type { Db } from "../../foundation/db/open.ts";
import { statements } from "../../foundation/db/statements.ts";
import { idOfTime } from "../history-store.ts";

/** The last result of an address. */
export interface KnownResult {
  readonly subStatus: string;
  /** The result object as JSON text. */
  readonly result: string;
  readonly completedAtMs: number;
}

/** Reads what single verifications with live keys of an account found out. */
export class RecipientStore {
  readonly #statements;

  constructor({ sqlite }: Pick<Db, "sqlite">) {
    this.#statements = statements({
      latest: () =>
        sqlite.prepare<KnownResult, [string, string]>(
          `SELECT sub_status AS subStatus, result, completed_at_ms AS completedAtMs FROM verifications
      WHERE account_id = ? AND mode = 'live' AND normalized_email = ? AND status = 'completed' ORDER BY id DESC LIMIT 1`,
        ),
      countSince: () =>
        sqlite.prepare<{ count: number }, [string, string, string]>(
          "SELECT count(*) AS count FROM verifications WHERE key_id = ? AND account_id = ? AND id >= ?",
        ),
    });
  }

  /** The newest verification of a normalized address that has ended. */
  latest(accountId: string, normalizedEmail: string): KnownResult | null {
    return this.#statements.latest.get(accountId, normalizedEmail);
  }

  /** How many an account began under a key since a time. */
  countSince(keyId: string, accountId: string, sinceMs: number): number {
    return this.#statements.countSince.get(keyId, accountId, idOfTime(sinceMs))?.count ?? 0;
  }
}
