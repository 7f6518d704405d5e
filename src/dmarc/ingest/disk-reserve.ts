import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Db } from "../../db/open.ts";

const MIB = 1024 * 1024;
/** What report mail leaves free: a twentieth of the disk within these bounds, on small disks less than a third. */
const RESERVE_SHARE = 0.05;
const RESERVE_BYTES_MIN = 256 * MIB;
const RESERVE_BYTES_MAX = 1024 * MIB;
const SMALL_DISK_SHARE = 0.3;
/** Paused, it resumes when so much more than the reserve is free: else it would change with every mail. */
const RESUME_SHARE = 1.1;
/** How long an answer of the file system holds. */
const LOOK_EVERY_MS = 1_000;
/** A mail is written to the log of the database, and from there into it. */
const WRITES_PER_BYTE = 2;

/** The bytes that are kept free on a disk of that size. */
export const reserveOf = (totalBytes: number): number =>
  Math.min(
    Math.max(totalBytes * RESERVE_SHARE, RESERVE_BYTES_MIN),
    RESERVE_BYTES_MAX,
    Math.floor(totalBytes * SMALL_DISK_SHARE),
  );

export interface DiskReserveDeps {
  readonly db: Pick<Db, "diskSpace">;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Keeps a part of the disk free of report mail: anybody can send that, and everything else needs to write as well. Says in the
 * log when reports are not taken in any more, and when they are again.
 */
export const createDiskReserve = ({ db, clock, log }: DiskReserveDeps) => {
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  let isPaused = false;
  let freeBytes = Number.POSITIVE_INFINITY;
  let reserveBytes = 0;

  const look = (): void => {
    if (clock.monotonicMs() - lookedAtMs < LOOK_EVERY_MS) return;
    lookedAtMs = clock.monotonicMs();
    const space = db.diskSpace();
    if (space === null) return;
    freeBytes = space.freeBytes;
    reserveBytes = reserveOf(space.totalBytes);
    const wasPaused = isPaused;
    isPaused = freeBytes < reserveBytes * (wasPaused ? RESUME_SHARE : 1);
    if (isPaused && !wasPaused) log.error(`report ingestion paused: ${sentence()}`);
    if (!isPaused && wasPaused) log.info("report ingestion resumed: there is space on the disk again");
  };

  const mib = (bytes: number): string => `${Math.floor(bytes / MIB)} MiB`;
  const sentence = (): string =>
    `${mib(freeBytes)} are free where the database lies, and ${mib(reserveBytes)} are kept for the rest of the service.`;

  return {
    /** Whether nothing is to be taken in now; with `bytes` also whether so many are too many. */
    isLow(bytes = 0): boolean {
      look();
      return isPaused || freeBytes - bytes * WRITES_PER_BYTE < reserveBytes;
    },
    /** Why no reports are taken in, for the operator; null while they are. */
    finding(): string | null {
      look();
      return isPaused ? `Report ingestion is paused: ${sentence()}` : null;
    },
  };
};

export type DiskReserve = ReturnType<typeof createDiskReserve>;
