import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { isoTime, systemClock } from "../base/clock.ts";
import { composeSuppressions } from "../compose.ts";
import type { Suppressions } from "../suppress/suppressions.ts";
import { addCommand, addGroup } from "./command.ts";
import { CommandFailed, describeFileError, type Io, print, UsageError } from "./io.ts";
import { table, tableTime } from "./terminal-text.ts";
import { recordAction, withDatabase } from "./data-directory.ts";

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

/** Runs `work` with the suppression list of the data directory; `record` appends a count to the audit log, never an address. */
const edit = <T>(io: Io, work: (suppressions: Suppressions, record: RecordEntries) => T): T =>
  withDatabase(io, (db) =>
    work(composeSuppressions(db, systemClock), (action, entries) => {
      if (entries > 0) recordAction(io, db, { action, accountId: null, subject: null, after: { entries } });
    }),
  );

type RecordEntries = (action: "suppress.add" | "suppress.remove", entries: number) => void;

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
    .action((given: string[], { file, note, json }: EntryOptions) => {
      const added = edit(io, (suppressions, record) => {
        const result = suppressions.add(entriesOf(given, file), note ?? null);
        if (result.ok) record("suppress.add", result.value.added);
        return result;
      });
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
    const suppressions = edit(io, (all) => all.list()).map(({ entry, note, createdAtMs }) => ({
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
    .action((given: string[], { file, json }: EntryOptions) => {
      const entries = entriesOf(given, file);
      const removed = edit(io, (suppressions, record) => {
        const found = suppressions.remove(entries);
        record("suppress.remove", found.length);
        return found;
      });
      if (removed.length === 0) throw new CommandFailed("None of these entries is on the list.", "unknown_entry");
      print(io, json, { removed }, () => `${removed.length} of ${entries.length} removed.`);
    });
