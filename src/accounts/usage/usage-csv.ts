import { csvLine } from "../../foundation/http/csv.ts";
import type { UsageGroup, UsageGrouping } from "./account-usage.ts";

/** The name of an API key, or of a user of the dashboard (`user:<id>`); null when it is not known. */
export type NameOfKey = (keyId: string) => string | null;

const FIGURES = ["total", "deliverable", "risky", "undeliverable", "rate_limited", "credits"];

/** A report as CSV: a line for each group, with the name where the groups are keys. */
export const usageCsv = (groups: readonly UsageGroup[], by: UsageGrouping, nameOf: NameOfKey): string => {
  const head = by === "key" ? ["key_id", "key_name"] : [by];
  const lines = groups.map(({ group, total, deliverable, risky, undeliverable, rateLimited, credits }) =>
    csvLine([
      ...(by === "key" ? [group, nameOf(group)] : [group]),
      ...[total, deliverable, risky, undeliverable, rateLimited, credits],
    ]),
  );
  return csvLine([...head, ...FIGURES]) + lines.join("");
};
