import type { Fact } from "../../foundation/db/facts.ts";
import { Counter, Histogram, type Registry } from "./prometheus.ts";

/** From an event to its delivery: at once, after a retry, after an outage of the receiver. */
const DELIVERY_BUCKETS_S = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200, 28_800, 86_400];

const CREDIT_MOVES = ["grant", "hold", "settle", "release"];
const DELIVERY_OUTCOMES = ["delivered", "retry", "rejected", "failed"];

const createCounters = (registry: Registry) => {
  const registers = [registry];
  return {
    verifications: new Counter({
      ...{ registers, name: "postwarden_verifications_total" },
      help: "Verifications that ended, by result.",
      labelNames: ["mode", "source", "verdict", "sub_status"] as const,
    }),
    credits: new Counter({
      ...{ registers, name: "postwarden_credits_total" },
      help: "Credits granted, held, charged (settled) and released.",
      labelNames: ["move"] as const,
    }),
    reports: new Counter({
      ...{ registers, name: "postwarden_reports_total" },
      help: "Parts of report mails and uploads that were read, by what became of them.",
      labelNames: ["mode", "via", "outcome", "reason"] as const,
    }),
    checks: new Counter({
      ...{ registers, name: "postwarden_blocklist_checks_total" },
      help: "Checks of blocklist targets, by the status of the target after the check.",
      labelNames: ["mode", "trigger", "status"] as const,
    }),
    attempts: new Counter({
      ...{ registers, name: "postwarden_webhook_attempts_total" },
      help: "Attempts to deliver webhooks, by what followed.",
      labelNames: ["mode", "outcome"] as const,
    }),
    deliverySeconds: new Histogram({
      ...{ registers, name: "postwarden_webhook_delivery_seconds" },
      help: "Time from an event to its delivery.",
      labelNames: ["mode"] as const,
      buckets: DELIVERY_BUCKETS_S,
    }),
  };
};

/** Counts what the service has stored. */
export class ActivityMetrics {
  readonly #counters: ReturnType<typeof createCounters>;

  constructor(registry: Registry) {
    this.#counters = createCounters(registry);
    // From zero, so that the first of each counts as an increase.
    for (const move of CREDIT_MOVES) this.#counters.credits.inc({ move }, 0);
    for (const outcome of DELIVERY_OUTCOMES) this.#counters.attempts.inc({ mode: "live", outcome }, 0);
  }

  /** Never throws: the labels of every fact are declared. */
  count(fact: Fact): void {
    const counters = this.#counters;
    switch (fact.kind) {
      case "verification": {
        const { mode, source, verdict, subStatus } = fact;
        counters.verifications.inc({ mode, source, verdict, sub_status: subStatus });
        return;
      }
      case "credits":
        counters.credits.inc({ move: fact.move }, fact.credits);
        return;
      case "report": {
        const { mode, via, outcome, reason } = fact;
        counters.reports.inc({ mode, via, outcome, reason: reason ?? "" });
        return;
      }
      case "blocklist_check": {
        const { mode, trigger, status } = fact;
        counters.checks.inc({ mode, trigger, status });
        return;
      }
      case "webhook": {
        const { mode, status, ageMs } = fact;
        counters.attempts.inc({ mode, outcome: status === "pending" ? "retry" : status });
        if (status === "delivered") counters.deliverySeconds.observe({ mode }, Math.max(0, ageMs) / 1_000);
        return;
      }
      case "list_end":
        // Lists in progress are a gauge.
        return;
      default:
        fact satisfies never;
    }
  }
}
