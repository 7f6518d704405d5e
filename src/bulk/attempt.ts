import { isoTime } from "../base/clock.ts";
import type { KeyMode } from "../base/secrets.ts";
import type { Runtime } from "../db/runtime.ts";
import type { Outages } from "../probe/outages.ts";
import { PoolClosed } from "../probe/pool.ts";
import { beginCellEvidence, unansweredAt, type VerificationEngine, waitMsOf } from "../verify/engine.ts";
import type { Evidence } from "../verify/evidence.ts";
import { packEvidence, unpackEvidence } from "../verify/evidence-store.ts";
import { providerOf } from "../verify/providers.ts";
import { INTERNAL_ERROR } from "../verify/result.ts";
import { planTestCheck, TEST_VERIFIED_AT, testEvidence } from "../verify/test-keys.ts";
import { concludeVerification } from "../verify/verdict.ts";
import type { ListStore, OpenAddress } from "./list-store.ts";
import { type ResultColumns, toColumns } from "./result-columns.ts";

/** The outcome of one attempt. `group`: the provider of the address's mail hosts; null when unknown. */
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

/** As stored; null when it can be derived from the address: with a test key, or when the cell holds no address. */
type PackedEvidence = Buffer | null;

interface AttemptOptions {
  readonly engine: VerificationEngine;
  readonly lists: ListStore;
  readonly outages: Pick<Outages, "judge">;
  /** The clock of retries: wall time without its steps. */
  readonly dueNowMs: () => number;
  /** Whether other accounts use this process, so that each gets only its share of it. */
  readonly isShared: boolean;
}

export interface AttemptJob {
  readonly number: number;
  readonly accountId: string;
  readonly mode: KeyMode;
}

export type AttemptAddress = (address: OpenAddress, job: AttemptJob) => Promise<AttemptOutcome>;

/** Wait after an attempt during an outage, which does not count as an attempt. */
export const OUTAGE_AGAIN_MS = 5_000;

/** The outcome of an address whose attempts repeatedly failed because of a bug. */
export const internalErrorOutcome = (atMs: number): AttemptOutcome => {
  const result = { ...INTERNAL_ERROR, email: "", normalized_email: "", verified_at: isoTime(atMs) };
  return { kind: "done", columns: toColumns(result), chargeable: false, group: null, evidence: null };
};

/**
 * Makes one attempt at an address of a list, with lower priority than single checks. Rejects with `PoolClosed` when the
 * service stops first; a bug becomes `internal_error`.
 */
export const createAttempt = (
  { clock, log }: Pick<Runtime, "clock" | "log">,
  { engine, lists, outages, dueNowMs, isShared }: AttemptOptions,
): AttemptAddress => {
  const gatherEvidence = async (address: OpenAddress, job: AttemptJob): Promise<Evidence> => {
    let evidence = beginCellEvidence(address.email.trim());
    try {
      const stored = address.dueAtMs === 0 ? undefined : lists.findEvidence(job.number, address.position);
      if (stored !== undefined) evidence = unpackEvidence(stored);
      return await engine.attempt(evidence, { account: isShared ? job.accountId : null, priority: "bulk" });
    } catch (error) {
      if (error instanceof PoolClosed) throw error;
      log.error("a check of a list failed", { job: job.number, position: address.position, error });
      return engine.failed(evidence);
    }
  };

  /** Whether nothing responds, or may not: the attempt then says nothing about the address. */
  const isOutage = async (evidence: Evidence): Promise<boolean> => {
    const channel = unansweredAt(evidence);
    return channel !== null && (await outages.judge(channel)) !== "believed";
  };

  const outcomeOf = async (evidence: Evidence): Promise<AttemptOutcome> => {
    if (await isOutage(evidence)) return later(dueNowMs() + OUTAGE_AGAIN_MS);
    const retry = engine.planRetry(evidence);
    if (retry === null) return done(evidence, isoTime(clock.nowMs()));
    const packed = packEvidence({ ...evidence, retries: [...evidence.retries, retry] });
    return { ...later(dueNowMs() + waitMsOf(retry)), evidence: packed, group: groupOf(evidence) };
  };

  return async (address, job) => {
    if (job.mode === "test") return testOutcome(address, dueNowMs);
    const evidence = await gatherEvidence(address, job);
    try {
      return await outcomeOf(evidence);
    } catch (error) {
      log.error("could not conclude a check of a list", { job: job.number, position: address.position, error });
      return done(engine.failed(beginCellEvidence(address.email.trim())), isoTime(clock.nowMs()));
    }
  };
};

const later = (dueAtMs: number): AttemptOutcome => ({ kind: "later", dueAtMs, evidence: null, group: null });

const done = (evidence: Evidence, verifiedAt: string): AttemptOutcome => {
  const { result, evidence: whole, chargeable } = concludeVerification(evidence, verifiedAt);
  const packed = evidence.address.problem === null ? packEvidence(whole) : null;
  return { kind: "done", columns: toColumns(result), chargeable, group: groupOf(evidence), evidence: packed };
};

const groupOf = ({ domain }: Evidence): string | null => {
  const host = domain?.hosts[0]?.host;
  return host === undefined ? null : providerOf(host);
};

const testOutcome = ({ email, dueAtMs }: OpenAddress, dueNowMs: () => number): AttemptOutcome => {
  const begun = beginCellEvidence(email.trim());
  const { afterMs } = planTestCheck(begun);
  if (afterMs > 0 && dueAtMs === 0) return later(dueNowMs() + afterMs);
  const { result, chargeable } = concludeVerification(testEvidence(email.trim(), begun), TEST_VERIFIED_AT);
  return { kind: "done", columns: toColumns(result), chargeable, group: null, evidence: null };
};
