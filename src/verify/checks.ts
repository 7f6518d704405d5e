import { type Clock, isoTime } from "../base/clock.ts";
import type { IdSource } from "../base/walk.ts";
import { AppError } from "../base/errors.ts";
import { newId, sha256 } from "../base/secrets.ts";
import { insufficientCredits } from "../billing/insufficient-credits.ts";
import type { Ledger } from "../billing/store.ts";
import type { IdempotencyStore } from "../db/idempotency.ts";
import type { Db, Tx } from "../db/open.ts";
import { orRefusal } from "../db/refusal.ts";
import type { Caller } from "../http/guard.ts";
import { concludeVerification } from "./verdict.ts";
import { beginEvidence } from "./engine.ts";
import { type Evidence, evidenceSchema } from "./evidence.ts";
import type { Runner } from "./runner.ts";
import type { ListFilters, VerificationRow, VerificationStore } from "./store.ts";
import { planTestCheck, TEST_VERIFIED_AT, testEvidence } from "./test-keys.ts";

export interface ChecksDeps {
  readonly db: Db;
  readonly store: VerificationStore;
  readonly idempotency: IdempotencyStore;
  readonly ledger: Ledger;
  readonly runner: Runner;
  readonly clock: Clock;
}

export interface CheckOrder {
  readonly email: string;
  readonly source: string | null;
  readonly idempotencyKey: string | null;
}

/** The verifications of callers: order one, look at one, list them. A caller sees those of its account and mode. */
export const createChecks = ({ db, store, idempotency, ledger, runner, clock }: ChecksDeps) => {
  const rowFor = (caller: Caller, order: CheckOrder, evidence: Evidence): VerificationRow => {
    const nowMs = clock.nowMs();
    return {
      id: newId(),
      accountId: caller.accountId,
      keyId: caller.keyId,
      mode: caller.mode,
      email: evidence.address.submitted,
      normalizedEmail: evidence.address.normalized_email,
      source: order.source,
      status: "pending",
      verdict: null,
      subStatus: null,
      result: null,
      createdAtMs: nowMs,
      completedAtMs: null,
      dueAtMs: runner.dueAtMs(caller.mode === "test" ? planTestCheck(evidence).afterMs : 0),
      attempts: 0,
    };
  };

  const completed = (row: VerificationRow, evidence: Evidence, verifiedAt: string) => {
    const { result, evidence: whole } = concludeVerification(evidence, verifiedAt);
    const { verdict, sub_status: subStatus } = result;
    const end = {
      status: "completed",
      dueAtMs: null,
      completedAtMs: row.createdAtMs,
      attempts: whole.attempts.length,
    } as const;
    return { row: { ...row, ...end, verdict, subStatus, result: JSON.stringify(result) }, evidence: whole };
  };

  const holdCredit = (tx: Tx, row: VerificationRow): void => {
    const held = ledger.hold(tx, { accountId: row.accountId, reference: row.id, atMs: row.createdAtMs });
    if (!held.ok) throw insufficientCredits(held.error);
  };

  /** A check with a test key: known at once, but for the triggers that take their time. Costs and asks nothing. */
  const beginTest = (tx: Tx, row: VerificationRow, evidence: Evidence): VerificationRow => {
    const isLater = planTestCheck(evidence).afterMs > 0;
    const stored = isLater ? row : completed(row, testEvidence(row.email, evidence), TEST_VERIFIED_AT).row;
    store.insert(tx, stored);
    return stored;
  };

  /** What is no address is known at once; all else is a hold, a pending row, and the runner's work. */
  const beginLive = (tx: Tx, row: VerificationRow, evidence: Evidence): VerificationRow => {
    holdCredit(tx, row);
    if (evidence.address.problem === null) {
      store.insert(tx, row);
      return row;
    }
    const done = completed(row, evidence, isoTime(row.createdAtMs));
    store.insert(tx, done.row);
    store.saveEvidence(tx, row.id, JSON.stringify(done.evidence));
    ledger.settle(tx, { accountId: row.accountId, reference: row.id, atMs: row.createdAtMs });
    return done.row;
  };

  const place = (tx: Tx, caller: Caller, order: CheckOrder): VerificationRow => {
    const { idempotencyKey } = order;
    const requestHash = idempotencyKey === null ? "" : sha256(JSON.stringify([order.email, order.source]));
    const request = idempotencyKey === null ? null : { keyId: caller.keyId, idempotencyKey, requestHash };
    const earlierId = request === null ? null : idempotency.findResource(request);
    const before = earlierId === null ? undefined : store.find(earlierId);
    if (before !== undefined) return before;
    const evidence = beginEvidence(order.email);
    const pending = store.findPending(caller.accountId, caller.mode, evidence.address.normalized_email);
    const fresh = () => {
      const row = rowFor(caller, order, evidence);
      return caller.mode === "test" ? beginTest(tx, row, evidence) : beginLive(tx, row, evidence);
    };
    const row = pending ?? fresh();
    if (request !== null) idempotency.save(tx, request, row.id);
    return row;
  };

  const find = (caller: Caller, id: string): VerificationRow => {
    const row = store.find(id);
    if (row === undefined || row.accountId !== caller.accountId || row.mode !== caller.mode) {
      throw new AppError("not_found", { message: "There is no such verification." });
    }
    return row;
  };

  /** Waits for a pending verification, and answers its newest state. */
  const settle = async (row: VerificationRow, waitMs: number, signal?: AbortSignal): Promise<VerificationRow> => {
    if (row.status === "completed") return row;
    const current = store.find(row.id) ?? row;
    if (current.status === "completed") return current;
    await runner.waitFor(row.id, waitMs, signal);
    return store.find(row.id) ?? row;
  };

  return {
    /**
     * Orders a check, or finds the one that the Idempotency-Key or a pending check of the same address stands for, and
     * waits up to `waitMs` for it. 402 `insufficient_credits`, 422 `idempotency_key_reused`.
     */
    async order(caller: Caller, order: CheckOrder, waitMs: number, signal?: AbortSignal): Promise<VerificationRow> {
      const row = await db.commit((tx) => orRefusal(() => place(tx, caller, order)));
      if (row instanceof AppError) throw row;
      if (row.status === "completed") return row;
      const current = store.find(row.id) ?? row;
      if (current.status === "pending") runner.take(current);
      return settle(current, waitMs, signal);
    },

    async poll(caller: Caller, id: string, waitMs: number, signal?: AbortSignal): Promise<VerificationRow> {
      return settle(find(caller, id), waitMs, signal);
    },

    /** Why a verification says what it says, as far as it has come. */
    evidence(caller: Caller, id: string): Evidence {
      const row = find(caller, id);
      const stored = store.findEvidence(id);
      if (stored !== undefined) return evidenceSchema.parse(JSON.parse(stored));
      if (row.mode === "test" && row.status === "completed")
        return concludeVerification(testEvidence(row.email), TEST_VERIFIED_AT).evidence;
      return beginEvidence(row.email);
    },

    /** The checks made with the calling key, newest first. */
    list: ({ keyId }: Caller, filters: ListFilters): IdSource<VerificationRow> => ({
      idBehind: (before, places) => store.idBehind(keyId, before, places),
      list: (page) => store.list(keyId, filters, page),
    }),
  };
};

export type Checks = ReturnType<typeof createChecks>;
