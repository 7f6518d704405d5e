import type { Clock } from "../../../foundation/base/clock.ts";
import { dayOfTime } from "../../../foundation/base/days.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import { orRefusal } from "../../../foundation/db/group-commit.ts";
import type { Db } from "../../../foundation/db/open.ts";
import { RANGE_DAYS } from "../../../foundation/http/day-range.ts";
import { DomainSources, type SourceDomain } from "./domain-sources.ts";
import type { Classification, RollupStore } from "./rollup-store.ts";
import type { Source } from "./source-response.ts";

/** Keys named in one error. */
const NAMED_KEYS_MAX = 5;

/** Stores the user's classification of sources, of all of them or of none. */
export class SourceClassifier {
  constructor(
    private readonly runtime: { readonly db: Db; readonly clock: Clock },
    private readonly rollups: RollupStore,
  ) {}

  /**
   * Returns the sources in the order of the keys, with their counts of the last 30 days. Throws `not_found` when no report names
   * a key. `findDomain` is called inside the transaction, because the domain may be deleted meanwhile; it then throws an AppError.
   */
  async classify(
    findDomain: () => SourceDomain,
    {
      keys,
      classification,
      note = null,
    }: {
      readonly keys: readonly string[];
      /** Null restores the automatic classification. */
      readonly classification: Classification | null;
      /** Why, in the user's words. */
      readonly note?: string | null;
    },
  ): Promise<Source[]> {
    const { db, clock } = this.runtime;
    const classified = await db.commit((tx) => {
      const domain = orRefusal(findDomain);
      if (domain instanceof AppError) return domain;
      const atMs = clock.nowMs();
      const toDay = dayOfTime(atMs);
      const range = { fromDay: toDay - RANGE_DAYS + 1, toDay };
      const sources = new DomainSources(this.rollups, domain);
      const before = sources.findAll(keys, range);
      const unknown = keys.filter((key) => !before.has(key));
      if (unknown.length > 0) return unknownKeys(unknown);
      if (classification === null) {
        const classifiedKeys = sources.classifiedKeysOf(keys, range);
        for (const key of classifiedKeys) this.rollups.removeUserClassification(tx, domain.number, key);
      } else {
        const word = { classification, atMs, note };
        for (const key of keys) this.rollups.setUserClassification(tx, domain.number, { ...word, key });
      }
      const after = sources.findAll(keys, range);
      return keys.flatMap((key) => after.get(key) ?? []);
    });
    if (classified instanceof AppError) throw classified;
    return classified;
  }
}

const unknownKeys = (keys: readonly string[]) => {
  const named = keys.slice(0, NAMED_KEYS_MAX).join(", ");
  const more = keys.length > NAMED_KEYS_MAX ? ` and ${keys.length - NAMED_KEYS_MAX} more` : "";
  return new AppError("not_found", {
    message: `No report names the source ${named}${more}. Use the keys that GET …/sources returns, URL-encoded in paths.`,
  });
};
