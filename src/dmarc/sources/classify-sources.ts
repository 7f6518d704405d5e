import { dayOfTime } from "../../base/days.ts";
import type { Clock } from "../../base/clock.ts";
import { AppError } from "../../base/errors.ts";
import type { Db } from "../../db/open.ts";
import { orRefusal } from "../../db/refusal.ts";
import { RANGE_DAYS } from "./day-range.ts";
import type { Classification, RollupStore } from "./rollup-store.ts";
import type { SourceDomain } from "./source-keys.ts";
import type { SourceReader } from "./source-reader.ts";
import type { Source } from "./source-schema.ts";

export interface SourceClassifierDeps {
  readonly db: Db;
  readonly store: RollupStore;
  readonly reader: SourceReader;
  readonly clock: Clock;
}

export interface SourceChange {
  readonly keys: readonly string[];
  /** Null takes the user's classification back. */
  readonly classification: Classification | null;
}

/** Keeps what users say that sources are. */
export const createSourceClassifier = ({ db, store, reader, clock }: SourceClassifierDeps) => ({
  /**
   * Classifies sources, all of them or none. Answers them in the order of the keys, with their counts of the last 30 days. Throws
   * `not_found` when a key is in no report. `findDomain` is called in the transaction, because the domain may be deleted meanwhile; then
   * it throws an AppError.
   */
  async classify(findDomain: () => SourceDomain, { keys, classification }: SourceChange): Promise<Source[]> {
    const classified = await db.commit((tx) => {
      const domain = orRefusal(findDomain);
      if (domain instanceof AppError) return domain;
      const toDay = dayOfTime(clock.nowMs());
      const range = { fromDay: toDay - RANGE_DAYS + 1, toDay };
      const sources = reader.open(domain);
      const before = sources.findAll(keys, range);
      const unknown = keys.filter((key) => !before.has(key));
      if (unknown.length > 0) return unknownKeys(unknown);
      if (classification === null) {
        for (const key of sources.classifiedKeysOf(keys, range)) store.removeWord(tx, domain.number, key);
      } else {
        const atMs = clock.nowMs();
        for (const key of keys) store.setWord(tx, domain.number, { key, classification, atMs });
      }
      const after = sources.findAll(keys, range);
      return keys.flatMap((key) => after.get(key) ?? []);
    });
    if (classified instanceof AppError) throw classified;
    return classified;
  },
});

export type SourceClassifier = ReturnType<typeof createSourceClassifier>;

/** Keys named in one error. */
const NAMED_MAX = 5;

const unknownKeys = (keys: readonly string[]): AppError => {
  const named = keys.slice(0, NAMED_MAX).join(", ");
  const more = keys.length > NAMED_MAX ? ` and ${keys.length - NAMED_MAX} more` : "";
  return new AppError("not_found", {
    message: `No report names the source ${named}${more}. Use the keys that GET …/sources returns, URL-encoded in paths.`,
  });
};
