import { expect, test } from "bun:test";
import { createLog } from "../../../foundation/base/log.ts";
import type { DiskSpace } from "../../../foundation/db/database-files.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { DiskReserve, reserveOf } from "./ingestion-store.ts";

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

test.each([
  [200 * MIB, 60 * MIB],
  [800 * MIB, 240 * MIB],
  [4 * GIB, 256 * MIB],
  [10 * GIB, 512 * MIB],
  [1024 * GIB, GIB],
])("of a disk of %d bytes %d are kept free", (total, reserve) => {
  expect(reserveOf(total)).toBe(reserve);
});

test("report ingestion pauses at the disk reserve, logs it once, and resumes when there is space again", async () => {
  const clock = createTestClock();
  const logged: string[] = [];
  let space: DiskSpace | null = { freeBytes: 61 * MIB, totalBytes: 200 * MIB };
  const db = { diskSpace: () => space };
  const reserve = new DiskReserve({ db, clock, log: createLog("info", clock, (line) => logged.push(line)) });
  const setFree = async (freeMib: number) => {
    space = { freeBytes: freeMib * MIB, totalBytes: 200 * MIB };
    await clock.advance(1_000);
  };
  expect([reserve.isLow(), reserve.finding(), reserve.isLow(MIB)]).toEqual([false, null, true]);
  await setFree(59);
  expect([reserve.isLow(), reserve.isLow()]).toEqual([true, true]);
  expect(reserve.finding()).toBe(
    "Report ingestion is paused: the disk of the database has 59 MiB free, and 60 MiB are reserved for other data.",
  );
  await setFree(61);
  expect(reserve.isLow()).toBe(true);
  await setFree(67);
  expect([reserve.isLow(), reserve.finding()]).toEqual([false, null]);
  expect(logged.map((line) => /report ingestion (paused|resumed)/.exec(line)?.[1])).toEqual(["paused", "resumed"]);
});

test("a database in memory has no disk that could be full", () => {
  const clock = createTestClock();
  const reserve = new DiskReserve({
    db: { diskSpace: () => null },
    clock,
    log: createLog("error", clock, () => undefined),
  });
  expect([reserve.isLow(1_000 * GIB), reserve.finding()]).toEqual([false, null]);
});
