import type { Log, LogFields } from "../foundation/base/log.ts";
import type { Fact } from "../foundation/db/facts.ts";

type Counts = Map<string, number>;

/** What was done since the last line of the log, for live keys: what happened in a night is read from the journal alone. */
export class HourlyActivity {
  /** Kind of work → what became of it → how often. */
  readonly #counts = new Map<string, Counts>();

  constructor(private readonly log: Log) {}

  /** Never throws. */
  count(fact: Fact): void {
    switch (fact.kind) {
      case "verification":
        this.#add(fact, "verifications", fact.verdict);
        return;
      case "report":
        this.#add(fact, "reports", fact.outcome);
        return;
      case "blocklist_check":
        this.#add(fact, "blocklist_checks", fact.status);
        this.#add(fact, "listings", "found", fact.listed);
        this.#add(fact, "listings", "removed", fact.delisted);
        return;
      case "webhook":
        this.#add(fact, "webhooks", fact.status === "pending" ? "retried" : fact.status);
        return;
      case "bounce_mail":
        this.#add({ mode: "live" }, "bounce_mails", fact.outcome);
        return;
      case "list_end":
        this.#add(fact, "lists", fact.status);
        return;
      case "credits":
        return;
      default:
        fact satisfies never;
    }
  }

  /** Logs the counts and begins anew. The line is written also when nothing was done. */
  write(): void {
    const fields: LogFields = Object.fromEntries(
      [...this.#counts].map(([kind, counts]) => [kind, Object.fromEntries(counts)]),
    );
    this.#counts.clear();
    this.log.info("activity", fields);
  }

  #add({ mode }: { readonly mode: "live" | "test" }, kind: string, outcome: string, by = 1): void {
    if (mode === "test" || by === 0) return;
    const counts: Counts = this.#counts.get(kind) ?? new Map();
    counts.set(outcome, (counts.get(outcome) ?? 0) + by);
    this.#counts.set(kind, counts);
  }
}
