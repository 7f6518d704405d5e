import { readFileSync } from "node:fs";
import { openSuppressions } from "../accounts/open.ts";
import type { Suppressions } from "../accounts/suppress/store.ts";
import { isoTime, systemClock } from "../foundation/base/clock.ts";
import { argument, command, group, option } from "./command.ts";
import { type DatabaseContext, inDatabase } from "./data-directory.ts";
import { CommandFailed, describeFileError, UsageError } from "./io.ts";
import { tableTime } from "./terminal-text.ts";

/** Problems named in one message. */
const PROBLEMS_SHOWN_MAX = 20;

const readList = (path: string): string[] => {
  try {
    const lines = readFileSync(path, "utf8").split(/\r?\n/);
    return lines.map((line) => line.replace(/#.*$/, "").trim()).filter((line) => line !== "");
  } catch (error) {
    throw new CommandFailed(describeFileError(path, error), "file");
  }
};

const entriesOf = (given: readonly string[], file: string | undefined): string[] => {
  const entries = [...given, ...(file === undefined ? [] : readList(file))];
  if (entries.length === 0) throw new UsageError("Name at least one address or domain, or a --file with one per line.");
  return entries;
};

/** Changes the list. The audit log has the number of entries, never an address. */
const edit = <T>(
  { audit, db }: DatabaseContext,
  { action, entries }: { readonly action: "suppress.add" | "suppress.remove"; readonly entries: readonly string[] },
  work: (suppressions: Suppressions) => T,
): Promise<T> =>
  audit.perform({
    action: { action, accountId: null, subject: null, after: { entries: entries.length } },
    work: async () => work(openSuppressions(db, systemClock)),
    isRecordedUnchanged: () => false,
  });

const ENTRIES = { given: argument("[entry...]", "addresses and domains") };
const FILE = option("<path>", "a text file with one entry per line; # begins a comment");

/** The operator's list behind the signal `toxic`. */
const SUPPRESS = group(
  {
    description: "Maintain the list of addresses and domains that must not receive mail (signal `toxic`).",
    example: "suppress add spamtrap@example.com",
  },
  {
    add: command({
      description: "Add addresses, and domains with their subdomains.",
      example: 'suppress add spamtrap@example.com example.org --note "spam traps"',
      on: inDatabase,
      args: ENTRIES,
      options: { file: FILE, note: option("<text>", "reason") },
      async run(context, { given, file, note = null }) {
        const entries = entriesOf(given, file);
        const result = await edit(context, { action: "suppress.add", entries }, (list) => list.add(entries, note));
        if (!result.ok) {
          const shown = result.error.slice(0, PROBLEMS_SHOWN_MAX);
          const more = result.error.length - shown.length;
          const tail = more > 0 ? `\n  and ${more} more` : "";
          throw new CommandFailed(`Nothing was added:\n  ${shown.join("\n  ")}${tail}`, "entries");
        }
        const { added, known } = result.value;
        context.print(result.value, () => `${added} added, ${known} already on the list.`);
      },
    }),
    list: command({
      description: "List all entries.",
      example: "suppress list",
      on: inDatabase,
      run(context) {
        const suppressions = openSuppressions(context.db, systemClock)
          .list()
          .map(({ entry, note, createdAtMs }) => ({ entry, note, created_at: isoTime(createdAtMs) }));
        const rows = suppressions.map(({ entry, note, created_at }) => [entry, tableTime(created_at), note ?? ""]);
        context.print({ suppressions }, () => context.table(["ENTRY", "SINCE", "NOTE"], rows));
      },
    }),
    remove: command({
      description: "Remove entries from the list.",
      example: "suppress remove example.org",
      on: inDatabase,
      args: ENTRIES,
      options: { file: FILE },
      async run(context, { given, file }) {
        const entries = entriesOf(given, file);
        const removed = await edit(context, { action: "suppress.remove", entries }, (list) => list.remove(entries));
        if (removed.length === 0) throw new CommandFailed("None of these entries is on the list.", "unknown_entry");
        context.print({ removed }, () => `${removed.length} of ${entries.length} removed.`);
      },
    }),
  },
);

export const SUPPRESS_COMMANDS = { suppress: SUPPRESS };
