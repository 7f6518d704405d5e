import type { IdSource } from "../base/walk.ts";
import { dayOfTime } from "../base/days.ts";
import { AppError } from "../base/errors.ts";
import { type ByMode, newId, sha256 } from "../base/secrets.ts";
import { insufficientCredits } from "../billing/plans.ts";
import type { CreditHolds } from "../billing/store.ts";
import type { IdempotencyStore } from "../db/idempotency.ts";
import type { Tx } from "../db/open.ts";
import { orRefusal } from "../db/refusal.ts";
import type { Runtime } from "../db/runtime.ts";
import type { Caller } from "../http/guard.ts";
import { UsageStore } from "../usage/usage-store.ts";
import type { VerificationEngine } from "./engine.ts";
import type { Evidence } from "./evidence.ts";
import type { Runner } from "./runner.ts";
import type { ListFilters, VerificationRow, VerificationStore } from "./store.ts";

export interface ChecksDeps {
  readonly store: VerificationStore;
  readonly idempotency: IdempotencyStore;
  readonly engines: ByMode<VerificationEngine>;
  readonly credits: ByMode<CreditHolds>;
  readonly runner: Runner;
}

export interface CheckOrder {
  readonly email: string;
  readonly source: string | null;
  readonly idempotencyKey: string | null;
}

/** What is known about an address when it is submitted. */
interface SubmittedAddress {
  readonly begun: Evidence;
  /** The evidence of a verification that ends at once; null when an attempt has to be made. */
  readonly final: Evidence | null;
}

/** The verifications of callers: request one, poll it, list them. A caller sees those of its account and mode. */
export class Checks {
  readonly #runtime: Pick<Runtime, "db" | "clock">;
  readonly #deps: ChecksDeps;
  readonly #usage: UsageStore;

  constructor(runtime: Pick<Runtime, "db" | "clock">, deps: ChecksDeps) {
    this.#runtime = runtime;
    this.#deps = deps;
    this.#usage = new UsageStore(runtime.db);
  }

  /**
   * Creates a verification, or finds the one that the Idempotency-Key or a pending verification of the same address
   * stands for, and waits for it up to `waitMs`. 402 `insufficient_credits`, 422 `idempotency_key_reused`.
   */
  async order(caller: Caller, order: CheckOrder, waitMs: number, signal?: AbortSignal): Promise<VerificationRow> {
    const { store, runner } = this.#deps;
    const submitted = await this.#begin(caller, order.email);
    const row = await this.#runtime.db.commit((tx) => orRefusal(() => this.#place(tx, caller, order, submitted)));
    if (row instanceof AppError) throw row;
    if (row.status === "completed") return row;
    const current = store.find(row.id) ?? row;
    if (current.status === "pending") runner.submit(current);
    return this.#settle(current, waitMs, signal);
  }

  async poll(caller: Caller, id: string, waitMs: number, signal?: AbortSignal): Promise<VerificationRow> {
    return this.#settle(this.#find(caller, id), waitMs, signal);
  }

  /** The evidence of a verification, as far as it has been collected. 404 when it has expired. */
  async evidence(caller: Caller, id: string): Promise<Evidence> {
    const row = this.#find(caller, id);
    const stored = this.#deps.store.findEvidence(id);
    if (stored !== undefined) return stored;
    const engine = this.#deps.engines[row.mode];
    const begun = engine.begin(row.email);
    if (row.status === "pending") return begun;
    const { evidence } = engine.conclude(await engine.reproduce(begun), row.completedAtMs ?? row.createdAtMs);
    if (evidence.conclusion?.sub_status === row.subStatus) return evidence;
    const message = "The evidence of this verification has expired. Its result is stored for longer.";
    throw new AppError("not_found", { message });
  }

  /** Deletes a verification that has ended, with its evidence. 409 while it is pending. */
  async remove(caller: Caller, id: string): Promise<void> {
    this.#find(caller, id);
    const isPending = await this.#runtime.db.commit(
      (tx) => !this.#deps.store.remove(tx, id) && this.#deps.store.find(id) !== undefined,
    );
    if (isPending)
      throw new AppError("conflict", { message: "The verification is pending. Delete it when it is completed." });
  }

  /** The verifications requested with the calling key, newest first. */
  list({ keyId }: Caller, filters: ListFilters): IdSource<VerificationRow> {
    const { store } = this.#deps;
    return {
      idBehind: (before, places) => store.idBehind(keyId, before, places),
      list: (page) => store.list(keyId, filters, page),
    };
  }

  async #begin({ mode }: Caller, email: string): Promise<SubmittedAddress> {
    const engine = this.#deps.engines[mode];
    const begun = engine.begin(email);
    return { begun, final: await engine.verifyAtOnce(begun) };
  }

  #place(tx: Tx, caller: Caller, order: CheckOrder, submitted: SubmittedAddress): VerificationRow {
    const { store, idempotency } = this.#deps;
    const { idempotencyKey } = order;
    const requestHash = idempotencyKey === null ? "" : sha256(JSON.stringify([order.email, order.source]));
    const request = idempotencyKey === null ? null : { keyId: caller.keyId, idempotencyKey, requestHash };
    const earlierId = request === null ? null : idempotency.findResource(request);
    const before = earlierId === null ? undefined : store.find(earlierId);
    if (before !== undefined) return before;
    const pending = store.findPending(caller.accountId, caller.mode, submitted.begun.address.normalized_email);
    const row = pending ?? this.#create(tx, this.#rowFor(caller, order, submitted), submitted);
    if (request !== null) idempotency.save(tx, request, row.id);
    return row;
  }

  /** Holds a credit and inserts the row: pending, or completed where the result is known at once. */
  #create(tx: Tx, row: VerificationRow, { final }: SubmittedAddress): VerificationRow {
    const { store } = this.#deps;
    const [engine, credits] = [this.#deps.engines[row.mode], this.#deps.credits[row.mode]];
    const move = { accountId: row.accountId, reference: row.id, atMs: row.createdAtMs };
    const held = credits.hold(tx, move);
    if (!held.ok) throw insufficientCredits(held.error);
    if (final === null) {
      store.insert(tx, row);
      return row;
    }
    const { result, evidence } = engine.conclude(final, row.createdAtMs);
    const { verdict, sub_status: subStatus } = result;
    const completed: VerificationRow = {
      ...{ ...row, status: "completed", verdict, subStatus, result: JSON.stringify(result) },
      ...{ completedAtMs: row.createdAtMs, dueAtMs: null, attempts: evidence.attempts.length },
    };
    store.insert(tx, completed);
    if (!engine.isSimulated) store.saveEvidence(tx, row.id, evidence);
    const charged = credits.settle(tx, move);
    const counted = { mode: row.mode, source: "single", verdict, subStatus } as const;
    const owner = { accountId: row.accountId, keyId: row.keyId, day: dayOfTime(row.createdAtMs) };
    this.#usage.add(tx, { ...counted, ...owner, verifications: 1, credits: charged });
    this.#runtime.db.note(tx, { kind: "verification", ...counted });
    return completed;
  }

  #rowFor({ accountId, keyId, mode }: Caller, { source }: CheckOrder, { begun }: SubmittedAddress): VerificationRow {
    const { engines, runner } = this.#deps;
    return {
      ...{ id: newId(), accountId, keyId, mode, source },
      ...{ email: begun.address.submitted, normalizedEmail: begun.address.normalized_email },
      ...{ status: "pending", verdict: null, subStatus: null, result: null },
      ...{ createdAtMs: this.#runtime.clock.nowMs(), completedAtMs: null, attempts: 0 },
      dueAtMs: runner.dueAtMs(engines[mode].firstDelayMs(begun)),
    };
  }

  #find(caller: Caller, id: string): VerificationRow {
    const row = this.#deps.store.find(id);
    if (row === undefined || row.accountId !== caller.accountId || row.mode !== caller.mode)
      throw new AppError("not_found", { message: "There is no such verification." });
    return row;
  }

  /** Waits for a pending verification, and returns its current state. */
  async #settle(row: VerificationRow, waitMs: number, signal?: AbortSignal): Promise<VerificationRow> {
    const { store, runner } = this.#deps;
    if (row.status === "completed") return row;
    const current = store.find(row.id) ?? row;
    if (current.status === "completed") return current;
    await runner.waitFor(row.id, waitMs, signal);
    return store.find(row.id) ?? row;
  }
}
