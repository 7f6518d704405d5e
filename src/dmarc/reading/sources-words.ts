import { dayOfTime } from "../../base/days.ts";
import type { Clock } from "../../base/clock.ts";
import { AppError } from "../../base/errors.ts";
import type { Db } from "../../db/open.ts";
import { orRefusal } from "../../db/refusal.ts";
import { RANGE_DAYS } from "./range.ts";
import type { Classification, ReadingStore } from "./reading-store.ts";
import type { ShownSource } from "./source-view.ts";
import type { ReadDomain, SourceReader } from "./sources.ts";

export interface SourceWordsDeps {
  readonly db: Db;
  readonly store: ReadingStore;
  readonly reader: SourceReader;
  readonly clock: Clock;
}

/** What users say of sources. */
export const createSourceWords = ({ db, store, reader, clock }: SourceWordsDeps) => ({
  /**
   * Keeps the user's word about a source, or with null takes it back. Answers the source with its counts of the last 30
   * days; undefined when no report ever told of it. `findDomain` is asked in the transaction: the domain may be going,
   * and then it throws an AppError.
   */
  async say(
    findDomain: () => ReadDomain,
    key: string,
    classification: Classification | null,
  ): Promise<ShownSource | undefined> {
    const said = await db.commit((tx) => {
      const domain = orRefusal(findDomain);
      if (domain instanceof AppError) return domain;
      const toDay = dayOfTime(clock.nowMs());
      const range = { fromDay: toDay - RANGE_DAYS + 1, toDay };
      const source = reader.find(domain, key, range);
      if (source === undefined) return undefined;
      if (classification === null) {
        for (const held of reader.wordKeysOf(domain, source)) store.removeWord(tx, domain.number, held);
      } else {
        store.setWord(tx, domain.number, { key, classification, atMs: clock.nowMs() });
      }
      return reader.find(domain, key, range);
    });
    if (said instanceof AppError) throw said;
    return said;
  },
});

export type SourceWords = ReturnType<typeof createSourceWords>;
