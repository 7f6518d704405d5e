import { RawStore } from "../../dmarc/reports/ingest/raw-store.ts";
import type { Database as Sqlite } from "bun:sqlite";
import { TargetRemovalStore } from "../../blocklist/store.ts";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { statements } from "../../foundation/db/statements.ts";

/** An account that is to be deleted, or was deleted in part. */
export interface DoomedAccount {
  readonly id: string;
  readonly name: string;
}

/** An entry of the ledger. */
interface NotedEntry {
  readonly id: number;
  readonly hasNote: 0 | 1;
}

export interface AccountVerification {
  readonly rowid: number;
  readonly id: string;
  readonly mode: "live" | "test";
}

/** Tables with an `account_id` of which rows stay (`ledger`), or have their own steps. */
const OWN_STEPS: ReadonlySet<string> = new Set([
  ...[
    "ledger",
    "audit_log",
    "api_keys",
    "verifications",
    "bulk_jobs",
    "blocklist_targets",
    "blocklist_removed_targets",
    "dmarc_domains",
    "dmarc_ingestions",
  ],
]);

/** The name of a deleted account: its row stays for the ledger. */
export const deletedName = (id: string): string => `deleted-${id}`;

/** The statements of a deletion; a test checks the query plan of each. */
export const prepareDeletion = (sqlite: Sqlite) =>
  statements({
    find: () => sqlite.prepare<DoomedAccount, [string]>("SELECT id, name FROM accounts WHERE name = ?"),
    rename: () =>
      sqlite.prepare<unknown, [string, number, string]>(
        "UPDATE accounts SET name = ?, deleted_at_ms = coalesce(deleted_at_ms, ?) WHERE id = ?",
      ),
    removeIdempotencyKeys: () =>
      sqlite.prepare<unknown, [string, number]>(
        `DELETE FROM idempotency_keys WHERE rowid IN (SELECT i.rowid FROM api_keys k CROSS JOIN idempotency_keys i
      ON i.key_id = k.id WHERE k.account_id = ? LIMIT ?)`,
      ),
    removeSecrets: () =>
      sqlite.prepare<unknown, [string]>(
        "DELETE FROM key_secrets WHERE key_id IN (SELECT id FROM api_keys WHERE account_id = ?)",
      ),
    removeKeys: () => sqlite.prepare<unknown, [string]>("DELETE FROM api_keys WHERE account_id = ?"),
    removeSessions: () =>
      sqlite.prepare<unknown, [string]>(
        "DELETE FROM sessions WHERE user_id IN (SELECT id FROM users WHERE account_id = ?)",
      ),
    removeSetupLinks: () => sqlite.prepare<unknown, [string]>("DELETE FROM setup_links WHERE account_id = ?"),
    removeUsers: () => sqlite.prepare<unknown, [string]>("DELETE FROM users WHERE account_id = ?"),
    entries: () =>
      sqlite.prepare<NotedEntry, [string, number, number]>(
        "SELECT id, note IS NOT NULL AS hasNote FROM ledger WHERE account_id = ? AND id > ? ORDER BY id LIMIT ?",
      ),
    clearNote: () => sqlite.prepare<unknown, [number]>("UPDATE ledger SET note = NULL WHERE id = ?"),
    verifications: () =>
      sqlite.prepare<AccountVerification, [string, number, number]>(
        "SELECT rowid, id, mode FROM verifications WHERE account_id = ? AND rowid > ? ORDER BY rowid LIMIT ?",
      ),
    isPending: () =>
      sqlite.prepare<object, [string]>("SELECT id FROM verifications WHERE id = ? AND status = 'pending'"),
    removeEvidence: () =>
      sqlite.prepare<unknown, [string]>("DELETE FROM verification_evidence WHERE verification_id = ?"),
    removeVerification: () => sqlite.prepare<unknown, [string]>("DELETE FROM verifications WHERE id = ?"),
    jobs: () => sqlite.prepare<{ number: number }, [string]>("SELECT number FROM bulk_jobs WHERE account_id = ?"),
    target: () =>
      sqlite.prepare<{ id: string }, [string]>("SELECT id FROM blocklist_targets WHERE account_id = ? LIMIT 1"),
    removedTarget: () =>
      sqlite.prepare<{ id: string }, [string]>("SELECT id FROM blocklist_removed_targets WHERE account_id = ? LIMIT 1"),
    deleteDomains: () =>
      sqlite.prepare<unknown, [number, string]>(
        "UPDATE dmarc_domains SET deleted_at_ms = ?, token = 'revoked:' || id WHERE account_id = ? AND deleted_at_ms IS NULL",
      ),
    domain: () => sqlite.prepare<{ id: string }, [string]>("SELECT id FROM dmarc_domains WHERE account_id = ? LIMIT 1"),
    ingestions: () =>
      sqlite.prepare<{ id: string }, [string, number]>(
        "SELECT id FROM dmarc_ingestions WHERE account_id = ? AND status = 'done' LIMIT ?",
      ),
    pendingIngestion: () =>
      sqlite.prepare<{ id: string }, [string]>(
        "SELECT id FROM dmarc_ingestions WHERE account_id = ? AND status = 'pending' LIMIT 1",
      ),
    removeMarks: () => sqlite.prepare<unknown, [string]>("DELETE FROM dmarc_mailbox_marks WHERE ingestion = ?"),
    removeIngestion: () => sqlite.prepare<unknown, [string]>("DELETE FROM dmarc_ingestions WHERE id = ?"),
  });

/** Removes what belongs to an account, a limited number of rows at a time. Methods with a `limit` return how many. */
export class AccountDeletionStore {
  readonly raw: RawStore;
  readonly #sqlite: Sqlite;
  readonly #sql;
  readonly #targets: TargetRemovalStore;

  constructor(db: Db) {
    const { sqlite } = db;
    this.raw = new RawStore(db);
    this.#sqlite = sqlite;
    this.#targets = new TargetRemovalStore({ sqlite });
    this.#sql = prepareDeletion(sqlite);
  }

  /** An account by its name; one that was deleted in part by `deletedName`. */
  find(name: string): DoomedAccount | undefined {
    return this.#sql.find.get(name) ?? undefined;
  }

  /** Removes the users and secrets of an account, whose keys stop working at once, and marks it as deleted under another name. */
  close(_tx: Tx, id: string, nowMs: number): void {
    this.#sql.removeSecrets.run(id);
    this.#sql.removeSessions.run(id);
    this.#sql.removeSetupLinks.run(id);
    this.#sql.removeUsers.run(id);
    this.#sql.deleteDomains.run(nowMs, id);
    this.#sql.rename.run(deletedName(id), nowMs, id);
  }

  removeIdempotencyKeys(_tx: Tx, id: string, limit: number): number {
    return this.#sql.removeIdempotencyKeys.run(id, limit).changes;
  }

  /** Removes the keys of an account, after their secrets and Idempotency-Keys. */
  removeKeys(_tx: Tx, id: string): void {
    this.#sql.removeKeys.run(id);
  }

  /** Entries of the ledger after one. */
  entriesAfter(id: string, after: number, limit: number): NotedEntry[] {
    return this.#sql.entries.all(id, after, limit);
  }

  clearNotes(_tx: Tx, entries: readonly NotedEntry[]): void {
    for (const entry of entries) if (entry.hasNote === 1) this.#sql.clearNote.run(entry.id);
  }

  /** Verifications of an account after one, in the order of `rowid`. */
  verifications(id: string, after: number, limit: number): AccountVerification[] {
    return this.#sql.verifications.all(id, after, limit);
  }

  hasNotEnded(_tx: Tx, verification: string): boolean {
    return this.#sql.isPending.get(verification) !== null;
  }

  removeVerification(_tx: Tx, id: string): void {
    this.#sql.removeEvidence.run(id);
    this.#sql.removeVerification.run(id);
  }

  /** The numbers of all lists, also hidden ones. */
  jobs(id: string): number[] {
    return this.#sql.jobs.all(id).map(({ number }) => number);
  }

  /** Removes a target, or once none is left, some history, listings and mutes of removed ones; 0 when nothing is left. */
  removeTargets(tx: Tx, id: string, limit: number): number {
    const target = this.#sql.target.get(id);
    if (target !== null) return this.#targets.removeTarget(tx, target.id).length;
    const removed = this.#sql.removedTarget.get(id);
    return removed === null ? 0 : this.#targets.removeSome(tx, removed.id, limit);
  }

  hasDomains(id: string): boolean {
    return this.#sql.domain.get(id) !== null;
  }

  /** Removes report mails and files that were read. */
  removeIngestions(tx: Tx, id: string, limit: number): number {
    const ingestions = this.#sql.ingestions.all(id, limit);
    for (const ingestion of ingestions) {
      this.raw.remove(tx, ingestion.id);
      this.#sql.removeMarks.run(ingestion.id);
      this.#sql.removeIngestion.run(ingestion.id);
    }
    return ingestions.length;
  }

  hasPendingIngestions(id: string): boolean {
    return this.#sql.pendingIngestion.get(id) !== null;
  }

  /** The other tables with rows of accounts. */
  otherTables(): string[] {
    const tables = this.#sqlite
      .query<{ name: string }, []>(
        `SELECT m.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c
          WHERE m.type = 'table' AND c.name = 'account_id' ORDER BY m.name`,
      )
      .all();
    return tables.map(({ name }) => name).filter((name) => !OWN_STEPS.has(name));
  }

  removeFrom(_tx: Tx, table: string, id: string, limit: number): number {
    return this.#sqlite
      .query<unknown, [string, number]>(
        `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE account_id = ? LIMIT ?)`,
      )
      .run(id, limit).changes;
  }
}
