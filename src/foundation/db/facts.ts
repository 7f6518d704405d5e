import type { KeyMode } from "../base/secrets.ts";

/** Something that was stored and that metrics count. Labels have few values: never an address, a name or an id. */
export type Fact =
  /** A verification ended; `source`: requested alone, or an address of a list. */
  | {
      readonly kind: "verification";
      readonly mode: KeyMode;
      readonly source: "single" | "list";
      readonly verdict: string;
      readonly subStatus: string;
    }
  /** An entry of the ledger. */
  | { readonly kind: "credits"; readonly move: "grant" | "hold" | "settle" | "release"; readonly credits: number }
  /** A part of a report mail or file was read. */
  | {
      readonly kind: "report";
      readonly mode: KeyMode;
      readonly via: string;
      readonly outcome: string;
      readonly reason: string | null;
    }
  /** `listed` and `delisted`: listings found and removed. */
  | {
      readonly kind: "blocklist_check";
      readonly mode: KeyMode;
      readonly trigger: string;
      readonly status: string;
      readonly listed: number;
      readonly delisted: number;
    }
  /** A mail of the bounce mailbox was read. */
  | { readonly kind: "bounce_mail"; readonly outcome: string }
  | { readonly kind: "list_end"; readonly mode: KeyMode; readonly status: "completed" | "cancelled" | "failed" }
  /** An attempt to deliver a webhook; `ageMs`: the time since its event. */
  | {
      readonly kind: "webhook";
      readonly mode: KeyMode;
      readonly status: "delivered" | "pending" | "summarized" | "rejected" | "failed" | "cancelled";
      readonly ageMs: number;
    };

/**
 * Passes on what transactions note, once they are committed: what is rolled back was never counted, and a write that is
 * repeated counts once. Without a listener nothing is kept.
 */
export class CommittedFacts {
  #listener: ((fact: Fact) => void) | null = null;
  #pending: Fact[] = [];

  /** `onCommit` is called after each transaction. */
  constructor(private readonly onCommit: () => void = () => undefined) {}

  /** Sets the only listener. It must not throw. */
  listen(listener: (fact: Fact) => void): void {
    this.#listener = listener;
  }

  add(fact: Fact): void {
    if (this.#listener !== null) this.#pending.push(fact);
  }

  /** How many facts the open transaction has noted. */
  get size(): number {
    return this.#pending.length;
  }

  /** Drops the facts after the first `size`, which a rollback undid. */
  undoTo(size: number): void {
    this.#pending.length = size;
  }

  /** The transaction is committed. */
  publish(): void {
    if (this.#pending.length > 0) {
      const facts = this.#pending;
      this.#pending = [];
      for (const fact of facts) this.#listener?.(fact);
    }
    this.onCommit();
  }
}
