import fc from "fast-check";
import { afterEach, expect, test } from "bun:test";
import { atOnce } from "../../../foundation/base/in-steps.ts";
import type { DayRange } from "../../../foundation/base/days.ts";
import { openDb, type Db } from "../../../foundation/db/open.ts";
import { RetentionStore } from "../../reports/ingest/retention-store.ts";
import { noCounts } from "../../reports/ingest/rollup.ts";
import { SourceTotalsStore, splitRange } from "./source-totals-store.ts";
import { DailyCountStore } from "../../reports/ingest/seen-source-store.ts";

const opened: Db[] = [];
afterEach(() => {
  for (const db of opened.splice(0)) db.close();
});

const newDb = (): Db => {
  const result = openDb(":memory:");
  if (!result.ok) throw new Error(result.error.kind);
  opened.push(result.value);
  return result.value;
};

const DAYS = 40;
const FIRST = 20_000;
const day = fc.integer({ min: FIRST, max: FIRST + DAYS });
const range = fc.tuple(day, day).map(([a, b]): DayRange => ({ fromDay: Math.min(a, b), toDay: Math.max(a, b) }));
const daysIn = ({ fromDay, toDay }: DayRange): number[] =>
  Array.from({ length: toDay - fromDay + 1 }, (_, n) => fromDay + n);

test("the parts of a range are its days with counts, each once; days outside the weeks are at most three at each end", () => {
  fc.assert(
    fc.property(range, range, (wanted, counted) => {
      const { weeks, added, subtracted } = splitRange(wanted, counted);
      const ofWeeks = weeks === null ? [] : daysIn({ fromDay: weeks.from * 7, toDay: weeks.to * 7 + 6 });
      const less = subtracted.flatMap(daysIn);
      const isCounted = (one: number) => one >= counted.fromDay && one <= counted.toDay;
      expect(less.every((one) => ofWeeks.includes(one) && isCounted(one))).toBe(true);
      const read = [...added.flatMap(daysIn), ...ofWeeks.filter((one) => !less.includes(one))].filter(isCounted);
      expect(read.toSorted((a, b) => a - b)).toEqual(daysIn(wanted).filter(isCounted));
      if (weeks !== null)
        for (const edge of [...added, ...subtracted]) expect(daysIn(edge).length).toBeLessThanOrEqual(3);
    }),
    { numRuns: 500 },
  );
});

test("a range that covers everything reads weeks only", () => {
  const everything = { fromDay: FIRST, toDay: FIRST + DAYS };
  expect(splitRange({ fromDay: 0, toDay: FIRST + 90 }, everything)).toMatchObject({ added: [], subtracted: [] });
  expect(splitRange(everything, everything)).toMatchObject({ added: [], subtracted: [] });
});

const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("count" as const),
      ...{
        day,
        source: fc.integer({ min: 1, max: 4 }),
        voucher: fc.integer({ min: 0, max: 4 }),
        isTakenBack: fc.boolean(),
      },
      messages: fc.integer({ min: 0, max: 9 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("expire" as const), day, limit: fc.integer({ min: 1, max: 20 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("purge" as const), limit: fc.integer({ min: 1, max: 30 }) }) },
);

const SUMMED =
  "sum(messages) messages, sum(aligned) aligned, sum(rejected) rejected, sum(iif(is_trusted IN (1, 3), messages, 0)) trusted";

test("sums of any range are those of its days, however counts were added, taken back, expired or purged", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 60 }), range, (steps, wanted) => {
      const db = newDb();
      const [counts, retention] = [new DailyCountStore(db), new RetentionStore(db)];
      for (let source = 1; source <= 4; source++)
        db.sqlite.run(
          "INSERT INTO dmarc_sources (number, domain, key, first_day, last_day, first_seen_at_ms) VALUES (?, ?, ?, 0, 0, 0)",
          [source, source === 4 ? 2 : 1, `k${source}`],
        );
      db.transact((tx) => {
        for (const one of steps) {
          if (one.kind === "expire") retention.removeBeforeDay(tx, 1, one.day, one.limit);
          else if (one.kind === "purge") retention.removeOfDomain(tx, 2, one.limit);
          else {
            const { source, messages, voucher, isTakenBack } = one;
            const key = { domain: source === 4 ? 2 : 1, day: one.day, voucher, key: source };
            const added = { ...noCounts(), messages, aligned: Math.floor(messages / 2), rejected: messages % 2 };
            counts.addSource(tx, key, added);
            if (isTakenBack) counts.addSource(tx, key, added, -1);
          }
        }
      });
      // A domain that is purged loses its sources as well.
      const stored = new Set(db.sqlite.query("SELECT number FROM dmarc_sources").values().flat());
      for (const trustedOnly of [false, true]) {
        const store = new SourceTotalsStore(db, { trustedOnly });
        for (const domain of [1, 2]) {
          const rows = [...atOnce(store.read(domain, wanted, JSON.stringify([1, 3])))].flatMap(
            ([number, { totals, trusted }]) => {
              const { messages, aligned, rejected } = totals;
              return messages === 0 || !stored.has(number)
                ? []
                : [[number, messages, aligned, rejected, trusted.messages]];
            },
          );
          const due = db.sqlite
            .query(
              `SELECT source, ${SUMMED} FROM dmarc_daily WHERE domain = ? AND day BETWEEN ? AND ?
                AND source IN (SELECT number FROM dmarc_sources) ${trustedOnly ? "AND is_trusted IN (1, 3)" : ""} GROUP BY 1 HAVING sum(messages) > 0`,
            )
            .values(domain, wanted.fromDay, wanted.toDay);
          expect<unknown[]>(rows.toSorted()).toEqual(due.toSorted());
        }
      }
    }),
    { numRuns: 60 },
  );
});
