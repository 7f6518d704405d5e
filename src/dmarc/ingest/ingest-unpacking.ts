import type { ReportReading } from "../report/outcome.ts";
import { createUnpackBudget, UNPACK_LIMITS, type UnpackBudget } from "../report/unpack.ts";

/** What the files of one request may still unpack to. Used up as they are read. */
export interface UnpackAllowance {
  bytesLeft: number;
}

/** Unpacked bytes after which the garbage is collected: a bomb leaves hundreds of megabytes behind. */
const TIDY_BYTES = 16 * 1024 * 1024;

/**
 * Reads one of several files within what is left for all of them. Null when it needs more than that: it would be read by
 * itself. What was unpacked and thrown away costs as much as what was kept.
 */
export const readWithin = async (
  allowance: UnpackAllowance,
  read: (budget: UnpackBudget) => Promise<ReportReading[]>,
): Promise<ReportReading[] | null> => {
  const budget = createUnpackBudget();
  const given = Math.min(budget.bytesLeft, allowance.bytesLeft);
  if (given <= 0) return null;
  budget.bytesLeft = given;
  const readings = await read(budget);
  const isOver = readings.some(({ reason }) => reason === "mail_too_large");
  const used = given - budget.bytesLeft;
  allowance.bytesLeft -= used;
  if (used >= TIDY_BYTES) Bun.gc(true);
  return isOver && given < UNPACK_LIMITS.mailBytesMax ? null : readings;
};
