import { type Clock, isoTime } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { KeyMode } from "../base/secrets.ts";
import { PoolClosed } from "../probe/pool.ts";
import { concludeVerification } from "../verify/verdict.ts";
import type { Outages } from "../probe/outages.ts";
import { beginCellEvidence, type VerificationEngine, unansweredAt, waitMsOf } from "../verify/engine.ts";
import type { Evidence } from "../verify/evidence.ts";
import { packEvidence, unpackEvidence } from "../verify/evidence-store.ts";
import { providerOf } from "../verify/providers.ts";
import { INTERNAL_ERROR } from "../verify/result.ts";
import { planTestCheck, TEST_VERIFIED_AT, testEvidence } from "../verify/test-keys.ts";
import type { ListStore, OpenAddress } from "./list-store.ts";
import { type ResultColumns, toColumns } from "./result-columns.ts";

/** What one attempt at an address came to. `group` is whose mail hosts it has. */
export type AttemptOutcome =
  | {
      readonly kind: "done";
      readonly columns: ResultColumns;
      readonly chargeable: boolean;
      readonly group: string | null;
      readonly evidence: PackedEvidence;
    }
  | {
      readonly kind: "later";
      readonly dueAtMs: number;
      readonly group: string | null;
      readonly evidence: PackedEvidence;
    };

/** As it is stored; null for what the address alone makes again: a test key's, and that of what is no address. */
type PackedEvidence = Buffer | null;

export interface AttemptDeps {
  readonly engine: VerificationEngine;
  readonly lists: ListStore;
  readonly outages: Pick<Outages, "judge">;
  readonly clock: Clock;
  /** By which attempts are due: wall time without its steps. */
  readonly dueNowMs: () => number;
  readonly log: Log;
  /** Whether other accounts use the same process: then each has its share only. */
  readonly isShared: boolean;
}

/** Which job the address is of. */
export interface AttemptJob {
  readonly number: number;
  readonly accountId: string;
  readonly mode: KeyMode;
}

/** An attempt that met an outage is made again after so long, or when it is over; it counts as none. */
export const OUTAGE_AGAIN_MS = 5_000;

/** What an address comes to that a bug met time and again. */
export const internalErrorOutcome = (atMs: number): AttemptOutcome => {
  const result = { ...INTERNAL_ERROR, email: "", normalized_email: "", verified_at: isoTime(atMs) };
  return { kind: "done", columns: toColumns(result), chargeable: false, group: null, evidence: null };
};

const groupOf = ({ domain }: Evidence): string | null => {
  const host = domain?.hosts[0]?.host;
  return host === undefined ? null : providerOf(host);
};

/**
 * Makes one attempt at an address of a list, behind everybody who waits for an answer. Rejects with `PoolClosed` when
 * the service stops first; a bug becomes `internal_error`.
 */
export const createAttempt = ({ engine, lists, outages, clock, dueNowMs, log, isShared }: AttemptDeps) => {
  const done = (evidence: Evidence, verifiedAt: string): AttemptOutcome => {
    const { result, evidence: whole, chargeable } = concludeVerification(evidence, verifiedAt);
    const packed = evidence.address.problem === null ? packEvidence(whole) : null;
    return { kind: "done", columns: toColumns(result), chargeable, group: groupOf(evidence), evidence: packed };
  };

  const test = ({ email, dueAtMs }: OpenAddress): AttemptOutcome => {
    const begun = beginCellEvidence(email.trim());
    const evidence = testEvidence(email.trim(), begun);
    const { afterMs } = planTestCheck(begun);
    if (afterMs > 0 && dueAtMs === 0)
      return { kind: "later", dueAtMs: dueNowMs() + afterMs, evidence: null, group: null };
    const { result, chargeable } = concludeVerification(evidence, TEST_VERIFIED_AT);
    return { kind: "done", columns: toColumns(result), chargeable, group: null, evidence: null };
  };

  const gather = async (address: OpenAddress, job: AttemptJob): Promise<Evidence> => {
    let evidence = beginCellEvidence(address.email.trim());
    try {
      const stored = address.dueAtMs === 0 ? undefined : lists.findEvidence(job.number, address.position);
      if (stored !== undefined) evidence = unpackEvidence(stored);
      return await engine.attempt(evidence, { account: isShared ? job.accountId : null, priority: "bulk" });
    } catch (error) {
      if (error instanceof PoolClosed) throw error;
      log.error("a check of a list failed", { job: job.number, position: address.position, cause: error });
      return engine.failed(evidence);
    }
  };

  const conclusionOf = (evidence: Evidence): AttemptOutcome => {
    const retry = engine.planRetry(evidence);
    if (retry === null) return done(evidence, isoTime(clock.nowMs()));
    const later = packEvidence({ ...evidence, retries: [...evidence.retries, retry] });
    return { kind: "later", dueAtMs: dueNowMs() + waitMsOf(retry), evidence: later, group: groupOf(evidence) };
  };

  /** Whether nobody answers, or might not: then the attempt says nothing of the address. */
  const isInDoubt = async (evidence: Evidence): Promise<boolean> => {
    const channel = unansweredAt(evidence);
    return channel !== null && (await outages.judge(channel)) !== "believed";
  };

  return async function attempt(address: OpenAddress, job: AttemptJob): Promise<AttemptOutcome> {
    if (job.mode === "test") return test(address);
    const evidence = await gather(address, job);
    try {
      if (await isInDoubt(evidence))
        return { kind: "later", dueAtMs: dueNowMs() + OUTAGE_AGAIN_MS, evidence: null, group: null };
      return conclusionOf(evidence);
    } catch (error) {
      log.error("a check of a list could not be concluded", {
        job: job.number,
        position: address.position,
        cause: error,
      });
      return done(engine.failed(beginCellEvidence(address.email.trim())), isoTime(clock.nowMs()));
    }
  };
};

export type AttemptAddress = ReturnType<typeof createAttempt>;
