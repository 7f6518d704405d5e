import { isoTime } from "../../foundation/base/clock.ts";
import type { LedgerEntry } from "../../accounts/billing/store.ts";
import { csvLine } from "../../foundation/http/csv.ts";

/** Granted credits as CSV. */
export const grantsCsv = {
  head: csvLine(["granted_at", "credits", "note"]),
  line: ({ atMs, available, note }: Pick<LedgerEntry, "atMs" | "available" | "note">): string =>
    csvLine([isoTime(atMs), available, note]),
};
