import type { ReportRow } from "./report-row.ts";

/** JSON bytes of the lists of one record as stored. A record of a real report has less than 3,000. */
export const REPORT_ROW_BYTES_MAX = 16 * 1024;

/** The steps by which a record that is too large is shortened: characters kept of each text, entries of each list. */
const STEPS = [
  { characters: 200, entries: 100 },
  { characters: 60, entries: 40 },
  { characters: 0, entries: 10 },
] as const;

/** Upper bounds of the JSON bytes of an entry without its texts, and of a character (`\u001f`). */
const ENTRY_BYTES = 120;
const CHARACTER_BYTES_MAX = 6;

/**
 * The same row, or a shorter one when its lists take more than `REPORT_ROW_BYTES_MAX`: with shorter texts and fewer entries,
 * or without texts. What is counted (address, count, results, domains) does not change; the first entries of lists are kept.
 */
export const shortenRow = (row: ReportRow): ReportRow => {
  let short = row;
  for (const step of STEPS) {
    if (isWithin(short)) return short;
    short = shortenedTo(row, step);
  }
  return short;
};

const isWithin = (row: ReportRow): boolean => {
  const { reasons, dkimResults, spfResults, envelopeFrom, envelopeTo } = row;
  let [entries, characters] = [0, 0];
  for (const list of [reasons, dkimResults, spfResults]) {
    entries += list.length;
    for (const entry of list) characters += charactersOf(entry);
  }
  if (entries * ENTRY_BYTES + characters * CHARACTER_BYTES_MAX <= REPORT_ROW_BYTES_MAX) return true;
  const lists = { envelopeFrom, envelopeTo, reasons, dkimResults, spfResults };
  return Buffer.byteLength(JSON.stringify(lists)) <= REPORT_ROW_BYTES_MAX;
};

type RowEntry = ReportRow["reasons" | "dkimResults" | "spfResults"][number];

const charactersOf = (entry: RowEntry): number => {
  if ("type" in entry) return entry.type.length + (entry.comment?.length ?? 0);
  const { domain, result, humanResult } = entry;
  const detail = "selector" in entry ? entry.selector : entry.scope;
  return (domain?.length ?? 0) + result.length + (humanResult?.length ?? 0) + (detail?.length ?? 0);
};

const shortenedTo = (row: ReportRow, { characters, entries }: (typeof STEPS)[number]): ReportRow => {
  const cut = (text: string | null): string | null => text?.slice(0, characters) || null;
  return {
    ...row,
    reasons: row.reasons.slice(0, entries).map((reason) => ({ ...reason, comment: cut(reason.comment) })),
    dkimResults: row.dkimResults
      .slice(0, entries)
      .map((entry) => ({ ...entry, selector: cut(entry.selector), humanResult: cut(entry.humanResult) })),
    spfResults: row.spfResults.slice(0, entries).map((entry) => ({ ...entry, humanResult: cut(entry.humanResult) })),
  };
};

/** Entries that cost as much to write as a plain record. */
const ENTRIES_PER_WEIGHT = 8;

/** The relative cost of writing a row: 1 for a plain one, some 40 for the largest. */
export const weightOf = ({ reasons, dkimResults, spfResults }: ReportRow): number =>
  1 + Math.floor((reasons.length + dkimResults.length + spfResults.length) / ENTRIES_PER_WEIGHT);

/** Approximately the bytes that a stored row takes. */
export const storedBytesOf = ({ reasons, dkimResults, spfResults }: ReportRow): number =>
  [...reasons, ...dkimResults, ...spfResults].reduce(
    (sum, entry) => sum + ENTRY_BYTES + charactersOf(entry),
    RECORD_BYTES,
  );

/** A record without its lists, in the table and its indexes. */
const RECORD_BYTES = 400;
