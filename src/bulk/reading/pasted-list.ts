import { stat, writeFile } from "node:fs/promises";
import { nextTurn } from "../../foundation/base/clock.ts";
import { written } from "../../foundation/http/csv.ts";
import { looksLikeAddress } from "./columns-address.ts";

/** Longer texts are read as a CSV, as they are. */
const PASTED_BYTES_MAX = 4 * 1024 * 1024;
/** Lines examined in one turn of the event loop. */
const LINES_AT_ONCE = 2_000;

/** What stands between commas and semicolons, outside of quotes and angle brackets. */
const ENTRY = /(?:"[^"]*"|<[^<>]*>|[^,;"<]|["<])+/g;

/** The entries of a line: `Ada <ada@a.example>, bob@b.example` has two. White space separates only addresses. */
const entriesOf = (line: string): string[] => {
  const entries = (line.match(ENTRY) ?? []).map((entry) => entry.trim()).filter((entry) => entry !== "");
  return entries.flatMap((entry) => {
    const words = entry.split(/\s+/);
    return words.length > 1 && words.every(looksLikeAddress) ? words : [entry];
  });
};

const hasSeveral = (entries: readonly string[]): boolean => entries.filter((entry) => entry.includes("@")).length > 1;

/**
 * Splits a text that was pasted into a form into its entries when a line holds several addresses, as the recipients of a
 * mail do. Null when it is a table or has one address a line: then it can be read as a CSV. A table has tabs, or a first
 * line without an address.
 */
export const splitPasted = async (text: string): Promise<string[] | null> => {
  const lines = text.split(/\r\n|\n|\r/).filter((line) => line.trim() !== "");
  if (text.includes("\t") || lines[0]?.includes("@") !== true) return null;
  const all: string[] = [];
  let isList: boolean = false;
  for (const [at, line] of lines.entries()) {
    if (at % LINES_AT_ONCE === 0) await nextTurn();
    const entries = entriesOf(line);
    isList ||= hasSeveral(entries);
    all.push(...entries);
  }
  return isList ? all : null;
};

/** Rewrites a file with a pasted text, one entry a line, if it is not one already. */
export const rewritePasted = async (path: string): Promise<void> => {
  if ((await stat(path)).size > PASTED_BYTES_MAX) return;
  const entries = await splitPasted(await Bun.file(path).text());
  if (entries !== null) await writeFile(path, entries.map((entry) => `${written(entry)}\n`).join(""));
};
