import { isoTime } from "../../foundation/base/clock.ts";
import type { ByMode, KeyMode } from "../../foundation/base/secrets.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import { PoolClosed } from "../../verify/smtp/pool.ts";
import type { AttemptedVerification, RepeatedVerification, VerificationEngine } from "../../verify/engine.ts";
import type { Evidence } from "../../verify/evidence.ts";
import { packEvidence, unpackEvidence } from "../../verify/store.ts";
import { providerOf } from "../../verify/providers.ts";
import { INTERNAL_ERROR } from "../../verify/result.ts";
import { waitMsOf } from "../../verify/retry.ts";
import type { ListStore, OpenAddress } from "../results/list-store.ts";
import { type ResultColumns, toColumns } from "../results/result-columns.ts";

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
  readonly engines: ByMode<VerificationEngine>;
  readonly lists: ListStore;
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
 * Makes one attempt at an address of a list, with lower priority than single verifications. Rejects with `PoolClosed` when
 * the service stops first; a bug becomes `internal_error`.
 */
export const createAttempt = (
  { log }: Pick<Runtime, "log">,
  { engines, lists, dueNowMs, isShared }: AttemptOptions,
): AttemptAddress => {
  const verify = async (engine: VerificationEngine, { email, position, dueAtMs }: OpenAddress, job: AttemptJob) => {
    let before = engine.beginCell(email.trim());
    try {
      const stored = dueAtMs === 0 ? undefined : lists.findEvidence(job.number, position);
      if (stored !== undefined) before = unpackEvidence(stored);
      const onBehalfOf = { account: isShared ? job.accountId : null, priority: "bulk" } as const;
      return await engine.verify(before, { onBehalfOf, duringOutage: "repeat" });
    } catch (error) {
      if (error instanceof PoolClosed) throw error;
      log.error("verification of a list address failed", { job: job.number, position, error });
      return engine.fail(before);
    }
  };

  const outcomeOf = (
    attempted: AttemptedVerification | RepeatedVerification,
    { isSimulated }: VerificationEngine,
  ): AttemptOutcome => {
    if (attempted.kind === "repeat") return later(dueNowMs() + OUTAGE_AGAIN_MS);
    const group = isSimulated ? null : groupOf(attempted.evidence);
    const isStored = !isSimulated && attempted.evidence.address.problem === null;
    const evidence = isStored ? packEvidence(attempted.evidence) : null;
    if (attempted.kind === "retry") return { ...later(dueNowMs() + waitMsOf(attempted.retry)), evidence, group };
    const { result, chargeable } = attempted;
    return { kind: "done", columns: toColumns(result), chargeable, group, evidence };
  };

  return async (address, job) => {
    const engine = engines[job.mode];
    const begin = () => engine.beginCell(address.email.trim());
    const delayMs = address.dueAtMs === 0 ? engine.firstDelayMs(begin()) : 0;
    if (delayMs > 0) return later(dueNowMs() + delayMs);
    const attempted = await verify(engine, address, job);
    try {
      return outcomeOf(attempted, engine);
    } catch (error) {
      log.error("verification of a list address could not be concluded", {
        job: job.number,
        position: address.position,
        error,
      });
      return outcomeOf(engine.fail(begin()), engine);
    }
  };
};

const later = (dueAtMs: number): AttemptOutcome => ({ kind: "later", dueAtMs, evidence: null, group: null });

const groupOf = ({ domain }: Evidence): string | null => {
  const host = domain?.hosts[0]?.host;
  return host === undefined ? null : providerOf(host);
};
