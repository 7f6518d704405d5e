import type { Tx } from "../foundation/db/open.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { AuditLog } from "./audit-log.ts";
import type { UserRecord } from "./user-store.ts";

interface Noted {
  count: number;
  /** When the last entry was written. */
  readonly writtenMs: number;
}

/** An entry for each user at most this often: somebody who guesses must not fill the log. */
const STEP_MS = 60 * 60 * 1000;

type Subject = Pick<UserRecord, "id" | "accountId">;

/** Puts failed sign-ins into the audit log: the first at once, then their number every hour. */
export class FailedSignIns {
  readonly #runtime: Pick<Runtime, "db" | "clock">;
  readonly #audit: AuditLog;
  /** By the id of the user; "" for addresses that no user has. */
  readonly #noted = new Map<string, Noted>();

  constructor(runtime: Pick<Runtime, "db" | "clock">, audit: AuditLog) {
    this.#runtime = runtime;
    this.#audit = audit;
  }

  note(user: Subject | undefined): void {
    if (this.#isCounted(user)) return;
    // Not awaited: the response must not take longer for a user who exists. A full disk must not end the process.
    this.#runtime.db.commit((tx) => this.#countOrWrite(tx, user)).catch(() => undefined);
  }

  /** Another sign-in may have had its entry written while this one waited. */
  #countOrWrite(tx: Tx, user: Subject | undefined): void {
    if (!this.#isCounted(user)) this.#write(tx, user, (this.#noted.get(user?.id ?? "")?.count ?? 0) + 1);
  }

  /** Counts the failure, if the last entry is young. */
  #isCounted(user: Subject | undefined): boolean {
    const noted = this.#noted.get(user?.id ?? "");
    const isYoung = noted !== undefined && this.#runtime.clock.monotonicMs() - noted.writtenMs < STEP_MS;
    if (isYoung) noted.count += 1;
    return isYoung;
  }

  /** Writes what was not written yet, before the entry of a sign-in that succeeded. */
  flush(tx: Tx, user: Subject): void {
    const count = this.#noted.get(user.id)?.count ?? 0;
    if (count > 0) this.#write(tx, user, count);
  }

  #write(tx: Tx, user: Subject | undefined, failures: number): void {
    this.#noted.set(user?.id ?? "", { count: 0, writtenMs: this.#runtime.clock.monotonicMs() });
    const [accountId, subject] = [user?.accountId ?? null, user?.id ?? null];
    this.#audit.append(tx, { action: "users.sign-in-failed", accountId, subject, after: { failures } });
  }
}
