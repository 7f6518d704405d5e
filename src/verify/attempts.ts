import type { OnBehalfOf } from "../foundation/base/on-behalf-of.ts";
import { providerOf } from "./domain-evidence.ts";
import type { AttemptedVerification, OutagePolicy, VerificationEngine } from "./engine.ts";
import type { Evidence, PlannedRetry, ProbeFinding } from "./evidence.ts";
import type { VerificationResult } from "./result.ts";
import { packEvidence, unpackEvidence } from "./store.ts";

/** An attempt that is to be made at verifying an address. */
export interface AttemptOrder {
  /** The text that was submitted. */
  readonly submitted: string;
  /** Whether the text is a cell of a list, from which the address is extracted. */
  readonly isCell: boolean;
  /** The evidence of the attempts before, as stored; null before the first one. */
  readonly before: Uint8Array | null;
  readonly onBehalfOf: OnBehalfOf;
  readonly duringOutage: OutagePolicy;
  /** The match in the operator's suppression list, where it was looked for already. */
  readonly toxic?: Evidence["toxic"];
  /** The account whose bounces count. */
  readonly accountId: string;
  /** The hard bounce that counts, where it was looked for already. */
  readonly bounce?: Evidence["bounce"];
  /** The attempt ends at the domain. */
  readonly onlyDomain?: boolean;
}

/** What an attempt leaves to be stored, and what a list needs to know of it. */
interface AttemptTraces {
  /** Attempts that were made so far. */
  readonly attempts: number;
  /** The provider of the mail hosts; null when none is known. */
  readonly provider: string | null;
  /** What the last probe found, and at which mail host; null when none was sent. */
  readonly finding: { readonly reading: ProbeFinding["reading"]; readonly host: string | null } | null;
}

/** What an attempt came to: a result, a retry, or nothing during an outage (`repeat`). Plain data. */
export type MadeAttempt =
  | (AttemptTraces & {
      readonly kind: "concluded";
      /** As it is stored; null where it is not, because it can be made again. */
      readonly evidence: Uint8Array | null;
      readonly result: VerificationResult;
      readonly chargeable: boolean;
    })
  | (AttemptTraces & { readonly kind: "retry"; readonly evidence: Uint8Array; readonly retry: PlannedRetry })
  | { readonly kind: "repeat" };

/** Makes attempts, wherever the engine runs. */
export interface Attempts {
  /** Rejects with `PoolClosed` when the service stops before the mail host was probed, and for bugs. */
  make(order: AttemptOrder): Promise<MadeAttempt>;
  /** What an attempt that ended in a bug of ours comes to, on the evidence that was stored before. */
  fail(order: AttemptOrder): MadeAttempt;
}

/** Makes attempts in this thread. */
export class OwnAttempts implements Attempts {
  constructor(private readonly engine: VerificationEngine) {}

  async make(order: AttemptOrder): Promise<MadeAttempt> {
    const attempted = await this.engine.verify(this.#before(order), order);
    return attempted.kind === "repeat" ? attempted : this.#madeOf(attempted);
  }

  fail(order: AttemptOrder): MadeAttempt {
    return this.#madeOf(this.engine.fail(this.#readableBefore(order)));
  }

  #madeOf(attempted: AttemptedVerification): MadeAttempt {
    const { evidence } = attempted;
    const traces = tracesOf(evidence);
    if (attempted.kind === "concluded") {
      const { result, chargeable } = attempted;
      const packed = this.engine.isSimulated ? null : packEvidence(evidence);
      return { kind: "concluded", result, chargeable, evidence: packed, ...traces };
    }
    // An attempt that ended at the DNS is not in the evidence.
    const attempts = Math.max(evidence.attempts.length, evidence.retries.length);
    return { kind: "retry", retry: attempted.retry, evidence: packEvidence(evidence), ...traces, attempts };
  }

  #before({ submitted, isCell, before }: AttemptOrder): Evidence {
    if (before !== null) return unpackEvidence(before);
    return isCell ? this.engine.beginCell(submitted) : this.engine.begin(submitted);
  }

  #readableBefore(order: AttemptOrder): Evidence {
    try {
      return this.#before(order);
    } catch {
      return this.#before({ ...order, before: null });
    }
  }
}

const tracesOf = ({ attempts, domain }: Evidence): AttemptTraces => {
  const latest = attempts.at(-1)?.finding;
  const firstHost = domain?.hosts[0]?.host ?? null;
  return {
    attempts: attempts.length,
    provider: firstHost === null ? null : providerOf(firstHost),
    finding: latest === undefined ? null : { reading: latest.reading, host: latest.host ?? firstHost },
  };
};
