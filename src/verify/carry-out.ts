import { type Clock, isoTime } from "../base/clock.ts";
import { wait } from "../base/wait.ts";
import type { Log } from "../base/log.ts";
import type { Ledger } from "../billing/store.ts";
import type { Db, Tx } from "../db/open.ts";
import type { Outages } from "../probe/outages.ts";
import { PoolClosed } from "../probe/pool.ts";
import { concludeVerification } from "./verdict.ts";
import { beginEvidence, type VerificationEngine, unansweredAt, waitMsOf } from "./engine.ts";
import { type Evidence, evidenceSchema, type PlannedRetry } from "./evidence.ts";
import { INTERNAL_ERROR, type VerificationResult } from "./result.ts";
import type { VerificationRow, VerificationStore } from "./store.ts";
import { TEST_VERIFIED_AT, testEvidence } from "./test-keys.ts";

export interface CarryOutDeps {
  readonly db: Db;
  readonly store: VerificationStore;
  readonly ledger: Ledger;
  readonly engine: VerificationEngine;
  readonly outages: Pick<Outages, "judge">;
  readonly clock: Clock;
  /** By which attempts are due: wall time without its steps. */
  readonly dueNowMs: () => number;
  readonly log: Log;
  /** Whether the service is going down: then a write that fails is not tried again, the row says what is left to do. */
  readonly isStopping: () => boolean;
}

/** After a write that failed (disk full, locked). */
export const WRITE_AGAIN_MS = 2_000;

/** SQLite's complaints about our statements, not about the disk: the same write fails again for ever. */
const BUGS = /^SQLITE_(CONSTRAINT|ERROR|MISMATCH|MISUSE|RANGE|TOOBIG)/;

/** The disk is full, the file locked or read-only: the same write may succeed later. */
export const isStorageTrouble = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  typeof error.code === "string" &&
  error.code.startsWith("SQLITE_") &&
  !BUGS.test(error.code);

/**
 * Makes one attempt at a pending verification and writes down what came of it in one transaction: the end with its
 * evidence and the end of the hold, or the time of the next attempt. Answers that time, null when it has ended.
 *
 * Rejects with `PoolClosed` when the service stops before the mail host was asked, and for bugs; the row is then pending
 * as before. A check that cannot be concluded for a bug ends as `internal_error`; so does, with the least that can be
 * written, one that is given up.
 */
export const createCarryOut = (deps: CarryOutDeps) => {
  const { db, store, ledger, engine, outages, clock, dueNowMs, log, isStopping } = deps;
  /** Writes until it is written: a conclusion is not given up because the disk is full for a while. */
  const persist = async (id: string, write: (tx: Tx) => void): Promise<void> => {
    for (;;) {
      try {
        return await db.commit(write);
      } catch (error) {
        if (isStopping() || !isStorageTrouble(error)) throw error;
        log.error("a verification could not be stored; trying again", { id, cause: error });
        await wait(clock, WRITE_AGAIN_MS);
      }
    }
  };

  /** What earlier attempts found out; the first has nothing to go by. */
  const storedEvidence = ({ id, attempts }: VerificationRow): Evidence | undefined => {
    const stored = attempts === 0 ? undefined : store.findEvidence(id);
    return stored === undefined ? undefined : evidenceSchema.parse(JSON.parse(stored));
  };

  const gather = async (row: VerificationRow): Promise<Evidence> => {
    if (row.mode === "test") return testEvidence(row.email);
    let evidence = beginEvidence(row.email);
    try {
      evidence = storedEvidence(row) ?? evidence;
      return await engine.attempt(evidence, { account: row.accountId, priority: "realtime" });
    } catch (error) {
      if (error instanceof PoolClosed) throw error;
      log.error("a check failed", { id: row.id, cause: error });
      return engine.failed(evidence);
    }
  };

  const complete = (tx: Tx, row: VerificationRow, evidence: Evidence): void => {
    const nowMs = clock.nowMs();
    const isTest = row.mode === "test";
    const concluded = concludeVerification(evidence, isTest ? TEST_VERIFIED_AT : isoTime(nowMs));
    const { verdict, sub_status: subStatus } = concluded.result;
    const attempts = evidence.attempts.length;
    const result = JSON.stringify(concluded.result);
    if (!store.complete(tx, row.id, { verdict, subStatus, result, completedAtMs: nowMs, attempts })) return;
    store.saveEvidence(tx, row.id, JSON.stringify(concluded.evidence));
    if (isTest) return;
    const move = { accountId: row.accountId, reference: row.id, atMs: nowMs };
    if (concluded.chargeable) ledger.settle(tx, move);
    else ledger.release(tx, move, subStatus);
  };

  const postpone = (tx: Tx, row: VerificationRow, { dueAtMs, ...rest }: Postponed): void => {
    const later = { ...rest.evidence, retries: [...rest.evidence.retries, rest.retry] };
    // An attempt that ended at the DNS is not among those of the evidence, but was made.
    const attempts = Math.max(later.attempts.length, later.retries.length);
    if (!store.postpone(tx, row.id, dueAtMs, attempts)) return;
    store.saveEvidence(tx, row.id, JSON.stringify(later));
  };

  /**
   * Whether nobody at all answers at the moment. Only what would be concluded at once waits for that. Where it cannot be
   * told, as after a restart in an outage, a check that has come back once comes back again.
   */
  const isOutage = async (evidence: Evidence): Promise<boolean> => {
    const channel = unansweredAt(evidence);
    if (channel === null) return false;
    const judged = outages.judge(channel);
    if (channel !== "smtp") return false;
    return (await judged) === "outage" || ((await judged) === "open" && evidence.retries.length > 0);
  };

  const record = async (row: VerificationRow, evidence: Evidence): Promise<number | null> => {
    const retry = row.mode === "live" ? engine.planRetry(evidence, await isOutage(evidence)) : null;
    const dueAtMs = retry === null ? null : dueNowMs() + waitMsOf(retry);
    await persist(row.id, (tx) => {
      if (retry === null || dueAtMs === null) complete(tx, row, evidence);
      else postpone(tx, row, { evidence, retry, dueAtMs });
    });
    return dueAtMs;
  };

  return {
    async attempt(row: VerificationRow): Promise<number | null> {
      const evidence = await gather(row);
      try {
        return await record(row, evidence);
      } catch (error) {
        if (isStopping()) throw error;
        log.error("a check could not be concluded", { id: row.id, cause: error });
        return await record(row, engine.failed(beginEvidence(row.email)));
      }
    },

    /** Ends a check that failed for a bug time and again: `internal_error`, without evidence, its credit given back. */
    async giveUp(row: VerificationRow): Promise<null> {
      await persist(row.id, (tx) => {
        const nowMs = clock.nowMs();
        const result = internalError(row, isoTime(nowMs));
        const { verdict, sub_status: subStatus } = result;
        const end = {
          verdict,
          subStatus,
          result: JSON.stringify(result),
          completedAtMs: nowMs,
          attempts: row.attempts,
        };
        if (!store.complete(tx, row.id, end) || row.mode === "test") return;
        ledger.release(tx, { accountId: row.accountId, reference: row.id, atMs: nowMs }, subStatus);
      });
      return null;
    },
  };
};

interface Postponed {
  readonly evidence: Evidence;
  readonly retry: PlannedRetry;
  readonly dueAtMs: number;
}

/** A result made from nothing that a bug may have damaged. */
const internalError = (
  { email, normalizedEmail }: Pick<VerificationRow, "email" | "normalizedEmail">,
  at: string,
): VerificationResult => ({
  email,
  normalized_email: normalizedEmail,
  ...INTERNAL_ERROR,
  verified_at: at,
});
