import type { Clock } from "../base/clock.ts";
import { type ListClient, queryTarget } from "./list-client.ts";
import type { Blocklist } from "./blocklist.ts";
import type { ChangeConfirmer } from "./change-confirmer.ts";
import type { Listing } from "./decode.ts";
import type { DnsblHealth, ListHealth } from "./health.ts";
import { mapConcurrently } from "../base/wait.ts";
import { isProvable } from "./list-test.ts";
import type { RegistrableDomain, Target } from "./query-name.ts";
import { formQueries } from "./query-name.ts";

/**
 * What one list says about one target, in a form that may be kept and shown: keys are masked.
 *
 * `listed` and `not_listed` are knowledge. `unproven`: the list has no test point of the target's kind, so its "not
 * listed" proves nothing; it leaves what was known before as it was, as `refused` and `failed` leave what was known before as it was. `skipped`: the
 * list does not apply (another kind, no key).
 */
export interface ListOutcome {
  readonly list: string;
  readonly outcome: "listed" | "not_listed" | "unproven" | "refused" | "failed" | "skipped";
  /** Filled exactly when listed. */
  readonly listings: readonly Listing[];
  /** The A records as they came, whatever they mean. */
  readonly returnCodes: readonly string[];
  /** What the list wrote about the listing (TXT). */
  readonly text: string | null;
  /** The names asked for. */
  readonly queryNames: readonly string[];
  /** Why it is refused, failed or skipped, as a sentence; else null. */
  readonly reason: string | null;
  /** What may help against a refusal. */
  readonly remedy: string | null;
  readonly checkedAtMs: number;
  /** When the list can confirm what it could not confirm now; null when nothing waits for that. */
  readonly retryAtMs: number | null;
}

export interface CheckOptions {
  /**
   * The listing ids by which the target was on this catalogue's lists at the last check, none for a new target. With it,
   * a change is confirmed before it is believed: asked again, together with a test point that must say the opposite.
   */
  readonly previous?: readonly string[];
  /** Listing ids whose coming and going is no change. They are in the outcome all the same. */
  readonly muted?: readonly string[];
  readonly signal?: AbortSignal;
}

export interface DnsblLookup {
  /** Asks one list about one target. Never rejects for anything that the list, the network or the target's text does. */
  check(target: Target, list: Blocklist, options?: CheckOptions): Promise<ListOutcome>;
  /** Asks all these lists, some at a time; one outcome a list, in their order. */
  checkAll(target: Target, lists: readonly Blocklist[], options?: CheckOptions): Promise<readonly ListOutcome[]>;
}

/** How many lists are asked at once about one target. */
const LISTS_AT_ONCE = 16;

export const createDnsblLookup = (deps: {
  client: ListClient;
  health: DnsblHealth;
  confirmer: ChangeConfirmer;
  clock: Clock;
  registrableDomain: RegistrableDomain;
}): DnsblLookup => {
  const { client, health, confirmer, clock, registrableDomain } = deps;

  const check = async (target: Target, list: Blocklist, options: CheckOptions = {}): Promise<ListOutcome> => {
    const conclude = (result: Partial<ListOutcome> & Pick<ListOutcome, "outcome">): ListOutcome => ({
      ...NOTHING,
      list: list.id,
      checkedAtMs: clock.nowMs(),
      ...result,
    });
    const forms = formQueries(target, list, registrableDomain);
    if (!forms.ok) return conclude({ outcome: "skipped", reason: forms.error.problem });
    const { kind, prefixes } = forms.value;
    const known = await health.ensureFresh(list, kind);
    const trouble = troubleOf(known);
    if (trouble !== null) return conclude(trouble);

    const askOnce = () => queryTarget(client, list, { prefixes, signal: options.signal });
    const first = await askOnce();
    const { previous, muted, signal } = options;
    const answer =
      previous === undefined
        ? { ...first, retryAtMs: null }
        : await confirmer.confirm({ list, kind, previous, muted, prefixes, first, queryAgain: askOnce, signal });
    const { decoded, queryNames, returnCodes, prefix } = answer;
    health.recordOutcome(list, kind, decoded);
    // Monotonic and wall time differ by a constant that only the clock knows.
    const retryAtMs = answer.retryAtMs === null ? null : clock.nowMs() + answer.retryAtMs - clock.monotonicMs();
    const evidence = { queryNames, returnCodes, retryAtMs };
    switch (decoded.outcome) {
      case "refused":
        return conclude({ outcome: "refused", reason: decoded.reason, remedy: decoded.remedy, ...evidence });
      case "failed":
        return conclude({ outcome: "failed", reason: decoded.reason, ...evidence });
      case "not_listed": {
        // Looked at again: another question may have shown in between that the list cannot be believed.
        const now = health.of(list, kind);
        if (now.state === "healthy") return conclude({ outcome: "not_listed", ...evidence });
        const outcome = now.state === "unknown" && !isProvable(list, kind) ? "unproven" : "failed";
        return conclude({ outcome, reason: now.reason, remedy: now.remedy, ...evidence });
      }
      case "listed": {
        const text = await client.queryText(list, prefix, options.signal);
        return conclude({ outcome: "listed", listings: decoded.listings, text, ...evidence });
      }
      default:
        return decoded satisfies never;
    }
  };

  return {
    check,
    checkAll: (target, lists, options) => mapConcurrently(lists, LISTS_AT_ONCE, (list) => check(target, list, options)),
  };
};

const NOTHING = {
  listings: [],
  returnCodes: [],
  text: null,
  queryNames: [],
  reason: null,
  remedy: null,
  retryAtMs: null,
} as const;

/** A list in trouble is not asked: it could only mislead, and being asked in vain is what operators refuse for. */
const troubleOf = ({
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
