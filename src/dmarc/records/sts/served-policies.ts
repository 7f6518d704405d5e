import type { Clock } from "../../../foundation/base/clock.ts";
import { textOfPolicy } from "./policy-changes.ts";
import type { PolicyStore } from "./policy-store.ts";
import { policyHostOf } from "./policy-text.ts";

/** A change by a command, which is another process, is served after this. */
const READ_EVERY_MS = 10_000;

/** The texts of the served policies, by host. They are read at most every ten seconds, however many requests there are. */
export class ServedPolicies {
  #texts: ReadonlyMap<string, string> = new Map();
  #readAtMs: number | null = null;

  constructor(
    private readonly clock: Pick<Clock, "monotonicMs">,
    private readonly store: Pick<PolicyStore, "served">,
  ) {}

  /** The policy that a host such as `mta-sts.example.com` serves; null for any other. */
  textOf(host: string): string | null {
    const nowMs = this.clock.monotonicMs();
    if (this.#readAtMs === null || nowMs - this.#readAtMs >= READ_EVERY_MS) {
      this.#texts = new Map(this.store.served().map((row) => [policyHostOf(row.domain), textOfPolicy(row)]));
      this.#readAtMs = nowMs;
    }
    return this.#texts.get(host) ?? null;
  }

  /** Makes the next request read the policies again. */
  refresh(): void {
    this.#readAtMs = null;
  }
}
