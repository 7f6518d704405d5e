import type { Reading } from "../report/outcome.ts";
import { createUnpackBudget, UNPACK_LIMITS, type UnpackBudget } from "../report/unpack.ts";

/** What the files of one request may still unpack to. Used up as they are read. */
export interface UnpackAllowance {
  bytesLeft: number;
}

/** Unpacked bytes after which the garbage is collected: a bomb leaves hundreds of megabytes behind. */
const TIDY_BYTES = 64 * 1024 * 1024;

/**
 * Reads one of several files within what is left for all of them. Null when it needs more than that: it would be read by
 * itself. What was unpacked and thrown away costs as much as what was kept.
 */
export const readWithin = async (
  allowance: UnpackAllowance,
  read: (budget: UnpackBudget) => Promise<Reading[]>,
): Promise<Reading[] | null> => {
  const budget = createUnpackBudget();
  const given = Math.min(budget.bytesLeft, allowance.bytesLeft);
  if (given <= 0) return null;
  budget.bytesLeft = given;
  const readings = await read(budget);
  const refused = readings.filter(({ reason }) => reason === "entry_too_large").length;
  const isOver = readings.some(({ reason }) => reason === "mail_too_large");
  const used = isOver ? given : given - budget.bytesLeft + refused * UNPACK_LIMITS.entryBytesMax;
  allowance.bytesLeft -= used;
  if (used >= TIDY_BYTES) Bun.gc(true);
  return isOver && given < UNPACK_LIMITS.mailBytesMax ? null : readings;
};
