import { dayOfTime } from "../foundation/base/days.ts";
import { err, ok, type Result } from "../foundation/base/errors.ts";
import type { ByMode } from "../foundation/base/secrets.ts";
import { insufficientCredits } from "../accounts/billing/plans.ts";
import type { CreditHolds, TooFewCredits } from "../accounts/billing/store.ts";
import type { Tx } from "../foundation/db/open.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { UsageStore } from "../accounts/usage/usage-store.ts";
import type { Evidence } from "./evidence.ts";
import type { VerificationResult } from "./result.ts";
import type { Completion, VerificationRow, VerificationStore } from "./store.ts";

/** A result to store. */
export interface ResultToStore {
  readonly result: VerificationResult;
  /** Null where it is not stored: it can be made again, or cannot be trusted. */
  readonly evidence: Evidence | null;
  /** False: the credit is given back. */
  readonly chargeable: boolean;
  readonly attempts: number;
  readonly nowMs: number;
}

/** Stores single verifications: pending, or with their result, its evidence, its credit and the usage that it counts as. */
export class ResultWriter {
  readonly #runtime: Pick<Runtime, "db">;
  readonly #store: VerificationStore;
  readonly #credits: ByMode<CreditHolds>;
  readonly #usage: UsageStore;

  constructor(runtime: Pick<Runtime, "db">, store: VerificationStore, credits: ByMode<CreditHolds>) {
    this.#runtime = runtime;
    this.#store = store;
    this.#credits = credits;
    this.#usage = new UsageStore(runtime.db);
  }

  /** Inserts a pending verification and holds its credit; returns its row. 402 before anything is changed. */
  insertPending(tx: Tx, row: VerificationRow): VerificationRow {
    const held = this.#credits[row.mode].hold(tx, moveOf(row, row.createdAtMs));
    if (!held.ok) throw insufficientCredits(held.error);
    this.#store.insert(tx, row);
    return row;
  }

  /** Ends a pending verification; nothing happens when it has ended already. */
  end(tx: Tx, row: VerificationRow, ended: ResultToStore): void {
    if (!this.#store.complete(tx, row.id, completionOf(ended))) return;
    const { result, chargeable, nowMs } = ended;
    const credits = this.#credits[row.mode];
    const charged = chargeable ? credits.settle(tx, moveOf(row, nowMs)) : 0;
    if (!chargeable) credits.release(tx, moveOf(row, nowMs), result.sub_status);
    this.#complete(tx, row, ended, charged);
  }

  /** Inserts a verification that has ended, and returns its row. 402 before anything is changed. */
  insert(tx: Tx, row: VerificationRow, ended: ResultToStore): VerificationRow {
    const charged = this.#charge(tx, row, ended);
    if (!charged.ok) throw insufficientCredits(charged.error);
    const completed: VerificationRow = { ...row, ...completionOf(ended), status: "completed", dueAtMs: null };
    this.#store.insert(tx, completed);
    this.#complete(tx, row, ended, charged.value);
    return completed;
  }

  /** The credit of a verification that was not pending: how many were spent. */
  #charge(tx: Tx, row: VerificationRow, { chargeable, nowMs }: ResultToStore): Result<number, TooFewCredits> {
    const [credits, move] = [this.#credits[row.mode], moveOf(row, nowMs)];
    if (chargeable) return credits.spend(tx, move);
    // Free of charge, but not for an account without credits. The balance stays, so the ledger has no entry.
    const { available } = credits.balance(row.accountId);
    return available < 1 ? err({ required: 1, available }) : ok(0);
  }

  #complete(tx: Tx, row: VerificationRow, { result, evidence, nowMs }: ResultToStore, credits: number): void {
    const { id, accountId, keyId, mode } = row;
    const { verdict, sub_status: subStatus } = result;
    if (evidence !== null) this.#store.saveEvidence(tx, id, evidence);
    const counted = { mode, source: "single", verdict, subStatus } as const;
    this.#usage.add(tx, { ...counted, accountId, keyId, day: dayOfTime(nowMs), verifications: 1, credits });
    this.#runtime.db.note(tx, { kind: "verification", ...counted });
  }
}

const completionOf = ({ result, attempts, nowMs }: ResultToStore): Completion => {
  const { verdict, sub_status: subStatus } = result;
  return { verdict, subStatus, result: JSON.stringify(result), completedAtMs: nowMs, attempts };
};

const moveOf = ({ id, accountId }: VerificationRow, atMs: number) => ({ accountId, reference: id, atMs });
