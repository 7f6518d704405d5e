import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { isoTime, systemClock } from "../foundation/base/clock.ts";
import { openSuppressions } from "../accounts/open.ts";
import type { Suppressions } from "../accounts/suppress/store.ts";
import { addCommand, addGroup } from "./command.ts";
import { CommandFailed, describeFileError, type Io, print, UsageError } from "./io.ts";
import { table, tableTime } from "./terminal-text.ts";
import { performAction, withDatabase, withDatabaseUntilDone } from "./data-directory.ts";

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

interface EntryOptions {
  readonly file?: string;
  readonly note?: string;
  readonly json?: boolean;
}

const FILE_HELP = "a text file with one entry per line; # begins a comment";

/** Changes the suppression list of the data directory. The audit log has the number of entries, never an address. */
const edit = <T>(
  io: Io,
  { action, entries }: { readonly action: "suppress.add" | "suppress.remove"; readonly entries: readonly string[] },
  work: (suppressions: Suppressions) => T,
): Promise<T> =>
  withDatabaseUntilDone(io, (db) =>
    performAction(io, db, {
      action: { action, accountId: null, subject: null, after: { entries: entries.length } },
      work: async () => work(openSuppressions(db, systemClock)),
      isRecordedUnchanged: () => false,
    }),
  );

/** `suppress add | list | remove`: the operator's list behind the signal `toxic`. */
export const addSuppressCommands = (program: Command, io: Io): void => {
  const group = addGroup(program, "suppress", {
    description: "Maintain the list of addresses and domains that must not receive mail (signal `toxic`).",
    example: "suppress add spamtrap@example.com",
  });
  addSuppressAdd(group, io);
  addSuppressList(group, io);
  addSuppressRemove(group, io);
};

const addSuppressAdd = (group: Command, io: Io): Command =>
  addCommand(group, "add", {
    description: "Add addresses, and domains with their subdomains.",
    example: 'suppress add spamtrap@example.com example.org --note "spam traps"',
  })
    .argument("[entry...]", "addresses and domains")
    .option("--file <path>", FILE_HELP)
    .option("--note <text>", "reason")
    .action(async (given: string[], { file, note, json }: EntryOptions) => {
      const entries = entriesOf(given, file);
      const added = await edit(io, { action: "suppress.add", entries }, (suppressions) =>
        suppressions.add(entries, note ?? null),
      );
      if (!added.ok) {
        const shown = added.error.slice(0, PROBLEMS_SHOWN_MAX);
        const more = added.error.length - shown.length;
        const tail = more > 0 ? `\n  and ${more} more` : "";
        throw new CommandFailed(`Nothing was added:\n  ${shown.join("\n  ")}${tail}`, "entries");
      }
      print(io, json, added.value, () => `${added.value.added} added, ${added.value.known} already on the list.`);
    });

const addSuppressList = (group: Command, io: Io): Command =>
  addCommand(group, "list", { description: "List all entries.", example: "suppress list" }).action(({ json }) => {
    const all = withDatabase(io, (db) => openSuppressions(db, systemClock).list());
    const suppressions = all.map(({ entry, note, createdAtMs }) => ({
      entry,
      note,
      created_at: isoTime(createdAtMs),
    }));
    const rows = suppressions.map(({ entry, note, created_at }) => [entry, tableTime(created_at), note ?? ""]);
    print(io, json, { suppressions }, () => table(["ENTRY", "SINCE", "NOTE"], rows, io.columns));
  });

const addSuppressRemove = (group: Command, io: Io): Command =>
  addCommand(group, "remove", {
    description: "Remove entries from the list.",
    example: "suppress remove example.org",
  })
    .argument("[entry...]", "addresses and domains")
    .option("--file <path>", FILE_HELP)
    .action(async (given: string[], { file, json }: EntryOptions) => {
      const entries = entriesOf(given, file);
      const removed = await edit(io, { action: "suppress.remove", entries }, (suppressions) =>
        suppressions.remove(entries),
      );
      if (removed.length === 0) throw new CommandFailed("None of these entries is on the list.", "unknown_entry");
      print(io, json, { removed }, () => `${removed.length} of ${entries.length} removed.`);
    });
