import { DAY_MS, type DayRange, isoDay } from "../../../foundation/base/days.ts";
import type { DomainRow, DomainStore } from "../../records/domains/domain-store.ts";
import { historyBodySchema } from "../../records/domains/domain-state.ts";

/** A change of the DMARC record that a check found. */
export interface RecordChange {
  readonly atMs: number;
  /** `YYYY-MM-DD` (UTC). */
  readonly day: string;
  readonly text: string;
}

const HISTORY_MAX = 200;

/** The changes of the DMARC record of a domain in a range of days, newest first. */
export const recordChanges = (
  domains: Pick<DomainStore, "listHistory">,
  { number }: Pick<DomainRow, "number">,
  { fromDay, toDay }: DayRange,
): readonly RecordChange[] => {
  const rows = domains.listHistory(number, { before: null, limit: HISTORY_MAX });
  return rows.flatMap(({ atMs, body }, index) => {
    const day = Math.floor(atMs / DAY_MS);
    if (day < fromDay || day > toDay) return [];
    const now = historyBodySchema.parse(JSON.parse(body));
    const isRecord = now.changes.some((code) => code.startsWith("record_"));
    const older = rows[index + 1];
    const before = older === undefined ? null : historyBodySchema.parse(JSON.parse(older.body)).record;
    return isRecord ? [{ atMs, day: isoDay(day), text: changeText(before, now.record) }] : [];
  });
};

/** What changed in a record, by its tags. */
export const changeText = (before: string | null, now: string | null): string => {
  if (now === null) return "Record removed";
  if (before === null) return "Record published";
  const [was, is] = [tagsOf(before), tagsOf(now)];
  const changed = [...new Set([...was.keys(), ...is.keys()])].filter((tag) => was.get(tag) !== is.get(tag));
  const texts = changed.map((tag) => {
    if (tag === "rua" || tag === "ruf") return `${tag} changed`;
    const value = is.get(tag);
    return value === undefined ? `${tag} removed` : `${tag}=${value}`;
  });
  return texts.length === 0 ? "Record changed" : `Record changed: ${texts.join(", ")}`;
};

const tagsOf = (record: string) =>
  new Map(
    record.split(";").flatMap((part) => {
      const at = part.indexOf("=");
      return at === -1 ? [] : [[part.slice(0, at).trim().toLowerCase(), part.slice(at + 1).trim()] as const];
    }),
  );
