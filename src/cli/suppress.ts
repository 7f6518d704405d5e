import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { isoTime, systemClock } from "../base/clock.ts";
import { composeSuppressions } from "../compose.ts";
import type { Suppressions } from "../suppress/suppressions.ts";
import { CommandFailed, type Io, print, UsageError } from "./io.ts";
import { table } from "./terminal-text.ts";
import { withDatabase } from "./data-directory.ts";

/** More named in one message would scroll the first ones away. */
const PROBLEMS_SHOWN_MAX = 20;

const readList = (path: string): string[] => {
  try {
    const lines = readFileSync(path, "utf8").split(/\r?\n/);
    return lines.map((line) => line.replace(/#.*$/, "").trim()).filter((line) => line !== "");
  } catch (error) {
    throw new CommandFailed(`${path} cannot be read: ${error instanceof Error ? error.message : error}`, "file");
  }
};

const entriesOf = (given: readonly string[], file: string | undefined): string[] => {
  const entries = [...given, ...(file === undefined ? [] : readList(file))];
  if (entries.length === 0) throw new UsageError("Give at least one address or domain, or a --file with one a line.");
  return entries;
};

/** `suppress add | list | remove`: the operator's list behind the signal `toxic`. */
export const addSuppressCommands = (program: Command, io: Io): void => {
  const group = program.command("suppress").description("addresses and domains not to be mailed (signal `toxic`)");
  const edit = <T>(work: (suppressions: Suppressions) => T): T =>
    withDatabase(io, (db) => work(composeSuppressions(db, systemClock)));

  group
    .command("add")
    .description("add addresses, or domains with all below them")
    .argument("[entry...]", "addresses and domains")
    .option("--file <path>", "a text file with one a line; # begins a comment")
    .option("--note <text>", "why")
    .option("--json", "print JSON")
    .action((given: string[], { file, note, json }: { file?: string; note?: string; json?: boolean }) => {
      const added = edit((suppressions) => suppressions.add(entriesOf(given, file), note ?? null));
      if (!added.ok) {
        const shown = added.error.slice(0, PROBLEMS_SHOWN_MAX);
        const more = added.error.length - shown.length;
        const tail = more > 0 ? `\n  and ${more} more` : "";
        throw new CommandFailed(`Nothing was added:\n  ${shown.join("\n  ")}${tail}`, "entries");
      }
      print(io, json, added.value, () => `${added.value.added} added, ${added.value.known} known before.`);
    });

  group
    .command("list")
    .description("all entries")
    .option("--json", "print JSON")
    .action(({ json }) => {
      const list = edit((suppressions) => suppressions.list());
      const suppressions = list.map(({ entry, note, createdAtMs }) => ({
        entry,
        note,
        created_at: isoTime(createdAtMs),
      }));
      const rows = suppressions.map(({ entry, note, created_at }) => [entry, created_at, note ?? ""]);
      print(io, json, { suppressions }, () => table(["ENTRY", "SINCE", "NOTE"], rows));
    });

  group
    .command("remove")
    .description("take entries off the list")
    .argument("[entry...]", "addresses and domains")
    .option("--file <path>", "a text file with one a line; # begins a comment")
    .option("--json", "print JSON")
    .action((given: string[], { file, json }: { file?: string; json?: boolean }) => {
      const wanted = entriesOf(given, file);
      const removed = edit((suppressions) => suppressions.remove(wanted));
      if (removed.length === 0) throw new CommandFailed("None of these is on the list.", "unknown_entry");
      print(io, json, { removed }, () => `${removed.length} of ${wanted.length} removed.`);
    });
};
