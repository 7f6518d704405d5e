import type { Clock } from "../../foundation/base/clock.ts";
import type { Blocklist } from "./blocklist.ts";
import type { ChangeConfirmer, ConfirmedResponse } from "./change-confirmer.ts";
import type { Listing } from "./decode.ts";
import { type DnsblHealth, type ListHealth, isProvable } from "./health.ts";
import { mapConcurrently } from "../../foundation/base/wait.ts";
import type { ListClient } from "./list-client.ts";
import { type QueryForms, type RegistrableDomain, type Target, formQueries } from "./query-name.ts";

export const LIST_OUTCOMES = ["listed", "not_listed", "unproven", "refused", "failed", "skipped"] as const;

/**
 * The result of one list for one target, in a form that may be stored and shown: keys are masked.
 *
 * Only `listed` and `not_listed` change what is known about the target. `unproven`: the list has no test point of this
 * kind, so its "not listed" proves nothing. `skipped`: the list does not apply (another kind, no key).
 */
export interface ListOutcome {
  readonly list: string;
  readonly outcome: (typeof LIST_OUTCOMES)[number];
  /** Non-empty exactly when listed. */
  readonly listings: readonly Listing[];
  /** The A records as received. */
  readonly returnCodes: readonly string[];
  /** The list's explanation (TXT). */
  readonly text: string | null;
  readonly queryNames: readonly string[];
  /** Why the list refused, failed or was skipped, as a sentence. */
  readonly reason: string | null;
  /** What may help against a refusal. */
  readonly remedy: string | null;
  readonly checkedAtMs: number;
  /** When an unconfirmed change can be confirmed; null for any other outcome. */
  readonly retryAtMs: number | null;
}

export interface CheckOptions {
  /**
   * The listing ids of the last check of this target, empty for a new target. When given, a change is confirmed by
   * further queries before it is reported.
   */
  readonly previous?: readonly string[];
  /** Listing ids whose appearance or removal needs no confirmation. They are reported all the same. */
  readonly muted?: readonly string[];
  readonly signal?: AbortSignal;
}

/** How many lists are queried at once about one target. */
const LISTS_AT_ONCE = 16;

/** Looks up targets in lists. */
export class DnsblLookup {
  constructor(
    private readonly runtime: { clock: Clock; registrableDomain: RegistrableDomain },
    private readonly deps: { client: ListClient; health: DnsblHealth; confirmer: ChangeConfirmer },
  ) {}

  /** Looks up a target in every list, some at a time; one outcome per list, in their order. */
  checkAll(target: Target, lists: readonly Blocklist[], options?: CheckOptions): Promise<readonly ListOutcome[]> {
    return mapConcurrently(lists, LISTS_AT_ONCE, (list) => this.check(target, list, options));
  }

  /** Looks up a target in one list. Never rejects for anything that the list, the network or the target's text does. */
  async check(target: Target, list: Blocklist, options: CheckOptions = {}): Promise<ListOutcome> {
    const forms = formQueries(target, list, this.runtime.registrableDomain);
    if (!forms.ok) return this.#outcome(list, { outcome: "skipped", reason: forms.error.problem });
    const { kind } = forms.value;
    const unusable = unusableOutcome(await this.deps.health.ensureFresh(list, kind));
    if (unusable !== null) return this.#outcome(list, unusable);
    const response = await this.#queryConfirmed(list, forms.value, options);
    const { decoded, queryNames, returnCodes, prefix } = response;
    this.deps.health.recordResponse(list, kind, decoded);
    const evidence = { queryNames, returnCodes, retryAtMs: this.#wallTime(response.retryAtMs) };
    switch (decoded.outcome) {
      case "refused":
        return this.#outcome(list, { outcome: "refused", reason: decoded.reason, remedy: decoded.remedy, ...evidence });
      case "failed":
        return this.#outcome(list, { outcome: "failed", reason: decoded.reason, ...evidence });
      case "not_listed": {
        // A concurrent query may have shown that the list is unreliable.
        const { state, reason, remedy } = this.deps.health.of(list, kind);
        if (state === "healthy") return this.#outcome(list, { outcome: "not_listed", ...evidence });
        const outcome = state === "unknown" && !isProvable(list, kind) ? "unproven" : "failed";
        return this.#outcome(list, { outcome, reason, remedy, ...evidence });
      }
      case "listed": {
        const text = await this.deps.client.queryText(list, prefix, options.signal);
        return this.#outcome(list, { outcome: "listed", listings: decoded.listings, text, ...evidence });
      }
      default:
        return decoded satisfies never;
    }
  }

  async #queryConfirmed(
    list: Blocklist,
    { kind, prefixes }: QueryForms,
    { previous, muted, signal }: CheckOptions,
  ): Promise<ConfirmedResponse> {
    const first = await this.deps.client.queryTarget(list, prefixes, signal);
    return previous === undefined
      ? { ...first, retryAtMs: null }
      : this.deps.confirmer.confirm({ list, kind, previous, muted, prefixes, first, signal });
  }

  #outcome(list: Blocklist, result: Partial<ListOutcome> & Pick<ListOutcome, "outcome">): ListOutcome {
    return { ...NOTHING, list: list.id, checkedAtMs: this.runtime.clock.nowMs(), ...result };
  }

  #wallTime(monotonicMs: number | null) {
    return monotonicMs === null
      ? null
      : Math.round(this.runtime.clock.nowMs() + monotonicMs - this.runtime.clock.monotonicMs());
  }
}

const NOTHING = {
  listings: [],
  returnCodes: [],
  text: null,
  queryNames: [],
  reason: null,
  remedy: null,
  retryAtMs: null,
} as const;

/** An unhealthy list is not queried: its response would be unreliable, and operators block for useless queries. */
const unusableOutcome = ({
  state,
  reason,
  remedy,
}: ListHealth): Pick<ListOutcome, "outcome" | "reason" | "remedy"> | null => {
  switch (state) {
    case "healthy":
    case "unknown":
      return null;
    case "refused":
      return { outcome: "refused", reason, remedy };
    case "silent":
    case "wildcard":
    case "unreachable":
      return { outcome: "failed", reason, remedy };
    default:
      return state satisfies never;
  }
};
