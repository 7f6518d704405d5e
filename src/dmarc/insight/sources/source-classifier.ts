import type { Clock } from "../../../foundation/base/clock.ts";
import { dayOfTime } from "../../../foundation/base/days.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import { inTurns } from "../../../foundation/base/in-steps.ts";
import { orRefusal } from "../../../foundation/db/group-commit.ts";
import type { Db } from "../../../foundation/db/open.ts";
import { RANGE_DAYS } from "../../../foundation/http/day-range.ts";
import { DomainSources, type SourceDomain } from "./domain-sources.ts";
import type { Classification, RollupStore } from "./rollup-store.ts";
import type { Source } from "./source-response.ts";

/** Keys named in one error. */
const NAMED_KEYS_MAX = 5;

interface ClassificationChange {
  readonly keys: readonly string[];
  /** Null restores the automatic classification. */
  readonly classification: Classification | null;
  /** Why, in the user's words. */
  readonly note?: string | null;
}

/** Stores the user's classification of sources, of all of them or of none. */
export class SourceClassifier {
  constructor(
    private readonly runtime: { readonly db: Db; readonly clock: Clock },
    private readonly rollups: RollupStore,
  ) {}

  /**
   * Returns the sources in the order of the keys, with their counts of the last 30 days. Throws `not_found` when no report names
   * a key. `findDomain` is called again inside the transaction, because the domain may be deleted meanwhile; it then throws an
   * AppError.
   */
  async classify(findDomain: () => SourceDomain, change: ClassificationChange): Promise<Source[]> {
    return DomainSources.use(this.rollups, findDomain(), (sources) => this.#classify(sources, findDomain, change));
  }

  async #classify(
    sources: DomainSources,
    findDomain: () => SourceDomain,
    { keys, classification, note = null }: ClassificationChange,
  ): Promise<Source[]> {
    const { db, clock } = this.runtime;
    const atMs = clock.nowMs();
    const toDay = dayOfTime(atMs);
    const range = { fromDay: toDay - RANGE_DAYS + 1, toDay };
    const before = await inTurns(sources.findAll(keys, range));
    const unknown = keys.filter((key) => !before.has(key));
    if (unknown.length > 0) throw unknownKeys(unknown);
    const classifiedKeys = classification === null ? await inTurns(sources.classifiedKeysOf(keys, range)) : keys;
    const refusal = await db.commit((tx) => {
      const domain = orRefusal(findDomain);
      if (domain instanceof AppError) return domain;
      for (const key of classifiedKeys) {
        if (classification === null) this.rollups.removeUserClassification(tx, domain.number, key);
        else this.rollups.setUserClassification(tx, domain.number, { classification, atMs, note, key });
      }
      return null;
    });
    if (refusal !== null) throw refusal;
    const after = await inTurns(sources.findAll(keys, range));
    return keys.flatMap((key) => after.get(key) ?? []);
  }
}

const unknownKeys = (keys: readonly string[]) => {
  const named = keys.slice(0, NAMED_KEYS_MAX).join(", ");
  const more = keys.length > NAMED_KEYS_MAX ? ` and ${keys.length - NAMED_KEYS_MAX} more` : "";
  return new AppError("not_found", {
    message: `No report names the source ${named}${more}. Use the keys that GET …/sources returns, URL-encoded in paths.`,
  });
};
